import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostControl
import WaypostCore
import WaypostHost

@testable import Daemon

/// The file for node_exporter.
@Suite struct MetricsFileTests {
    /// What is in the file at a second.
    private struct Look: Hashable {
        var second: Int
        var fixes: Int?
    }

    /// Calls back at each second of three minutes and more; the count of fixes is the second, up to `last`.
    private func changes(last: Int, seconds: Int, _ body: (Int, String) -> Void = { _, _ in }) throws -> [Look] {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/waypost.prom"
        // All that is watched is a version that is being written.
        let loop = EventLoop(on: try LeapingHost { !$0.isEmpty })
        let start = loop.now
        func second() -> Int { Int(loop.now.seconds(since: start)) }
        let metrics = Metrics(hostName: nil, log: .silent, loop: loop) {
            var status = Status()
            status.source.fixes = min(second(), last)
            return status
        }
        metrics.reload(try loaded(smallest + "[metrics]\ntextfile = \"\(path)\"\n").config.metrics, at: loop.now)
        var changes: [Look] = []
        try withoutActuallyEscaping(body) { body in
            var clock: EventLoop.Alarm?
            clock = loop.alarm { now in
                body(second(), path)
                let fixes = Self.fixes(path)
                if changes.last?.fixes != fixes || changes.isEmpty {
                    changes.append(Look(second: second(), fixes: fixes))
                }
                if second() == seconds { return loop.stop() }
                clock?.deadline = now + .seconds(1)
            }
            clock?.deadline = loop.now + .milliseconds(500)
            try loop.run()
            clock = nil
        }
        return changes
    }

    private static func fixes(_ path: String) -> Int? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("waypost_source_fixes_total ") }
        return line?.split(separator: " ").last.flatMap { Int($0) }
    }

    @Test func isWrittenOnceAMinute() throws {
        let seen = try changes(last: .max, seconds: 130)
        #expect(seen == [Look(second: 0, fixes: 0), Look(second: 60, fixes: 60), Look(second: 120, fixes: 120)])
    }

    @Test func staysAsItIsWhileNothingChanges() throws {
        // One that is removed shows whether it is written again.
        let seen = try changes(last: 50, seconds: 250) { second, path in if second == 70 { unlink(path) } }
        #expect(seen == [Look(second: 0, fixes: 0), Look(second: 60, fixes: 50), Look(second: 70, fixes: nil)])
    }
}
