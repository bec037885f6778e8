import Testing
import WaypostCore
import WaypostTracking

/// Sources of movement besides the fixes: external power, lines and accelerometers; and the odometer that a user sets.
@Suite struct MovementTests {
    private static func parked(_ seconds: Double = 300, power: Bool? = nil) -> Script {
        var script = Script()
        if let power { script.happen(.externalPowerChanged(power)) }
        script.stand(seconds)
        return script
    }

    /// 10 m in 20 s: enough with a witness, too little without.
    private static func crawl(_ script: inout Script) {
        script.drive(4, to: 0.75)
        script.drive(12)
        script.drive(4, to: 0)
    }

    @Test(arguments: [
        (TrackerEvent.movementSourceChanged(source: "gpio", moving: true), ["-start", "+movement-source"]),
        (.movementSourceChanged(source: "gpio", moving: false), ["-start"]),
        (.externalPowerChanged(true), ["-start", "+power"]), (.externalPowerChanged(false), ["-start"]),
    ])
    func aWitnessLowersTheEvidenceForADeparture(event: TrackerEvent, story: [String]) {
        var script = Self.parked(power: false)
        script.happen(event)
        script.stand(10)
        Self.crawl(&script)
        script.stand(30)
        #expect(Course(script).story == story)
    }

    @Test(arguments: [(285.0, true), (305, false)])
    func aWitnessIsHeardForFiveMinutes(delay: Double, departs: Bool) {
        var script = Script.parked(300)
        script.happen(.movementSourceChanged(source: "gpio", moving: true))
        script.stand(delay - 10)
        Self.crawl(&script)
        script.stand(30)
        #expect((Course(script).story == ["-start", "+movement-source"]) == departs)
    }

    @Test func aMovementSourceStartsAndStopsNothingByItself() {
        var script = Script.parked(300)
        for _ in 0..<20 {
            script.happen(.movementSourceChanged(source: "accelerometer", moving: true))
            script.stand(30)
        }
        #expect(Course(script).story == ["-start"])
        script.trip(metres: 2000)
        script.happen(.movementSourceChanged(source: "accelerometer", moving: false))
        script.stand(290)
        #expect(Course(script).changes.map(\.moving) == [false, true])
        // Nor does it keep a standing asset from being parked.
        script.happen(.movementSourceChanged(source: "accelerometer", moving: true))
        script.stand(60)
        #expect(Course(script).changes.map(\.moving) == [false, true, false])
    }

    @Test func powerThatStartsTripsDoes() {
        let settings = Tracker.Settings.car { $0.motion.powerStartsTrip = true }
        var script = Self.parked(power: false)
        script.happen(.externalPowerChanged(true))
        script.stand(60)
        #expect(Course(script, settings).story == ["-start", "+power"])
        #expect(Course(script, settings).changes.last?.at.seconds == 303)
    }

    @Test func powerLostInAHaltAndDrivenOnWithoutIsForgotten() {
        var script = Script()
        script.happen(.externalPowerChanged(true))
        script.stand(100)
        script.trip(metres: 500, stand: 10)
        script.happen(.externalPowerChanged(false))
        script.stand(20)
        // Off again and on without power: a light of 100 s later is no stop.
        script.trip(metres: 2000, stand: 100)
        script.trip(metres: 500)
        #expect(Course(script).changes.map(\.moving) == [false, true])
    }

    @Test func powerLostInFullMotionIsNoStop() {
        var script = Script()
        script.happen(.externalPowerChanged(true))
        script.stand(100)
        script.driveOff(60)
        script.happen(.externalPowerChanged(false))
        script.drive(10)
        script.stop(150)
        #expect(Course(script).changes.map(\.moving) == [false, true])
        #expect(Course(script).records(.power).map(\.reason) == ["power-off"])
    }

    @Test func leavingWithoutPowerIsRecordedOnceATrip() throws {
        var script = Self.parked(power: false)
        let departure = script.elapsed
        script.trip(metres: 6000, stand: 400)
        var course = Course(script)
        let recorded = course.records(.power)
        #expect(recorded.map(\.reason) == ["moved-without-power"])
        let alarm = try #require(recorded.first)
        #expect(alarm.moving && abs(alarm.at.seconds - departure - 120) <= 2)
        #expect(alarm.coordinate.distance(to: Script.origin) > 1000)
        // The next one is recorded again.
        script.trip(metres: 6000)
        course = Course(script)
        #expect(course.records(.power).map(\.reason) == ["moved-without-power", "moved-without-power"])
    }

    @Test func aTripWithPowerOrOfUnknownPowerOrASpellOfTwoMinutesIsNoTow() {
        // Unknown.
        var script = Script.parked(300)
        script.trip(metres: 6000)
        #expect(Course(script).records(.power).isEmpty)
        // On within two minutes.
        script = Self.parked(power: false)
        script.pullAway()
        script.happen(.externalPowerChanged(true))
        script.drive(300)
        #expect(Course(script).records(.power).map(\.reason) == ["power-on"])
        // Over within two minutes.
        script = Self.parked(power: false)
        script.driveOff(20)
        script.happen(.paceRequested(.stationary))
        script.stand(300)
        #expect(Course(script).records(.power).isEmpty)
        // Lost on the way: a fuse.
        script = Self.parked(power: true)
        script.driveOff(60)
        script.happen(.externalPowerChanged(false))
        script.drive(300)
        #expect(Course(script).records(.power).map(\.reason) == ["power-off"])
        // Under way when first seen: there was no stop before.
        script = Script()
        script.happen(.externalPowerChanged(false))
        script.drive(300, to: 15)
        #expect(Course(script).records(.power).isEmpty)
    }

    @Test(arguments: [(30.0, 1), (200, 0)])
    func aTowIsToldOnceAcrossARestart(driven: Double, afterwards: Int) throws {
        var script = Self.parked(power: false)
        let departure = script.elapsed
        script.driveOff(driven)
        let before = Course(script)
        #expect(before.records(.power).count == 1 - afterwards)
        let state = try #require(StoredState(bytes: before.tracker.state.bytes))
        var later = Script()
        (later.north, later.speed) = (script.north + 120, 12)
        later.clockStep = Int64(script.elapsed + 10) * 1000
        later.drive(300)
        let after = Course(later, restored: state)
        #expect(after.records(.power).map(\.reason) == Array(repeating: "moved-without-power", count: afterwards))
        if let alarm = after.records(.power).first { #expect(abs(alarm.time.seconds - departure - 120) <= 2) }
    }

    @Test func theOdometerIsSetAndTheTripKeepsItsLength() throws {
        var script = Script.parked(300)
        script.trip(metres: 2000)
        script.happen(.odometerSet(metres: 123_456_000))
        script.trip(metres: 1000, stand: 310)
        let course = Course(script, .car { $0.tripSummary = true })
        #expect(abs(course.tracker.snapshot.odometer - 123_457_000) < 20)
        let summary = try #require(course.records(.trip).first)
        #expect(abs(try #require(summary.trip).distance - 3000) < 30)
        #expect(course.tracker.state.odometer == course.tracker.snapshot.odometer)
    }

    @Test(arguments: [(-5.0, 0.0), (.nan, 7), (.infinity, 7), (1e300, 1e11), (0, 0)])
    func anOdometerThatCannotBeIsNotTaken(metres: Double, shown: Double) {
        var script = Script()
        script.happen(.odometerSet(metres: 7))
        script.happen(.odometerSet(metres: metres))
        #expect(Course(script).tracker.snapshot.odometer == shown)
        #expect(StoredState(bytes: Course(script).tracker.state.bytes)?.odometer == shown)
    }
}
