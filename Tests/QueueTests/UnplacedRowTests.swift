import Testing
import WaypostCore

@testable import Queue

/// Rows without position and time of a fix, and what else later schemas keep of a row.
@Suite struct UnplacedRowTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private static func change(_ text: String = #"{"version":17}"#) -> NewRow {
        var location = Location.sample(1, event: .settings)
        location.removePlace()
        location.settings = text
        return NewRow(location, receivedMs: 1_700_000_000_500)
    }

    @Test func theyComeBackAsTheyWere() throws {
        let outbox = try Outbox.open(scratch)
        var walking = Location.sample(2)
        walking.activity = Activity(kind: .onFoot, confidence: 83)
        walking.network = NetworkContext(ssid: "yard", bssid: "11:22:33:44:55:66", ip: nil)
        _ = try outbox.commit(Commit(rows: [Self.change(), NewRow(walking, receivedMs: 7), NewRow(.sample(3))]))
        outbox.close()
        let batch = try #require(try Outbox.open(scratch).form(9))
        #expect(batch.rows.map(\.location.isPlaced) == [false, true, true])
        #expect(batch.rows.map(\.location.settings) == [#"{"version":17}"#, nil, nil])
        #expect(batch.rows.map(\.receivedMs) == [1_700_000_000_500, 7, nil])
        #expect(batch.rows.map(\.location.activity) == [nil, Activity(kind: .onFoot, confidence: 85), nil])
        #expect(batch.rows.map(\.location) == [Self.change().location, walking, .sample(3)])
    }

    @Test func theirDateIsThatOfReceipt() throws {
        let outbox = try Outbox.open(scratch)
        let reply = try outbox.commit(Commit(rows: [Self.change()]))
        #expect(reply.depths[0].oldestTime == UTCTime(milliseconds: 1_700_000_000_500))
        outbox.close()
        let depth = try Outbox.open(scratch).current.depths[0]
        #expect(depth.oldestTime == UTCTime(milliseconds: 1_700_000_000_500))
    }

    @Test func quarantineKeepsThem() throws {
        let outbox = try Outbox.open(scratch)
        _ = try outbox.commit(Commit(rows: [Self.change()]))
        let batch = try #require(try outbox.form(9))
        try outbox.acknowledge(batch, .refused(Refusal(reason: "no")))
        let record = try #require(try OutboxReader(path: scratch.path).quarantined(limit: 9).first)
        #expect(record.row == batch.rows[0])
        _ = try outbox.commit(Commit(orders: [.retryQuarantined(endpoint: "main", ids: [])]))
        #expect(try outbox.form(9)?.rows == batch.rows)
    }

    @Test func whatWasDeliveredLeavesNothing() throws {
        let outbox = try Outbox.open(scratch)
        _ = try outbox.commit(Commit(rows: [Self.change()]))
        try outbox.acknowledge(try #require(try outbox.form(9)))
        try outbox.append(2..<3)
        try outbox.acknowledge(try #require(try outbox.form(9)))
        try outbox.append(3..<4)
        outbox.close()
        let connection = try Connection(path: scratch.path, access: .readWrite)
        #expect(try connection.integer("SELECT count(*) FROM settings") == 0)
    }

    @Test func theNewestRowOfABatchHasAPlace() throws {
        let outbox = try Outbox.open(scratch)
        let last = try outbox.commit(Commit(rows: [NewRow(.sample(1)), Self.change()])).lastSeq
        outbox.close()
        #expect(try Database(path: scratch.path).newestSeq(of: .network, through: last) == last - 1)
    }
}
