import Delivery
import JSON
import Live
import Positioning
import TestSupport
import Testing
import Uplink

@testable import Agent

/// A command from the server to what is done, and its answer.
@Suite struct CommandsFromAfarTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let broker = RemoteBench.text
        .replacing("https://fleet.example\"\nbatch", with: "mqtts://fleet.example\"\nprofile = \"waypost-mqtt\"\nbatch")
        .replacing("settings_url = \"https://fleet.example/van-7/settings\"\n", with: "")
        .replacing("reported_url = \"https://fleet.example/van-7/reported\"\n", with: "")

    private func bench(_ text: String = RemoteBench.text) throws -> RemoteBench {
        let bench = try RemoteBench(directory, text)
        bench.host.isClockSynchronised = true
        return bench
    }

    /// The answers to commands that the server has got, oldest first.
    private func answers(_ bench: RemoteBench) -> [JSONValue] {
        bench.uplink.requests.filter { $0.method == "POST" && $0.url.hasSuffix("reported") }
            .compactMap { JSONReader.read($0.body) }
    }

    private func published(_ bench: RemoteBench, _ topic: String) -> [JSONValue] {
        bench.uplink.requests.flatMap { Array($0.broker?.messages ?? .none) }
            .filter { $0.topic == "waypost/van-7/\(topic)" }
            .compactMap { JSONReader.read($0.payload) }
    }

    @Test func comesWithTheAnswerToABatch() throws {
        let bench = try bench()
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", bench.command("c-1", #""do":"status""#))])
        try bench.run { !answers(bench).isEmpty }
        let answer = try #require(answers(bench).first)
        #expect(answer["id"]?.string == "c-1" && answer["ok"] == .bool(true))
        #expect(answer.value(at: ["result", "motion"])?.string == "stationary")
        #expect(bench.agent.remote?.commands.ran == 1)
        let status = try #require(bench.agent.remote?.status(withKeys: false, at: bench.agent.loop.now))
        #expect(status.commandsRun == 1 && status.lastCommand == "status (c-1): done")
        bench.close()
    }

    /// By a server and by a program of this host.
    @Test(arguments: [true, false]) func aFlushKeepsTheFixThatWaits(isFromAfar: Bool) throws {
        let bench = try bench(RemoteBench.text.replacing("rule = \"either\"", with: ""))
        var kept: [UTCTime] = []
        bench.agent.pipeline.recorded.append { location, _ in kept.append(location.time) }
        try bench.send()
        let first = try #require(bench.receiver.date)
        bench.agent.pipeline.handle(.paceRequested(.moving), at: bench.agent.loop.now)
        for second in 1...3 {
            bench.host.pass(.seconds(1))
            bench.receiver.date = first + .seconds(second)
            bench.agent.pipeline.deviceChanged(nil, at: bench.agent.loop.now)
        }
        let newest = try #require(bench.receiver.date)
        #expect(!kept.contains(newest))
        if isFromAfar {
            bench.answer("POST", 200, [("waypost-command", bench.command("c-1"))])
            try bench.run { bench.agent.remote?.commands.ran == 1 }
        } else {
            bench.agent.ask(Array(#"{"id":1,"do":"flush","commit":true}"#.utf8), peer: 0) { _ in }
        }
        #expect(kept.last == newest)
        try bench.run { bench.agent.rowsHeld == 0 }
        bench.close()
    }

    @Test func comesFromABrokerAndIsAnsweredThere() throws {
        let bench = try bench(Self.broker)
        let session = try #require(bench.uplink.requests.first { $0.broker != nil }?.broker?.session)
        #expect(session.subscriptions.map(\.filter) == ["waypost/van-7/settings/desired", "waypost/van-7/cmd"])
        let command = MQTTMessage(topic: "waypost/van-7/cmd", payload: Array(bench.command("c-1").utf8))
        bench.uplink.hear(.message(command))
        try bench.run { !published(bench, "cmd/ack").isEmpty }
        #expect(published(bench, "cmd/ack").first?["ok"] == .bool(true))
        // The same again is answered from memory, and one that the broker keeps is refused.
        bench.uplink.hear(.message(command))
        #expect(published(bench, "cmd/ack").count == 2)
        #expect(bench.agent.remote?.commands.ran == 1)
        let kept = MQTTMessage(
            topic: "waypost/van-7/cmd", payload: Array(bench.command("c-2").utf8), isRetained: true)
        bench.uplink.hear(.message(kept))
        #expect(published(bench, "cmd/ack").last?.value(at: ["error", "code"])?.string == "retained")
        bench.close()
    }

    @Test func aDocumentComesFromABrokerAndItsReportIsKeptThere() throws {
        let bench = try bench(Self.broker)
        let document = #"{"device":"van-7","version":17,"set":{"sampling.rule":"both"}}"#
        bench.uplink.hear(
            .message(
                MQTTMessage(
                    topic: "waypost/van-7/settings/desired", payload: Array(document.utf8), isRetained: true)))
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        #expect(published(bench, "settings/reported").last?["state"]?.string == "trial")
        let report = try #require(
            bench.uplink.requests.flatMap { Array($0.broker?.messages ?? .none) }.first { $0.isRetained })
        #expect(report.topic == "waypost/van-7/settings/reported")
        // The next one comes too soon, is not asked for again by anybody, and is judged all the same.
        let next = document.replacing("17", with: "18").replacing("both", with: "interval")
        bench.uplink.hear(
            .message(MQTTMessage(topic: "waypost/van-7/settings/desired", payload: Array(next.utf8))))
        #expect(bench.remote.trial.seen == 17)
        try bench.pass(.seconds(62))
        try bench.run { bench.value(of: "sampling.rule") == .string("interval") }
        bench.close()
    }

    @Test func isSignedInAnEnvelope() throws {
        try directory.write("key", "secret\n")
        let bench = try bench(
            Self.broker.replacing("allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = "))
        let command = Array(bench.command("c-1", #""do":"flush","device":"van-7""#).utf8)
        let digits = HMACSHA256.authenticate(command, key: Array("secret".utf8))
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        func hear(_ text: String) {
            bench.uplink.hear(.message(MQTTMessage(topic: "waypost/van-7/cmd", payload: Array(text.utf8))))
        }
        hear(String(decoding: command, as: UTF8.self))
        hear(#"{"payload":"\#(Base64.encode(command))","signature":"sha256=00"}"#)
        #expect(bench.agent.remote?.commands.ran == 0)
        #expect(published(bench, "cmd/ack").isEmpty, "who cannot sign learns nothing")
        hear(#"{"payload":"\#(Base64.encode(command))","signature":"sha256=\#(digits)"}"#)
        try bench.run { !published(bench, "cmd/ack").isEmpty }
        #expect(bench.agent.remote?.commands.ran == 1)
        bench.close()
    }

    @Test func whatTheBrokerRefusesIsTold() throws {
        let bench = try bench(Self.broker)
        bench.uplink.hear(.subscribed(refused: ["waypost/van-7/cmd"]))
        #expect(bench.remote.problem == "the broker refuses waypost/van-7/cmd")
        bench.uplink.hear(.subscribed(refused: []))
        #expect(bench.remote.problem == nil)
        bench.close()
    }

    @Test func aClockThatNobodyTrustsRefusesIt() throws {
        for isContradicted in [false, true] {
            let bench = try bench()
            bench.host.isClockSynchronised = isContradicted
            if isContradicted { bench.host.wallClockMs += 2 * 86_400_000 }
            try bench.send()
            bench.answer("POST", 200, [("waypost-command", bench.command("c-\(isContradicted)"))])
            try bench.run { !answers(bench).isEmpty }
            #expect(answers(bench).first?.value(at: ["error", "code"])?.string == "clock")
            bench.close()
        }
    }

    @Test func locateIsAnsweredOnceTheFixIsOnDisk() throws {
        let bench = try bench()
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", bench.command("c-1", #""do":"locate""#))])
        try bench.run { bench.agent.remote?.commands.ran == 1 }
        bench.receiver.date = bench.receiver.date.map { $0 + .seconds(5) }
        try bench.pass(.seconds(5))
        #expect(answers(bench).isEmpty)
        var records: [Location] = []
        bench.agent.pipeline.recorded.append { location, _ in records.append(location) }
        bench.agent.pipeline.deviceChanged(nil, at: bench.agent.loop.now)
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?["ok"] == .bool(true))
        #expect(records.map(\.event) == [.requested])
        try bench.run {
            if bench.uplink.isOpen("POST") { bench.answer("POST", 200) }
            return bench.uplink.requests.contains { String(decoding: $0.body, as: UTF8.self).contains("requested") }
        }
        bench.close()
    }

    @Test func aBackupHasNoSay() throws {
        let bench = try bench()
        let delivery = bench.agent.endpoints.deliveries[0]
        let row = Batch(endpoint: "spare", id: "b", rows: [], sentMs: nil)
        let reply = UplinkReply(status: 200, headers: [.init("waypost-command", bench.command("c-1"))])
        let attempt = BatchAttempt(row, .accepted, UplinkOutcome(.reply(reply)), number: 1)
        delivery.attempted(attempt, bench.agent.loop.now)
        try bench.pass(.seconds(1))
        #expect(answers(bench).isEmpty && bench.agent.remote?.commands.ran == 0)
        bench.close()
    }

    @Test func anOfferThatIsWithdrawnIsNotTakenLater() throws {
        let bench = try bench(Self.broker)
        func hear(_ version: Int, _ rule: String) {
            let text = #"{"device":"van-7","version":\#(version),"set":{"sampling.rule":"\#(rule)"}}"#
            let topic = "waypost/van-7/settings/desired"
            bench.uplink.hear(.message(MQTTMessage(topic: topic, payload: version > 0 ? Array(text.utf8) : [])))
        }
        hear(17, "both")
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        hear(18, "interval")
        hear(0, "")
        try bench.pass(.seconds(62))
        try bench.pass(.seconds(1))
        #expect(bench.remote.trial.seen == 17 && bench.value(of: "sampling.rule") == .string("both"))
        bench.close()
    }

    @Test func whatTheFileNoLongerAllowsIsOverWithAReload() throws {
        let bench = try bench()
        bench.write(RemoteBench.text.replacing("\"flush\", ", with: ""))
        _ = try bench.agent.configuration.reloadCommand(at: bench.agent.loop.now)
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", bench.command("c-1"))])
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?.value(at: ["error", "code"])?.string == "not-allowed")
        bench.close()
    }

    @Test func noFixIsAnAnswerToo() throws {
        let bench = try bench()
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", bench.command("c-1", #""do":"locate""#))])
        try bench.run { bench.agent.remote?.commands.ran == 1 }
        try bench.pass(.seconds(61))
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?.value(at: ["error", "code"])?.string == "no-fix")
        bench.close()
    }

    @Test func isNotCarriedOutTwiceAcrossARestart() throws {
        var bench = try bench()
        let command = bench.command("c-1")
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", command)])
        try bench.run { !answers(bench).isEmpty }
        // What became of it is stored while the answer is on its way.
        try bench.run { bench.agent.remote?.isSettled == true }
        bench.close()
        bench = try self.bench()
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", command)])
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?["ok"] == .bool(true), "from memory")
        #expect(bench.agent.remote?.commands.ran == 0)
        bench.close()
    }

    @Test func isNotCarriedOutUnlessItsIdIsStored() throws {
        let bench = try bench()
        try directory.makeDirectory("remote.state.new")
        try bench.send()
        bench.answer("POST", 200, [("waypost-command", bench.command("c-1"))])
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?.value(at: ["error", "code"])?.string == "disk")
        #expect(bench.agent.remote?.commands.ran == 0)
        bench.close()
    }
}
