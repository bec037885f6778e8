import ConfigurationTestSupport
import Glibc
import Logging
import Profiles
import Protocols
import Queue
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

@Suite struct EndpointDeliveryTests {
    let settings = EndpointSettings(
        name: "main", baseURL: "http://127.0.0.1:9", device: "d", batchSize: 5,
        profile: Profile(response: .waypost))

    func location(_ number: Int, event: LocationEvent = .none) -> Location {
        Location(
            trackable: "d", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true, event: event)
    }

    func batch(_ seqs: ClosedRange<Int64>, by endpoint: String = "main") -> Batch {
        Batch(
            endpoint: endpoint, id: "7f3a91c2-\(endpoint)-\(seqs.lowerBound)-\(seqs.upperBound)",
            rows: seqs.map {
                QueuedLocation(seq: $0, bootID: nil, receivedMs: nil, location: location(Int($0)))
            }, sentMs: nil)
    }

    /// A delivery beside a recorder whose commits the test answers itself.
    func bench(
        _ settings: EndpointSettings? = nil, spares: [EndpointSettings] = [], lines: LogLines = LogLines(),
        share: Double = 0, host: (any Host)? = nil,
        _ body: (EventLoop, EndpointDelivery, ScriptedUplink) throws -> Void
    ) throws {
        let routes = [settings ?? self.settings] + spares
        let loop = try host.map { EventLoop(on: $0) } ?? EventLoop()
        let log = AgentLog(logger: Logger(label: "") { _ in lines }, positions: false)
        let recorder = try Recorder(
            settings: .init(), writer: queue, current: CommitReply(lastSeq: 0), log: log, loop: loop)
        queue.recorder = recorder
        defer { recorder.close(timeout: .seconds(10)) }
        let uplink = ScriptedUplink()
        let delivery = EndpointDelivery(
            routes: routes.map {
                .init(
                    settings: $0,
                    credentials: EndpointCredentials(
                        EndpointConfig(settings: $0), uplink: uplink, log: log, loop: loop))
            }, depth: nil, batches: [], uplink: uplink, recorder: recorder, log: log, loop: loop, share: share,
            jitter: { 0 })
        recorder.committed = { [unowned delivery] in delivery.committed($0, $1, at: $2) }
        recorder.refused = { [unowned delivery] in delivery.refused($0, at: $1) }
        try body(loop, delivery, uplink)
    }

    /// A queue whose commits the test answers itself.
    private let queue = ScriptedQueue()

    func depth(state: EndpointState = .active, waiting: Int, _ batches: [Batch] = []) -> EndpointDepth {
        var depth = EndpointDepth(
            endpoint: "main", state: state, waiting: waiting, inFlight: batches.reduce(0) { $0 + $1.rows.count },
            ackedThrough: 0, oldestSeq: 1, oldestTime: nil)
        depth.batches = batches.map { BatchHeader(id: $0.id, rows: $0.rows.count, sender: $0.endpoint) }
        return depth
    }

    /// What was asked for so far is committed, and this is the reply.
    ///
    /// - Parameters:
    ///   - batches: in flight.
    ///   - isListed: with their rows.
    func commit(waiting: Int, _ batches: [Batch] = [], isListed: Bool = false, at now: EventTime) {
        queue.commit(
            .success(
                CommitReply(
                    lastSeq: 99, formed: isListed ? batches : [], depths: [depth(waiting: waiting, batches)],
                    rows: 99)), at: now)
    }

    @Test func countsRightWhenACommitThatWasCalledFailedFormedItsBatchAllTheSame() throws {
        try bench { loop, delivery, uplink in
            record(1...8, delivery, at: loop.now)
            delivery.step(at: loop.now)
            // The disk said no, but rows 1…5 did become a batch, and three more rows were stored with the next commit.
            queue.commit(.failure(OutboxError(.io, path: "", message: "")), at: loop.now)
            #expect(!delivery.schedule.isForming)
            delivery.step(at: loop.now + .seconds(11))
            commit(waiting: 3, [batch(1...5)], isListed: true, at: loop.now + .seconds(11))
            #expect(delivery.waiting == 8)
            // Another commit has the same counts: they do not drift.
            commit(waiting: 3, [batch(1...5)], at: loop.now + .seconds(12))
            #expect(delivery.waiting == 8)
            #expect(uplink.requests.count == 1)
        }
    }

