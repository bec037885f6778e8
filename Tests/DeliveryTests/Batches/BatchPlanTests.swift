import ProfilesTestSupport
import TestSupport
import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

@Suite struct BatchPlanTests {
    private func row(
        _ seq: Int64, _ event: LocationEvent = .none, trackable: String? = "van-7", accuracy: Double? = 4
    ) -> QueuedLocation {
        var row = Sample.bare(seq: seq)
        row.location.event = event
        row.location.trackable = trackable
        row.location.horizontalAccuracy = accuracy
        if event == .geofence { row.location.geofence = GeofenceCrossing(id: "f", name: "F", action: .enter) }
        return row
    }

    private func plan(
        _ tree: Tree, _ rows: [QueuedLocation], limit: Int = 100, isEnd: Bool = true, ages: RowAges? = nil,
        _ change: (inout EndpointSettings) -> Void = { _ in }
    ) throws -> BatchPlan {
        var settings = try Sample.settings(tree)
        change(&settings)
        let plan = BatchPlanner(settings).plan(rows, limit: limit, isEnd: isEnd, ages: ages)
        #expect(plan == BatchPlanner(settings).plan(rows, limit: limit, isEnd: isEnd, ages: ages))
        return plan
    }

    /// All rows are of an earlier process.
    private static func ages(_ trustedMs: Int64) -> RowAges {
        RowAges(
            AgeReference(now: .zero, started: .zero, trusted: UTCTime(milliseconds: trustedMs)),
            RecordingTimes(earlierThrough: 1_000_000))
    }

    private static let plain: Tree = ["record": ["s": "$seq", "t": "$time_ms"]]

    @Test func rowsWithoutAPositionGoOnlyToServersThatTakeThem() throws {
        var rows = (1...3).map { row($0) }
        rows[1].location.event = .settings
        rows[1].location.removePlace()
        try areSkipped(rows, unlessTaken: ["settings"])
    }

    /// A server that was not told of an ENTER, for want of a position, is not told of its EXIT.
    @Test func anExitWhoseEnterHadNoPositionGoesOnlyToServersThatTookIt() throws {
        var rows = (1...3).map { row($0, .geofence) }
        rows[1].location.geofence?.action = .exit
        rows[1].location.geofence?.entryIsUnplaced = true
        try areSkipped(rows, unlessTaken: ["geofence"])
    }

    @Test func sightingsOfBeaconsGoOnlyToProfilesThatNameThem() throws {
        var rows = (1...3).map { row($0) }
        rows[1].location.event = .beacon
        try areSkipped(rows, unlessTaken: ["beacon"])
        let named: Tree = ["record": ["s": "$seq"], "on": ["beacon": ["record": ["b": "$beacon_uuid"]]]]
        #expect(try plan(named, rows).batches == [[0], [1], [2]])
    }

    /// The second of three rows.
    private func areSkipped(_ rows: [QueuedLocation], unlessTaken events: Tree) throws {
        let plan = try plan(Self.plain, rows)
        #expect(plan.batches == [[0, 2]] && plan.settled.map(\.why) == [.skipped])
        #expect(try self.plan(["record": ["s": "$seq"], "without_position": events], rows).batches == [[0, 1, 2]])
    }

    @Test func takesTheOldestRowsUpToTheLimits() throws {
        let rows = (1...7).map { row($0) }
        #expect(try plan(Self.plain, rows).batches == [Array(0..<7)])
        #expect(try plan(Self.plain, rows, limit: 5).batches == [[0, 1, 2, 3, 4], [5, 6]])
        let waiting = try plan(Self.plain, rows, limit: 5, isEnd: false)
        #expect(waiting.batches == [[0, 1, 2, 3, 4]])
        #expect(waiting.consumed == 5)
        let limited: Tree = ["record": ["s": "$seq"], "max_records": 3]
        #expect(try plan(limited, rows).batches == [[0, 1, 2], [3, 4, 5], [6]])
        #expect(try BatchPlanner(Sample.settings(limited)).depth(limit: 100) == 3)
        #expect(try plan(Self.plain, []) == BatchPlan())
    }

