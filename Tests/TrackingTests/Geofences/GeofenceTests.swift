import Testing
import WaypostCore

@testable import WaypostTracking

extension Geofence {
    /// A circle on the way north.
    static func circle(
        _ id: String, north: Double = 0, east: Double = 0, radius: Double = 50, dwell: Duration? = nil
    ) -> Geofence {
        Geofence(
            id: id, name: "the \(id)", shape: .circle(centre: Script.place(north: north, east: east), radius: radius),
            dwell: dwell)
    }
}

extension Tracker.Settings {
    static func car(_ fences: [Geofence], initialEnter: Bool = true) -> Tracker.Settings {
        var settings = car
        settings.geofences.fences = fences
        settings.geofences.initialEnter = initialEnter
        return settings
    }
}

extension Course {
    var crossings: [Location] { records(.geofence) }
    /// `enter home`, with the reason where it is not that the edge was crossed.
    var passages: [String] {
        crossings.map { record in
            let crossing = record.geofence!
            let words = "\(crossing.action.rawValue) \(crossing.id)"
            return ["crossing", "dwell"].contains(record.reason) ? words : "\(words) \(record.reason ?? "-")"
        }
    }
}

extension GeofenceMonitor.Sighting {
    init(_ seconds: Double, at coordinate: Coordinate, accuracy: Double? = 4) {
        let (at, time) = (EventTime.zero + .seconds(seconds), Script.start + .seconds(seconds))
        let fix = Fix(time: time, timeOfDay: 0, at: at, coordinate: coordinate, horizontalAccuracy: accuracy)
        self.init(fix: fix, time: time, at: at)
    }
}

@Suite struct GeofenceTests {
    /// Parked at the origin for five minutes.
    private var parked: Script {
        return Script.parked(300)
    }

    /// A trip north at 12 m/s, after five minutes parked.
    private func trip(metres: Double) -> Script {
        var script = parked
        script.trip(metres: metres)
        return script
    }

    /// Goes on in another process `pause` seconds later.
    private func later(than script: Script, by pause: Double = 10) -> Script {
        var later = Script()
        (later.north, later.east, later.speed) = (script.north, script.east, script.speed)
        later.clockStep = Int64((script.elapsed + pause) * 1000)
        return later
    }

    private func restored(_ course: Course) -> StoredState? { StoredState(bytes: course.tracker.state.bytes) }

    // MARK: crossing

