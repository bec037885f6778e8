import Delivery
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

@Suite struct RetentionTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func open(
        maxRecords: Int? = nil, maxAge: Duration? = nil, onFull: OutboxSettings.OnFull = .dropOldest
    ) throws -> Outbox {
        try Outbox.open(scratch, maxRecords: maxRecords, maxAge: maxAge, onFull: onFull, bootID: nil)
    }

    /// How many rows expire with a commit of something else.
    private func expired(_ outbox: Outbox, now: Int64, trusted: Int64?) throws -> Int {
        let parts = PartStates(tracker: [UInt8(truncatingIfNeeded: now)])
        return try outbox.commit(Commit(parts: parts, ages: ages(now: now, trusted: trusted))).dropped.expired
    }

    private func rows() throws -> [QueuedLocation] { try OutboxReader(path: scratch.path).oldest(100_000) }

    private func ages(now: Int64, trusted: Int64?) -> AgeReference {
        AgeReference(
            now: EventTime(nanoseconds: now * 1_000_000_000), started: .zero,
            trusted: trusted.map { UTCTime(milliseconds: $0) })
    }

    private func isGap(_ row: QueuedLocation) -> Bool {
        row.location.event == .gap && row.location.reason == "overflow"
    }

    /// It holds none of the others back, whatever is done when the queue is full; its batch goes with its rows.
    @Test(.bug(id: 11), arguments: OutboxSettings.OnFull.allCases)
    func whatIsKeptForARemovedEndpointMakesRoom(onFull: OutboxSettings.OnFull) throws {
        let first = try Outbox.open(scratch, [.test("old")], rows: 90)
        _ = try first.form(10, endpoint: "old")
        first.close()
        let outbox = try Outbox.open(scratch, maxRecords: 100, onFull: onFull, bootID: nil)
        let depth = try #require(try outbox.append(90..<140).depths.first)
        #expect(depth.waiting == 50 && depth.finishedUnsent["evicted"] == nil)
        #expect(outbox.current.rows <= 100 && outbox.removedEndpoints.map(\.rows) == [outbox.current.rows - 50])
        // Where nothing waits for it any more, what is kept for the other goes by the rule for a full queue.
        #expect(try outbox.append(140..<300).depths[0].waiting <= 100)
    }

    @Test func aFileSystemThatLacksSpaceIsNamedAndTheQueueDoesNotGrow() {
        var retention = Retention()
        func look(_ available: Int64, file: Int64) -> (limit: Int64?, wanted: Int64?) {
            retention.found((available, 8 << 20), minFree: 4 << 20, fileBytes: file, freeBytes: 0)
            return (retention.spaceLimit, retention.shortage?.wanted)
        }
        for (available, file, limit, wanted) in [
            (2 << 20, 1 << 20, nil, nil), (1 << 20, 700 << 10, 572 << 10, 2 << 20),
            (900 << 10, 900 << 10, 572 << 10, 2 << 20), (3 << 20, 1 << 20, nil, nil),
            (0, 100 << 10, 256 << 10, 2 << 20),
        ] as [(Int64, Int64, Int64?, Int64?)] {
            #expect(look(available, file: file) == (limit, wanted), "\(available)")
        }
    }

    @Test func theLimitThatDeletesIsNamed() throws {
        let outbox = try open(maxRecords: 100)
        try outbox.append(0..<100)
        #expect(outbox.current.limitReached == nil)
        try outbox.append(100..<110)
        #expect(outbox.current.limitReached == .maxRecords)
    }

    /// One commit after the other pushes rows out: the gap moves along instead of leaving one behind each time.
    @Test func leavesOneGapForAStretchThatGrows() throws {
        let outbox = try open(maxRecords: 100)
        for start in stride(from: 0, to: 500, by: 7) { try outbox.append(start..<start + 7) }
        let found = try rows()
        #expect(found.count == 100 && found.filter(isGap).count == 1)
        let gap = try #require(found.first)
        #expect(isGap(gap) && gap.location.time == Location.sample(Int(gap.seq) - 1).time)
        #expect(found.map(\.seq) == Array(found[0].seq..<found[0].seq + 100))
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    /// A server may know the row under this key: then no other one replaces it.
    @Test func makesNoGapOutOfARowThatWasSent() throws {
        try Outbox.open(scratch, [.test(), .test("spare")], rows: 100).close()
        let second = try Outbox.open(scratch)
        try second.forget(endpoint: "spare")
        second.close()
        let outbox = try Outbox.open(scratch, [.test(), .test("spare", backfill: true)], maxRecords: 100)
        try outbox.append(100..<150)
        #expect(try rows().filter(isGap).isEmpty)
        try outbox.append(150..<230)
        #expect(try rows().filter(isGap).map(\.seq) == [131 + testLeap])
    }

    @Test(.bug(id: 11)) func namesTheBatchesThatAnOptionalEndpointLoses() throws {
        let outbox = try Outbox.open(scratch, [.test(), .test("extra", required: false)], rows: 90, maxRecords: 100)
        let lost = try #require(try outbox.form(20, endpoint: "extra"))
        let mine = try #require(try outbox.form(90))
        #expect(try outbox.acknowledge(mine).dissolved.isEmpty)
        var dissolved: [String] = []
        for start in stride(from: 90, to: 190, by: 10) { dissolved += try outbox.append(start..<start + 10).dissolved }
        #expect(dissolved == [lost.id])
        #expect(try outbox.acknowledge(lost).dissolved.isEmpty)
        #expect(outbox.current.depths[1].inFlight == 0 && outbox.current.depths[1].finishedUnsent["evicted"] ?? 0 >= 20)
    }

    @Test(.bug(id: 11)) func thinsWhatOnlyAnOptionalEndpointWaitsForBeforeOthers() throws {
        let optional = EndpointSettings.test("extra", required: false)
        let outbox = try Outbox.open(
            scratch, [.test(), optional], rows: 90, maxRecords: 100, onFull: .thin, bootID: nil)
        let batch = try #require(try outbox.form(90))
        _ = try outbox.acknowledge(batch)
        // In a line, so that nearly all of them could go.
        for start in stride(from: 90, to: 140, by: 10) { try outbox.append(start..<start + 10) }
        let depths = outbox.current.depths
        #expect(outbox.current.rows <= 100)
        #expect(depths[0].waiting == 50 && depths[0].finishedUnsent["evicted"] == nil)
        #expect(depths[1].finishedUnsent["evicted"] ?? 0 >= 40)
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    @Test func refusesNewPlainFixesButNoEvents() throws {
        let outbox = try open(maxRecords: 100, onFull: .dropNewest)
        var dropped = DropCounts()
        for start in stride(from: 0, to: 300, by: 10) {
            dropped += try outbox.commit(
                Commit(rows: (start..<start + 10).map { NewRow(.sample($0, event: $0 % 50 == 5 ? .power : .none)) })
            ).dropped
        }
        let found = try rows()
        #expect(found.count == 100)
        #expect(found.prefix(90).map { Int($0.location.odometer) } == Array(0..<90))
        let events = found.filter { $0.location.event == .power }
        #expect(events.map { Int($0.location.odometer) } == [5, 55, 105, 155, 205, 255])
        // Between two events that stay, one gap at most.
        #expect(zip(found, found.dropFirst()).allSatisfy { !(isGap($0) && isGap($1)) })
        #expect(isGap(try #require(found.last)))
        #expect(dropped.oldest == 0 && dropped.events == 0 && dropped.newest > 190)
        #expect(outbox.current.lastSeq == 300)
    }

    @Test func dropsEnterAndExitTogetherOrNeither() throws {
        let outbox = try open(maxRecords: 10)
        var rows: [NewRow] = [
            .crossing(0, "open", .enter), .crossing(1, "a", .enter), .crossing(2, "b", .enter),
            .crossing(3, "a", .exit),
        ]
        rows += (4..<12).map { NewRow(.sample($0, event: .power)) }
        let reply = try outbox.commit(Commit(rows: rows))
        // b has no EXIT yet, "open" neither: a goes, both of it.
        #expect(reply.dropped.events == 2)
        #expect(try self.rows().map(\.seq) == [1, 3, 5, 6, 7, 8, 9, 10, 11, 12])
        _ = try outbox.commit(Commit(rows: (12..<20).map { NewRow(.sample($0, event: .power)) }))
        #expect(try self.rows().map(\.seq) == [1, 3, 13, 14, 15, 16, 17, 18, 19, 20])
    }

    /// Rows of an earlier process.
    @Test func removesPlainFixesForTheirAgeAndNeverAllAtOnce() throws {
        let outbox = try open(maxAge: .seconds(1000))
        _ = try outbox.commit(Commit(rows: (0..<2000).map { NewRow(.sample($0, event: $0 == 3 ? .power : .none)) }))
        let newest = Location.sample(1999).time.milliseconds
        // Nothing ages by a date that two do not agree on.
        #expect(try expired(outbox, now: 0, trusted: nil) == 0)
        #expect(try expired(outbox, now: 60, trusted: newest) == 998)
        #expect(try rows().prefix(4).map(\.seq) == [3, 4, 999, 1000])
        // Absurd time: half of it, and the rest not before a minute has passed.
        let absurd = newest + 315_360_000_000
        #expect(try (490...510).contains(expired(outbox, now: 120, trusted: absurd)))
        #expect(try expired(outbox, now: 179, trusted: absurd) == 0)
        #expect(try expired(outbox, now: 180, trusted: absurd) > 200)
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    /// A receiver claimed to be 35 days ahead, and the host agreed.
    @Test func noRowOfThisProcessExpiresByADate() throws {
        let outbox = try open(maxAge: .seconds(30 * 86_400))
        let newest = Location.sample(0).time.milliseconds
        let true30 = (0..<30).map { NewRow(.sample($0), recordedAt: EventTime(nanoseconds: Int64($0) * 1_000_000_000)) }
        _ = try outbox.commit(Commit(rows: true30, ages: ages(now: 30, trusted: newest)))
        for (minute, days) in [35, 35, 4000, -4000, 35, 0].enumerated() {
            let ages = ages(now: Int64(minute + 2) * 60, trusted: newest + Int64(days) * 86_400_000)
            #expect(try outbox.commit(Commit(parts: .init(tracker: [1]), ages: ages)).dropped == DropCounts())
        }
        // Nor does it stay for one.
        #expect(try expired(outbox, now: 30 * 86_400 + 20, trusted: newest) > 10)
        #expect(try rows().filter { !isGap($0) }.map(\.seq).suffix(10) == Array(21...30))
    }

    /// With `max_age = "5m"` nothing arrived any more behind a receiver that had been two days ahead.
    @Test func aWrongDateLeavesNothingBehind() throws {
        var settings = EndpointSettings.test()
        settings.maxAge = .seconds(300)
        let outbox = try Outbox.open(scratch, [settings], bootID: nil)
        func formed(_ number: Int, now: Int64, daysAhead: Int64) throws -> [Int64] {
            let row = NewRow(.sample(number), recordedAt: EventTime(nanoseconds: now * 1_000_000_000))
            let trusted = Location.sample(number).time.milliseconds + daysAhead * 86_400_000
            let batch = try outbox.commit(
                Commit(rows: [row], forms: [.of(10)], ages: ages(now: now, trusted: trusted))
            ).formed.first
            if let batch { try outbox.acknowledge(batch) }
            return batch?.rows.map(\.seq) ?? []
        }
        #expect(try formed(0, now: 0, daysAhead: 2) == [1])
        #expect(try formed(75, now: 75, daysAhead: 0) == [2])
        // What waits for more than five minutes of the boot clock is too old, whatever its date.
        let waiting = [100, 399, 400].map {
            NewRow(.sample(1_000_000), recordedAt: EventTime(nanoseconds: $0 * 1_000_000_000))
        }
        _ = try outbox.commit(Commit(rows: waiting, ages: ages(now: 400, trusted: nil)))
        #expect(try formed(700, now: 700, daysAhead: -2) == [5, 6])
    }

    /// A wrong date at either clock when it was recorded makes no row of an earlier process old.
    @Test func anEarlierRowIsAsYoungAsTheYoungerOfItsDates() throws {
        let outbox = try open(maxAge: .seconds(3600))
        let newest = Location.sample(0).time.milliseconds
        let rows = (0..<100).map { NewRow(.sample($0 - 1_000_000), receivedMs: newest) }
        _ = try outbox.commit(Commit(rows: rows))
        #expect(try expired(outbox, now: 0, trusted: newest) == 0)
        #expect(try expired(outbox, now: 60, trusted: newest + 3_600_001) > 40)
    }

    @Test func findsWhatIsTooOldBehindRowsInFlight() throws {
        let outbox = try open(maxAge: .seconds(1000))
        let young = NewRow.samples(10_000..<10_200)
        let formed = try outbox.commit(Commit(rows: young, forms: [.of(200)])).formed
        try #require(formed.map(\.rows.count) == [200])
        // The clock of the receiver was ahead.
        _ = try outbox.append(0..<100)
        let newest = Location.sample(10_199).time.milliseconds
        #expect(try expired(outbox, now: 60, trusted: newest) > 90)
    }

    /// Detail goes before coverage: the whole time span is there, each removed location within the bound of the rest.
    @Test(arguments: [1, 2] as [UInt64])
    func thinsWithinItsBoundAndKeepsTheSpan(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let outbox = try open(maxRecords: 2000, onFull: .thin)
        let plane = LocalPlane(origin: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_000_000))
        var (position, velocity) = (PlanePoint.zero, PlanePoint.zero)
        var all: [Location] = []
        var dropped = DropCounts()
        var most = 0
        for number in 0..<12_000 {
            let east = Double.random(in: -1...1, using: &generator)
            let push = PlanePoint(east: east, north: Double.random(in: -1...1, using: &generator))
            velocity = velocity * 0.95 + push
            position = position + velocity
            var location = Location.sample(number, event: number % 1000 == 500 ? .motionchange : .none)
            location.coordinate = plane.coordinate(position)
            all.append(location)
            guard all.count % 100 == 0 else { continue }
            dropped += try outbox.commit(Commit(rows: all.suffix(100).map { NewRow($0) })).dropped
            most = max(most, outbox.current.rows)
        }
        #expect(most <= 2000 && dropped.thinned > 9000)
        #expect(dropped.oldest == 0 && dropped.events == 0)
        let found = try rows()
        #expect(found.first?.location.time == all.first?.time)
        #expect(found.last?.location.time == all.last?.time)
        #expect(found.filter { $0.location.event == .motionchange }.count == 12)
        let bound = 5 * Double(Int64(1) << Int64(outbox.ledger.retention.thinLevel))
        #expect(bound <= 160)
        var worst = 0.0
        for (from, to) in zip(found, found.dropFirst()) {
            let near = LocalPlane(origin: from.location.coordinate)
            let whole = near.point(to.location.coordinate)
            for seq in from.seq + 1..<max(to.seq, from.seq + 1) {
                let part = Double(seq - from.seq) / Double(to.seq - from.seq)
                worst = max(worst, (near.point(all[Int(seq) - 1].coordinate) - whole * part).length)
            }
        }
        #expect(worst <= bound, "seed \(seed)")
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    /// A thinned queue that goes on filling up becomes one that drops its oldest rows.
    @Test func dropsTheOldestOnceEverythingIsCoarse() throws {
        let outbox = try open(maxRecords: 500, onFull: .thin)
        var generator = SeededGenerator(seed: 4)
        var dropped = DropCounts()
        for start in stride(from: 0, to: 6000, by: 100) {
            let rows = (start..<start + 100).map { number in
                var location = Location.sample(number)
                // Kilometres apart: nothing is between others.
                location.coordinate = Coordinate(
                    latitudeE7: Int32.random(in: 0...500_000_000, using: &generator), longitudeE7: 134_000_000)
                return NewRow(location)
            }
            dropped += try outbox.commit(Commit(rows: rows)).dropped
            #expect(outbox.current.rows <= 500)
        }
        #expect(dropped.oldest > 4000)
    }
}
