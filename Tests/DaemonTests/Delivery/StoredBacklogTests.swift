import Logging
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Daemon
@testable import Queue

/// Uploads of rows that lie on a disk which has stopped taking writes.
@Suite struct StoredBacklogTests {
    private final class Bench: DeliveryBench {
        private let directory: TemporaryDirectory
        /// Keeps the queue from being written.
        private var blocker: Connection?

        var path: String { directory.path + "/outbox.db" }

        init(delivery kind: EndpointSettings.Delivery = .all) throws {
            directory = try TemporaryDirectory()
            try super.init(path: directory.path + "/outbox.db", batchSize: 5, delivery: kind) {
                $0.commitWindow = .seconds(1)
            }
        }

        /// Rows on disk that were not sent, and a disk that takes no more until `heal()`.
        func leaveBacklog(_ count: Int) throws {
            try quietly {
                for _ in 0..<count { recordOnly() }
                try commit()
                try #require(recorder.held == 0)
                let other = try Connection(path: path, access: .readWrite)
                try other.execute("BEGIN IMMEDIATE")
                blocker = other
                recordOnly()
                try commit()
                try #require(recorder.isDiskBad)
            }
        }

        func heal() throws {
            blocker = nil
            try commit()
            try #require(!recorder.isDiskBad)
        }
    }

    @Test func theBacklogGoesOutInOrderAndIsNotSentAgain() throws {
        let bench = try Bench()
        try bench.leaveBacklog(12)
        bench.record(2)
        bench.delivery.flush(at: bench.loop.now)
        try bench.awaitRequest(1)
        #expect(bench.recorder.isDiskBad)
        #expect(bench.uplink.rows == ["1", "2", "3", "4", "5"])
        bench.uplink.answer(200)
        try bench.awaitRequest(2)
        #expect(bench.uplink.rows == ["6", "7", "8", "9", "10"])
        // It did not arrive: the same again, also once the disk works.
        bench.uplink.answer(503)
        try bench.heal()
        bench.delivery.step(at: bench.loop.now + .seconds(600))
        try bench.awaitRequest(3)
        #expect(bench.uplink.requests[2].body == bench.uplink.requests[1].body)
        bench.uplink.answer(200)
        try bench.awaitRequest(4)
        #expect(bench.uplink.rows == ["11", "12", "13", "14", "15"])
        bench.uplink.answer(200)
        try bench.commit()
        #expect(bench.recorder.latest.rows == 0 && bench.delivery.waiting == 0 && bench.recorder.held == 0)
    }

    /// (a) and (b) of the faults that orders of events brought to light: what was in flight when the disk failed is settled
    /// by its own answer alone.
    @Test func anAnswerThatComesWhileTheDiskFailsSettlesItsOwnBatch() throws {
        let bench = try Bench()
        bench.record(5)
        bench.delivery.flush(at: bench.loop.now)
        try bench.awaitRequest(1)
        let other = try Connection(path: bench.path, access: .readWrite)
        try other.execute("BEGIN IMMEDIATE")
        bench.record(7)
        try bench.commit()
        #expect(bench.recorder.isDiskBad && bench.uplink.requests.count == 1)
        bench.uplink.answer(200)
        try bench.awaitRequest(2)
        #expect(bench.uplink.rows == ["6", "7", "8", "9", "10"])
        bench.uplink.answer(503)
        try other.execute("ROLLBACK")
        try bench.commit()
        #expect(!bench.recorder.isDiskBad)
        #expect(bench.recorder.latest.rows == 7 && bench.recorder.latest.depths[0].inFlight == 5)
    }

    @Test func onlyTheNewestRowCountsWhereTheOthersAreOvertaken() throws {
        let bench = try Bench(delivery: .latest)
        try bench.leaveBacklog(7)
        bench.record(1)
        bench.delivery.flush(at: bench.loop.now)
        try bench.awaitRequest(1)
        #expect(bench.uplink.rows == ["9"])
        bench.uplink.answer(200)
        try bench.heal()
        bench.delivery.flush(at: bench.loop.now)
        try bench.commit()
        #expect(bench.uplink.requests.count == 1)
        #expect(bench.recorder.latest.rows == 0 && bench.delivery.waiting == 0)
    }
}