    @Test func reportsEachCrossingOnceAndDatesItAtTheFirstFixBeyondTheEdge() throws {
        let script = trip(metres: 2000)
        let course = Course(script, .car([.circle("home"), .circle("depot", north: 1000, radius: 100)]))
        #expect(course.passages == ["enter home initial", "exit home", "enter depot", "exit depot"])
        // Accuracy 4 m: 5 m beyond the edge.
        for (record, edge) in zip(course.crossings.dropFirst(), [55.0, 905.0, 1105.0]) {
            let north = Script.plane.point(record.coordinate).north
            #expect(north > edge && north < edge + 12.5)
            #expect(record.geofence?.name == "the \(record.geofence!.id)" && record.event == .geofence)
            let fix = try #require(
                script.events.compactMap { if case .fixReceived(let fix) = $0.event { fix } else { nil } }
                    .first { $0.coordinate == record.coordinate })
            #expect(record.time == fix.time)
        }
        #expect(course.tracker.snapshot.fences == 2 && course.tracker.snapshot.inside.isEmpty)
        #expect(course.tracker.counters.crossings == 4)
    }

    @Test func recordsStayInOrderAroundACrossing() {
        // Every fix is kept, so the fixes between the first and the decision are there too, behind the crossing.
        var settings = Tracker.Settings.car([.circle("depot", north: 1000, radius: 100)])
        settings.resolution.default = Resolution(priority: .high, intervalMs: 0, displacement: 0)
        let with = Course(trip(metres: 2000), settings)
        settings.geofences.fences = []
        let without = Course(trip(metres: 2000), settings)
        #expect(with.crossings.count == 2)
        #expect(with.recordsAreInOrder)
        #expect(zip(with.records, with.records.dropFirst()).allSatisfy { $0.odometer <= $1.odometer })
        let plain = with.records.filter { $0.event != .geofence }
        #expect(plain.map(\.time) == without.records.map(\.time))
        #expect(plain.map(\.odometer) == without.records.map(\.odometer))
        #expect(plain.map(\.reason) == without.records.map(\.reason))
    }

    @Test func backDatedFixesGiveTheTrueTimeOfTheExit() throws {
        // On foot, so that the start is noticed late.
        var script = parked
        script.drive(5, to: 1.2)
        script.drive(120)
        let course = Course(script, .car([.circle("home", radius: 10)]))
        let exit = try #require(course.crossings.last)
        let departure = try #require(course.changes.last { $0.moving })
        // The edge was crossed before the departure was noticed.
        #expect(exit.time < departure.decided! && exit.time > departure.since!)
        #expect(Script.plane.point(exit.coordinate).north < 20)
    }

    @Test func aParkedReceiverThatDriftsAcrossTheEdgeCrossesNothing() {
        var script = parked
        for second in 0..<3600 {
            script.offset.north = second / 300 % 2 == 0 ? 15 : -15
            script.stand(1)
        }
        let course = Course(
            script, .car([.circle("home", north: 20, radius: 20), .circle("next", north: -20, radius: 12)]))
        #expect(course.passages.isEmpty)
        #expect(Course(script, .car([.circle("home", north: 10)])).passages == ["enter home initial"])
    }

    private static let runs: [(rate: Double, fixes: Int, isOne: Bool)] = [
        (1, 1, false), (1, 3, false), (1, 4, true), (10, 20, false), (10, 40, true), (0.1, 1, false), (0.1, 2, true),
    ]

    @Test(arguments: runs)
    func aCrossingTakesTwoFixesAndThreeSeconds(_ rate: Double, _ fixes: Int, _ isOne: Bool) {
        var monitor = GeofenceMonitor(settings: .init(fences: [.circle("home", north: 500)]))
        var crossings: [GeofenceMonitor.Crossing] = []
        for number in 0..<(40 + fixes + 1) {
            let place = Script.place(north: (40..<40 + fixes).contains(number) ? 500 : 0)
            crossings += monitor.reported(.init(Double(number) / rate, at: place))
        }
        #expect(!crossings.isEmpty == isOne)
        if let first = crossings.first { #expect(first.sighting?.time == Script.start + .seconds(40 / rate)) }
    }

    private static let edges: [(accuracy: Double?, radius: Double, edge: Double)] = [
        (4, 50, 5), (20, 100, 20), (100, 500, 30), (nil, 100, 10), (20, 20, 5), (30, 10, 2.5), (.nan, 100, 10),
    ]

    @Test(arguments: edges)
    func theEdgeIsAsWideAsTheFixIsUnsure(_ accuracy: Double?, _ radius: Double, _ edge: Double) {
        for (distance, isInside) in [(radius - edge - 0.5, true), (radius - edge + 0.5, false)] {
            var monitor = GeofenceMonitor(settings: .init(fences: [.circle("home", radius: radius)]))
            for second in 0..<10 {
                _ = monitor.reported(.init(Double(second), at: Script.place(north: distance), accuracy: accuracy))
            }
            #expect(monitor.isInside("home") == isInside, "\(distance)")
        }
    }

    @Test func aFenceWithARadiusBelowTheAccuracyIsEnteredAndLeftOnce() {
        var script = parked
        script.accuracy = 25
        script.driveOff(300, at: 3)
        let course = Course(script, .car([.circle("door", north: 400, radius: 12)]))
        #expect(course.passages == ["enter door", "exit door"])
    }

    @Test func everyTrackableHasItsRecordWhateverIsSampled() {
        var settings = Tracker.Settings(trackables: [Trackable(id: "a"), Trackable(id: "b")])
        settings.geofences.fences = [.circle("depot", north: 1000, radius: 100)]
        settings.resolution.default = Resolution(priority: .low, intervalMs: 3_600_000, displacement: 1e6)
        settings.sampling.minGap = .seconds(3600)
        let course = Course(trip(metres: 2000), settings)
        #expect(course.passages == ["enter depot", "enter depot", "exit depot", "exit depot"])
        #expect(course.crossings.map(\.trackable) == ["a", "b", "a", "b"])
        #expect(course.crossings.allSatisfy { $0.published })
    }

    // MARK: first look

    @Test func insideAtTheFirstFixIsAnEnterByDefault() {
        #expect(
            Course(parked, .car([.circle("home"), .circle("away", north: 900)])).passages == ["enter home initial"])
        // A silent stay has no DWELL and no EXIT; the next one is recorded.
        var script = trip(metres: 1000)
        script.north = 0
        script.stand(600)
        let course = Course(script, .car([.circle("home", dwell: .seconds(60))], initialEnter: false))
        #expect(course.passages.prefix(1) == ["enter home"] || course.passages.first == "enter home jump")
        #expect(course.passages.last == "dwell home" && course.passages.count == 2)
    }

    @Test func aSilentStayIsStillASilentOneAfterARestart() {
        let settings = Tracker.Settings.car([.circle("home")], initialEnter: false)
        let before = Course(parked, settings)
        #expect(before.passages.isEmpty && before.tracker.snapshot.inside == ["home"])
        var script = later(than: parked)
        script.stand(60)
        script.trip(metres: 500)
        let after = Course(script, settings, restored: restored(before))
        #expect(after.passages.isEmpty)
    }

    @Test func aStartOnTheRoadLooksAtTheFirstFixes() {
        var script = Script()
        script.speed = 12
        script.drive(60)
        #expect(Course(script, .car([.circle("town", north: 500, radius: 700)])).passages == ["enter town initial"])
        #expect(Course(script, .car([.circle("town", north: 500, radius: 700)], initialEnter: false)).passages.isEmpty)
        // Far from the first fixes it is outside, and entered later as any other.
        let silent = Course(script, .car([.circle("bridge", north: 400)], initialEnter: false))
        #expect(silent.passages == ["enter bridge", "exit bridge"])
    }

    // MARK: dwell

    @Test func dwellIsRecordedOnceAlsoWithoutAFix() throws {
        var course = Course(parked, .car([.circle("home", dwell: .seconds(1800))]))
        let entered = try #require(course.crossings.first?.time)
        course.runDeadlines(through: .zero + .seconds(7200))
        #expect(course.passages == ["enter home initial", "dwell home"])
        #expect(course.crossings.last?.time == entered + .seconds(1800))
        #expect(course.crossings.last?.coordinate == course.tracker.snapshot.reportedCoordinate)
    }

    @Test func leavingBeforeTheTimeIsOverCancelsDwell() {
        var script = parked
        script.driveOff(120)
        let course = Course(script, .car([.circle("home", dwell: .seconds(320))]))
        #expect(course.passages == ["enter home initial", "exit home"])
    }

    @Test func dwellGoesOnAfterARestartByTheTimeOfFixes() throws {
        let settings = Tracker.Settings.car([.circle("home", dwell: .seconds(3600))])
        let before = Course(parked, settings)
        let entered = try #require(before.crossings.first?.time)
        var script = later(than: parked, by: 1200)
        script.stand(60)
        var after = Course(script, settings, restored: restored(before))
        #expect(after.passages.isEmpty)
        after.runDeadlines(through: .zero + .seconds(7200))
        #expect(after.passages == ["dwell home"])
        let recorded = try #require(after.crossings.first?.time)
        #expect(abs(recorded.milliseconds(since: entered) - 3_600_000) <= 1000)
        // And not once more.
        var third = later(than: parked, by: 9000)
        third.stand(60)
        var again = Course(third, settings, restored: restored(after))
        again.runDeadlines(through: .zero + .seconds(9000))
        #expect(again.passages.isEmpty)
    }

    @Test func aDwellComesAfterTheFixesThatWaitForAnotherFence() {
        // The DWELL of the town is due between the first fix beyond the bridge's edge and the decision about it.
        var settings = Tracker.Settings.car([.circle("bridge", north: 400, radius: 60)])
        settings.resolution.default = Resolution(priority: .high, intervalMs: 0, displacement: 0)
        let entered = Course(trip(metres: 1000), settings).crossings[0].time.seconds
        for wait in stride(from: 0.5, to: 4, by: 0.5) {
            let dwell = Duration.milliseconds(Int64(1000 * (entered - 30 + wait)))
            settings.geofences.fences.append(.circle("town", north: 0, radius: 5000, dwell: dwell))
            let course = Course(trip(metres: 1000), settings)
            settings.geofences.fences.removeLast()
            #expect(course.passages == ["enter town initial", "enter bridge", "dwell town", "exit bridge"])
            #expect(course.recordsAreInOrder, "\(wait)")
        }
    }

    // MARK: restart

    struct Restart: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var before: [Geofence]
        var after: [Geofence]
        /// Metres to the north, in so many seconds without a process.
        var moved = 0.0
        var pause = 10.0
        var passages: [String]
        var inside: [String] = []
    }

    static let restarts: [Restart] = [
        Restart(
            testDescription: "inside before, outside after", before: [home, away], after: [home, away], moved: 5000,
            pause: 600, passages: ["exit home restart", "enter away gap"], inside: ["away"]),
        Restart(
            testDescription: "who left unseen did not dwell", before: [.circle("home", dwell: .seconds(600))],
            after: [.circle("home", dwell: .seconds(600))], moved: 5000, pause: 3600, passages: ["exit home restart"]),
        Restart(
            testDescription: "fences of another set are new", before: [away], after: [away, home],
            passages: ["enter home initial"], inside: ["home"]),
        Restart(
            testDescription: "a fence that is gone is left", before: [home, yard], after: [yard],
            passages: ["exit home removed"], inside: ["yard"]),
        Restart(
            testDescription: "no fence is left at all", before: [home, yard], after: [],
            passages: ["exit home removed", "exit yard removed"]),
        Restart(
            testDescription: "one of another shape is looked at again", before: [home, yard],
            after: [.circle("home", north: 300), .circle("yard", radius: 70)], passages: ["exit home changed"],
            inside: ["yard"]),
    ]
    private static let home = Geofence.circle("home")
    private static let yard = Geofence.circle("yard", radius: 90)
    private static let away = Geofence.circle("away", north: 5000)

    @Test(arguments: restarts)
    func aRestartLooksAtWhatChangedMeanwhile(_ restart: Restart) {
        let before = Course(parked, .car(restart.before))
        var script = later(than: parked, by: restart.pause)
        script.north = restart.moved
        script.stand(60)
        let after = Course(script, .car(restart.after), restored: restored(before))
        #expect(after.passages == restart.passages)
        #expect(after.tracker.snapshot.inside == restart.inside)
        #expect(after.crossings.allSatisfy { $0.geofence?.name == "the \($0.geofence!.id)" })
        #expect(after.crossings.allSatisfy { $0.time.seconds > 300 + restart.pause })
    }

    @Test func nothingIsRecordedAgainAfterARestartWhereNothingChanged() {
        let settings = Tracker.Settings.car([.circle("home"), .circle("depot", north: 1000, radius: 100)])
        let script = trip(metres: 1000)
        let before = Course(script, settings)
        #expect(before.passages.last == "enter depot")
        var rest = later(than: script)
        rest.stand(30)
        rest.trip(metres: 500)
        let after = Course(rest, settings, restored: restored(before))
        #expect(after.passages == ["exit depot"])
    }

    /// A list changes at night, and then the power goes: the EXIT must come with the first fix of the morning.
    @Test func whatIsOwedOutsideOfTheHoursIsOwedAfterARestart() {
        var script = parked
        script.happen(.timeWindowChanged(.tracking, open: false))
        script.happen(.fencesChanged([.circle("yard", radius: 90)]))
        let before = Course(script, .car([.circle("home"), .circle("yard", radius: 90)]))
        #expect(before.passages == ["enter home initial", "enter yard initial"])
        var later = later(than: parked)
        later.stand(30)
        let after = Course(later, .car([.circle("yard", radius: 90)]), restored: restored(before))
        #expect(after.passages == ["exit home removed"])
    }

    // MARK: changes of the fences

    static let changes: [(fences: [Geofence], events: [TrackerEvent], passages: [String])] = [
        ([home, yard], [.fencesChanged([yard])], ["enter home initial", "enter yard initial", "exit home removed"]),
        ([away], [.fencesChanged([home])], ["enter home initial"]),
        (
            [home], [.settingsReloaded(.car([yard])), .settingsReloaded(.car([yard]))],
            ["enter home initial", "exit home removed", "enter yard initial"]
        ),
    ]

    @Test(arguments: changes)
    func whileParkedAFenceThatIsAddedIsEnteredAtOnceAndOneThatIsRemovedIsLeft(
        _ fences: [Geofence], _ events: [TrackerEvent], _ passages: [String]
    ) {
        var script = parked
        for event in events { script.happen(event) }
        script.stand(60)
        let course = Course(script, .car(fences))
        #expect(course.passages == passages)
        let last = course.crossings.last
        #expect(last?.time.seconds == 300 && last?.geofence?.name == "the \(last?.geofence?.id ?? "")")
    }

    @Test func anotherShapeIsJudgedWhereTheAssetWasLastReported() {
        var script = parked
        script.happen(.fencesChanged([.circle("home", north: 500), .circle("away", north: 30)]))
        script.wait(100)
        script.happen(.fencesChanged([.circle("home"), .circle("away", north: 900)]))
        let course = Course(script, .car([.circle("home"), .circle("away", north: 900)]))
        #expect(
            course.passages == [
                "enter home initial", "exit home changed", "enter away changed", "exit away changed",
                "enter home changed",
            ])
    }

    @Test func aNewNameOrDwellLetsTheStayGoOn() {
        var renamed = Geofence.circle("home", dwell: .seconds(600))
        renamed.name = "Zuhause"
        var script = parked
        script.happen(.fencesChanged([renamed]))
        script.stand(1200)
        let course = Course(script, .car([.circle("home")]))
        #expect(course.passages == ["enter home initial", "dwell home"])
        #expect(course.crossings.last?.geofence?.name == "Zuhause")
    }

    @Test func fencesThatChangeBeforeTheFirstFixAreRecordedWithIt() {
        let before = Course(parked, .car([.circle("home")]))
        var script = later(than: parked)
        script.happen(.fencesChanged([]))
        script.stand(30)
        let after = Course(script, .car([.circle("home")]), restored: restored(before))
        #expect(after.passages == ["exit home removed"])
    }

    // MARK: gaps and jumps

    @Test func afterAGapExitsComeBeforeEntersThenById() {
        var script = parked
        script.driveOff(5)
        script.wait(400)
        script.north += 4800
        script.drive(30)
        let there = script.north - 150
        let course = Course(
            script,
            .car([
                .circle("b-here", radius: 300), .circle("a-here", radius: 300),
                .circle("b-there", north: there, radius: 400),
                .circle("a-there", north: there, radius: 400), .circle("between", north: 2500, radius: 300),
            ]))
        #expect(
            course.passages.dropFirst(2) == [
                "exit a-here gap", "exit b-here gap", "enter a-there gap", "enter b-there gap",
            ])
    }

    // MARK: many

    @Test func unusableFencesAreLeftOutAndCounted() {
        let monitor = GeofenceMonitor(
            settings: .init(fences: [
                .circle("a"), .circle("a", north: 99), .circle("b", radius: .nan), .circle("c", radius: -1),
                Geofence(id: "d", shape: .polygon([])),
                Geofence(id: "e", shape: .polygon([Coordinate](repeating: Script.origin, count: 5))),
                Geofence(id: "f", shape: .circle(centre: Coordinate(latitudeE7: .max, longitudeE7: .min), radius: 50)),
            ]))
        #expect(monitor.fences.map(\.id) == ["a"] && monitor.refused == 6)
        let many = GeofenceMonitor(settings: .init(fences: (0..<10_050).map { .circle("\($0)") }))
        #expect(many.fences.count == 10_000 && many.refused == 50)
    }

    @Test func tenThousandStaysAtOnceAreRecordedUpToALimitAndPaired() throws {
        let fences = (0..<10_000).map { Geofence.circle("\($0)", radius: 100 + Double($0) / 100) }
        var script = parked
        let before = Course(script, .car(fences))
        #expect(before.passages.count == GeofenceMonitor.staysMax)
        #expect(before.tracker.snapshot.inside.count == 10_000)
        #expect(before.tracker.snapshot.staysUnrecorded == 10_000 - GeofenceMonitor.staysMax)
        #expect(before.tracker.state.bytes.count < 16_000)
        // What was not stored is new, but recorded only up to the limit.
        script = later(than: script)
        script.stand(30)
        script.trip(metres: 1500)
        let after = Course(script, .car(fences), restored: restored(before))
        let recorded = Set(before.crossings.map(\.geofence!.id))
        #expect(after.crossings.allSatisfy { $0.geofence?.action == .exit })
        #expect(Set(after.crossings.map(\.geofence!.id)) == recorded && after.crossings.count == recorded.count)
    }

    @Test func aFenceOfAThousandKilometresIsLeftAndEntered() {
        let course = Course(
            trip(metres: 3000),
            .car([
                .circle("land", north: -999_000, radius: 1_000_000),
                .circle("sea", north: 1_002_000, radius: 1_000_000),
            ]))
        #expect(course.passages == ["enter land initial", "exit land", "enter sea"])
    }
}
