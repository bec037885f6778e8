import ConfigurationTestSupport
import Logging
import TestSupport
import Testing
import WaypostCore

@testable import Daemon

/// The daemon's own line an hour, with a shorter hour.
@Suite struct SummaryTests {
    @Test func anAlarmSumsUp() throws {
        let directory = try TemporaryDirectory()
        let config = try loaded(
            """
            [source]
            kind = "file"
            path = "\(DemoDrive.path)"
            playback = 2000.0
            [outbox]
            path = "\(directory.path)/outbox.db"
            [control]
            socket = "\(directory.path)/control.sock"
            [[endpoint]]
            base_url = "http://127.0.0.1:9"
            """
        ).config
        let lines = LogLines()
        var options = Agent.Options()
        options.linger = .zero
        options.summaryInterval = .milliseconds(50)
        let agent = try Agent(
            config: config, environment: [:], logger: Logger(label: "") { _ in lines }, options: options)
        _ = try agent.run()
        let sums: [String] = lines.text.filter { $0.contains(" bytes sent since start") }
        #expect(sums.count > 3)
        #expect(sums.last?.contains(" fixes, ") == true && sums.last?.contains(" kept, ") == true)
    }
}
