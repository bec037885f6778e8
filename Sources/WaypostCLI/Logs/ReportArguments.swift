import ArgumentParser
import Configuration
import Daemon
import Inspect
import WaypostCore
import WaypostHost

/// What `replay --format html` can be told.
struct ReportArguments: ParsableArguments {
    /// Settings that no file changes. The source is required, and not used.
    private static let defaults = """
        [source]
        kind = "file"
        path = "/dev/null"
        """

    @Option(help: "A configuration to compare with; may be repeated.", completion: .file(extensions: ["toml"]))
    var compare: [String] = []

    @Option(help: "Title of the page. The default is the name of the log.")
    var title: String?

    @Option(
        help: ArgumentHelp(
            "Hide positions within this distance of the ends of trips, such as 200m.", valueName: "distance"),
        transform: { try Quantity.read($0, .distance, 1...100_000) })
    var hideEnds: Double?

    @Option(help: ArgumentHelp("Map tiles that the reader may switch on.", valueName: "url with {z} {x} {y}"))
    var tiles: String?

    @Option(help: "Who made the tiles.")
    var attribution: String?

    var isUsed: Bool { !compare.isEmpty || title != nil || hideEnds != nil || tiles != nil || attribution != nil }

    func validate() throws {
        if let tiles, ReportOptions.origin(tiles) == nil {
            throw ValidationError("--tiles: expected a URL such as https://tile.example.org/{z}/{x}/{y}.png")
        }
    }

    /// - Parameter output: where the page goes.
    func page(of logs: [String], _ loaded: LoadedConfiguration?, output: Int32) throws -> [UInt8] {
        var options = ReportOptions()
        options.title = title
        options.hideEnds = hideEnds
        options.tiles = tiles
        options.units = loaded?.config.units ?? .metric
        options.attribution = attribution
        let compared = try compare.map { path in
            (name: path.split(separator: "/").last.map(String.init) ?? path, loaded: try ConfigurationFile.load(path))
        }
        let progress = ProgressLine(.bytes, total: LogFile.bytes(logs), output: output)
        do throws(ReportLog.Failure) {
            let page = try ReportLog(loaded ?? Self.shipped(), comparedWith: compared, options: options)
                .page(of: logs, made: HostIdentity.wallClockMs()) { progress?.advanced(by: $0) }
            progress?.end()
            notify(page.notices)
            return page.html
        } catch {
            progress?.end()
            switch error {
            case .unreadable(let error): throw fail(error)
            case .empty, .hidden: throw fail(error, exitCode: 65)  // EX_DATAERR
            case .memory: throw fail(error, exitCode: 71)  // EX_OSERR
            }
        }
    }

    private static func shipped() -> LoadedConfiguration? {
        try? AgentConfig.parse(
            [("defaults", Array(defaults.utf8))], environment: ConfigurationFile.environment(requiresCredentials: false)
        )
    }
}
