import Foundation
import TestSupport
import Testing

/// The daemon outside the hours of its schedule.
@Suite(.waiting) struct ScheduledDaemonTests {
    @Test func endsTheTripWithTheHoursAndShowsWhenTheyBeginAgain() throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(log)\"\nfollow = true\nplayback = \"max\"",
            more: "[schedule]\ntrack = \"mon 08:00-08:21\"\ntimezone = \"Europe/Berlin\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since 2026-03-02T07:20:59")
        // The log goes on for ten minutes.
        let status = try rig.waitFor("source", "sentences") { $0 as? Int == 3754 }
        let motion = try #require(status.report["motion"] as? [String: Any])
        let schedule = try #require(motion["schedule"] as? [String: Any])
        #expect(schedule["open"] as? Bool == false)
        #expect(schedule["until"] as? String == "2026-03-09T07:00:00.000Z")
        #expect(motion["state"] as? String == "stationary" && motion["stops"] as? Int == 2)
        #expect((status.report["line"] as? String)?.hasPrefix("stationary, outside the schedule, ") == true)
        let pace = try rig.waypost(["pace", "moving", "--socket", rig.path("control.sock")])
        #expect(try pace.exitStatus(within: 10) == 0 && pace.text.contains("stationary"))
        let text = try rig.waypost(["status", "--socket", rig.path("control.sock")])
        _ = try text.exitStatus(within: 10)
        #expect(text.text.contains("\nschedule   not tracking until 2026-03-09T07:00:00.000Z\n"), "\(text.text)")
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 20) == 0)
    }
}
