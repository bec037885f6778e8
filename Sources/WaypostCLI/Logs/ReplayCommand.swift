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

    @Argument(
        help: "Logs in NMEA, gpsd's JSON or GPX, read one after the other; - is standard input.", completion: .file())
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
        do throws(LogFailure) {
            switch format {
            case .text: notify(try ReplayLog(loaded).run(logs: logs, format: .text))
            case .jsonl: notify(try ReplayLog(loaded).run(logs: logs, format: .jsonl))
            case .html: try Self.write(page)
            }
        } catch {
            throw fail(error)
        }
    }

    private static func write(_ page: [UInt8]) throws(LogFailure) {
        do throws(SystemError) { try OutputBuffer().write(page) } catch { throw .system(error) }
    }
}

/// Says on standard error what of a log was skipped.
func notify(_ notices: [LogProblem]) {
    for notice in notices { printError("waypost: \(notice)") }
}

func fail(_ failure: LogFailure) -> ExitCode {
    switch failure {
    case .system(let error): fail(error)
    case .content(let problem): fail(problem, exitCode: 65)  // EX_DATAERR
    }
}

