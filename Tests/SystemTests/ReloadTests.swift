import Foundation
import TestSupport
import Testing

/// The daemon reads its configuration again.
@Suite(.waiting) struct ReloadTests {
    private let drive = DemoDrive.path

    private func reload(_ rig: Rig) throws -> (status: Int32, text: String) { try rig.command("reload") }

    private func engine(_ rig: Rig) throws -> String? { try rig.status().string("motion.engine.mode") }

    @Test func losesNoFixAndForgetsNothingInTheMiddleOfADrive() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: Rig.log(drive, playback: "200"), more: "[tracking]\ngap_after = \"1m\"")
        let manager = try DatagramReceiver()
        let daemon = try rig.startDaemon(environment: ["NOTIFY_SOCKET": manager.path])
        var notices: [String] = []
        for round in 1...5 {
            let (old, new) = (round == 1 ? "\"1m\"" : "\"\(69 + round)s\"", "\"\(70 + round)s\"")
            try rig.waitFor("source", "sentences", within: 60) { ($0 as? Int ?? 0) > round * 400 }
            try rig.reconfigure("gap_after = \(old)", to: "gap_after = \(new)")
            daemon.kill(SIGHUP)
            _ = eventually(within: 60) { () -> Bool? in
                notices += manager.texts()
                return notices.count { $0.hasPrefix("READY=1") } > round ? true : nil
            }
        }
        #expect(try daemon.exitStatus(within: 120) == 0)
        notices += manager.texts()
        let beginnings = ["READY=1", "RELOADING=1\nMONOTONIC_USEC=", "STOPPING=1"]
        let story = notices.compactMap { text in beginnings.first { text.hasPrefix($0) } }
        let reloads: [[String]] = Array(repeating: [beginnings[1], beginnings[0]], count: 5)
        #expect(Array(story.prefix(11)) == [beginnings[0]] + reloads.joined())
        #expect(daemon.count(of: "configuration reloaded; in effect now: [tracking] gap_after") == 5)
        let (received, expected) = try (rig.received(), rig.replayed(drive))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.seq) == Array(1...expected.count))
        #expect(received.map { $0.members.double("odometer") } == expected.map { $0.members.double("odometer") })
    }

    @Test func signalsAreTakenOnceASecondAndNoneIsLost() throws {
        let rig = try Rig()
        try rig.configure(
            source: "kind = \"serial\"\npath = \"/dev/none-such\"", more: "[tracking]\ngap_after = \"61s\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("cannot open")
        let began = ContinuousClock.now
        for round in 1...8 {
            try rig.reconfigure("gap_after = \"\(60 + round)s\"", to: "gap_after = \"\(61 + round)s\"")
            daemon.kill(SIGHUP)
            let words = "configuration reloaded; in effect now: [tracking] gap_after"
            try daemon.waitFor(words, times: round, within: 60)
        }
        // Five at once, then one a second.
        #expect(ContinuousClock.now - began >= .seconds(3))
        try daemon.stop()
    }

    @Test func aConfigurationWithAMistakeChangesNothing() throws {
        let rig = try Rig()
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"", more: "[log]\nlevel = \"info\"")
        let manager = try DatagramReceiver()
        let daemon = try rig.startDaemon(environment: ["NOTIFY_SOCKET": manager.path])
        try rig.waitFor("source", "state") { $0 != nil }
        let good = try String(contentsOfFile: rig.path("waypost.toml"), encoding: .utf8)
        let engine = "[resolution.constant_engine]\npriority = \"high\"\ninterval = 1\ndisplacement = 1\n"
        try rig.reconfigure("[log]", to: engine + "[log]")
        try rig.reconfigure("level = \"info\"", to: "levle = \"debug\"\nlevel = 7")

        let refused = try reload(rig)
        #expect(refused.status == 1)
        let said = daemon.text
        for words in ["\(rig.path("waypost.toml")):", ":1: log.levle: found an unknown key", "did you mean level?"] {
            #expect(refused.text.contains(words) && said.contains(words), "\(refused.text), \(said)")
        }
        #expect(refused.text.contains("nothing has changed"))
        #expect(try self.engine(rig) == "dynamic")
        #expect(try rig.statusExit() == 1)
        #expect(try rig.status().words("problems").contains("configuration refused, the previous one stays in force"))
        let notices = manager.texts()
        let end = try #require(notices.last { $0.hasPrefix("READY=1") })
        #expect(end.contains("STATUS=") && end.contains("configuration refused"))

        // By the file, which names no socket any more, it asks at the usual place.
        let runtime = ["RUNTIME_DIRECTORY": rig.directory.path]
        let byFile = try rig.call(["reload", "--config", rig.path("waypost.toml")], environment: runtime)
        #expect(byFile.status == 1 && byFile.text.contains("log.levle"), "\(byFile)")

        try rig.reconfigure("levle = \"debug\"\nlevel = 7", to: "level = \"debug\"")
        let done = try reload(rig)
        #expect(done.status == 0)
        #expect(done.text.contains("[log] level") && done.text.contains("[resolution.constant_engine]"), "\(done.text)")
        #expect(try self.engine(rig) == "constant")
        #expect(try !rig.status().words("problems").contains("refused"))

        try FileManager.default.removeItem(atPath: rig.path("waypost.toml"))
        let missing = try reload(rig)
        #expect(missing.status == 1 && missing.text.contains("found no such file"))
        #expect(try self.engine(rig) == "constant")
        try good.write(toFile: rig.path("waypost.toml"), atomically: true, encoding: .utf8)
        #expect(try reload(rig).status == 0)
        #expect(try self.engine(rig) == "dynamic")
        try daemon.stop()
    }

    @Test func namesWhatWaitsForTheNextStart() throws {
        let rig = try Rig()
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state") { $0 != nil }
        try rig.reconfigure("id = \"rig\"", to: "id = \"van\"")
        try rig.reconfigure("[control]", to: "commit_window = \"1s\"\n[control]")
        for _ in 0..<2 {
            let reply = try reload(rig)
            let words = "after a restart (sudo systemctl restart waypost): [device] id"
            #expect(reply.status == 0 && reply.text.contains(words), "\(reply.text)")
            let problem = "configuration: [device] id will take effect at a restart: sudo systemctl restart waypost"
            #expect(try rig.call(["status", "--socket", rig.path("control.sock")]).text.contains(problem))
        }
        #expect(daemon.text.contains("in effect now: [outbox] commit_window"))
        let again = try reload(rig)
        #expect(again.text.contains("nothing that takes effect now has changed"))
        try daemon.stop()
    }

    @Test func aTokenFromAnotherFileGoesOutAtOnce() throws {
        let rig = try Rig()
        let server = try ScriptedServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        for (name, token) in [("a", "first-token"), ("b", "second-token")] {
            try token.write(toFile: rig.path(name), atomically: true, encoding: .utf8)
            chmod(rig.path(name), 0o600)
        }
        try rig.configure(
            source: Rig.log(rig.write(DemoDrive.Part(0..<200)), follow: true),
            server: server.port, endpoint: "batch_window = \"0s\"",
            more: "[endpoint.auth]\nkind = \"bearer\"\ntoken = \"file:\(rig.path("a"))\"")
        let daemon = try rig.startDaemon()
        try rig.waitForEndpoint(within: 60) { $0["waiting"] as? Int == 0 && !server.requests.isEmpty }
        #expect(server.requests.allSatisfy { $0.header("Authorization") == "Bearer first-token" })
        try rig.reconfigure(rig.path("a") + "\"", to: rig.path("b") + "\"")
        #expect(try reload(rig).status == 0)
        let before = server.requests.count
        _ = try rig.order(#"{"id":1,"do":"flush","panic":true}"#)
        try rig.waitForEndpoint(within: 60) { _ in server.requests.count > before }
        #expect(server.requests.last?.header("Authorization") == "Bearer second-token")
        try daemon.stop()
    }
}
