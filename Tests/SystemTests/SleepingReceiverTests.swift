import Foundation
import TestSupport
import Testing

/// The daemon with a receiver that may sleep while nothing moves.
@Suite(.waiting) struct SleepingReceiverTests {
    /// The first seconds of a drive, parked.
    private let fixes = DemoDrive.bytes(0..<60)

    /// The daemon with the first fixes of its receiver.
    private func start(_ more: String) throws -> (rig: Rig, server: LocalServer, daemon: RunningProgram) {
        let (rig, server, daemon) = try Rig.withReceiver(more: more)
        server.send(fixes)
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        return (rig, server, daemon)
    }

    private func isAsleep(_ value: Any?) -> Bool { value as? String == "asleep" }

    private func park(_ rig: Rig) throws {
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":false}"#)["motion"] as? String == "stationary")
    }

    @Test func hangsUpWhileParkedAndLooksNowAndThen() throws {
        let (rig, server, daemon) = try start(
            "[receiver]\nsleep = true\nsettle = \"0s\"\nprobe = \"1s\"\nprobe_on = \"1s\"")
        try park(rig)
        // Twice, so that it also went to sleep again.
        for _ in 0..<2 {
            try server.accept()
            server.send(fixes)
        }
        try daemon.stop()
        // The journal of a parked week names the receiver once.
        #expect(daemon.count(of: ": receiving") == 1, "\(daemon.text)")
    }

    @Test func aMovementSourceWakesIt() throws {
        let (rig, server, daemon) = try start("[receiver]\nsleep = true\nsettle = \"0s\"\nprobe = \"1h\"")
        try park(rig)
        let asleep = try rig.waitFor("source", "state", isAsleep)
        // It is as it should be.
        #expect(asleep.string("health") == "ok" && asleep.words("line").contains("receiver asleep until "))
        #expect(try rig.order(#"{"id":1,"do":"movement","source":"gpio"}"#)["error"] != nil)
        let still = try rig.order(#"{"id":2,"do":"movement","source":"gpio","moving":false}"#)
        #expect(still["motion"] as? String == "stationary")
        #expect(isAsleep(try rig.status().member("source.state")))
        let moved = try rig.order(#"{"id":3,"do":"movement","source":"gpio","moving":true}"#)
        #expect(moved["motion"] as? String == "stationary" && moved["ok"] as? Bool == true)
        try server.accept()
        try daemon.stop()
    }

    @Test func afterAStopItIsReleasedUntilPaceMoving() throws {
        let (rig, server, first) = try start(
            "[tracking]\nstop_on_stationary = true\nstop_timeout = \"0s\"\nno_fix_timeout = \"1m\"")
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":true}"#)["motion"] as? String == "moving")
        // Standing fixes end the trip that was forced, since no halt is too short here.
        server.send(DemoDrive.bytes(60..<240))
        let released = try rig.waitFor("source", "state", isAsleep)
        #expect(released.words("line").contains("until waypost pace moving"))
        // So it is for the next process too.
        try first.stop()
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state", isAsleep)
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":true}"#)["ok"] as? Bool == true)
        try server.accept()
        try daemon.stop()
    }
}
