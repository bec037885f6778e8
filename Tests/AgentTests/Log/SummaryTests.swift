import Glibc
import Logging
import Positioning
import Synchronization
import TestSupport
import Testing

@testable import Agent

/// The daemon's own line an hour, with a shorter hour.
@Suite struct SummaryTests {
    /// Keeps what is logged.
    private final class Lines: Sendable {
        let lines = Mutex<[String]>([])
    }

    private struct Handler: LogHandler {
        let kept: Lines
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { kept.lines.withLock { $0.append("\(event.message)") } }
    }

    @Test func anAlarmSumsUp() throws {
        let directory = try makeTemporaryDirectory()
        defer {
            for name in ["outbox.db", "outbox.db-wal", "outbox.db-shm", "outbox.db-lock"] {
                unlink("\(directory)/\(name)")
            }
            rmdir(directory)
        }
        let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path
        let config = try loaded(
            """
            [source]
            kind = "file"
            path = "\(drive)"
            playback = 2000.0
            [outbox]
            path = "\(directory)/outbox.db"
            [control]
            socket = "\(directory)/control.sock"
            [[endpoint]]
            base_url = "http://127.0.0.1:9"
            """
        ).config
        let kept = Lines()
        var options = Agent.Options()
        options.linger = .zero
        options.summaryInterval = .milliseconds(50)
        let agent = try Agent(
            config: config, environment: [:], logger: Logger(label: "") { _ in Handler(kept: kept) }, options: options)
        _ = try agent.run()
        let sums = kept.lines.withLock { $0.filter { $0.contains(" bytes sent since start") } }
        #expect(sums.count > 3)
        #expect(sums.last?.contains(" fixes, ") == true && sums.last?.contains(" kept, ") == true)
    }
}
