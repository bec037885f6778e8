import Queue
import Testing
import WaypostCore

@Suite struct OutboxTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func returnsEveryFieldAsRecorded() throws {
        let bare = Location(
            trackable: nil, time: UTCTime(milliseconds: 0), at: .zero,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: false)
        let (full, trip) = (Location.awkward[0], Location.awkward[1])
        let rows = [NewRow(full, receivedMs: 5), NewRow(trip, receivedMs: nil), NewRow(bare, receivedMs: 0)]
        _ = try Outbox.open(scratch).commit(Commit(rows: rows))
        let outbox = try Outbox.open(scratch)
        let batch = try #require(try outbox.form(10))
        #expect(batch.rows.map(\.location) == rows.map(\.location))
        #expect(batch.rows.map(\.receivedMs) == rows.map(\.receivedMs))
        #expect(batch.rows.map(\.bootID) == [testBoot, testBoot, testBoot])
        #expect(batch.rows.map(\.seq) == [1, 2, 3])
    }

    @Test func survivesValuesThatNoReceiverWouldTell() throws {
        let outbox = try Outbox.open(scratch)
        var location = Location.sample(1)
        location.time = UTCTime(milliseconds: .max)
        location.altitudeMSL = .infinity
        location.speed = .nan
        location.course = 359.96
        location.horizontalAccuracy = 0.01
        location.odometer = -.infinity
        location.satellitesUsed = .max
        _ = try outbox.commit(Commit(rows: [NewRow(location, receivedMs: .min)]))
        let row = try #require(try outbox.form(1)?.rows.first)
        let kept = [row.location.altitudeMSL, row.location.speed, row.location.course, row.location.horizontalAccuracy]
        #expect(kept == [nil, nil, 0, 0.1] && row.location.odometer == 0)
    }

    @Test func keepsWhatTheTrackerAndTheFileSourceGave() throws {
        let first = try Outbox.open(scratch)
        #expect(first.parts.tracker == nil && first.parts.source == nil)
        _ = try first.commit(
            Commit(
                rows: [NewRow(.numbered(1)), NewRow(.numbered(2))],
                parts: .init(tracker: [1, 2, 3], source: [], channels: [7])))
        first.close()
        let second = try Outbox.open(scratch)
        #expect(second.parts.tracker == [1, 2, 3])
        #expect(second.parts.source == [])
        #expect(second.parts.channels == [7] && second.newest(1).map(\.seq) == [2])
        #expect(second.name == "7f3a91c2")
    }

    @Test func formsTheSameBatchAgainAfterARestart() throws {
        let first = try Outbox.open(scratch, rows: 5)
        let batch = try #require(try first.form(3, sentMs: 1_800_000_000_000))
        #expect(batch.id == "7f3a91c2-main-1-3")
        #expect(batch.sentMs == 1_800_000_000_000)
        try first.append(5..<9)
        #expect(try first.form(100) == batch)
        first.close()
        let second = try Outbox.open(scratch)
        #expect(second.inFlight() == [batch])
        let reply = try second.acknowledge(batch)
        #expect(reply.depths[0].ackedThrough == 3 && reply.rows == 6)
        #expect(try second.form(100)?.id == "7f3a91c2-main-4-9")
    }

    @Test(arguments: [(300_000, true), (300_001, false)] as [(Int64, Bool)])
    func leavesOutASendingTimeFarBehindTheReceiver(behind: Int64, kept: Bool) throws {
        let outbox = try Outbox.open(scratch, rows: 1)
        let sent = Location.sample(0).time.milliseconds - behind
        #expect(try outbox.form(1, sentMs: sent)?.sentMs == (kept ? sent : nil))
    }

    @Test func neverRepeatsASequenceNumberOnceRetentionTookTheNewestRows() throws {
        let first = try Outbox.open(scratch, maxRecords: 1)
        _ = try first.commit(
            Commit(rows: [NewRow(.sample(0, event: .motionchange)), NewRow(.sample(1)), NewRow(.sample(2))]))
        #expect(first.current.lastSeq == 3)
        first.close()
        #expect(try Outbox.open(scratch).append(3..<4).lastSeq == 4 + testLeap)
    }

    @Test func dropsOldestPlainFixesFirstAndEventsLast() throws {
        let outbox = try Outbox.open(scratch, maxRecords: 4)
        let events: [LocationEvent] = [.none, .motionchange, .heartbeat, .none, .geofence, .none]
        var reply = try outbox.commit(
            Commit(rows: events.enumerated().map { NewRow(.sample($0.offset, event: $0.element)) }))
        #expect(reply.dropped.oldest == 4 && reply.dropped.events == 0)
        #expect(try OutboxReader(path: scratch.path).oldest(10).map(\.seq) == [2, 4, 5, 6])
        reply = try outbox.commit(Commit(rows: (6..<9).map { NewRow(.sample($0, event: .power)) }))
        #expect(reply.dropped.oldest == 0 && reply.dropped.events == 1)
        #expect(try outbox.form(10)?.rows.map(\.seq) == [5, 7, 8, 9])
    }

    @Test func dropsRowsThatWereInFlightForAForgottenEndpointFirst() throws {
        let both = try Outbox.open(scratch, [.test(), .test("spare")], rows: 10)
        #expect(try both.form(3, endpoint: "spare")?.rows.map(\.seq) == [1, 2, 3])
        both.close()
        let outbox = try Outbox.open(scratch, maxRecords: 8)
        try outbox.append(10..<12)
        try outbox.forget(endpoint: "spare")
        try outbox.append(12..<13)
        let kept = try OutboxReader(path: scratch.path).oldest(100).map(\.seq)
        #expect(kept == [2, 3, 8, 9, 10, 11 + testLeap, 12 + testLeap, 13 + testLeap])
    }

    @Test func staysBelowTheLimitOfBytes() throws {
        let outbox = try Outbox.open(scratch, maxBytes: 40_000, bootID: nil)
        var dropped = 0
        for round in 0..<40 { dropped += try outbox.append(round * 200..<round * 200 + 200).dropped.oldest }
        #expect(dropped > 4000)
        #expect(outbox.current.rows > 500)
        #expect(Scratch.read(scratch.path).count < 80_000)
    }

    @Test func keepsTheRowsOfARemovedEndpointUntilItIsForgotten() throws {
        try Outbox.open(scratch, [.test("old")], rows: 3).close()
        let second = try Outbox.open(scratch, [.test("new")])
        try second.append(3..<5)
        let batch = try #require(try second.form(9, endpoint: "new"))
        #expect(batch.rows.map(\.seq) == [4 + testLeap, 5 + testLeap])
        #expect(try second.acknowledge(batch).rows == 5)
        #expect(second.removedEndpoints.map(\.rows) == [3] && second.current.removed == second.removedEndpoints)
        try second.forget(endpoint: "old")
        let again = try second.commit(Commit(orders: [.forget(endpoint: "old")])).orders
        #expect(again == [.refused("the queue knows no endpoint \"old\"")])
        #expect(second.current.removed.isEmpty && second.removedEndpoints.isEmpty && second.current.rows == 0)
    }

    @Test func remembersStatesOfEndpoints() throws {
        let first = try Outbox.open(scratch)
        _ = try first.commit(Commit(states: [.init(endpoint: "main", state: .stopped(reason: "gone"))]))
        first.close()
        #expect(try Outbox.open(scratch).current.depths[0].state == .stopped(reason: "gone"))
    }

    @Test func countsRightAcrossTheMark() throws {
        let first = try Outbox.open(scratch)
        for round in 0..<7 { try first.append(round * 1500..<(round + 1) * 1500) }
        first.close()
        let second = try Outbox.open(scratch)
        let depth = second.current.depths[0]
        #expect(second.current.rows == 10_500 && depth.waiting == 10_500)
        #expect(depth.oldestSeq == 1 && depth.oldestTime == Location.sample(0).time)
    }

    @Test func namesTheBootThatRecordedEachRow() throws {
        for boot in ["a", "a", "b", nil] {
            try Outbox.open(scratch, rows: 1, bootID: boot).close()
        }
        let rows = try #require(try Outbox.open(scratch).form(9)?.rows)
        #expect(rows.map(\.bootID) == ["a", "a", "b", nil])
    }

    @Test func writesNothingForAnEmptyCommit() throws {
        let outbox = try Outbox.open(scratch, rows: 1)
        let before = CrashImage(of: scratch.path)
        _ = try outbox.commit(Commit())
        outbox.close()
        try Outbox.open(scratch).close()
        #expect(CrashImage(of: scratch.path) == before)
    }
}
