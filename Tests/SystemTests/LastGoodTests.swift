import Foundation
import TestSupport
import Testing

/// The daemon starts although its configuration cannot be used.
@Suite(.waiting) struct LastGoodTests {
    private func environment(_ rig: Rig) -> [String: String] { ["STATE_DIRECTORY": rig.directory.path] }

    private func kept(_ rig: Rig) -> Data? { FileManager.default.contents(atPath: rig.path("last-good.conf")) }

    private func waitForKept(_ rig: Rig, _ words: String) throws {
        let isKept = eventually(within: 20) {
            String(decoding: kept(rig) ?? Data(), as: UTF8.self).contains(words) ? true : nil
        }
        try #require(isKept == true, "no \(words)")
    }

    @Test func startsWithItAndReturnsToNormalByAReload() throws {
        let rig = try Rig()
        try rig.configure(
            source: "kind = \"serial\"\npath = \"/dev/none-such\"", more: "[tracking]\nheartbeat = \"7m\"")
        let first = try rig.startDaemon(environment: environment(rig))
        try waitForKept(rig, "heartbeat = \"7m\"")
        let mode = try FileManager.default.attributesOfItem(atPath: rig.path("last-good.conf"))[.posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try rig.status().string("configuration") == "current")
        let before = kept(rig)
        try first.stop(within: 20)

        // Nothing is written while nothing changes: not even the time of the file moves.
        let attributes = try FileManager.default.attributesOfItem(atPath: rig.path("last-good.conf"))
        try rig.reconfigure("heartbeat = \"7m\"", to: "heartbeat = \"7mm\"")
        let mistake = "\(rig.path("waypost.toml")):15:13: tracking.heartbeat: found \"7mm\""
        let daemon = try rig.startDaemon(environment: environment(rig))
        try daemon.waitFor("running on the last good one")
        #expect(daemon.text.contains("configuration refused: \(mistake)"), "\(daemon.text)")
        let status = try rig.status()
        #expect(["health", "configuration"].map(status.string) == ["degraded", "last-good"])
        let problems = status["problems"] as? [String] ?? []
        #expect(problems.contains { $0.hasPrefix("configuration refused, running on the last good one: \(mistake)") })
        #expect(try rig.call(["check", rig.path("waypost.toml")]).status == 78)
        // By the file, commands find the socket all the same.
        func byFile(_ command: [String]) throws -> (status: Int32, text: String) {
            try rig.call(command + ["--config", rig.path("waypost.toml")], environment: environment(rig))
        }
        let asked = try byFile(["status"])
        #expect(asked.status == 1 && asked.text.contains("degraded") && asked.text.contains(mistake), "\(asked)")
        for command in [["queue"], ["quarantine", "list"]] {
            let list = try byFile(command)
            #expect(list.status == 0 && list.text.contains("warning: \(mistake)"), "\(list)")
        }
        // A second mistake leaves it where it was.
        #expect(try rig.command("reload").status == 1)
        #expect(try rig.status().string("configuration") == "last-good")
        #expect(kept(rig) == before)
        let after = try FileManager.default.attributesOfItem(atPath: rig.path("last-good.conf"))
        #expect(after[.systemFileNumber] as? Int == attributes[.systemFileNumber] as? Int)

        try rig.reconfigure("heartbeat = \"7mm\"", to: "heartbeat = \"8m\"")
        let reload = try rig.command("reload")
        #expect(reload.status == 0 && reload.text.contains("in effect now: [tracking] heartbeat"), "\(reload)")
        #expect(try rig.status().string("configuration") == "current")
        #expect(try !rig.status().words("problems").contains("configuration"))
        try waitForKept(rig, "heartbeat = \"8m\"")
        try daemon.stop(within: 20)
    }