    @Test func noticesRowsThatRetentionRemoved() throws {
        try bench { loop, delivery, _ in
            record(1...4, delivery, at: loop.now)
            commit(waiting: 1, at: loop.now)
            #expect(delivery.waiting == 1)
        }
    }

    @Test func leavesUnpublishedRowsToTheEngineFeed() throws {
        try bench { loop, delivery, _ in
            var unpublished = location(1)
            unpublished.published = false
            delivery.recorded(unpublished, at: loop.now)
            #expect(delivery.waiting == 0)
        }
    }

    func record(_ numbers: ClosedRange<Int>, _ delivery: EndpointDelivery, at now: EventTime) {
        for number in numbers { delivery.recorded(location(number), at: now) }
    }

    /// Five rows are on their way.
    private func sendFirst(_ loop: EventLoop, _ delivery: EndpointDelivery) {
        record(1...5, delivery, at: loop.now)
        delivery.step(at: loop.now)
        form([batch(1...5)], delivery, at: loop.now)
    }

    /// Replies to the delivery's request that these batches are in flight now.
    func form(_ batches: [Batch], waiting: Int = 0, _ delivery: EndpointDelivery, at now: EventTime) {
        #expect(delivery.schedule.isForming)
        commit(waiting: waiting, batches, isListed: true, at: now)
    }

    @Test func takesARefusedBatchApartAndSetsTheRowAside() throws {
        try bench { loop, delivery, uplink in
            sendFirst(loop, delivery)
            #expect(uplink.requests.count == 1 && uplink.rows == ["1", "2", "3", "4", "5"] && delivery.waiting == 5)
            uplink.answer(400, "no")
            // A server that has never taken a compressed body may refuse that.
            #expect(uplink.requests.map(\.gzip) == [true, false] && delivery.schedule.bisects == 0)
            uplink.answer(400, "no")
            #expect(delivery.schedule.bisects == 1)
            form([batch(1...3), batch(4...5)], delivery, at: loop.now)
            #expect(uplink.rows == ["1", "2", "3"])
            uplink.answer(200)
            // First it is written that the server has this part.
            form([batch(4...5)], delivery, at: loop.now)
            #expect(uplink.rows == ["4", "5"])
            uplink.answer(422)
            form([batch(4...4), batch(5...5)], delivery, at: loop.now)
            uplink.answer(400)
            // One of two was accepted so far: nine refusals more are no chance.
            for _ in 0..<9 {
                #expect(uplink.rows == ["4"], "once more")
                uplink.answer(400)
            }
            #expect(delivery.counters.quarantined == 1 && uplink.rows == ["5"])
            uplink.answer(200)
            #expect(delivery.waiting == 0 && delivery.counters.accepted == 4 && delivery.lastProblem == nil)
        }
    }

