import ArgumentParser
import Configuration
import Daemon
import Glibc
import Inspect
import WaypostHost

struct ReplayCommand: ParsableCommand {
    /// What is printed.
    enum Format: ExpressibleByArgument, Equatable {
        case log(ReplayLog.Format)
        case html

        init?(argument: String) {
            if argument == "html" {
                self = .html
            } else if let form = ReplayLog.Format(rawValue: argument == "txt" ? "text" : argument) {
                self = .log(form)
            } else {
                return nil
            }
        }

        static var allValueStrings: [String] { ReplayLog.Format.allCases.map(\.rawValue) + ["html"] }
    }

    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Run recorded logs through tracking, as the daemon would, without waiting.",
        discussion: """
            Nothing is stored or sent. The text lists trips, stops and gaps with times and reasons, \
            and what happened to the fixes; jsonl prints each decision as an object; html is a page with map, timeline, \
            reasons, and what other settings would keep; gpx, geojson, csv and kml are the locations that are kept, for \
            other programs. With --config the settings of that file apply, otherwise the defaults.

              waypost replay drive.nmea
              waypost replay --format html -o report.html drive.nmea
              waypost replay --config /etc/waypost/waypost.toml --format jsonl drive.nmea
              waypost replay --format gpx -o drive.gpx drive.nmea
              waypost replay --config waypost.toml --beacons drive.beacons.jsonl drive.nmea
            """)

    @Argument(
        help: "Logs in NMEA, gpsd's JSON or GPX, read one after the other; - is standard input.", completion: .file())
    var logs: [String]

    @Option(help: "A configuration whose tracking settings to use.", completion: .file(extensions: ["toml"]))
    var config: String?

    @Option(
        help: "What beacons were sighted meanwhile, as JSON Lines; the regions are those of --config.",
        completion: .file(extensions: ["jsonl"]))
    var beacons: String?

    @Option(help: "text, jsonl, html, gpx, geojson, csv or kml; without it by the end of --output, else text.")
    var format: Format?

    @OptionGroup(title: "Options for html")
    var report: ReportArguments

    @Option(
        name: .shortAndLong, help: "The file to write, whole or not at all; - is standard output.", completion: .file())
    var output: String?

    private func form() throws -> Format {
        try format ?? formatByName(of: output, Format.init(argument:)) ?? .log(.text)
    }

    func validate() throws {
        let form = try form()
        guard form == .html || !report.isUsed else {
            throw ValidationError("--compare, --title, --hide-ends, --tiles and --attribution need --format html")
        }
        guard form != .html || beacons == nil else { throw ValidationError("--beacons does not go with --format html") }
        guard config != nil || beacons == nil else {
            throw ValidationError("--beacons needs --config, for the regions of [[beacons.regions]]")
        }
        guard beacons != "-" || !logs.contains("-") else {
            throw ValidationError("standard input is one log: name a file for the other")
        }
    }

    func run() throws {
        let loaded = try config.map { try ConfigurationFile.load($0) }
        if beacons != nil, let config, loaded?.config.beacons.regions.isEmpty ?? true {
            throw fail("\(config) has no [[beacons.regions]], which --beacons needs", exitCode: 64)  // EX_USAGE
        }
        let read = logs + [beacons, config].compactMap(\.self) + (loaded?.allFiles ?? [])
        let file = try outputFile(output, insteadOf: read)
        switch try form() {
        case .html:
            let page = try report.page(of: logs, loaded, output: file.descriptor)
            do throws(SystemError) { try OutputBuffer(descriptor: file.descriptor).write(page) } catch {
                throw fail(error)
            }
        case .log(let form):
            do throws(LogFailure) {
                let beacons = try beacons.map { (path) throws(LogFailure) in try BeaconLog(path: path) }
                notify(
                    try ReplayLog(loaded).run(
                        logs: logs, beacons: beacons, format: form, to: file.descriptor, folder: temporaryFolder(),
                        stamp: LocalTime.stamp))
            } catch {
                throw fail(error)
            }
        }
        do throws(SystemError) { try file.commit() } catch { throw fail(error) }
    }
}

/// The format of a file by the end of its name.
///
/// - Returns: nil where there is no file, or it has a name without an end, as `/dev/stdout` has.
/// - Throws: for an end that no format has.
func formatByName<Format>(of path: String?, _ format: (String) -> Format?) throws -> Format? {
    guard let path, let dot = path.lastIndex(of: "."), !path[dot...].contains("/") else { return nil }
    let end = path[path.index(after: dot)...].lowercased()
    guard let known = format(end) else {
        throw ValidationError("no format ends in .\(end): name one with --format, or end \(path) in that of one")
    }
    return known
}

/// - Parameters:
///   - path: nil = standard output.
///   - inputs: files that are read, none of which may be written; `-` is standard input.
///   - replaces: an existing file is replaced; else it is an error.
func outputFile(_ path: String?, insteadOf inputs: [String] = [], replaces: Bool = true) throws -> OutputFile {
    if let path, path != "-", let output = FileIdentity(path),
        let input = inputs.first(where: { output.isSame(as: $0) })
    {
        let problem =
            input == "-" ? "is read, as standard input" : input == path ? "is read" : "is the same file as \(input)"
        throw fail("\(path) \(problem): name another one", exitCode: 64)  // EX_USAGE
    }
    do throws(SystemError) { return try OutputFile(path: path, replaces: replaces) } catch {
        throw fail(error, exitCode: 73)  // EX_CANTCREAT
    }
}

/// Which file a name stands for, or will stand for.
private struct FileIdentity {
    /// Of the file; nil where it has to be made.
    private var file: stat?
    private var folder = stat()
    private let name: Substring

    /// nil where there can be no file.
    init?(_ path: String) {
        var status = stat()
        if path == "-" {
            guard fstat(STDIN_FILENO, &status) == 0 else { return nil }
            (file, name) = (status, "")
            return
        }
        if stat(path, &status) == 0 { file = status }
        let slash = path.lastIndex(of: "/")
        name = slash.map { path[path.index(after: $0)...] } ?? path[...]
        let parent = slash.map { String(path[...$0]) } ?? "."
        guard stat(parent, &folder) == 0 else { return nil }
    }

    func isSame(as path: String) -> Bool {
        guard let other = FileIdentity(path) else { return false }
        if let mine = file, let others = other.file {
            return mine.st_mode & S_IFMT == S_IFREG && mine.st_dev == others.st_dev && mine.st_ino == others.st_ino
        }
        return file == nil && other.file == nil && name == other.name && folder.st_dev == other.folder.st_dev
            && folder.st_ino == other.folder.st_ino
    }
}

/// Says on standard error what of a log was skipped.
func notify(_ notices: [LogProblem]) {
    for notice in notices { printError("waypost: \(notice)") }
}

/// Where temporary files are made.
func temporaryFolder() -> String {
    guard let folder = getenv("TMPDIR"), folder.pointee != 0 else { return "/tmp" }
    return String(cString: folder)
}

func fail(_ failure: LogFailure) -> ExitCode {
    switch failure {
    case .system(let error): fail(error)
    case .content(let problem): fail(problem, exitCode: 65)  // EX_DATAERR
    }
}
