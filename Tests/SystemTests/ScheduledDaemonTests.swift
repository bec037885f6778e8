import Foundation
import TestSupport
import Testing

/// The daemon outside the hours of its schedule.
@Suite(.waiting) struct ScheduledDaemonTests {
    @Test func endsTheTripWithTheHoursAndShowsWhenTheyBeginAgain() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: Rig.log(DemoDrive.path, follow: true),
            more: "[schedule]\ntrack = \"mon 08:00-08:21\"\ntimezone = \"Europe/Berlin\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since 2026-03-02T07:20:59")
        // The log goes on for ten minutes.
        let status = try rig.waitFor("source", "sentences") { $0 as? Int == 3754 }
        #expect(status.bool("motion.schedule.open") == false)
        #expect(status.string("motion.schedule.until") == "2026-03-09T07:00:00.000Z")
        #expect(status.string("motion.state") == "stationary" && status.int("motion.stops") == 2)
        #expect(status.words("line").hasPrefix("stationary, outside the schedule, "))
        let pace = try rig.command("pace moving")
        #expect(pace.status == 0 && pace.text.contains("stationary"), "\(pace)")
        let text = try rig.command("status --all").text
        #expect(text.contains("\nschedule   not tracking until 2026-03-09T07:00:00.000Z\n"), "\(text)")
        try daemon.stop(within: 20)
    }
}