    @Test func takesTheLongestPrefixThatFitsTheBytes() throws {
        let rows = (1...50).map { row($0) }
        let one = try Sample.body(Self.plain, [rows[0]]).utf8.count
        let ten = try Sample.body(Self.plain, Array(rows.prefix(10))).utf8.count
        func limited(_ bytes: Int) -> Tree {
            ["record": ["s": "$seq", "t": "$time_ms"], "max_bytes": Tree(ProfileNode(.integer(Int64(bytes))))]
        }
        #expect(try plan(limited(ten), rows, isEnd: false).batches.first == Array(0..<10))
        #expect(try plan(limited(ten - 1), rows, isEnd: false).batches.first == Array(0..<9))
        let sizes = try plan(limited(ten), rows).batches.map { batch in
            try Sample.body(Self.plain, batch.map { rows[$0] }).utf8.count
        }
        #expect(sizes.allSatisfy { $0 <= ten }, "\(sizes)")
        let none = try plan(limited(one - 1), Array(rows.prefix(2)))
        #expect(none.batches.isEmpty)
        #expect(none.settled.map(\.why) == [.refused(rule: "max_bytes"), .refused(rule: "max_bytes")])
        #expect(none.consumed == 2)
    }

    @Test func refusesTheOneRowThatIsTooLarge() throws {
        var rows = (1...4).map { row($0) }
        rows[1].location.reason = String(repeating: "x", count: 5000)
        let plan = try plan(["record": ["s": "$seq", "r": "$reason"], "max_bytes": 2000], rows)
        #expect(plan.batches == [[0], [2, 3]])
        #expect(plan.settled.map(\.index) == [1])
    }

    @Test func neverMixesTemplates() throws {
        let rows = [row(1), row(2, .geofence), row(3, .geofence), row(4, .heartbeat), row(5), row(6, .power)]
        let tree: Tree = [
            "record": ["s": "$seq"], "on": ["geofence": ["url": "${base_url}/event"], "heartbeat": "skip"],
        ]
        let plan = try plan(tree, rows)
        #expect(plan.batches == [[0], [1, 2], [4, 5]])
        #expect(plan.settled.map(\.index) == [3])
        #expect(plan.settled.map(\.why) == [.skipped])
        let waiting = try self.plan(tree, rows, isEnd: false)
        #expect(waiting.batches == [[0], [1, 2]])
        #expect(waiting.consumed == 4)
    }

    @Test func settlesWhatTheReceiverCannotUse() throws {
        let rows = [row(1), row(2, accuracy: nil), row(3, accuracy: 600), row(4)]
        let plan = try plan(
            ["record": ["s": "$seq"], "require": ["accuracy"], "limits": ["accuracy": ["max": 500]]], rows)
        #expect(plan.batches == [[0, 3]])
        #expect(plan.settled.map(\.why) == [.unfit("accuracy"), .refused(rule: "limits.accuracy.max")])
        let text = try self.plan(["record": ["s": "$seq"], "limits": ["trackable": ["pattern": "[a-z]+-8"]]], rows)
        #expect(text.settled.map(\.why) == Array(repeating: .refused(rule: "limits.trackable.pattern"), count: 4))
        #expect(text.consumed == 4)
    }

    @Test func expiresPlainFixesOnly() throws {
        let rows = [row(1), row(2, .geofence), row(3, .heartbeat), row(4, .motionchange), row(5, .power), row(60_000)]
        let plan = try plan(Self.plain, rows, ages: Self.ages(1_700_000_000_000 + 120_000)) { $0.maxAge = .seconds(90) }
        #expect(plan.settled.map(\.index) == [0, 2])
        #expect(plan.settled.allSatisfy { $0.why == .expired })
        #expect(plan.batches == [[1, 3, 4, 5]])
        #expect(try self.plan(Self.plain, rows) { $0.maxAge = .seconds(90) }.settled.isEmpty)
        #expect(try self.plan(Self.plain, rows, ages: Self.ages(.min)) { $0.maxAge = .seconds(90) }.settled.isEmpty)
    }

