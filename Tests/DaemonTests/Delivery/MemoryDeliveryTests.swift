import Logging
import Profiles
import Queue
import Testing
import WaypostCore

@testable import Daemon

/// Uploads of a daemon whose disk refuses from the start.
@Suite struct MemoryDeliveryTests {
    private final class Bench: DeliveryBench {
        init(batchSize: Int = 5) throws { try super.init(path: "/nonexistent/outbox.db", batchSize: batchSize) }

        override func record(_ count: Int) {
            super.record(count)
            delivery.step(at: loop.now)
        }
    }

    @Test func sendsInOrderAndForgetsWhatArrived() throws {
        let bench = try Bench()
        #expect(bench.recorder.isDiskBad && bench.recorder.lastError?.path == "/nonexistent/outbox.db")
        bench.record(12)
        try bench.awaitRequest(1)
        #expect(bench.uplink.rows == ["1", "2", "3", "4", "5"])
        try bench.commit()
        // One at a time.
        #expect(bench.uplink.requests.count == 1)
        bench.uplink.answer(200)
        try bench.awaitRequest(2)
        #expect(bench.uplink.rows == ["6", "7", "8", "9", "10"])
        bench.uplink.answer(200)
        try bench.commit()
        // The rest waits for its window.
        #expect(bench.uplink.requests.count == 2)
        #expect(bench.recorder.sentFromRAM == 10 && bench.recorder.held == 2 && bench.delivery.waiting == 2)
        #expect(bench.delivery.counters.accepted == 10)
        bench.delivery.flush(at: bench.loop.now)
        try bench.awaitRequest(3)
        #expect(bench.uplink.rows == ["11", "12"])
        bench.uplink.answer(200)
        try bench.commit()
        #expect(bench.recorder.held == 0 && bench.delivery.waiting == 0)
    }

    @Test func aBatchThatDoesNotArriveGoesOutAgainAsItIs() throws {
        let bench = try Bench()
        bench.record(5)
        try bench.awaitRequest(1)
        bench.uplink.answer(503)
        bench.record(3)
        try bench.commit()
        #expect(bench.recorder.held == 8 && bench.delivery.waiting == 8)
        #expect(bench.delivery.schedule.failures == 1 && bench.uplink.requests.count == 1)
        bench.delivery.step(at: bench.loop.now + .seconds(2))
        #expect(bench.uplink.requests.count == 2)
        #expect(bench.uplink.requests[0].body == bench.uplink.requests[1].body)
        bench.uplink.fail(.timeout("slow"))
        bench.delivery.step(at: bench.loop.now + .seconds(600))
        #expect(bench.uplink.requests.count == 3)
        bench.uplink.answer(200)
        try bench.commit()
        #expect(bench.recorder.sentFromRAM == 5 && bench.delivery.schedule.failures == 0)
    }

    @Test(arguments: [400, 401, 404, 409])
    func aRefusalDoesNotHammer(status: Int) throws {
        let bench = try Bench()
        bench.record(1)
        bench.delivery.flush(at: bench.loop.now)
        try bench.awaitRequest(1)
        bench.uplink.answer(status, status == 409 ? #"{"error":"asset_taken"}"# : "")
        try bench.commit()
        #expect(bench.uplink.requests.count == 1)
        bench.delivery.step(at: bench.loop.now + .milliseconds(500))
        try bench.commit()
        #expect(bench.uplink.requests.count == 1)
        #expect(bench.recorder.held == 1 && bench.delivery.waiting == 1)
        bench.delivery.step(at: bench.loop.now + .seconds(1000))
        #expect(bench.uplink.requests.count == 2)
    }

    @Test func whatIsTooLargeGoesInHalves() throws {
        let bench = try Bench(batchSize: 8)
        bench.record(8)
        try bench.awaitRequest(1)
        bench.uplink.answer(413)
        try bench.awaitRequest(2)
        #expect(bench.uplink.rows == ["1", "2", "3", "4"])
        bench.uplink.answer(200)
        try bench.awaitRequest(3)
        #expect(bench.uplink.rows == ["5", "6", "7", "8"])
    }

    /// What the disk holds is not known: it gets their records once it is back.
    @Test func singleRowsThatAreRefusedAreNotSentAgain() throws {
        let bench = try Bench()
        bench.record(5)
        try bench.awaitRequest(1)
        bench.uplink.answer(200, #"{"rejected":[{"seq":2,"code":"bad"}]}"#)
        try bench.commit()
        #expect(bench.recorder.latest.depths[0].inFlight == 0 && bench.recorder.latest.depths[0].quarantined == 1)
        #expect(bench.delivery.counters.accepted == 4)
    }
}
