import ConfigurationTestSupport
import Foundation
import Network
import Remote
import TestSupport
import Testing
import WaypostCore

@testable import Daemon

/// A document from the server to the settings in force, and back.
@Suite struct SettingsFromAfarTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func document(_ version: Int, _ set: String, within: String = "30m") -> String {
        #"{"device":"van-7","version":\#(version),"set":{\#(set)},"confirm_within":"\#(within)"}"#
    }

    private let rule = #""sampling.rule":"both","tracking.heartbeat":"1m""#

    /// Version 17 is in force, and on trial.
    private func onTrial() throws -> RemoteBench {
        let bench = try RemoteBench(directory)
        try bench.receive(document(17, rule), version: 17)
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        return bench
    }

    @Test func anAnswerAnnouncesADocumentAndABatchConfirmsIt() throws {
        let bench = try onTrial()
        let asked = try #require(bench.uplink.requests.last { $0.method == "GET" })
        #expect(asked.url == "https://fleet.example/van-7/settings")
        #expect(!asked.headers.contains { $0.name == "If-None-Match" })
        #expect(bench.value(of: "tracking.heartbeat") == .string("10m"), "clamped")
        #expect(bench.remote.status(withKeys: false, at: bench.agent.loop.now).state == "trial")
        #expect(bench.report()?["state"]?.string == "trial")
        #expect(bench.report()?.value(at: ["clamped", "tracking.heartbeat", "1"])?.string == "10m")
        bench.answer("PUT", 200)

        try bench.pass(.seconds(61))
        try bench.send()
        // One of them had left before the settings were in force.
        try bench.run {
            if bench.uplink.isOpen("POST") { bench.answer("POST", 200) }
            return bench.remote.trial.trial == nil
        }
        try bench.run { bench.report()?["state"]?.string == "applied" }
        #expect(bench.remote.trial.inForce?.version == 17)
    }

    @Test func aRuleThatIsNotSetIsReportedAsItWasDecided() throws {
        let bench = try RemoteBench(directory, RemoteBench.text.replacing("rule = \"either\"", with: ""))
        #expect(bench.value(of: "sampling.rule") == .string("track-error"))
        #expect(bench.value(of: "tracking.moving.rule") == .string("track-error"))
        try bench.receive(document(17, #""sampling.min_gap":"2s""#), version: 17)
        try bench.run { bench.report() != nil }
        #expect(bench.report()?.value(at: ["effective", "sampling.rule"])?.string == "either")
    }

    @Test func nothingForbiddenIsEverInForce() throws {
        let bench = try RemoteBench(directory)
        try bench.receive(
            document(17, #""sampling.rule":"both","endpoint.base_url":"https://evil.example""#), version: 17)
        try bench.run { bench.report() != nil }
        #expect(bench.report()?["state"]?.string == "rejected")
        #expect(bench.report()?.value(at: ["rejected", "endpoint.base_url"])?.string == "not allowed")
        #expect(bench.value(of: "sampling.rule") == .string("either"))
    }

    @Test func aLowerVersionIsTakenAfterAMistake() throws {
        let bench = try RemoteBench(directory)
        try bench.receive(document(1 << 52, #""endpoint.base_url":"https://evil.example""#), version: 1 << 52)
        try bench.run { bench.remote.trial.refusal?.kind == .rejected }
        try bench.receive(document(17, rule), version: 17)
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        let asked = try #require(bench.uplink.requests.last { $0.method == "GET" })
        #expect(!asked.headers.contains { $0.name == "If-None-Match" }, "of what was accepted alone")
    }

    @Test func isTakenBackWithoutContact() throws {
        let bench = try onTrial()
        try bench.failAttempts { bench.remote.trial.nextDeadline != nil }
        try bench.pass(.seconds(1801))
        try bench.run { bench.value(of: "sampling.rule") == .string("either") }
        #expect(bench.remote.trial.refusal?.kind == .reverted)
    }

    @Test func survivesWithoutARoute() throws {
        let bench = try onTrial()
        bench.host.route = nil
        bench.agent.linksChanged(at: bench.agent.loop.now)
        let before = bench.agent.endpoints.deliveries[0].attempts
        try bench.failAttempts { bench.agent.endpoints.deliveries[0].attempts > before + 2 }
        try bench.pass(.seconds(40_000))
        #expect(bench.remote.trial.nextDeadline == nil)
        #expect(bench.value(of: "sampling.rule") == .string("both"))
    }

    @Test func survivesARestartAndNotTwo() throws {
        var bench = try onTrial()
        bench.close()
        bench = try RemoteBench(directory)
        #expect(bench.value(of: "sampling.rule") == .string("both"))
        #expect(bench.remote.trial.trial?.version.version == 17)
        bench.close()
        bench = try RemoteBench(directory)
        #expect(bench.value(of: "sampling.rule") == .string("either"))
        #expect(bench.remote.trial.refusal?.version == 17)
    }

    @Test func aPersonClearsIt() throws {
        let bench = try onTrial()
        bench.remote.clear(at: bench.agent.loop.now)
        try bench.run { bench.value(of: "sampling.rule") == .string("either") }
        #expect(bench.remote.status(withKeys: true, at: bench.agent.loop.now).inForce == nil)
    }

    @Test func aPersonHearsOfADiskThatKeepsTheSettings() throws {
        let bench = try onTrial()
        try directory.makeDirectory("remote.state.new")
        func order(_ action: String) throws -> JSONValue? {
            var reply: JSONValue?
            bench.agent.ask(Array(#"{"do":"remote","action":"\#(action)"}"#.utf8), peer: 0) {
                reply = JSONReader.read($0)
            }
            #expect(reply == nil, "nothing is stored yet")
            try bench.run { reply != nil }
            return reply
        }
        for action in ["clear", "forget"] {
            #expect(try order(action)?.value(at: ["error", "code"])?.string == "disk")
            #expect(bench.remote.trial.inForce == nil, "it is in force all the same")
        }
        #expect(rmdir(directory.path + "/remote.state.new") == 0)
        // Nothing changes, and what was not stored before is stored now.
        #expect(try order("clear")?["ok"] == .bool(true))
        let stored = try Data(contentsOf: URL(filePath: directory.path + "/remote.state"))
        #expect(RemoteMemory(Array(stored), at: bench.agent.loop.now)?.settings.inForce == nil)
    }

    /// The highest version that was accepted is in two files.
    @Test func aDamagedFileLetsNoOldDocumentIn() throws {
        try directory.write("key", "secret\n")
        let text = RemoteBench.text.replacing("allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = ")
        let bench = try RemoteBench(directory, text)
        let signed = document(17, rule)
        let signature = RemoteBench.signature(of: signed, as: "waypost-settings", key: "secret")
        try bench.receive(signed, version: 17, headers: [("waypost-signature", signature)])
        try bench.run { bench.agent.remote?.isSettled == true && bench.remote.trial.inForce?.version == 17 }
        bench.close()
        func start() throws -> RemoteStart {
            var loaded = try loaded(text + "[outbox]\npath = \"\(directory.path)/outbox.db\"\n")
            return try #require(RemoteStart(over: &loaded, environment: testEnvironment()))
        }
        try directory.write("remote.version", "damaged")
        let half = try start()
        #expect(half.memory.settings.seen == 17 && half.isSeenBehind)
        let again = try RemoteBench(directory, text)
        again.remote.forget(acceptsOlder: false, at: again.agent.loop.now)
        try again.run { again.agent.remote?.isSettled == true }
        again.close()
        try directory.write("remote.state", "damaged")
        var damaged = try start()
        #expect(damaged.memory.settings.seen == 17 && damaged.lostSeen == nil)
        #expect(damaged.problem?.hasSuffix("a document is accepted only above version 17") == true)
        #expect(unlink(directory.path + "/remote.state") == 0)
        #expect(try start().memory.settings.seen == 17)
        try directory.write("remote.version", "damaged")
        damaged = try start()
        #expect(damaged.memory.settings.seen == 0)
        #expect(damaged.lostSeen?.contains("signed documents of before may be accepted again") == true)
    }

    private func ask(_ bench: RemoteBench, _ more: String, peer: Int64) throws -> JSONValue? {
        var reply: JSONValue?
        bench.agent.ask(Array(#"{"do":"remote",\#(more)}"#.utf8), peer: peer) { reply = JSONReader.read($0) }
        try bench.run { bench.agent.remote?.isSettled == true }
        return reply
    }

    @Test func theGroupMayLookAndNotDropThem() throws {
        let bench = try onTrial()
        for action in ["clear", "forget"] {
            let reply = try ask(bench, #""action":"\#(action)""#, peer: 4711)
            #expect(reply?.value(at: ["error", "code"])?.string == "not-permitted")
        }
        #expect(try ask(bench, #""action":"show""#, peer: 4711)?["in_force"] == .int(17))
        _ = try ask(bench, #""action":"clear""#, peer: 0)
        #expect(bench.remote.trial.inForce == nil)
    }

    /// Whoever kept a document that the owner signed long ago can send it again.
    @Test func aSignedDocumentIsNotReplayedAfterForget() throws {
        try directory.write("key", "secret\n")
        let bench = try RemoteBench(
            directory,
            RemoteBench.text.replacing("allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = "))
        func receive(_ version: Int) throws {
            let text = document(version, rule)
            let signature = RemoteBench.signature(of: text, as: "waypost-settings", key: "secret")
            try bench.receive(text, version: Int64(version), headers: [("waypost-signature", signature)])
            try bench.run { bench.agent.remote?.isSettled == true }
        }
        try receive(17)
        #expect(bench.remote.trial.inForce?.version == 17)
        _ = try ask(bench, #""action":"forget""#, peer: 0)
        #expect(bench.remote.trial.inForce == nil && bench.remote.trial.seen == 17)
        try bench.pass(.seconds(61))
        try receive(18)
        #expect(bench.remote.trial.inForce?.version == 18)
        _ = try ask(bench, #""action":"forget","accept_older":true"#, peer: 0)
        try bench.pass(.seconds(61))
        try receive(17)
        #expect(bench.remote.trial.inForce?.version == 17)
    }

    @Test func aDocumentThatExpiresWaitsForTheTime() throws {
        let bench = try RemoteBench(directory)
        let text = document(17, rule).dropLast() + #","expires":"2001-01-01T00:00:00Z"}"#
        try bench.receive(String(text), version: 17)
        try bench.run { bench.remote.refusal != nil }
        #expect(bench.remote.refusal == "expires: unknown until the time is trusted")
        // Receiver and host agree for a minute.
        bench.host.isClockSynchronised = true
        for _ in 0...61 {
            try bench.pass(.seconds(1))
            bench.host.wallClockMs += 1000
            bench.receiver.date = UTCTime(milliseconds: bench.host.wallClockMs)
            bench.agent.pipeline.deviceChanged(nil, at: bench.agent.loop.now)
        }
        // It is looked at again after half a minute, a minute, and so on.
        try bench.pass(.seconds(61))
        bench.host.wallClockMs += 61_000
        try bench.run { bench.remote.refusal != "expires: unknown until the time is trusted" }
        #expect(bench.remote.refusal == "expires: it has expired" && bench.remote.trial.seen == 0)
    }

    /// Members of the group may ask for one each second.
    @Test func reloadsThatSayTheSameAreLoggedNowAndThen() throws {
        let bench = try RemoteBench(directory)
        func logged() -> [String] { bench.lines.text.filter { $0.hasPrefix("configuration re") } }
        func reload(_ count: Int) throws {
            for _ in 0..<count {
                try bench.pass(.seconds(10))
                _ = try? bench.agent.configuration.reloadCommand(
                    ControlTicket(id: nil, peer: 0), at: bench.agent.loop.now)
            }
        }
        try reload(65)
        #expect(logged().count == 7, "one that is news, five that are not, and one in ten minutes")
        #expect(logged().last?.contains("(55 reloads before this one said the same and were not logged)") == true)
        bench.write("[tracking\n")
        try reload(65)
        #expect(logged().count { $0.contains("the previous one stays in force") } == 2)
        bench.write(RemoteBench.text.replacing("\"either\"", with: "\"both\""))
        try reload(1)
        #expect(logged().last?.contains("in effect now") == true)
    }

    @Test func aFileThatNoLongerAllowsItWins() throws {
        let bench = try onTrial()
        bench.write(RemoteBench.text.replacing("\"sampling\", ", with: ""))
        bench.reload()
        #expect(bench.remote.trial.state == .none)
        #expect(bench.value(of: "sampling.rule") == .string("either"))
    }

    @Test func needsTheSignatureThatTheFileAsksFor() throws {
        try directory.write("key", "secret\n")
        let text = RemoteBench.text.replacing(
            "allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = ")
        let bench = try RemoteBench(directory, text)
        let signed = document(17, rule)
        func signature(as purpose: String) -> String {
            RemoteBench.signature(of: signed, as: purpose, key: "secret")
        }
        let signatures = [nil, "sha256=00", signature(as: "waypost-command"), signature(as: "waypost-settings")]
        for (index, signature) in signatures.enumerated() {
            let headers = signature.map { [("waypost-signature", $0)] } ?? []
            #expect(bench.value(of: "sampling.rule") == .string("either"))
            #expect(bench.remote.trial.seen == 0, "nothing is remembered of what is not signed")
            // What was announced once is not asked for again at each batch.
            try bench.receive(signed, version: Int64(17 + index), headers: headers)
        }
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
    }

    /// The queue has the change, and a server of the profile sees it.
    @Test func theChangeIsRecorded() throws {
        let bench = try RemoteBench(directory)
        var records: [Location] = []
        bench.agent.pipeline.recorded.append { location, _ in
            if location.event == .settings { records.append(location) }
        }
        try bench.receive(document(17, #""sampling.rule":"both""#), version: 17)
        try bench.run { !records.isEmpty }
        let change = #""before":{"sampling.rule":"either"},"after":{"sampling.rule":"both"}"#
        let settings = #"{"state":"applied","version":17,"way":"main",\#(change)}"#
        #expect(!records[0].isPlaced && records[0].settings == settings)
    }

    @Test func credentialsOfTheEndpointStayWithItsServer() throws {
        try directory.write("token", "t-1\n")
        let auth = "[endpoint.auth]\nkind = \"bearer\"\ntoken = \"file:\(directory.path)/token\"\n"
        let text = RemoteBench.text.replacing("[remote]\n", with: auth + "[remote]\n")
        for (url, isSent) in [("https://fleet.example/", true), ("https://fleet.example.evil/", false)] {
            let bench = try RemoteBench(
                try TemporaryDirectory(),
                text.replacing("settings_url = \"https://fleet.example/", with: "settings_url = \"\(url)"))
            try bench.receive(document(17, rule), version: 17)
            let asked = try #require(bench.uplink.requests.last { $0.method == "GET" })
            #expect(asked.headers.contains { $0.name == "Authorization" } == isSent)
        }
    }
}
