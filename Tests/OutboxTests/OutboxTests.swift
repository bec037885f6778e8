import Delivery
import Outbox
import Positioning
import Testing

@Suite struct OutboxTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func returnsEveryFieldAsRecorded() throws {
        var full = Location.sample(1, event: .geofence)
        full.altitudeHAE = 73.7
        full.hdop = 0.9
        full.coordinate = Coordinate(latitudeE7: -337_654_321, longitudeE7: -1_800_000_000)
        full.power.externalPower = false
        full.geofence = GeofenceCrossing(
            id: "venue/é/1", name: "Dépôt \"Nord\"", action: .dwell, source: .beacon, serverID: "é/1")
        full.geofence?.entryIsUnplaced = true
        var trip = Location.sample(2, trackable: "", event: .trip)
        trip.reason = ""
        trip.trip = TripSummary(
            start: UTCTime(milliseconds: -5), startCoordinate: full.coordinate, end: UTCTime(milliseconds: 7),
            distance: 15_230.4, idle: 61.25, maxSpeed: 33.33)
        let bare = Location(
            trackable: nil, time: UTCTime(milliseconds: 0), at: .zero,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: false)
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
        #expect(row.location.altitudeMSL == nil)
        #expect(row.location.speed == nil)
        #expect(row.location.course == 0)
        #expect(row.location.horizontalAccuracy == 0.1)
        #expect(row.location.odometer == 0)
    }

    @Test func keepsWhatTheTrackerAndTheFileSourceGave() throws {
        let first = try Outbox.open(scratch)
        #expect(first.parts.tracker == nil)
        #expect(first.parts.source == nil)
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
        let first = try Outbox.open(scratch)
        try first.append(0..<5)
        let batch = try #require(try first.form(3, sentMs: 1_800_000_000_000))
        #expect(batch.id == "7f3a91c2-main-1-3")
        #expect(batch.sentMs == 1_800_000_000_000)
        try first.append(5..<9)
        #expect(try first.form(100) == batch)
        first.close()
        let second = try Outbox.open(scratch)
        #expect(second.inFlight() == [batch])
        let reply = try second.acknowledge(batch)
        #expect(reply.depths[0].ackedThrough == 3)
        #expect(reply.rows == 6)
        #expect(try second.form(100)?.id == "7f3a91c2-main-4-9")
    }

    @Test func formsABatchOfTheRowsInTheSameCommit() throws {
        let outbox = try Outbox.open(scratch)
        let reply = try outbox.commit(
            Commit(
                rows: [NewRow(.sample(1)), NewRow(.sample(2))],
                forms: [FormRequest(endpoint: "main", limit: 10, sentMs: nil)]))
        #expect(reply.formed.map { $0.rows.count } == [2])
        #expect(reply.depths[0].waiting == 0)
        #expect(reply.depths[0].inFlight == 2)
    }

    @Test(arguments: [(300_000 as Int64, true), (300_001, false)])
    func leavesOutASendingTimeFarBehindTheReceiver(behind: Int64, kept: Bool) throws {
        let outbox = try Outbox.open(scratch)
        try outbox.append(0..<1)
        let sent = Location.sample(0).time.milliseconds - behind
        #expect(try outbox.form(1, sentMs: sent)?.sentMs == (kept ? sent : nil))
    }

    @Test func neverRepeatsASequenceNumberOnceTheQueueWasEmpty() throws {
        let first = try Outbox.open(scratch)
        try first.append(0..<3)
        #expect(try first.acknowledge(try #require(try first.form(10))).rows == 0)
        first.close()
        #expect(try Outbox.open(scratch).append(3..<4).lastSeq == 4 + testLeap)
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

    @Test func keepsRowsInFlightWhateverTheLimit() throws {
        let outbox = try Outbox.open(scratch, maxRecords: 2)
        try outbox.append(0..<2)
        let batch = try #require(try outbox.form(2))
        let reply = try outbox.append(2..<5)
        #expect(reply.dropped.oldest == 3)
        #expect(outbox.inFlight() == [batch])
    }

    @Test func dropsRowsThatWereInFlightForAForgottenEndpointFirst() throws {
        let both = try Outbox.open(scratch, [.test(), .test("spare")])
        try both.append(0..<10)
        #expect(try both.form(3, endpoint: "spare")?.rows.map(\.seq) == [1, 2, 3])
        both.close()
        let outbox = try Outbox.open(scratch, maxRecords: 8)
        try outbox.append(10..<12)
        try outbox.forget(endpoint: "spare")
        try outbox.append(12..<13)
        let kept = try OutboxReader(path: scratch.path).oldest(100).map(\.seq)
        #expect(kept == [2, 3, 8, 9, 10, 11 + testLeap, 12 + testLeap, 13 + testLeap])
    }

    /// A server that has stored a batch takes whatever comes under its id for a repeat.
    @Test func givesBatchesOfAForgottenNameOtherIDs() throws {
        let first = try Outbox.open(scratch, [.test(), .test("spare")])
        try first.append(0..<4)
        let before = try #require(try first.form(3, endpoint: "spare"))
        first.close()
        let second = try Outbox.open(scratch)
        try second.forget(endpoint: "spare")
        second.close()
        let third = try Outbox.open(scratch, [.test(), .test("spare", backfill: true)])
        let after = try #require(try third.form(3, endpoint: "spare"))
        #expect(after.rows.map(\.seq) == before.rows.map(\.seq))
        #expect(after.id != before.id)
    }

    @Test func staysBelowTheLimitOfBytes() throws {
        let settings = OutboxSettings(path: scratch.path, maxBytes: 40_000)
        let outbox = try Outbox(settings, endpoints: [.test()], bootID: nil, newUUID: testUUID)
        var dropped = 0
        for round in 0..<40 { dropped += try outbox.append(round * 200..<round * 200 + 200).dropped.oldest }
        #expect(dropped > 4000)
        #expect(outbox.current.rows > 500)
        #expect(Scratch.read(scratch.path).count < 80_000)
    }

    @Test func keepsRowsUntilEveryRequiredEndpointHasThem() throws {
        let outbox = try Outbox.open(scratch, [.test("a"), .test("b"), .test("c", required: false)])
        try outbox.append(0..<3)
        #expect(try outbox.acknowledge(try #require(try outbox.form(3, endpoint: "a"))).rows == 3)
        let reply = try outbox.acknowledge(try #require(try outbox.form(2, endpoint: "b")))
        #expect(reply.rows == 3)
        #expect(reply.depths.map(\.waiting) == [0, 1, 3])
    }

    @Test func givesUnpublishedRowsToTheEngineFeedOnly() throws {
        let outbox = try Outbox.open(scratch, [.test("net"), .test("eng", feed: .engine)])
        _ = try outbox.commit(
            Commit(rows: [NewRow(.sample(0)), NewRow(.sample(1, trackable: nil, published: false)), NewRow(.sample(2))])
        )
        #expect(try outbox.form(9, endpoint: "net")?.rows.map(\.seq) == [1, 3])
        #expect(try outbox.form(9, endpoint: "eng")?.rows.map(\.seq) == [1, 2, 3])
    }

    @Test func keepsNoUnpublishedRowsWithoutAnEngineFeed() throws {
        let outbox = try Outbox.open(scratch)
        let reply = try outbox.commit(Commit(rows: [NewRow(.sample(1, trackable: nil, published: false))]))
        #expect(reply.rows == 0)
        #expect(reply.lastSeq == 0)
    }

    @Test(arguments: [(false, [Int64]()), (true, [1, 2])])
    func startsANewEndpointAsConfigured(backfill: Bool, rows: [Int64]) throws {
        let first = try Outbox.open(scratch)
        try first.append(0..<2)
        first.close()
        let outbox = try Outbox.open(scratch, [.test(), .test("new", backfill: backfill)])
        #expect(try outbox.form(9, endpoint: "new")?.rows.map(\.seq) ?? [] == rows)
    }

    @Test func keepsTheRowsOfARemovedEndpointUntilItIsForgotten() throws {
        let first = try Outbox.open(scratch, [.test("old")])
        try first.append(0..<3)
        first.close()
        let second = try Outbox.open(scratch, [.test("new")])
        try second.append(3..<5)
        let batch = try #require(try second.form(9, endpoint: "new"))
        #expect(batch.rows.map(\.seq) == [4 + testLeap, 5 + testLeap])
        #expect(try second.acknowledge(batch).rows == 5)
        #expect(second.removedEndpoints.map(\.rows) == [3])
        #expect(second.current.removed == second.removedEndpoints)
        try second.forget(endpoint: "old")
        #expect(second.current.removed.isEmpty)
        #expect(second.current.rows == 0)
        #expect(second.removedEndpoints.isEmpty)
    }

    @Test func holdsRowsOfAnotherBindingUntilTheOldOneIsBack() throws {
        let first = try Outbox.open(scratch)
        try first.append(0..<2)
        let batch = try #require(try first.form(1))
        first.close()
        let moved = try Outbox.open(scratch, [.test(baseURL: "http://elsewhere")])
        #expect(moved.current.depths[0].state == .rebind)
        #expect(moved.inFlight().isEmpty)
        #expect(try moved.form(9) == nil)
        try moved.append(2..<3)
        #expect(moved.current.depths[0].waiting == 2)
        moved.close()
        let back = try Outbox.open(scratch)
        #expect(back.current.depths[0].state == .active)
        #expect(back.inFlight() == [batch])
    }

    @Test func takesANewBindingWhenNothingWaits() throws {
        let first = try Outbox.open(scratch)
        try first.append(0..<1)
        try first.acknowledge(try #require(try first.form(1)))
        first.close()
        #expect(try Outbox.open(scratch, [.test(baseURL: "http://elsewhere")]).current.depths[0].state == .active)
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
        #expect(second.current.rows == 10_500)
        #expect(second.current.depths[0].waiting == 10_500)
        #expect(second.current.depths[0].oldestSeq == 1)
        #expect(second.current.depths[0].oldestTime == Location.sample(0).time)
    }

    @Test func namesTheBootThatRecordedEachRow() throws {
        for boot in ["a", "a", "b", nil] {
            let outbox = try Outbox.open(scratch, bootID: boot)
            try outbox.append(0..<1)
            outbox.close()
        }
        let rows = try #require(try Outbox.open(scratch).form(9)?.rows)
        #expect(rows.map(\.bootID) == ["a", "a", "b", nil])
    }

    @Test func writesNothingForAnEmptyCommit() throws {
        let outbox = try Outbox.open(scratch)
        try outbox.append(0..<1)
        let before = CrashImage(of: scratch.path)
        _ = try outbox.commit(Commit())
        outbox.close()
        try Outbox.open(scratch).close()
        let after = CrashImage(of: scratch.path)
        #expect(before.log == after.log)
        #expect(before.database == after.database)
    }
}
