import ConfigurationTestSupport
import Profiles
import Protocols
import Queue
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

// One attempt at a time, and every answer to its own.
extension EndpointDeliveryTests {
    /// With a request to bind.
    private func asset() throws -> EndpointSettings {
        let text = """
            \(smallest)[[endpoint]]
            name = "main"
            profile = "nextbillion"
            base_url = "http://127.0.0.1:9"
            vars = { asset_id = "a-1" }
            secrets = { key = "env:KEY" }
            batch_size = 5
            """
        return try loaded(text, testEnvironment(["KEY": "k"])).config.endpoints[0].settings
    }

    private static let ok = #"{"status":"Ok"}"#

    /// Five rows are on their way and five wait.
    private func sending(_ loop: EventLoop, _ delivery: EndpointDelivery) {
        record(1...10, delivery, at: loop.now)
        delivery.step(at: loop.now)
        form([batch(1...5)], waiting: 5, delivery, at: loop.now)
    }

    @Test func aBindIsNotConfirmedByAWebPage() throws {
        try bench(asset()) { loop, delivery, uplink in
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            uplink.answer(200, "<html><title>Sign in</title></html>")
            #expect(
                said.count == 1 && said[0]?.hasPrefix("status 200 with a web page (\"Sign in\")") == true, "\(said)")
        }
    }

    @Test(.bug(id: 11)) func aBindWaitsForTheRequestUnderWayAndNothingElseIsSentBeforeItsOrderIsDone() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            #expect(uplink.requests.count == 1)
            uplink.answer(200, Self.ok)
            #expect(delivery.counters.accepted == 5 && uplink.requests.count == 2)
            #expect(String(decoding: uplink.requests[1].body, as: UTF8.self).contains("device_id"))
            // Neither a batch nor a commit that lists any is begun beside it.
            delivery.flush(at: loop.now)
            delivery.bind(at: loop.now) { said.append($0) }
            #expect(uplink.requestsOpen == 1 && !delivery.schedule.isForming)
            #expect(said == ["another request to bind is under way"])
            uplink.answer(200, Self.ok)
            #expect(said.last == .some(nil))
            delivery.flush(at: loop.now)
            #expect(uplink.requestsOpen == 0 && !delivery.schedule.isForming)
            delivery.rebound(depth(waiting: 5))
            form([batch(6...10)], delivery, at: loop.now)
            #expect(uplink.requests.count == 3 && uplink.requestsOpen == 1)
            // 60 rows lost 20 here: the late 200 settled the next batch, and its own answer was not heard.
            uplink.answer(503)
            #expect(delivery.counters.accepted == 5 && delivery.waiting == 5 && delivery.schedule.strayAnswers == 0)
        }
    }

    @Test(.bug(id: 11)) func whatABindLeavesInABatchIsCountedBeforeItIsListed() throws {
        try bench(asset(), share: 0.9) { loop, delivery, _ in
            sending(loop, delivery)
            // The batch is listed again when what waited from before this start may go.
            delivery.startedWithHost(at: loop.now)
            delivery.rebound(depth(waiting: 0, [batch(1...5)]))
            #expect(delivery.waiting == 5 && !delivery.schedule.isForming)
            // The commit that has carried out the order.
            commit(waiting: 0, [batch(1...5)], at: loop.now)
            #expect(delivery.waiting == 5)
        }
    }

    /// What this process has learnt of the server is newer than what the queue says.
    @Test(.bug(id: 11)) func aQueueThatIsReadLateEndsNoPause() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(405)
            let state = delivery.schedule.state
            #expect(state == .paused(reason: "configuration (status 405)"))
            delivery.found(depth(waiting: 0, [batch(1...10)]))
            #expect(delivery.schedule.state == state && delivery.waiting == 10 && uplink.requests.count == 1)
            delivery.found(depth(state: .taken, waiting: 0, [batch(1...10)]))
            #expect(delivery.schedule.state == .taken)
        }
    }

    @Test func aBindThatFailsLetsTheEndpointGoOn() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(200, Self.ok)
            form([batch(6...10)], delivery, at: loop.now)
            uplink.answer(200, Self.ok)
            for answer in [200, 404] {
                var said: [String?] = []
                delivery.bind(at: loop.now) { said.append($0) }
                uplink.answer(answer)
                #expect(said == [answer == 200 ? nil : "status 404"])
                // The queue has refused the order.
                if answer == 200 { delivery.orderRefused() }
                #expect(delivery.schedule.attempt == nil)
            }
        }
    }

    @Test(.bug(id: 11)) func aBindDuringTheEndIsAnswered() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(200, Self.ok)
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            delivery.shutdown(grace: .seconds(5), at: loop.now)
            delivery.bind(at: loop.now) { said.append($0) }
            #expect(said == ["waypost is stopping", "waypost is stopping"])
        }
    }

    /// The credential may have run out; a server that asks for a rest gets it.
    @Test(.bug(id: 11), arguments: [nil, 60]) func aBindIsRepeatedWithAnotherCredentialUnlessTheServerRests(
        retryAfter: Int?
    ) throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(200, Self.ok)
            form([], waiting: 5, delivery, at: loop.now)
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            uplink.answer(401, retryAfter: retryAfter)
            #expect(uplink.requests.count == 2)
            let words = retryAfter == nil ? "status 401, no credential is configured: " : "status 401"
            #expect(said.count == 1 && said[0]?.hasPrefix(words) == true, "\(said)")
        }
    }

    @Test(.bug(id: 11)) func aPauseForTheCredentialIsSpokenOf() throws {
        let lines = LogLines()
        try bench(lines: lines) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(401)
            let words =
                "status 401, no credential is configured: the server wants one (auth), or something before it refuses this "
                + "device or its address; paused (auth), retry in 54 s"
            #expect(delivery.schedule.state == .paused(reason: "auth") && delivery.lastProblem == words)
            #expect(uplink.requests.count == 1 && delivery.waiting == 10, "no other credential is to be had")
            #expect(lines.text.contains { $0.hasPrefix("upload to main: \(words)") })
        }
    }

    @Test(.bug(id: 13)) func theTimeToTheNextAttemptIsThatOfTheQuestion() throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(503)
            let next = try #require(delivery.schedule.nextAttemptAt)
            var problem = UploadProblem()
            _ = problem.occurred("status 503", layer: nil, delivery.schedule, isNews: true, at: loop.now)
            for seconds in [3, 2, 1] as [Int64] {
                let early = EventTime(nanoseconds: next.nanoseconds - seconds * 1_000_000_000)
                #expect(problem.words(delivery.schedule, at: early) == "status 503; retry in \(seconds) s")
            }
            #expect(problem.words(delivery.schedule, at: next) == "status 503")
        }
    }

    @Test func whoWaitsForABindHearsWithin30Seconds() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            let first = delivery.binding
            #expect(first?.alarm.deadline == loop.now + .seconds(30))
            delivery.bindTimedOut()
            // A token for it may still be awaited: its time is not that of the next one.
            #expect(first?.alarm.deadline == nil)
            #expect(said.last == "another request to the server is under way and has not ended within 30 s")
            // It went on, and nothing is bound behind its back.
            uplink.answer(200, Self.ok)
            #expect(delivery.counters.accepted == 5 && uplink.requestsOpen == 0 && delivery.schedule.isForming)
            form([], waiting: 0, delivery, at: loop.now)
            delivery.bind(at: loop.now) { said.append($0) }
            #expect(uplink.requestsOpen == 1)
            delivery.bindTimedOut()
            #expect(said.last??.hasPrefix("no answer within 30 s") == true)
            #expect(uplink.requestsOpen == 0 && uplink.cancelled.count == 1 && delivery.schedule.attempt == nil)
        }
    }

    @Test func aBindIsRefusedWhileTheServerWantsNoRequest() throws {
        try bench(asset()) { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(503, retryAfter: 120)
            var said: [String?] = []
            delivery.bind(at: loop.now) { said.append($0) }
            #expect(said == ["the server asked to wait another 120 s"])
            #expect(uplink.requests.count == 1)
        }
    }

    @Test(.bug(id: 11)) func aResumeSaysWhenTheServerMayBeTriedAgain() throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            uplink.answer(503, retryAfter: 120)
            delivery.resumed(at: loop.now)
            let postponement = try #require(delivery.postponement(at: loop.now))
            #expect(postponement.seconds == 120 && postponement.reason == "the server has asked for that")
            #expect(uplink.requestsOpen == 0)
            delivery.resumed(at: loop.now + .seconds(120))
            #expect(uplink.requestsOpen == 1 && delivery.postponement(at: loop.now + .seconds(120)) == nil)
        }
    }

    /// Of a backlog whose newest row is 30, with `sent_at` in the body.
    private func head(_ seqs: ClosedRange<Int64>) -> Batch {
        var head = batch(seqs)
        head.outbox = [0x7F, 0x3A, 0x91, 0xC2]
        head.newest = batch(30...30).rows[0]
        head.sentMs = 1_700_000_000_000 + seqs.lowerBound * 1000
        return head
    }

    @Test(.bug(id: 11)) func theNewestRowGoesAheadOnceAndUnderOneKeyAreTheSameBytes() throws {
        let text =
            "\(smallest)[[endpoint]]\nname = \"main\"\nbase_url = \"http://127.0.0.1:9\"\nfresh_head = true\n"
            + "batch_size = 5\nbatch_window = \"1s\"\n"
        let settings = try loaded(text).config.endpoints[0].settings
        var runs: [[UplinkRequest]] = []
        for _ in 0..<2 {
            try bench(settings) { loop, delivery, uplink in
                record(1...30, delivery, at: loop.now)
                var now = loop.now
                delivery.step(at: now)
                for first in stride(from: Int64(1), through: 16, by: 5) {
                    form([head(first...first + 4)], waiting: Int(26 - first), delivery, at: now)
                    while uplink.requestsOpen > 0 { uplink.answer(200) }
                    now = now + .seconds(10)
                    delivery.step(at: now)
                }
                #expect(delivery.counters.previewSent == 1 && delivery.counters.accepted == 20)
                runs.append(uplink.requests)
            }
        }
        let keys: [String] = runs[0].compactMap { request in
            request.headers.first { $0.name == "Idempotency-Key" }?.value
        }
        #expect(keys[0] == #""7f3a91c2-main-1-5-preview-30""#)
        #expect(keys.count == 5 && Set(keys).count == 5)
        // Also by a process that starts again.
        #expect(runs[0].map(\.seen) == runs[1].map(\.seen))
        let newest = String(decoding: runs[0][0].body, as: UTF8.self)
        #expect(
            newest.contains("2023-11-14T22:13:21") && newest.contains(#""seq":30"#) && !newest.contains(#""seq":1,"#))
    }

    /// Reloads each second with other credentials once cancelled every upload.
    @Test func aRequestUnderWayEndsWithItsCredentials() throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            for _ in 0..<3 { delivery.reload([plain(loop, uplink)], at: loop.now) }
            #expect(uplink.cancelled.isEmpty && uplink.requests.count == 1)
            // What the server says of the old ones is not held against the new.
            uplink.answer(401)
            #expect(delivery.schedule.state == .active && uplink.requests.count == 2)
            #expect(uplink.requests[0].seen == uplink.requests[1].seen)
            uplink.answer(200)
            #expect(delivery.counters.accepted == 5)
        }
    }

    /// Whoever takes a credential away wants nothing more to be sent with it.
    @Test func aCredentialThatIsRemovedGivesUpTheRequestUnderWay() throws {
        try bench { loop, delivery, uplink in
            let text = smallest + upload + "auth = { kind = \"bearer\", token = \"env:T\" }\n"
            let config = try loaded(text, testEnvironment(["T": "t"])).config.endpoints[0]
            let credentials = EndpointCredentials(
                config, environment: ["T": "t"], uplink: uplink, log: .silent, loop: loop)
            delivery.reload([.init(settings: settings, credentials: credentials)], at: loop.now)
            sending(loop, delivery)
            delivery.reload([plain(loop, uplink)], at: loop.now)
            // The same batch once more, without it.
            #expect(uplink.cancelled.count == 1 && uplink.requests.count == 2 && uplink.requestsOpen == 1)
            #expect(uplink.requests.map { $0.headers.contains { $0.name == "Authorization" } } == [true, false])
            uplink.answer(200)
            #expect(delivery.counters.accepted == 5 && delivery.counters.batchesRepeated == 1)
            #expect(delivery.counters.requests == 2 && delivery.counters.retries == 1)
        }
    }

    /// Asks an issuer for its token, and keeps the refresh token that it gets there.
    private func issued(_ loop: EventLoop, _ uplink: ScriptedUplink, _ directory: String) throws
        -> EndpointCredentials
    {
        let text = """
            \(smallest)[[endpoint]]
            name = "main"
            base_url = "https://f.example"
            auth = { kind = "oauth2", token_url = "https://login.example/t", client_id = "c", refresh_token = "env:RT" }
            """
        let variables = ["RT": "first"]
        return EndpointCredentials(
            try loaded(text, testEnvironment(variables)).config.endpoints[0], environment: variables,
            stateDirectory: directory, uplink: uplink, log: .silent, loop: loop)
    }

    private func plain(_ loop: EventLoop, _ uplink: ScriptedUplink) -> EndpointDelivery.Route {
        .init(
            settings: settings,
            credentials: EndpointCredentials(
                EndpointConfig(settings: settings), uplink: uplink, log: .silent, loop: loop))
    }

    private static let token = #"{"access_token":"t","refresh_token":"second"}"#

    @Test(.bug(id: 11)) func aTokenThatComesForAnAttemptThatWasGivenUpSendsNothing() throws {
        let directory = try TemporaryDirectory()
        try bench { loop, delivery, uplink in
            let credentials = try issued(loop, uplink, directory.path)
            delivery.reload([.init(settings: settings, credentials: credentials)], at: loop.now)
            sending(loop, delivery)
            #expect(uplink.requests.map(\.url) == ["https://login.example/t"])
            delivery.reload([plain(loop, uplink)], at: loop.now)
            #expect(uplink.rows == ["1", "2", "3", "4", "5"] && uplink.requestsOpen == 2)
            uplink.answer(200, Self.token)
            #expect(uplink.requests.count == 2 && uplink.requestsOpen == 1 && delivery.schedule.strayAnswers == 1)
            uplink.answer(200)
            #expect(delivery.counters.accepted == 5)
            // The first one may be dead.
            #expect(try directory.read("main.refresh-token").contains("second"))
        }
    }

    @Test(.bug(id: 11)) func aReloadEndsTheWaitForATokenThatWasRefused() throws {
        let directory = try TemporaryDirectory()
        try bench { loop, delivery, uplink in
            var credentials: EndpointCredentials? = try issued(loop, uplink, directory.path)
            weak let old = credentials
            credentials?.obtain(at: loop.now - .seconds(61)) { _ in }
            uplink.answer(200, Self.token)
            delivery.reload([.init(settings: settings, credentials: credentials!)], at: loop.now)
            credentials = nil
            sending(loop, delivery)
            uplink.answer(401)
            #expect(delivery.schedule.attempt?.purpose == .refresh && uplink.requestsOpen == 1)
            delivery.reload([plain(loop, uplink)], at: loop.now)
            #expect(old == nil)
            #expect(uplink.rows == ["1", "2", "3", "4", "5"] && uplink.requestsOpen == 2)
            // The issuer was asked by the token that it gave last, and its answer is for no one that waits.
            #expect(String(decoding: uplink.requests[2].body, as: UTF8.self).contains("refresh_token=second"))
            uplink.answer(401, #"{"error":"invalid_grant"}"#)
            #expect(delivery.schedule.state == .active && uplink.requestsOpen == 1)
            uplink.answer(200)
            #expect(delivery.counters.accepted == 5)
        }
    }

    /// The server refuses the old one while it is under way, or the endpoint pauses for it already; and so does a broker.
    @Test(arguments: [true, false], ["https", "mqtts"])
    func aSecretThatIsFoundChangedIsTriedAtOnce(isUnderWay: Bool, scheme: String) throws {
        let directory = try TemporaryDirectory()
        try directory.write("token", "old\n")
        let isBroker = scheme == "mqtts"
        let text = """
            \(smallest)[[endpoint]]
            name = "main"
            base_url = "\(scheme)://f.example"
            \(isBroker ? "profile = \"waypost-mqtt\"" : "")
            batch_size = 5
            auth = { kind = "basic", user = "van", password = "file:\(directory.path)/token" }
            """
        let config = try loaded(text).config.endpoints[0]
        try bench(config.settings) { loop, delivery, uplink in
            let credentials = EndpointCredentials(config, uplink: uplink, log: .silent, loop: loop)
            delivery.reload([.init(settings: config.settings, credentials: credentials)], at: loop.now)
            sending(loop, delivery)
            let isOfRows = { (request: UplinkRequest) in request.broker.map { !$0.messages.isEmpty } ?? true }
            func refuse() {
                let refused = BrokerReply(
                    Array(repeating: nil, count: 5), ending: .badCredential, failure: .connect("refused"))
                let result: UplinkOutcome.Result = isBroker ? .published(refused) : .reply(UplinkReply(status: 401))
                uplink.end(UplinkOutcome(result), where: isOfRows)
            }
            if !isUnderWay {
                refuse()
                #expect(delivery.schedule.state == .paused(reason: "auth"))
                let place = "check user van and the password in \(directory.path)/token; paused (auth)"
                #expect(delivery.lastProblem?.contains(place) == true, "\(delivery.lastProblem ?? "nil")")
            }
            try directory.write("token", "new\n")
            #expect(credentials.reread())
            delivery.secretsChanged(at: loop.now)
            if isUnderWay { refuse() }
            let sent = uplink.requests.filter(isOfRows).map { request in
                request.broker?.session.password ?? request.headers.first { $0.name == "Authorization" }?.value
            }
            #expect(sent == (isBroker ? ["old", "new"] : ["Basic dmFuOm9sZA==", "Basic dmFuOm5ldw=="]))
            let stored = BrokerReply(Array(repeating: .success, count: 5))
            let result: UplinkOutcome.Result = isBroker ? .published(stored) : .reply(UplinkReply(status: 200))
            uplink.end(UplinkOutcome(result), where: isOfRows)
            #expect(delivery.counters.accepted == 5 && delivery.schedule.state == .active)
        }
    }

    /// While no batch is under way: the state says so, and nothing is sent.
    @Test func aTakeoverOfAnIdleConnectionStops() throws {
        let lines = LogLines()
        let text = """
            \(smallest)[[endpoint]]
            name = "main"
            base_url = "mqtts://f.example"
            profile = "waypost-mqtt"
            """
        try bench(try loaded(text).config.endpoints[0].settings, lines: lines) { loop, delivery, uplink in
            func takeOver() {
                delivery.connect()
                let reply = BrokerReply([], ending: .sessionTakenOver, failure: .broken("ended"))
                uplink.end(UplinkOutcome(.published(reply)))
            }
            takeOver()
            #expect(delivery.schedule.state == .paused(reason: "client id in use"))
            var depth = depth(waiting: 0)
            depth.acceptedBefore = true
            delivery.rebound(depth)
            takeOver()
            #expect(delivery.schedule.state == .taken)
            #expect(lines.text.contains { $0.contains("another device reports this asset: nothing is sent") })
        }
    }

    @Test func whatTheProgramDoesNotWaitForIsGivenUp() throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            delivery.shutdown(grace: .seconds(5), at: loop.now)
            #expect(!delivery.isShutDown && uplink.cancelled.isEmpty)
            delivery.end(at: loop.now + .seconds(5))
            #expect(delivery.isShutDown && uplink.cancelled.count == 1 && delivery.counters.accepted == 0)
        }
    }

    @Test(.bug(id: 11), arguments: [200, 503])
    func anAnswerToABatchThatTheQueueHasGivenUpSettlesNothing(status: Int) throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            commit(waiting: 5, at: loop.now)
            #expect(delivery.waiting == 5 && uplink.requestsOpen == 1 && uplink.cancelled.isEmpty)
            uplink.answer(status)
            #expect(delivery.counters.accepted == 0 && delivery.schedule.strayAnswers == 0)
            #expect(delivery.schedule.failures == (status == 200 ? 0 : 1))
            delivery.step(at: loop.now + .seconds(10))
            form([batch(6...10)], delivery, at: loop.now + .seconds(10))
            delivery.step(at: loop.now + .seconds(10))
            #expect(uplink.rows == ["6", "7", "8", "9", "10"])
        }
    }

    @Test(.bug(id: 11)) func aBatchThatNobodyHasAskedForIsSentInItsTurn() throws {
        try bench { loop, delivery, uplink in
            sending(loop, delivery)
            let other = FormRequest(endpoint: "main", limit: 5, sentMs: nil, number: 77)
            commit(waiting: 0, [batch(1...5), batch(6...10)], at: loop.now)
            delivery.refused([other], at: loop.now)
            #expect(uplink.requestsOpen == 1 && uplink.requests.count == 1)
            uplink.answer(200)
            #expect(delivery.counters.accepted == 5)
            // Its rows are asked for.
            form([batch(6...10)], delivery, at: loop.now)
            #expect(uplink.rows == ["6", "7", "8", "9", "10"])
        }
    }
}