    @Test func sendsEventsAndThenTheNewestOnly() throws {
        let single: Tree = ["record": ["s": "$seq"], "max_records": 1, "body": "$record"]
        let latest: (inout EndpointSettings) -> Void = { $0.delivery = .latest }
        let rows = [row(1), row(2, .geofence), row(3), row(4, .geofence), row(5), row(6)]
        let plan = try plan(single, rows, latest)
        #expect(plan.batches == [[1], [3], [5]])
        #expect(plan.settled.map(\.index) == [0, 2, 4])
        #expect(plan.settled.allSatisfy { $0.why == .superseded })
        // While more wait, the last one is not known to be the newest.
        let waiting = try self.plan(single, rows, isEnd: false, latest)
        #expect(waiting.batches == [[1], [3]])
        #expect(waiting.consumed == 5)
        let late = try self.plan(single, [row(1), row(2, .geofence)], latest)
        #expect(late.batches == [[1]])
        #expect(try self.plan(single, [row(1)], isEnd: false, latest).batches == [[0]])
        #expect(try self.plan(single, [row(1), row(2)], isEnd: false, latest).consumed == 1)
    }

    /// An older row would move the asset back on the map.
    @Test func plainRowsBeforeAPositionThatWasSeenAreSuperseded() throws {
        var settings = try Sample.settings(Self.plain)
        settings.delivery = .latest
        let rows = [row(1), row(2, .geofence), row(3), row(4)]
        let plan = BatchPlanner(settings).plan(
            rows, limit: 10, isEnd: true, ages: nil, shown: [nil: rows[3].location.time])
        #expect(plan.batches == [[1]] && plan.settled.map(\.index) == [0, 2, 3])
        let newer = BatchPlanner(settings).plan(
            rows, limit: 10, isEnd: true, ages: nil, shown: [nil: rows[2].location.time])
        #expect(newer.batches == [[1, 3]])
        // The place before a restart, after the first fix of the new process was shown.
        let gap = BatchPlanner(settings).plan(
            [row(1, .gap), row(2, .geofence)], limit: 10, isEnd: true, ages: nil, shown: [nil: rows[3].location.time])
        #expect(gap.batches == [[1]])
    }

    @Test func keepsTheNewestThatTheReceiverCanUse() throws {
        let tree: Tree = ["record": ["s": "$seq"], "require": ["accuracy"]]
        let rows = [row(1), row(2), row(3, accuracy: nil)]
        let plan = try plan(tree, rows) { $0.delivery = .latest }
        #expect(plan.batches == [[1]])
        #expect(plan.settled.map(\.why) == [.superseded, .unfit("accuracy")])
    }

    @Test func keepsTheNewestOfEachTrackableThatIsNamed() throws {
        let rows = [row(1), row(2, trackable: "b"), row(3), row(4, trackable: "b")]
        let tree: Tree = ["record": ["s": "$seq", "t": "$trackable"]]
        #expect(try plan(tree, rows) { $0.delivery = .latest }.batches == [[2, 3]])
        #expect(try plan(Self.plain, rows) { $0.delivery = .latest }.batches == [[3]])
    }

    @Test func gathersByTrackableWhereTheRequestNamesIt() throws {
        let tree: Tree = ["url": "${base_url}/${trackable}", "record": ["s": "$seq"]]
        let rows = (1...9).map { row($0, trackable: $0 % 3 == 0 ? "b" : "a") } + [row(10, trackable: nil)]
        let plan = try plan(tree, rows)
        #expect(plan.batches == [[0, 1, 3, 4, 6, 7], [2, 5, 8]])
        #expect(plan.settled.map(\.why) == [.unfit("trackable")])
        let limited = try self.plan(tree, rows, limit: 4)
        #expect(limited.batches == [[0, 1, 3, 4], [2]])
        #expect(limited.consumed == 5)
        #expect(try BatchPlanner(Sample.settings(tree)).depth(limit: 4) == 16)
        let inBody: Tree = ["record": ["s": "$seq"], "body": ["of": "$trackable", "l": "$records"]]
        let inRecord: Tree = ["record": ["t": "$trackable"], "body": ["t": "$batch_trackable", "l": "$records"]]
        #expect(try [inBody, inRecord].map { try Sample.settings($0).profile.gathersTrackables } == [true, false])
        #expect(try self.plan(inRecord, rows).batches == [Array(0..<10)])
    }

