import Foundation
import TestSupport
import Testing

/// The daemon with a receiver that it may control.
@Suite(.waiting) struct ReceiverControlTests {
    private static let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea")

    /// Lines of a receiver with one fix a second, parked.
    private func lines() throws -> [[UInt8]] {
        try Data(contentsOf: Self.drive).split(separator: 0x0A).filter { $0.first == UInt8(ascii: "$") }
            .map { Array($0) + [0x0A] }
    }

    private func start(_ more: String) throws -> (rig: Rig, receiver: SerialReceiver, daemon: RunningProgram) {
        let rig = try Rig()
        try rig.startCollector()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(
            source: "kind = \"serial\"\npath = \"\(receiver.path)\"\nbaud = 9600\nrollover = \"off\"", more: more)
        let daemon = try rig.startDaemon()
        // Who answers has opened the line, and flushed what came before.
        try rig.waitFor("source", "state") { $0 != nil }
        return (rig, receiver, daemon)
    }

    private func end(_ daemon: RunningProgram) throws {
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 20) == 0)
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
        let lines = try lines()
        receiver.send(Array(lines.prefix(40).joined()))
        #expect(receiver.written(until: "\r\n") == "$PAIR050,200*21\r\n")
        // It goes on as it was.
        receiver.send(Array(lines.dropFirst(40).prefix(60).joined()))
        let status = try rig.waitFor("source", "rate") { ($0 as? [String: Any])?["honoured"] as? Bool == false }
        let rate = (status.report["source"] as? [String: Any])?["rate"] as? [String: Any]
        #expect(rate?["wanted_ms"] as? Int == 200 && rate?["measured_ms"] as? Int == 1000)
        // Fixes are thinned in any case: nothing is wrong, but that no more of them come.
        let problems = status.report["problems"] as? [String] ?? []
        #expect(problems.allSatisfy { $0 == "receiver: silent" }, "\(problems)")
        try end(daemon)
        #expect(daemon.text.components(separatedBy: "rate not honoured").count == 2, "\(daemon.text)")
    }

    @Test func aReceiverThatMaySleepIsPutOnStandby() throws {
        let (rig, receiver, daemon) = try start(
            "[receiver]\nprofile = \"mtk\"\nsleep = true\nsettle = \"0s\"\nprobe = \"1h\"")
        #expect(receiver.written(until: "\r\n") == "\r\n")
        receiver.send(Array(try lines().prefix(60).joined()))
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 5 }
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":false}"#)["motion"] as? String == "stationary")
        try rig.waitFor("source", "state") { $0 as? String == "asleep" }
        #expect(receiver.written(until: "*28\r\n").hasSuffix("$PMTK161,0*28\r\n"))
        #expect(try rig.order(#"{"id":2,"do":"movement","source":"gpio","moving":true}"#)["ok"] as? Bool == true)
        #expect(receiver.written(until: "\r\n") == "\r\n")
        try end(daemon)
    }
}
