import Delivery
import Positioning
import TestSupport
import Testing

@testable import Outbox

@Suite struct RetentionTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func open(
        maxRecords: Int? = nil, maxAge: Duration? = nil, onFull: OutboxSettings.OnFull = .dropOldest
    ) throws -> Outbox {
        try Outbox(
            OutboxSettings(path: scratch.path, maxRecords: maxRecords, maxAge: maxAge, onFull: onFull),
            endpoints: [.test()], bootID: nil, newUUID: testUUID)
    }

    private func rows() throws -> [QueuedLocation] { try OutboxReader(path: scratch.path).oldest(100_000) }

    private func isGap(_ row: QueuedLocation) -> Bool {
        row.location.event == .gap && row.location.reason == "overflow"
    }

    /// One commit after the other pushes rows out: the gap moves along instead of leaving one behind each time.
    @Test func leavesOneGapForAStretchThatGrows() throws {
        let outbox = try open(maxRecords: 100)
        for start in stride(from: 0, to: 500, by: 7) { try outbox.append(start..<start + 7) }
        let found = try rows()
        #expect(found.count == 100)
        #expect(found.filter(isGap).count == 1)
        let gap = try #require(found.first)
        #expect(isGap(gap) && gap.location.time == Location.sample(Int(gap.seq) - 1).time)
        #expect(found.map(\.seq) == Array(found[0].seq..<found[0].seq + 100))
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    /// A receiver may know the row under this key: then no other one takes its place.
    @Test func makesNoGapOutOfARowThatWasSent() throws {
        let first = try Outbox.open(scratch, [.test(), .test("spare")])
        try first.append(0..<100)
        first.close()
        let second = try Outbox.open(scratch)
        try second.forget(endpoint: "spare")
        second.close()
        let outbox = try Outbox.open(scratch, [.test(), .test("spare", backfill: true)], maxRecords: 100)
        try outbox.append(100..<150)
        #expect(try rows().filter(isGap).isEmpty)
        try outbox.append(150..<230)
        #expect(try rows().filter(isGap).map(\.seq) == [131 + testLeap])
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
        #expect(
            found.filter { $0.location.event == .power }.map { Int($0.location.odometer) } == [
                5, 55, 105, 155, 205, 255,
            ])
        // Between two events that stay, one gap at most.
        #expect(zip(found, found.dropFirst()).allSatisfy { !(isGap($0) && isGap($1)) })
        #expect(isGap(try #require(found.last)))
        #expect(dropped.oldest == 0 && dropped.events == 0 && dropped.newest > 190)
        #expect(outbox.current.lastSeq == 300)
    }

    @Test func dropsEnterAndExitTogetherOrNeither() throws {
        let outbox = try open(maxRecords: 10)
        func crossing(_ number: Int, _ fence: String, _ action: GeofenceCrossing.Action) -> NewRow {
            var location = Location.sample(number, event: .geofence)
            location.geofence = GeofenceCrossing(id: fence, name: nil, action: action)
            return NewRow(location)
        }
        var rows = [
            crossing(0, "open", .enter), crossing(1, "a", .enter), crossing(2, "b", .enter), crossing(3, "a", .exit),
        ]
        rows += (4..<12).map { NewRow(.sample($0, event: .power)) }
        let reply = try outbox.commit(Commit(rows: rows))
        // b has no EXIT yet, "open" neither: a goes, both of it.
        #expect(reply.dropped == DropCounts(events: 2))
        #expect(try self.rows().map(\.seq) == [1, 3] + Array(5...12))
        _ = try outbox.commit(Commit(rows: (12..<20).map { NewRow(.sample($0, event: .power)) }))
        #expect(try self.rows().map(\.seq) == [1, 3] + Array(13...20))
    }

    @Test func removesPlainFixesForTheirAgeAndNeverAllAtOnce() throws {
        let outbox = try open(maxAge: .seconds(1000))
        _ = try outbox.commit(Commit(rows: (0..<2000).map { NewRow(.sample($0, event: $0 == 3 ? .power : .none)) }))
        let newest = Location.sample(1999).time.milliseconds
        // The wall clock is not asked, and nothing ages without a receiver.
        #expect(try outbox.append(2000..<2001).dropped.expired == 0)
        var expired = try outbox.commit(Commit(trackerState: [1], receiverMs: newest)).dropped.expired
        #expect(expired == 998)
        #expect(try rows().prefix(4).map(\.seq) == [3, 4, 999, 1000])
        // Absurd time: half of it, and the rest not before the receiver has gone on for a minute.
        let absurd = newest + 315_360_000_000
        expired = try outbox.commit(Commit(trackerState: [2], receiverMs: absurd)).dropped.expired
        #expect((490...510).contains(expired))
        #expect(try outbox.commit(Commit(trackerState: [3], receiverMs: absurd + 59_000)).dropped.expired == 0)
        #expect(try outbox.commit(Commit(trackerState: [4], receiverMs: absurd + 60_000)).dropped.expired > 200)
        #expect(try OutboxReader(path: scratch.path).verify() == [])
    }

    @Test func findsWhatIsTooOldBehindRowsInFlight() throws {
        let outbox = try open(maxAge: .seconds(1000))
        let young = (10_000..<10_200).map { NewRow(.sample($0)) }
        let forms = [FormRequest(endpoint: "main", limit: 200, sentMs: nil)]
        let formed = try outbox.commit(Commit(rows: young, forms: forms)).formed
        try #require(formed.map(\.rows.count) == [200])
        // The clock of the receiver was ahead.
        _ = try outbox.append(0..<100)
        let newest = Location.sample(10_199).time.milliseconds
        #expect(try outbox.commit(Commit(trackerState: [1], receiverMs: newest)).dropped.expired > 90)
    }

    /// Detail goes before coverage: the whole time span is there, each removed location within the bound of the rest.
    @Test(arguments: [1, 2, 3].map { UInt64($0) })
    func thinsWithinItsBoundAndKeepsTheSpan(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let outbox = try open(maxRecords: 2000, onFull: .thin)
        let plane = LocalPlane(origin: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_000_000))
        var (position, velocity) = (PlanePoint.zero, PlanePoint.zero)
        var all: [Location] = []
        var dropped = DropCounts()
        for number in 0..<12_000 {
            velocity =
                velocity * 0.95
                + PlanePoint(
                    east: Double.random(in: -1...1, using: &generator),
                    north: Double.random(in: -1...1, using: &generator))
            position = position + velocity
            var location = Location.sample(number, event: number % 1000 == 500 ? .motionchange : .none)
            location.coordinate = plane.coordinate(position)
            all.append(location)
            guard all.count % 100 == 0 else { continue }
            dropped += try outbox.commit(Commit(rows: all.suffix(100).map { NewRow($0) })).dropped
            #expect(outbox.current.rows <= 2000)
        }
        #expect(dropped.thinned > 9000)
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
                // Kilometres apart: nothing lies between others.
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
