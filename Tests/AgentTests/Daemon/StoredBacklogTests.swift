import Delivery
import Glibc
import Logging
import Positioning
import TestSupport
import Testing

@testable import Agent
@testable import Outbox

/// Uploads of rows that lie on a disk which has stopped taking writes.
@Suite struct StoredBacklogTests {
    private final class Bench: DeliveryBench {
        let directory: String
        /// Keeps the queue from being written.
        private var blocker: Connection?

        var path: String { directory + "/outbox.db" }

        /// - Parameter patience: before what lies on the disk is sent.
        init(delivery kind: EndpointSettings.Delivery = .all, patience: Duration = .zero) throws {
            let directory = try makeTemporaryDirectory()
            self.directory = directory
            try super.init(path: directory + "/outbox.db", batchSize: 5, delivery: kind) {
                $0.commitWindow = .seconds(1)
                $0.doubt = .zero
                $0.storedPatience = patience
            }
        }

        deinit {
            recorder.close(patience: .seconds(10))
            for name in ["", "-wal", "-shm", "-lock"] { unlink("\(path)\(name)") }
            rmdir(directory)
        }

        /// Rows on disk that nobody has sent, and a disk that takes no more until `heal()`.
        func leaveBacklog(_ count: Int) throws {
            record(count)
            try commit()
            try #require(recorder.held == 0)
            let other = try Connection(path: path, access: .readWrite)
            try other.execute("BEGIN IMMEDIATE")
            blocker = other
            // Before, it would have made batches of them.
            recorder.committed = { [unowned self] in delivery.committed($0, $1, at: $2) }
            recorder.refused = { [unowned self] in delivery.refused($0, at: $1) }
            recorder.storedRowsRead = { [unowned self] in delivery.storedRowsRead(at: $1) }
            delivery.committed(recorder.latest, [], at: loop.now)
        }

        /// The disk shows less than it took.
        func forget(before seq: Int64) throws {
            try blocker?.execute("DELETE FROM location WHERE seq < \(seq); UPDATE endpoint SET unsettled = 0")
            try blocker?.execute("COMMIT; BEGIN IMMEDIATE")
        }

        func heal() throws {
            blocker = nil
            try commit()
            try #require(!recorder.isDiskBad)
        }

        func commit() throws {
            var isDone = false
            recorder.commit(at: loop.now) { isDone = true }
            try loop.run { isDone }
        }
    }

    @Test func theBacklogGoesOutInOrderAndIsNotSentAgain() throws {
        let bench = try Bench()
        try bench.leaveBacklog(12)
        bench.record(3)
        bench.delivery.flush(at: bench.loop.now)
        try bench.loop.run { bench.uplink.requests.count == 1 }
        #expect(bench.recorder.isDiskBad)
        #expect(bench.uplink.rows == ["1", "2", "3", "4", "5"])
        bench.uplink.answer(200)
        #expect(bench.delivery.waiting == 10)
        try bench.loop.run { bench.uplink.requests.count == 2 }
        #expect(bench.uplink.rows == ["6", "7", "8", "9", "10"])
        // It did not arrive: the same again.
        bench.uplink.answer(503)
        bench.delivery.step(at: bench.loop.now + .seconds(600))
        try bench.loop.run { bench.uplink.requests.count == 3 }
        #expect(bench.uplink.requests[2].body == bench.uplink.requests[1].body)
        bench.uplink.answer(200)
        // The disk takes writes again, and knows what it is told.
        try bench.heal()
        #expect(bench.delivery.waiting == 5)
        bench.delivery.flush(at: bench.loop.now)
        try bench.loop.run { bench.uplink.requests.count == 4 }
        #expect(bench.uplink.rows == ["11", "12", "13", "14", "15"])
        bench.uplink.answer(200)
        try bench.commit()
        #expect(bench.recorder.latest.rows == 0 && bench.delivery.waiting == 0)
    }

    @Test func memoryComesBehindTheBacklog() throws {
        let bench = try Bench()
        try bench.leaveBacklog(7)
        bench.record(5)
        bench.delivery.flush(at: bench.loop.now)
        var sent: [[String]] = []
        while sent.count < 4 {
            try bench.loop.run { bench.uplink.requests.count > sent.count }
            sent.append(bench.uplink.rows)
            bench.uplink.answer(200)
            if bench.delivery.waiting > 0 { bench.delivery.flush(at: bench.loop.now) }
            if bench.delivery.waiting == 0 { break }
        }
        // Rows in memory bear numbers of their own, which go on from those that have been in memory before.
        #expect(sent == [["1", "2", "3", "4", "5"], ["6", "7"], ["8", "9", "10", "11", "12"]])
        try bench.heal()
        #expect(bench.recorder.latest.rows == 0 && bench.recorder.held == 0)
        #expect(bench.recorder.sentFromRAM == 5)
    }

    @Test func onlyTheNewestRowCountsWhereTheOthersAreOvertaken() throws {
        let bench = try Bench(delivery: .latest)
        try bench.leaveBacklog(7)
        bench.record(2)
        bench.delivery.flush(at: bench.loop.now)
        try bench.loop.run { bench.uplink.requests.count == 1 }
        #expect(bench.uplink.rows == ["9"])
        bench.uplink.answer(200)
        try bench.heal()
        bench.delivery.flush(at: bench.loop.now)
        try bench.commit()
        #expect(bench.uplink.requests.count == 1)
        #expect(bench.recorder.latest.rows == 0 && bench.delivery.waiting == 0)
    }

    @Test func nothingOvertakesRowsThatTheDiskDoesNotShow() throws {
        let bench = try Bench()
        try bench.leaveBacklog(12)
        try bench.forget(before: 13)
        bench.record(3)
        bench.delivery.flush(at: bench.loop.now)
        try bench.loop.run { bench.recorder.commitsFailed > 1 }
        #expect(bench.uplink.requests.isEmpty)
    }

    @Test func aDiskThatIsBackSoonHasNothingRepeated() throws {
        let bench = try Bench(patience: .seconds(3600))
        try bench.leaveBacklog(5)
        bench.record(1)
        bench.delivery.flush(at: bench.loop.now)
        try bench.loop.run { bench.recorder.commitsFailed > 1 }
        #expect(bench.uplink.requests.isEmpty)
    }
}
