import Agent
import ArgumentParser
import NMEA
import Tracking

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run recorded logs through tracking, as the daemon would, in an instant.",
        discussion: """
            Nothing is stored and nothing is sent. The text tells trips, stops and gaps with times and reasons, \
            and what became of the fixes; jsonl gives each decision as an object. With --config the settings of \
            that file decide; without, the defaults.

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
        var decoding = NMEADecoder.Settings()
        var tracking = Tracker.Settings(trackables: [Trackable(id: "device")])
        if let config {
            let loaded = try ConfigurationFile.load(config)
            decoding = loaded.config.source.decoding
            decoding.live = false
            // Logs are legitimately old: what suits the receiver by default does not suit them.
            if !loaded.effective.isWritten("rollover", in: "[source]") { decoding.rollover = .off }
            tracking = loaded.config.tracking
        }
        do throws(SystemError) {
            try ReplayLog(decoding: decoding, tracking: tracking).run(logs: logs, format: format)
        } catch {
            throw fail(error)
        }
    }
}

extension ReplayLog.Format: ExpressibleByArgument {}