    /// Whatever the rows: all that are consumed are in exactly one batch or settled, within the limits, and others in none.
    @Test func dealsWithEachRowOnce() throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let trees: [Tree] = [
            Self.plain, ["record": ["s": "$seq", "t": "$trackable"], "max_bytes": 200],
            ["url": "${base_url}/${trackable}", "record": ["s": "$seq"], "on": ["geofence": ["record": ["g": 1]]]],
            ["record": ["s": "$seq"], "require": ["accuracy"], "on": ["power": "skip"], "max_records": 3],
        ]
        let profiles = try trees.map { try Sample.settings($0) }
        for round in 0..<400 {
            let count = Int.random(in: 0...40, using: &random)
            let rows = (0..<count).map { index in
                row(
                    Int64(index), LocationEvent.allCases.randomElement(using: &random) ?? .none,
                    trackable: ["a", "b", "c", nil].randomElement(using: &random) ?? nil,
                    accuracy: Bool.random(using: &random) ? 4 : nil)
            }
            let limit = Int.random(in: 1...20, using: &random)
            let isEnd = Bool.random(using: &random)
            var settings = profiles.randomElement(using: &random)!
            settings.delivery = Bool.random(using: &random) ? .latest : .all
            settings.maxAge = Bool.random(using: &random) ? .milliseconds(20) : nil
            let seen = rows.randomElement(using: &random)?.location.time
            let plan = BatchPlanner(settings).plan(
                rows, limit: limit, isEnd: isEnd, ages: Self.ages(1_700_000_000_040),
                shown: seen.map { [nil: $0, "a": $0] } ?? [:])
            let wrong = Self.problem(of: plan, rows, settings, limit: limit, isEnd: isEnd)
            #expect(wrong == nil, "seed \(seed), round \(round)")
            if wrong != nil { return }
        }
    }

    private static func problem(
        of plan: BatchPlan, _ rows: [QueuedLocation], _ settings: EndpointSettings, limit: Int, isEnd: Bool
    ) -> String? {
        let profile = settings.profile
        let all = plan.batches.flatMap { $0 } + plan.settled.map(\.index)
        if all.sorted() != Array(0..<plan.consumed) { return "\(all) of \(plan.consumed) rows" }
        if plan.consumed > rows.count || (plan.consumed == 0 && !rows.isEmpty) { return "\(plan.consumed) rows" }
        if isEnd, !profile.gathersTrackables, plan.consumed != rows.count { return "only \(plan.consumed) rows" }
        if Set(plan.batches.compactMap(\.first)).count != plan.batches.count { return "\(plan.batches)" }
        for batch in plan.batches {
            let sent = batch.map { rows[$0] }
            if batch.count > min(limit, profile.maxRecords ?? limit) || batch != batch.sorted() { return "\(batch)" }
            let bytes = RequestRenderer(settings).request(for: Sample.batch(sent)).body.count
            if bytes > profile.maxBytes { return "\(bytes) bytes" }
            if profile.gathersTrackables, Set(sent.map(\.location.trackable)).count != 1 { return "mixed: \(batch)" }
        }
        return nil
    }

    @Test func survivesOddLimits() throws {
        let rows = [row(1), row(2)]
        for limit in [Int.min, -1, 0] { #expect(try plan(Self.plain, rows, limit: limit).batches == [[0], [1]]) }
        #expect(try plan(Self.plain, rows, limit: .max).batches == [[0, 1]])
        let tree: Tree = ["url": "${base_url}/${trackable}", "record": ["s": "$seq"]]
        #expect(try BatchPlanner(Sample.settings(tree)).depth(limit: .max) > 0)
    }
}

extension BatchPlan: Equatable {
    public static func == (a: BatchPlan, b: BatchPlan) -> Bool {
        a.batches == b.batches && a.consumed == b.consumed
            && a.settled.elementsEqual(b.settled) { $0.index == $1.index && $0.why == $1.why }
    }
}
