import Foundation
import TestSupport
import Testing

/// The daemon on a host whose battery and charger are folders.
@Suite(.waiting) struct BatteryTests {
    private func fixes(_ sentences: Range<Int>) -> [UInt8] { DemoDrive.bytes(sentences) }

    private func set(_ rig: Rig, _ name: String, _ files: KeyValuePairs<String, String>) throws {
        let folder = supplies(rig)
        for (file, text) in files { try folder.set(name, [file: "\(text)\n"]) }
    }

    private func supplies(_ rig: Rig) -> SupplyFolder { SupplyFolder(at: rig.path("supplies")) }

    private func rig(_ server: LocalServer, _ more: String = "") throws -> Rig {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: Rig.tcp(server.port),
            more: "[battery]\npath = \"\(rig.path("supplies"))\"\n\(more)")
        return rig
    }

    /// Asks the daemon to read the supplies again and again: the kernel sends no events about folders.
    private func look(_ rig: Rig, _ daemon: RunningProgram, until member: String, _ wanted: @escaping (Any?) -> Bool)
        throws
    {
        try rig.waitFor("power", member, within: 60) { value in
            if wanted(value) { return true }
            daemon.kill(SIGHUP)
            return false
        }
    }

    private func records(_ rig: Rig, _ count: Int) throws -> [Rig.Received] {
        try rig.waitForReceived { rows in rows.count { $0.event == "power" } >= count }.filter { $0.event == "power" }
    }

    @Test func tellsOfABatteryThatRunsLowOnceAndOfPowerThatComesAndGoes() throws {
        let server = try LocalServer()
        let rig = try rig(server)
        try set(rig, "BAT0", ["type": "Battery", "status": "Discharging", "capacity": "80"])
        try set(rig, "AC", ["type": "Mains", "online": "0"])
        var daemon = try rig.startDaemon()
        try server.accept()
        server.send(fixes(0..<120))
        try rig.waitFor("motion", "admitted") { ($0 as? Int ?? 0) > 20 }
        #expect(try rig.order(#"{"id":1,"do":"pace","moving":false}"#)["motion"] as? String == "stationary")
        let shown = try rig.command("status --all")
        #expect(shown.text.contains("\npower      battery 80 %, not charging, no external power\n"), "\(shown.text)")

        try set(rig, "BAT0", ["capacity": "9"])
        try look(rig, daemon, until: "low") { $0 as? Bool == true }
        let low = try #require(try records(rig, 1).first)
        #expect(low.reason == "battery-low")
        #expect(low.members["battery"] as? Int == 9)
        #expect(low.members["external_power"] as? Bool == false)
        #expect(daemon.text.contains("power: the battery is low, 9 %"))

        // Not again after a restart.
        try daemon.stop()
        daemon = try rig.startDaemon()
        try server.accept()
        server.send(fixes(120..<240))
        try rig.waitFor("motion", "admitted", within: 60) { ($0 as? Int ?? 0) > 20 }
        try look(rig, daemon, until: "low") { $0 as? Bool == true }

        try set(rig, "AC", ["online": "1"])
        try look(rig, daemon, until: "external") { $0 as? Bool == true }
        #expect(try records(rig, 2).map(\.reason) == ["battery-low", "power-on"])
        try set(rig, "AC", ["online": "0"])
        try look(rig, daemon, until: "external") { $0 as? Bool == false }
        #expect(try records(rig, 3).map(\.reason) == ["battery-low", "power-on", "power-off"])
        try daemon.stop()
        #expect(daemon.text.contains("power supply AC: mains, not connected"))
    }

    @Test func aLowBatteryIsLookedAtWithoutAnyEvent() throws {
        let server = try LocalServer()
        let rig = try rig(server)
        try set(rig, "BAT0", ["type": "Battery", "status": "Discharging", "capacity": "12"])
        let daemon = try rig.startDaemon()
        try rig.waitFor("power", "battery") { $0 as? Int == 12 }
        try set(rig, "BAT0", ["capacity": "7"])
        try rig.waitFor("power", "battery", within: 60) { $0 as? Int == 7 }
        try FileManager.default.removeItem(atPath: rig.path("supplies/BAT0"))
        try rig.waitFor("power", "battery", within: 60) { $0 == nil || $0 is NSNull }
        try daemon.stop()
        // One line for each that happened, however often it was looked at.
        let lines = ["power supply BAT0: battery, 12 %, discharging", "power supply BAT0: gone", "power supply"]
        #expect(lines.map(daemon.count(of:)) == [1, 1, 2], "\(daemon.text)")
    }

    @Test func aGaugeThatHangsStopsNothing() throws {
        let server = try LocalServer()
        let rig = try rig(server)
        try set(rig, "BAT0", ["type": "Battery", "status": "Discharging", "capacity": "80"])
        try set(rig, "AC", ["type": "Mains", "online": "1"])
        var daemon = try rig.startDaemon()
        try server.accept()
        server.send(fixes(0..<60))
        try rig.waitFor("power", "battery") { $0 as? Int == 80 }
        try supplies(rig).block("capacity", of: "BAT0")
        try set(rig, "AC", ["online": "0"])
        // The charger is heard while the gauge hangs, and keeps the level of before.
        try look(rig, daemon, until: "external") { $0 as? Bool == false }
        let before = try #require((try rig.status()["motion"] as? [String: Any])?["admitted"] as? Int)
        server.send(fixes(60..<400))
        try rig.waitFor("motion", "admitted", within: 60) { $0 as? Int ?? 0 > before + 50 }
        // What happens is recorded and sent as ever.
        _ = try rig.order(#"{"id":1,"do":"pace","moving":true}"#)
        func departs(_ rows: [Rig.Received]) -> Bool { rows.contains { $0.event == "motionchange" && $0.moving } }
        #expect(departs(try rig.waitForReceived(departs)))
        let state = "battery, 80 %, discharging, does not answer"
        try rig.waitFor("power", "supplies", within: 60) { ($0 as? [String: String])?["BAT0"] == state }
        try rig.waitFor("power", "battery") { $0 as? Int == 80 }
        #expect(daemon.count(of: "power supply BAT0: " + state) == 1, "\(daemon.text)")
        try daemon.stop()

        // One that hangs from the start keeps nothing back either.
        daemon = try rig.startDaemon()
        try server.accept()
        server.send(fixes(400..<500))
        try rig.waitFor("power", "external", within: 60) { $0 as? Bool == false }
        try rig.waitFor("motion", "admitted", within: 60) { $0 as? Int ?? 0 > 10 }
        while try !supplies(rig).answer("capacity", of: "BAT0", "55\n") { usleep(10_000) }
        try rig.waitFor("power", "battery", within: 60) { $0 as? Int == 55 }
        try daemon.stop()
    }

    @Test func aLowBatteryIsLoggedBeforeThereIsAFix() throws {
        let server = try LocalServer()
        let rig = try rig(server)
        try set(rig, "BAT0", ["type": "Battery", "status": "Discharging", "capacity": "9"])
        let daemon = try rig.startDaemon()
        try server.accept()
        try rig.waitFor("power", "low", within: 60) { $0 as? Bool == true }
        #expect(daemon.count(of: "power: the battery is low, 9 %") == 1, "\(daemon.text)")
        #expect(try rig.received().isEmpty)
        try set(rig, "BAT0", ["capacity": "8"])
        try rig.waitFor("power", "battery", within: 60) { $0 as? Int == 8 }
        server.send(fixes(0..<60))
        let records = try records(rig, 1)
        let record = try #require(records.first)
        #expect(record.reason == "battery-low" && record.members["battery"] as? Int == 8)
        try daemon.stop()
        #expect(daemon.count(of: "power: the battery is low") == 1, "\(daemon.text)")
        #expect(try self.records(rig, 1).count == 1)
    }

    @Test func aLowBatterySlowsWhatIsPublished() throws {
        let server = try LocalServer()
        let rig = try rig(
            server,
            """
            [resolution.apply_without_constraints]
            battery_threshold = 50
            low_battery_multiplier = 4.0
            """)
        try set(rig, "BAT0", ["type": "Battery", "status": "Discharging", "capacity": "60"])
        let daemon = try rig.startDaemon()
        func interval() throws -> Int? {
            let motion = try rig.status()["motion"] as? [String: Any]
            return (motion?["engine"] as? [String: Any])?["interval_ms"] as? Int
        }
        try rig.waitFor("power", "battery") { $0 as? Int == 60 }
        let normal = try #require(try interval())
        try set(rig, "BAT0", ["capacity": "40"])
        try look(rig, daemon, until: "battery") { $0 as? Int == 40 }
        #expect(try interval() == 4 * normal)
        // What feeds a battery makes it good enough.
        try set(rig, "BAT0", ["status": "Charging"])
        try look(rig, daemon, until: "external") { $0 as? Bool == true }
        #expect(try interval() == normal)
        try daemon.stop()
    }

    @Test func anotherProgramMayTellOfABatteryThatNoSupplyKnows() throws {
        let server = try LocalServer()
        let rig = try rig(server)
        try set(rig, "AC", ["type": "Mains", "online": "0"])
        let daemon = try rig.startDaemon()
        try rig.waitFor("power", "external") { $0 as? Bool == false }
        _ = try rig.order(#"{"id":1,"do":"power","percent":33}"#)
        try set(rig, "AC", ["online": "1"])
        // Looking at a charger alone takes nothing back.
        try look(rig, daemon, until: "external") { $0 as? Bool == true }
        try rig.waitFor("power", "battery") { $0 as? Int == 33 }
        try daemon.stop()
    }
}
