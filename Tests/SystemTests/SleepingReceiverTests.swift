import Foundation
import TestSupport
import Testing

/// The daemon with a receiver that may sleep while nothing moves.
@Suite(.waiting) struct SleepingReceiverTests {
    private static let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea")

    /// The first seconds of a drive, parked.
    private func fixes() throws -> [UInt8] {
        let lines = try Data(contentsOf: Self.drive).split(separator: 0x0A).filter { $0.first == UInt8(ascii: "$") }
        return lines.prefix(60).flatMap { Array($0) + [0x0A] }
    }

    private func configure(_ rig: Rig, _ server: LocalServer, _ more: String) throws {
        try rig.configure(
            source: "kind = \"tcp\"\nhost = \"127.0.0.1\"\nport = \(server.port)\nrollover = \"off\"", more: more)
    }

    private func isAsleep(_ value: Any?) -> Bool { value as? String == "asleep" }

    private func park(_ rig: Rig) throws {
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":false}"#)["motion"] as? String == "stationary")
    }

    @Test func hangsUpWhileParkedAndLooksNowAndThen() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try configure(rig, server, "[receiver]\nsleep = true\nsettle = \"0s\"\nprobe = \"1s\"\nprobe_on = \"1s\"")
        let daemon = try rig.startDaemon()
        try server.accept()
        server.send(try fixes())
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        try park(rig)
        // Twice, so that it also went to sleep again.
        for _ in 0..<2 {
            try server.accept()
            server.send(try fixes())
        }
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        // The journal of a parked week names the receiver once.
        #expect(daemon.text.components(separatedBy: ": receiving").count == 2, "\(daemon.text)")
    }

    @Test func aMovementSourceWakesIt() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try configure(rig, server, "[receiver]\nsleep = true\nsettle = \"0s\"\nprobe = \"1h\"")
        let daemon = try rig.startDaemon()
        try server.accept()
        server.send(try fixes())
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        try park(rig)
        let asleep = try rig.waitFor("source", "state", isAsleep)
        // It is as it should be.
        #expect(asleep.exit == 0)
        #expect((asleep.report["line"] as? String)?.contains("receiver asleep until ") == true)
        #expect(try rig.order(#"{"id":1,"do":"movement","source":"gpio"}"#)["error"] != nil)
        let still = try rig.order(#"{"id":2,"do":"movement","source":"gpio","moving":false}"#)
        #expect(still["motion"] as? String == "stationary")
        #expect(isAsleep((try rig.status().report["source"] as? [String: Any])?["state"]))
        let moved = try rig.order(#"{"id":3,"do":"movement","source":"gpio","moving":true}"#)
        #expect(moved["motion"] as? String == "stationary" && moved["ok"] as? Bool == true)
        try server.accept()
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    @Test func afterAStopItIsReleasedUntilPaceMoving() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try configure(
            rig, server, "[tracking]\nstop_on_stationary = true\nstop_timeout = \"0s\"\nno_fix_timeout = \"1m\"")
        var daemon = try rig.startDaemon()
        try server.accept()
        let bytes = try fixes()
        server.send(bytes)
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":true}"#)["motion"] as? String == "moving")
        // Standing fixes end the trip that was forced, since no halt is too short here.
        let more = try Data(contentsOf: Self.drive).split(separator: 0x0A).filter { $0.first == UInt8(ascii: "$") }
        server.send(more.prefix(240).dropFirst(60).flatMap { Array($0) + [0x0A] })
        let released = try rig.waitFor("source", "state", isAsleep)
        #expect((released.report["line"] as? String)?.contains("until waypost pace moving") == true)
        // So it is for the next process too.
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        daemon = try rig.startDaemon()
        try rig.waitFor("source", "state", isAsleep)
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":true}"#)["ok"] as? Bool == true)
        try server.accept()
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }
}
