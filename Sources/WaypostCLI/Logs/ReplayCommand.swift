import Agent
import ArgumentParser
import Configuration
import EventLoop
import Replay
import Report

struct ReplayCommand: ParsableCommand {
    /// What is printed.
    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, jsonl, html
    }

    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Run recorded logs through tracking, as the daemon would, without waiting.",
        discussion: """
            Nothing is stored or sent. The text lists trips, stops and gaps with times and reasons, \
            and what happened to the fixes; jsonl prints each decision as an object; html is a page with map, timeline, \
            reasons, and what other settings would keep. With --config the settings of that file apply, otherwise the \
            defaults.

              waypost replay drive.nmea
              waypost replay --format html drive.nmea > report.html
              waypost replay --config /etc/waypost/waypost.toml --format jsonl drive.nmea
            """)

    @Argument(help: "NMEA logs, read one after the other; - is standard input.", completion: .file())
    var logs: [String]

    @Option(help: "A configuration whose tracking settings to use.", completion: .file(extensions: ["toml"]))
    var config: String?

    @Option(help: "text, jsonl or html.")
    var format = Format.text

    @OptionGroup(title: "Options for html")
    var report: ReportArguments

    func validate() throws {
        guard format == .html || !report.isUsed else {
            throw ValidationError("--compare, --title, --hide-ends, --tiles and --attribution need --format html")
        }
    }

    func run() throws {
        let loaded = try config.map { try ConfigurationFile.load($0) }
        let page = format == .html ? try report.page(of: logs, loaded) : []
        do throws(SystemError) {
            switch format {
            case .text: try ReplayLog(loaded).run(logs: logs, format: .text)
            case .jsonl: try ReplayLog(loaded).run(logs: logs, format: .jsonl)
            case .html: try OutputBuffer().write(page)
            }
        } catch {
            throw fail(error)
        }
    }
}
