import Delivery
import Glibc
import Logging
import Outbox
import Positioning
import TestSupport
import Testing

@testable import Agent

@Suite struct EndpointDeliveryTests {
    /// Takes requests and never answers.
    private final class SilentUplink: Uplink {
        private(set) var requests: [UplinkRequest] = []

        func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) { requests.append(request) }
        func close() {}
    }

    private let settings = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d", batchSize: 5)

    private func location(_ number: Int, event: LocationEvent = .none) -> Location {
        Location(
            trackable: "d", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true, event: event)
    }

    private func batch(_ seqs: ClosedRange<Int64>) -> Batch {
        Batch(
            endpoint: "main", id: "7f3a91c2-main-\(seqs.lowerBound)-\(seqs.upperBound)",
            rows: seqs.map {
                QueuedLocation(seq: $0, bootID: nil, receivedMs: nil, location: location(Int($0)))
            }, sentMs: nil)
    }

    /// A delivery beside a recorder whose commits the test answers itself.
    private func bench(
        _ body: (EventLoop, EndpointDelivery, SilentUplink) throws -> Void
    ) throws {
        let directory = try makeTemporaryDirectory()
        let loop = try EventLoop()
        let log = AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
        let outbox = try Outbox(
            OutboxSettings(path: directory + "/outbox.db"), endpoints: [settings], bootID: nil,
            newUUID: [UInt8](repeating: 7, count: 16))
        let current = outbox.current
        let recorder = try Recorder(
            settings: .init(), writer: try OutboxWriter(outbox), current: current, log: log, loop: loop)
        defer {
            recorder.close(patience: .seconds(10))
            for name in ["", "-wal", "-shm", "-lock"] { unlink("\(directory)/outbox.db\(name)") }
            rmdir(directory)
        }
        let uplink = SilentUplink()
        let delivery = EndpointDelivery(
            schedule: DeliverySchedule(settings: settings, at: loop.now), batch: nil,
            credentials: EndpointCredentials(
                EndpointConfig(settings: settings), uplink: uplink, log: log, loop: loop), outbox: "7f3a91c2",
            uplink: uplink, recorder: recorder, log: log, loop: loop, jitter: { 0 })
        try body(loop, delivery, uplink)
    }

    private func depth(waiting: Int, inFlight: Int) -> EndpointDepth {
        EndpointDepth(
            endpoint: "main", state: .active, waiting: waiting, inFlight: inFlight, acked: 0, oldestSeq: 1,
            oldestTime: nil)
    }

    @Test func sendsTheBatchThatWasAskedFor() throws {
        try bench { loop, delivery, uplink in
            for number in 1...5 { delivery.recorded(location(number), at: loop.now) }
            delivery.step(at: loop.now)
            #expect(delivery.schedule.isForming)
            delivery.committed(
                CommitReply(lastSeq: 5, formed: [batch(1...5)], depths: [depth(waiting: 0, inFlight: 5)], rows: 5),
                [FormRequest(endpoint: "main", limit: 5, sentMs: nil)], at: loop.now)
            #expect(uplink.requests.count == 1)
            #expect(uplink.requests.first?.headers.last?.value == "\"7f3a91c2-main-1-5\"")
            #expect(delivery.waiting == 5)
        }
    }

    @Test func countsRightWhenACommitThatWasCalledFailedFormedItsBatchAllTheSame() throws {
        try bench { loop, delivery, uplink in
            for number in 1...8 { delivery.recorded(location(number), at: loop.now) }
            delivery.step(at: loop.now)
            let request = FormRequest(endpoint: "main", limit: 5, sentMs: nil)
            // The disk said no, but rows 1…5 did become a batch, and three more rows were stored with the next commit.
            delivery.refused([request], at: loop.now)
            delivery.step(at: loop.now + .seconds(11))
            delivery.committed(
                CommitReply(lastSeq: 8, formed: [batch(1...5)], depths: [depth(waiting: 3, inFlight: 5)], rows: 8),
                [request], at: loop.now + .seconds(11))
            #expect(delivery.waiting == 8)
            // Another commit tells the same; what was counted does not drift.
            delivery.committed(
                CommitReply(lastSeq: 8, depths: [depth(waiting: 3, inFlight: 5)], rows: 8), [],
                at: loop.now + .seconds(12))
            #expect(delivery.waiting == 8)
            #expect(uplink.requests.count == 1)
        }
    }

    @Test func noticesRowsThatRetentionRemoved() throws {
        try bench { loop, delivery, _ in
            for number in 1...4 { delivery.recorded(location(number), at: loop.now) }
            delivery.committed(
                CommitReply(
                    lastSeq: 4, depths: [depth(waiting: 1, inFlight: 0)], dropped: DropCounts(oldest: 3), rows: 1),
                [], at: loop.now)
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
}
