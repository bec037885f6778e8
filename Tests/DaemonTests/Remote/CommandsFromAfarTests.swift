import Hash
import Profiles
import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Daemon

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

    /// That of the first answer, once it is there.
    private func code(_ bench: RemoteBench) throws -> String? {
        try bench.run { !answers(bench).isEmpty }
        return answers(bench).first?.value(at: ["error", "code"])?.string
    }

    private func published(_ bench: RemoteBench, _ topic: String) -> [JSONValue] {
        messages(bench).filter { $0.topic == "waypost/van-7/\(topic)" }.compactMap { JSONReader.read($0.payload) }
    }

    private func messages(_ bench: RemoteBench) -> [MQTTMessage] {
        bench.uplink.requests.flatMap { request -> [MQTTMessage] in Array(request.broker?.messages ?? .none) }
    }

    @Test func comesWithTheAnswerToABatch() throws {
        let bench = try bench()
        try bench.order(bench.command("c-1", #""do":"status""#))
        try bench.run { !answers(bench).isEmpty }
        let answer = try #require(answers(bench).first)
        #expect(answer["id"]?.string == "c-1" && answer["ok"] == .bool(true))
        #expect(answer.value(at: ["result", "motion"])?.string == "stationary")
        #expect(bench.agent.remote?.commands.ran == 1)
        let status = try #require(bench.agent.remote?.status(withKeys: false, at: bench.agent.loop.now))
        #expect(status.commandsRun == 1 && status.lastCommand == "status (c-1): done")
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
    }

    @Test func comesFromABrokerAndIsAnsweredThere() throws {
        let bench = try bench(Self.broker)
        let session = try #require(bench.uplink.requests.first { $0.broker != nil }?.broker?.session)
        #expect(session.subscriptions.map(\.filter) == ["waypost/van-7/settings/desired", "waypost/van-7/cmd"])
        bench.hear("cmd", bench.command("c-1"))
        try bench.run { !published(bench, "cmd/ack").isEmpty }
        #expect(published(bench, "cmd/ack").first?["ok"] == .bool(true))
        // The same again is answered from memory, and one that the broker keeps is refused.
        bench.hear("cmd", bench.command("c-1"))
        #expect(published(bench, "cmd/ack").count == 2 && bench.agent.remote?.commands.ran == 1)
        bench.hear("cmd", bench.command("c-2"), isRetained: true)
        #expect(published(bench, "cmd/ack").last?.value(at: ["error", "code"])?.string == "retained")
    }

    @Test func aDocumentComesFromABrokerAndItsReportIsKeptThere() throws {
        let bench = try bench(Self.broker)
        let document = #"{"device":"van-7","version":17,"set":{"sampling.rule":"both"}}"#
        bench.hear("settings/desired", document, isRetained: true)
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        #expect(published(bench, "settings/reported").last?["state"]?.string == "trial")
        #expect(messages(bench).first { $0.isRetained }?.topic == "waypost/van-7/settings/reported")
        // The next one comes too soon, is not asked for again by anybody, and is judged all the same.
        let next = document.replacing("17", with: "18").replacing("both", with: "interval")
        bench.hear("settings/desired", next)
        #expect(bench.remote.trial.seen == 17)
        try bench.pass(.seconds(62))
        try bench.run { bench.value(of: "sampling.rule") == .string("interval") }
    }

    @Test func isSignedInAnEnvelope() throws {
        try directory.write("key", "secret\n")
        let bench = try bench(
            Self.broker.replacing("allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = "))
        let command = bench.command("c-1", #""do":"flush","device":"van-7""#)
        func hear(signedBy signature: String) {
            let payload = Base64.encode(Array(command.utf8))
            bench.hear("cmd", #"{"payload":"\#(payload)","signature":"\#(signature)"}"#)
        }
        bench.hear("cmd", command)
        hear(signedBy: "sha256=00")
        #expect(bench.agent.remote?.commands.ran == 0)
        hear(signedBy: RemoteBench.signature(of: command, as: "waypost-settings", key: "secret"))
        #expect(published(bench, "cmd/ack").isEmpty, "who cannot sign learns nothing")
        let status = try #require(bench.agent.remote?.status(withKeys: false, at: bench.agent.loop.now))
        #expect(status.commandsRefused == 3 && status.lastRefusal == "signature: its signature is wrong")
        hear(signedBy: RemoteBench.signature(of: command, as: "waypost-command", key: "secret"))
        try bench.run { !published(bench, "cmd/ack").isEmpty }
        #expect(bench.agent.remote?.commands.ran == 1)
    }

    /// Nobody is answered, all are counted, and the journal does not fill.
    @Test func forgedCommandsAreLoggedNowAndThen() throws {
        try directory.write("key", "secret\n")
        let bench = try bench(
            Self.broker.replacing("allow = ", with: "secret = \"file:\(directory.path)/key\"\nallow = "))
        for _ in 0..<130 {
            try bench.pass(.seconds(10))
            bench.hear("cmd", #"{"payload":"e30=","signature":"sha256=00"}"#)
        }
        let lines = bench.lines.text.filter { $0.hasPrefix("a command was refused") }
        #expect(lines.count == 7, "five, and one in ten minutes")
        #expect(lines.last?.contains("(59 before this one were not logged)") == true, "\(lines.last ?? "")")
        #expect(bench.agent.remote?.commands.refused == 130)
    }

    @Test func whatTheBrokerRefusesIsTold() throws {
        let bench = try bench(Self.broker)
        bench.uplink.hear(.subscribed(refused: ["waypost/van-7/cmd"]))
        #expect(bench.remote.problem == "the broker refuses waypost/van-7/cmd")
        bench.uplink.hear(.subscribed(refused: []))
        #expect(bench.remote.problem == nil)
    }

    @Test func aClockThatNobodyTrustsRefusesIt() throws {
        for isContradicted in [false, true] {
            let bench = try bench()
            bench.host.isClockSynchronised = isContradicted
            if isContradicted { bench.host.wallClockMs += 2 * 86_400_000 }
            try bench.order(bench.command("c-\(isContradicted)"))
            #expect(try code(bench) == "clock")
        }
    }

    @Test func locateIsAnsweredOnceTheFixIsOnDisk() throws {
        let bench = try bench()
        try bench.order(bench.command("c-1", #""do":"locate""#))
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
    }

    @Test func anOfferThatIsWithdrawnIsNotTakenLater() throws {
        let bench = try bench(Self.broker)
        func hear(_ version: Int, _ rule: String) {
            let text = #"{"device":"van-7","version":\#(version),"set":{"sampling.rule":"\#(rule)"}}"#
            bench.hear("settings/desired", version > 0 ? text : "")
        }
        hear(17, "both")
        try bench.run { bench.value(of: "sampling.rule") == .string("both") }
        hear(18, "interval")
        hear(0, "")
        try bench.pass(.seconds(62))
        try bench.pass(.seconds(1))
        #expect(bench.remote.trial.seen == 17 && bench.value(of: "sampling.rule") == .string("both"))
    }

    @Test func whatTheFileNoLongerAllowsIsOverWithAReload() throws {
        let bench = try bench()
        bench.write(RemoteBench.text.replacing("\"flush\", ", with: ""))
        bench.reload()
        try bench.order(bench.command("c-1"))
        #expect(try code(bench) == "not-allowed")
    }

    @Test func noFixIsAnAnswerToo() throws {
        let bench = try bench()
        try bench.order(bench.command("c-1", #""do":"locate""#))
        try bench.run { bench.agent.remote?.commands.ran == 1 }
        try bench.pass(.seconds(61))
        #expect(try code(bench) == "no-fix")
    }

    @Test func isNotCarriedOutTwiceAcrossARestart() throws {
        var bench = try bench()
        let command = bench.command("c-1")
        try bench.order(command)
        try bench.run { !answers(bench).isEmpty }
        // What became of it is stored while the answer is on its way.
        try bench.run { bench.agent.remote?.isSettled == true }
        bench.close()
        bench = try self.bench()
        try bench.order(command)
        try bench.run { !answers(bench).isEmpty }
        #expect(answers(bench).first?["ok"] == .bool(true), "from memory")
        #expect(bench.agent.remote?.commands.ran == 0)
    }

    @Test func isNotCarriedOutUnlessItsIdIsStored() throws {
        let bench = try bench()
        try directory.makeDirectory("remote.state.new")
        try bench.order(bench.command("c-1"))
        #expect(try code(bench) == "disk")
        #expect(bench.agent.remote?.commands.ran == 0)
    }
}
