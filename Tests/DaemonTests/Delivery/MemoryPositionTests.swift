import TestSupport
import Testing
import WaypostCore

@testable import Daemon

/// An endpoint with `delivery = "latest"` gets its positions from memory.
@Suite struct MemoryPositionTests {
    private let directory: TemporaryDirectory
    private let bench: DeliveryBench
    private final class Receiver { var positions: [Location] = [] }
    private let receiver = Receiver()

    init() throws {
        directory = try TemporaryDirectory()
        bench = try DeliveryBench(path: directory.path + "/outbox.db", batchSize: 5, delivery: .latest)
        let receiver = receiver
        bench.delivery.positions = { receiver.positions }
    }

    private func see(_ second: Int64) {
        receiver.positions = [
            Location(
                trackable: "d", time: UTCTime(milliseconds: 1_700_000_000_000 + second * 1000), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: Int32(second)), moving: true)
        ]
    }

    private func step(after seconds: Int64) { bench.delivery.step(at: bench.loop.now + .seconds(seconds)) }

    @Test func noRowIsStoredForAPositionAndOlderRowsAreSuperseded() throws {
        see(60)
        step(after: 0)
        // It is parked.
        #expect(bench.uplink.requests.isEmpty)
        bench.delivery.movementChanged(true)
        step(after: 0)
        #expect(bench.uplink.requests.count == 1 && bench.uplink.rows == ["1700000060000"])
        bench.uplink.answer(200)
        #expect(bench.recorder.latest.lastSeq == 0 && bench.recorder.depth == 0 && bench.delivery.lastSuccess != nil)
        see(61)
        step(after: 30)
        #expect(bench.uplink.requests.count == 1)
        // Recorded late, and older than the server has seen.
        bench.record(2)
        bench.delivery.flush(at: bench.loop.now)
        try bench.commit()
        #expect(bench.uplink.requests.count == 1 && bench.delivery.waiting == 0)
        step(after: 90)
        #expect(bench.uplink.requests.count == 2 && bench.uplink.rows == ["1700000061000"])
        bench.uplink.answer(503)
        see(70)
        #expect(bench.delivery.schedule.failures == 1)
    }

    @Test func aPositionThatIsRefusedSettlesNoRow() throws {
        bench.delivery.movementChanged(true)
        see(1)
        step(after: 0)
        bench.uplink.answer(400)
        bench.record(1)
        bench.delivery.flush(byOperator: true, at: bench.loop.now)
        try bench.awaitRequest(2)
        #expect(bench.uplink.rows == ["1"])
    }
}
