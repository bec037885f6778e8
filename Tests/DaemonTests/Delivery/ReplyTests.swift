import Profiles
import Queue
import TestSupport
import Testing
import WaypostCore

@testable import Daemon

/// What becomes of the rows of a batch by the body of a 200.
@Suite struct ReplyTests {
    private final class Bench: DeliveryBench {
        private let directory: TemporaryDirectory

        init(rows: Int) throws {
            directory = try TemporaryDirectory()
            try super.init(path: directory.path + "/outbox.db", batchSize: rows)
            record(rows)
            delivery.flush(at: loop.now)
            try awaitRequest(1)
        }

        /// Rows in the queue once all that is settled is on disk.
        func rowsKept() throws -> Int {
            try commit()
            return recorder.latest.rows
        }
    }

    /// All rows but the first are busy, in more than 64 KiB.
    private let busy: String = {
        let entries = (2...693).map {
            #"{"seq":\#($0),"code":"busy","reason":"the store takes no more at the moment, try it again later"}"#
        }
        return #"{"rejected":[\#(entries.joined(separator: ","))]}"#
    }()

    @Test func keepsThe692RowsThatAreBusy() throws {
        let bench = try Bench(rows: 693)
        #expect(bench.delivery.schedule.inFlight == 693)
        #expect((65_537...bench.uplink.requests[0].replyLimit).contains(busy.utf8.count))
        bench.uplink.answer(200, busy)
        #expect(try bench.rowsKept() == 692)
        #expect(bench.delivery.counters.accepted == 1 && bench.delivery.counters.quarantined == 0)
    }

    @Test func saysThatNothingWasAccepted() throws {
        let bench = try Bench(rows: 1)
        bench.uplink.answer(200, #"{"rejected":[{"seq":1,"code":"busy"}]}"#)
        #expect(bench.delivery.lastProblem?.hasPrefix("status 200, but nothing was accepted; retry in ") == true)
        #expect(try bench.rowsKept() == 1)
    }

    @Test func keepsAllRowsOfAPageAndNamesIt() throws {
        let bench = try Bench(rows: 1)
        bench.uplink.answer(200, "<!doctype html><title>Sign in</title>")
        #expect(
            bench.delivery.lastProblem?.hasPrefix("status 200 with a web page (\"Sign in\") instead of an ") == true)
        #expect(bench.delivery.counters.failed == ["web page": 1])
        #expect(try bench.rowsKept() == 1)
    }

    @Test func keepsAllRowsWhenTheListIsCut() throws {
        let bench = try Bench(rows: 693)
        bench.uplink.answer(200, String(busy.prefix(65_536)), cut: true)
        #expect(bench.delivery.counters.accepted == 0 && bench.delivery.counters.failed == ["unclear reply": 1])
        #expect(bench.delivery.lastProblem?.hasPrefix("status 200, but the body is cut short") == true)
        #expect(try bench.rowsKept() == 693)
        // The same rows under the same id, when the backoff ends.
        #expect(bench.delivery.schedule.inFlight == 693 && bench.delivery.schedule.nextAttemptAt != nil)
    }
}