    @Test func aStrictStartDoesWithoutIt() throws {
        let rig = try Rig()
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"")
        let first = try rig.startDaemon(environment: environment(rig))
        try waitForKept(rig, "none-such")
        try first.stop(within: 20)
        try "".write(toFile: rig.path("waypost.toml"), atomically: true, encoding: .utf8)
        let strict = try rig.startDaemon(["--strict"], environment: environment(rig))
        #expect(try strict.exitStatus(within: 20) == 78)
        #expect(strict.text.contains("source.kind"))
        let tolerant = try rig.startDaemon(environment: environment(rig))
        try tolerant.waitFor("running on the last good one")
        try tolerant.stop(within: 20)
        try FileManager.default.removeItem(atPath: rig.path("last-good.conf"))
        let none = try rig.startDaemon(environment: environment(rig))
        #expect(try none.exitStatus(within: 20) == 78)
        #expect(!none.text.contains("last good"), "\(none.text)")
    }

    /// One that waits for a restart in part has not run as it is written.
    @Test func keepsWhatRanAsAWhole() throws {
        let rig = try Rig()
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"")
        let daemon = try rig.startDaemon(environment: environment(rig))
        try waitForKept(rig, "id = \"rig\"")
        try rig.reconfigure("id = \"rig\"", to: "id = \"van\"")
        #expect(try rig.command("reload").status == 0)
        try rig.reconfigure("id = \"van\"", to: "id = \"rig\"\n[tracking]\nheartbeat = \"9m\"")
        #expect(try rig.command("reload").status == 0)
        try waitForKept(rig, "heartbeat = \"9m\"")
        #expect(!String(decoding: kept(rig) ?? Data(), as: UTF8.self).contains("van"))
        try daemon.stop(within: 20)
    }

    /// A daemon that has not been told of the new file cannot know that it could not start with it.
    @Test func rowsOfARemovedEndpointAreAProblem() throws {
        let rig = try Rig()
        // Nobody listens: what a stop sends at once would not wait any more.
        try rig.configure(source: Rig.log(rig.write(DemoDrive.lastTrip), follow: true))
        let first = try rig.startDaemon()
        try first.waitFor("stationary since 2026-03-02T07:24:47")
        try first.stop(within: 20)
        let configuration = rig.path("waypost.toml")
        let text = try String(contentsOfFile: configuration, encoding: .utf8)
        let start = try #require(text.range(of: "[[endpoint]]")).lowerBound
        try text[..<start].write(toFile: configuration, atomically: true, encoding: .utf8)
        let second = try rig.startDaemon()
        try second.waitFor("is no longer configured")
        let status = try rig.status()
        let problems = status.words("problems")
        #expect(status.string("health") == "degraded" && problems.contains("no longer configured"), "\(problems)")
        let forget = try rig.waypost(["queue", "forget", "main", "--config", configuration])
        #expect(try forget.exitStatus(within: 20) == 0, "\(forget.text)")
        // The receiver may be silent by now.
        #expect(try !rig.status().words("problems").contains("configured"))
        try second.stop(within: 20)
    }

    @Test func statusIsNotOfTheVariablesOfItsCaller() throws {
        let rig = try Rig()
        try rig.startCollector()
        let drive = rig.path("log")
        try "".write(toFile: drive, atomically: true, encoding: .utf8)
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drive)\"\nfollow = true",
            endpoint: "auth = { kind = \"bearer\", token = \"env:WAYPOST_TEST_TOKEN\" }")
        let daemon = try rig.startDaemon(environment: ["WAYPOST_TEST_TOKEN": "t"])
        try daemon.waitFor("waypost 0.")
        let status = try rig.waypost(["status", "--config", rig.path("waypost.toml")])
        let code = try status.exitStatus(within: 20)
        #expect(!status.text.contains("configuration"), "\(code): \(status.text)")
        try daemon.stop(within: 20)
    }

    @Test func statusReportsAFileThatTheDaemonHasNotReadYet() throws {
        let rig = try Rig()
        let log = rig.path("log")
        try "".write(toFile: log, atomically: true, encoding: .utf8)
        try rig.configure(source: "kind = \"file\"\npath = \"\(log)\"\nfollow = true")
        let daemon = try rig.startDaemon(environment: environment(rig))
        try waitForKept(rig, "follow")
        try rig.reconfigure("kind = \"file\"", to: "kind = \"flie\"")
        // Whoever knows no last good configuration finds the socket all the same.
        let stranger = try rig.call(["status", "--config", rig.path("waypost.toml")])
        #expect(stranger.status == 1 && stranger.text.contains("degraded"), "\(stranger)")
        #expect(stranger.text.contains("source.kind"), "\(stranger)")
        for command in [["status"], ["status", "--json"], ["top"]] {
            let arguments = command + ["--config", rig.path("waypost.toml")]
            let status = try rig.waypost(arguments, environment: environment(rig))
            #expect(try status.exitStatus(within: 20) == 1)
            #expect(status.text.contains("degraded"), "\(status.text)")
            // Of a long path the picture shows two lines.
            let words =
                command == ["top"] ? "! configuration: the file cannot be used" : "waypost.toml:4:8: source.kind"
            #expect(status.text.contains(words), "\(status.text)")
        }
        try daemon.stop(within: 20)
        let gone = try rig.waypost(["status", "--config", rig.path("waypost.toml")], environment: environment(rig))
        #expect(try gone.exitStatus(within: 20) == 2)
        #expect(gone.text.contains("source.kind") && gone.text.contains("no daemon answers"))
    }
}
