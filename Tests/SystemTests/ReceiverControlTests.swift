import Foundation
import TestSupport
import Testing

/// The daemon with a receiver that it may control.
@Suite(.waiting) struct ReceiverControlTests {
    private func start(_ more: String) throws -> (rig: Rig, receiver: SerialReceiver, daemon: RunningProgram) {
        let rig = try Rig()
        try rig.startCollector()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(
            source: Rig.serial(receiver.path), more: more)
        let daemon = try rig.startDaemon()
        // Who answers has opened the line, and flushed what came before.
        try rig.waitFor("source", "state") { $0 != nil }
        return (rig, receiver, daemon)
    }

    @Test func theIntervalOfTheEngineReachesTheReceiver() throws {
        let (rig, receiver, daemon) = try start(
            """
            [receiver]
            profile = "quectel"
            [resolution.default]
            priority = "low"
            interval = "200ms"
            displacement = 0
            """)
        receiver.send(DemoDrive.bytes(0..<40))
        #expect(receiver.written(until: "\r\n") == "$PAIR050,200*21\r\n")
        // It goes on as it was.
        receiver.send(DemoDrive.bytes(40..<100))
        let status = try rig.waitFor("source", "rate") { ($0 as? [String: Any])?["honoured"] as? Bool == false }
        #expect(["wanted_ms", "measured_ms"].map { status.int("source.rate.\($0)") } == [200, 1000])
        // Fixes are thinned in any case: nothing is wrong, but that no more of them come.
        let problems = status["problems"] as? [String] ?? []
        #expect(problems.allSatisfy { $0 == "receiver: silent" }, "\(problems)")
        try daemon.stop(within: 20)
        #expect(daemon.count(of: "rate not honoured") == 1, "\(daemon.text)")
    }

    @Test func aReceiverThatMaySleepIsPutOnStandby() throws {
        let (rig, receiver, daemon) = try start(
            "[receiver]\nprofile = \"mtk\"\nsleep = true\nsettle = \"0s\"\nprobe = \"1h\"")
        #expect(receiver.written(until: "\r\n") == "\r\n")
        receiver.send(DemoDrive.bytes(0..<60))
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":false}"#)["motion"] as? String == "stationary")
        try rig.waitFor("source", "state") { $0 as? String == "asleep" }
        #expect(receiver.written(until: "*28\r\n").hasSuffix("$PMTK161,0*28\r\n"))
        #expect(try rig.order(#"{"id":2,"do":"movement","source":"gpio","moving":true}"#)["ok"] as? Bool == true)
        #expect(receiver.written(until: "\r\n") == "\r\n")
        try daemon.stop(within: 20)
    }
}