    @Test func believesWhatTheServerSaysOfSingleRows() throws {
        try bench { loop, delivery, uplink in
            sendFirst(loop, delivery)
            uplink.answer(200, #"{"rejected":[{"seq":2,"code":"bad"}]}"#)
            #expect(delivery.counters.accepted == 4 && delivery.counters.quarantined == 1 && delivery.waiting == 0)
        }
    }

    /// A person who looks at the quarantine sees why, also of a row that was sent alone.
    @Test(.bug(id: 16)) func theReasonOfARowThatWasSentAloneIsKept() throws {
        var batches = BatchesInFlight([batch(4...4)])
        let id = try #require(batches.first?.id)
        batches.answered(
            id, .split(status: 200, reason: "bad: why"),
            UplinkOutcome(.reply(UplinkReply(status: 200, headers: [], body: []))))
        #expect(batches.finish(id)?.history.answer.reason == "bad: why")
    }

    @Test func sendsByAnotherWayWhileTheEndpointCannotBeReached() throws {
        var spare = settings
        spare.name = "spare"
        spare.baseURL = "http://127.0.0.2:9"
        spare.backupFor = "main"
        try bench(spares: [spare]) { loop, delivery, uplink in
            sendFirst(loop, delivery)
            var now = loop.now
            for failure in 1...5 {
                uplink.fail(.connect("refused"))
                now = now + .seconds(600)
                if failure < 5 { delivery.step(at: now) }
            }
            #expect(delivery.schedule.route == 1)
            form([batch(1...5, by: "spare")], delivery, at: now)
            #expect(uplink.requests.count == 6 && uplink.requests[5].url.hasPrefix("http://127.0.0.2:9"))
            uplink.answer(200)
            #expect(delivery.waiting == 0)
        }
    }

    @Test func stopsAtACollision() throws {
        try bench { loop, delivery, uplink in
            sendFirst(loop, delivery)
            uplink.answer(200)
            record(6...10, delivery, at: loop.now)
            delivery.step(at: loop.now)
            form([batch(6...10)], delivery, at: loop.now)
            uplink.answer(409, #"{"error":"asset_taken"}"#)
            #expect(delivery.schedule.state == .taken && delivery.waiting == 5)
            delivery.step(at: loop.now + .seconds(86_400))
            #expect(uplink.requests.count == 2)
        }
    }

    @Test func aDeviceThatIsNotBoundKeepsItsRowsAndSaysHowToBindIt() throws {
        var settings = settings
        settings.onCollision = .clear
        let lines = LogLines()
        try bench(settings, lines: lines) { loop, delivery, uplink in
            sendFirst(loop, delivery)
            uplink.answer(409, #"{"error":"asset_taken"}"#)
            #expect(delivery.schedule.state == .paused(reason: "not bound") && delivery.waiting == 5)
            #expect(delivery.lastProblem?.contains("`sudo waypost endpoint bind main`") == true)
            #expect(StatusReport.advice(delivery, nil)?.contains("waypost endpoint bind main") == true)
        }
        #expect(lines.text.contains { $0.contains("`sudo waypost endpoint bind main`") })
        #expect(!lines.text.contains { $0.contains("another device reports") })
    }

    @Test func withoutASubscriberOneRowIsTriedAndTheProblemNamesTheKey() throws {
        let settings = try loaded(
            smallest
                + """
                [[endpoint]]
                name = "main"
                base_url = "mqtts://broker.example"
                profile = "waypost-mqtt"
                batch_size = 5
                """
        ).config.endpoints.last?.settings
        try bench(settings) { loop, delivery, uplink in
            sendFirst(loop, delivery)
            #expect(uplink.requests.last?.broker?.subscriber == .required)
            uplink.end(UplinkOutcome(.published(BrokerReply(Array(repeating: .noMatchingSubscribers, count: 5)))))
            #expect(delivery.lastProblem?.contains("no_subscriber") == true)
            delivery.step(at: loop.now + .seconds(11))
            #expect(uplink.requests.last?.broker?.subscriber == .awaited)
            #expect(delivery.waiting == 5)
            uplink.end(UplinkOutcome(.published(BrokerReply(Array(repeating: .success, count: 5)))))
            #expect(delivery.waiting == 0 && delivery.lastProblem == nil)
        }
    }

    @Test func namesTheHostThatARedirectPointsTo() throws {
        try bench { loop, delivery, uplink in
            sendFirst(loop, delivery)
            var now = loop.now
            for time in 1...5 {
                uplink.redirect(to: "https://portal.example/login?secret=1")
                now = now + .seconds(600)
                if time < 5 { delivery.step(at: now) }
            }
            #expect(delivery.schedule.state == .paused(reason: "redirected"))
            let problem = delivery.lastProblem ?? "secret"
            #expect(problem.contains("portal.example") && !problem.contains("secret"))
        }
    }

    // The company of other endpoints, and the way out.

    @Test func joinsAnotherEndpointInTheSecondHalfOfItsWindow() throws {
        try bench { loop, delivery, _ in
            delivery.recorded(location(1), at: loop.now)
            delivery.step(at: loop.now)
            delivery.mayJoin(at: loop.now + .seconds(29))
            #expect(!delivery.schedule.isForming)
            delivery.mayJoin(at: loop.now + .seconds(30))
            #expect(delivery.schedule.isForming)
        }
    }

    @Test func aRetryIsNotBroughtForwardByAnotherEndpoint() throws {
        try bench { loop, delivery, uplink in
            sendFirst(loop, delivery)
            uplink.answer(503)
            delivery.mayJoin(at: loop.now)
            #expect(uplink.requests.count == 1)
            #expect(delivery.schedule.nextAttemptAt.map { $0 > loop.now } == true)
        }
    }

    @Test(arguments: [false, true]) func aBacklogWaitsAMomentAfterTheHostStartedUnlessItIsFlushed(isFlushed: Bool)
        throws
    {
        try bench(share: 0.5) { loop, delivery, _ in
            record(1...5, delivery, at: loop.now)
            delivery.startedWithHost(at: loop.now)
            delivery.step(at: loop.now)
            #expect(!delivery.schedule.isForming && !delivery.maySend(at: loop.now))
            if isFlushed { delivery.flush(at: loop.now) } else { delivery.step(at: loop.now + .seconds(30)) }
            #expect(delivery.schedule.isForming)
        }
    }

    /// Others see from the connection to a broker that the device is there; a whole fleet may have been powered on.
    @Test func isPresentAtATimeOfItsOwnAfterTheHostStarted() throws {
        let settings = try loaded(
            smallest
                + """
                [[endpoint]]
                base_url = "mqtts://broker.example"
                profile = "home-assistant-mqtt"
                """
        ).config.endpoints.last?.settings
        for share in [0, 0.5] {
            try bench(settings, share: share, host: LeapingHost()) { loop, delivery, uplink in
                delivery.startedWithHost(at: loop.now)
                delivery.connect()
                #expect((uplink.requests.count == 1) == (share == 0))
                try loop.run(every: .milliseconds(100)) { uplink.requests.count == 1 }
                #expect(uplink.requests.first?.broker?.session.staysOpen == true)
                uplink.end(UplinkOutcome(.published(BrokerReply([])), bytesSent: 30, newConnection: true))
                #expect(delivery.counters.connections == 1 && delivery.counters.bytesSent == 30)
            }
        }
    }

    @Test func nothingIsFormedWhileTheWayOutIsMetered() throws {
        var spared = settings
        spared.metered = .hold
        spared.meteredInterfaces = ["lo"]
        try bench(spared) { loop, delivery, _ in
            delivery.linksChanged(at: loop.now)
            record(1...5, delivery, at: loop.now)
            delivery.flush(at: loop.now)
            #expect(!delivery.schedule.isForming && delivery.isShutDown)
            #expect(delivery.link.holdReason?.contains("lo") == true)
        }
    }

    @Test func overAMeteredLinkOnlyWhatAnEventIsBehindIsFormed() throws {
        var spared = settings
        spared.metered = .eventsOnly
        spared.meteredInterfaces = ["l*"]
        try bench(spared) { loop, delivery, uplink in
            delivery.linksChanged(at: loop.now)
            record(1...5, delivery, at: loop.now)
            delivery.step(at: loop.now)
            #expect(!delivery.schedule.isForming)
            delivery.flush(at: loop.now)
            #expect(delivery.schedule.isForming)
            form([batch(1...5)], delivery, at: loop.now)
            uplink.answer(200)
            record(6...10, delivery, at: loop.now)
            delivery.step(at: loop.now)
            #expect(!delivery.schedule.isForming && uplink.requests.count == 1)
        }
    }
}

/// A queue whose commits the test answers itself.
final class ScriptedQueue: CommitWriter {
    weak var recorder: Recorder?
    /// Never readable.
    let descriptor: Int32
    let bytesOnDisk = 0
    private var done: OutboxWriter.Completion?

    private let other: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        (descriptor, other) = (ends[0], ends[1])
    }

    deinit { for end in [descriptor, other] { _ = Glibc.close(end) } }

    func submit(_ commit: Commit, completion: @escaping OutboxWriter.Completion) { done = completion }

    func drain() {}

    func close(timeout: Duration) -> Bool { true }

    /// Takes what the recorder holds, and answers.
    func commit(_ result: Result<CommitReply, OutboxError>, at now: EventTime) {
        if done == nil { recorder?.commit(at: now) }
        let done = done
        self.done = nil
        done?(result)
    }
}
