import Agent
import ArgumentParser
import EventLoop
import Replay

struct ReplayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Run recorded logs through tracking, as the daemon would, without waiting.",
        discussion: """
            Nothing is stored or sent. The text lists trips, stops and gaps with times and reasons, \
            and what happened to the fixes; jsonl prints each decision as an object. With --config the settings of \
            that file apply, otherwise the defaults.

              waypost replay drive.nmea
              waypost replay --config /etc/waypost/waypost.toml --format jsonl drive.nmea
            """)

    @Argument(help: "NMEA logs, read one after the other; - is standard input.", completion: .file())
    var logs: [String]

    @Option(help: "A configuration whose tracking settings to use.", completion: .file(extensions: ["toml"]))
    var config: String?

    @Option(help: "text or jsonl.")
    var format = ReplayLog.Format.text

    func run() throws {
        let loaded = try config.map { try ConfigurationFile.load($0) }
        do throws(SystemError) {
            try ReplayLog(loaded).run(logs: logs, format: format)
        } catch {
            throw fail(error)
        }
    }
}

extension ReplayLog.Format: ExpressibleByArgument {}
