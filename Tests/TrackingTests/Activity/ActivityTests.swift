import Testing
import WaypostCore
import WaypostTracking

/// A way of travelling in its plainest form.
private struct Manner: Sendable {
    /// m/s.
    var pace: Double
    /// m/s².
    var acceleration: Double
    var kind: Activity.Kind

    static let walk = Manner(pace: 1.4, acceleration: 1, kind: .onFoot)
    static let run = Manner(pace: 3, acceleration: 1.2, kind: .running)
    static let ride = Manner(pace: 5.5, acceleration: 0.6, kind: .onBicycle)
    static let drive = Manner(pace: 13, acceleration: 1.6, kind: .inVehicle)
}

@Suite struct ActivityTests {
    /// The answer after each event.
    private func kinds(_ script: Script, _ settings: Tracker.Settings = .car) -> [Activity.Kind?] {
        var tracker = Tracker(settings: settings, restored: nil)
        return script.events.map { at, event in
            _ = tracker.handle(event, at: at)
            return tracker.snapshot.activity?.kind
        }
    }

    /// Parked for long enough that the place is known, then on the way.
    private func way(_ manner: Manner, seconds: Double = 60, rate: Double = 1) -> Script {
        var script = Script()
        script.rate = rate
        script.stand(90)
        script.drive(max(1 / rate, manner.pace / manner.acceleration), to: manner.pace)
        script.drive(seconds)
        return script
    }

    private func walk(seconds: Double = 60) -> Script { way(.walk, seconds: seconds) }
    private func ride(seconds: Double = 60) -> Script { way(.ride, seconds: seconds) }
    /// Ends standing, after a drive of a minute.
    private func arrived() -> Script {
        var script = way(.drive)
        script.brake()
        return script
    }

    @Test func nothingIsKnownAtFirstAndParkedIsStill() {
        #expect(Tracker(settings: .car, restored: nil).snapshot.activity == nil)
        #expect(Course(Script.parked(60)).tracker.snapshot.activity == Activity(kind: .still, confidence: 100))
    }

    @Test(arguments: [Manner.walk, .run, .ride, .drive], [0.2, 1, 10])
    private func eachWayHasItsPace(_ manner: Manner, rate: Double) throws {
        let script = way(manner, seconds: 90, rate: rate)
        let activity = try #require(Course(script).tracker.snapshot.activity)
        #expect(activity.kind == manner.kind && activity.confidence >= 80, "\(activity)")
        #expect(kinds(script).suffix(Int(60 * rate)).allSatisfy { $0 == manner.kind })
    }

    @Test(arguments: [Manner.walk, .drive])
    private func aReceiverWithoutSpeedsIsJudgedByItsPositions(_ manner: Manner) {
        var script = Script()
        script.tellsSpeed = false
        script.stand(60)
        script.drive(5, to: manner.pace)
        script.drive(90)
        #expect(Course(script).tracker.snapshot.activity?.kind == manner.kind)
    }

    @Test func aFewStepsSayNothing() {
        var script = Script()
        for _ in 0..<6 { script.drive(1, to: 1.4) }
        #expect(kinds(script).allSatisfy { $0 == nil })
    }

    @Test func whoPullsAwayAsNoLegsCanIsInAVehicleAtOnce() {
        var script = Script.parked(60)
        script.drive(5, to: 8)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    /// The trip before says so, as long as it is remembered.
    @Test func aJamThatWasDrivenIntoIsNoWalk() {
        var script = arrived()
        let before = script.events.count
        for index in 0..<8 {
            script.stand(index % 3 == 0 ? 60 : 15)
            script.drive(3, to: 1.5)
            script.drive(9)
            script.drive(2, to: 0)
        }
        #expect(kinds(script).dropFirst(before).allSatisfy { $0 == .inVehicle || $0 == .still })
    }

    /// Between them the traffic is slow enough for a walk, and even.
    @Test func aDriveGoesOnAfterAWalkingPaceWasTakenForAWalk() {
        var script = arrived()
        script.stand(10)
        script.drive(2, to: 1.6)
        script.drive(80)
        #expect(Course(script).tracker.snapshot.activity?.kind == .onFoot)
        script.drive(5, to: 4)
        script.drive(20)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    @Test func whoStandsAndThenWalksOnHasLeftTheVehicle() {
        var script = arrived()
        script.stand(30)
        script.drive(1, to: 1.4)
        script.drive(15)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle, "it may be a creep")
        script.drive(30)
        #expect(Course(script).tracker.snapshot.activity?.kind == .onFoot)
    }

    /// At 2 to 7 m/s, as fast as a bicycle, but with two pedals: a recorded car did this between the rows of a car park.
    @Test func whoSpeedsUpAndBrakesAgainAndAgainIsInAVehicle() {
        var script = Script.parked(60)
        script.drive(5, to: 4)
        for _ in 0..<6 {
            script.drive(4, to: 7)
            script.drive(5, to: 2.5)
            script.drive(2, to: 4)
        }
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    @Test func aCyclistOnAHillOrDownItRemainsOne() {
        var script = ride()
        let before = script.events.count
        script.drive(10, to: 2.8)
        script.drive(60)
        script.drive(20, to: 11)
        script.drive(20)
        script.drive(15, to: 5)
        #expect(kinds(script).dropFirst(before).allSatisfy { $0 == .onBicycle })
    }

    @Test func aCyclistAtALightIsStillAndGoesOnAsOne() {
        var script = ride()
        script.drive(4, to: 0)
        script.stand(25)
        #expect(Course(script).tracker.snapshot.activity?.kind == .still)
        script.drive(6, to: 4)
        #expect(Course(script).tracker.snapshot.activity?.kind == .onBicycle)
    }

    @Test func aVehicleAtALightIsOnItsWayAndIsStillWhenItStandsForLong() {
        var script = arrived()
        script.stand(15)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
        script.stand(45)
        #expect(Course(script).tracker.snapshot.activity?.kind == .still)
        script.drive(6, to: 5)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    @Test func aPaceBetweenTwoWaysDoesNotFlap() {
        for middle in [2.1, 4.5] {
            var script = way(Manner(pace: middle, acceleration: 0.6, kind: .running), seconds: 20)
            let before = script.events.count
            for _ in 0..<20 {
                script.drive(8, to: middle + 0.3)
                script.drive(8, to: middle - 0.3)
            }
            let answers = kinds(script).dropFirst(before)
            let changes = zip(answers, answers.dropFirst()).filter { $0 != $1 }.count
            #expect(changes <= 1, "\(middle) m/s: \(changes)")
        }
    }

    @Test func aTunnelChangesNothing() {
        var script = way(.drive)
        script.void(200)
        script.north += 2600
        script.drive(2)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    /// A pace that swings as that of a cyclist does, for a number of minutes.
    private func pedal(_ minutes: Int, _ script: inout Script) {
        for _ in 0..<minutes {
            script.drive(10, to: 6.5)
            script.drive(15)
            script.drive(10, to: 3.5)
            script.drive(15)
            script.drive(10, to: 5)
        }
    }

    /// Down a pass at the speed of a car: the height that it loses is all the power that it takes.
    @Test func aFastDescentLeavesNothingBehind() {
        var script = Script()
        script.altitude = 900
        script.stand(60)
        pedal(6, &script)
        for _ in 0..<90 {
            script.drive(1, to: min(14, script.speed + 0.4))
            script.altitude = (script.altitude ?? 0) - 0.06 * script.speed
        }
        let descended = script.events.count
        script.drive(20, to: 5)
        pedal(3, &script)
        let answers = kinds(script)
        #expect(answers.dropFirst(120).prefix(descended - 120).allSatisfy { $0 == .onBicycle })
        #expect(answers.dropFirst(descended + 30).allSatisfy { $0 == .onBicycle })
    }

    @Test func aDriveDoesNotOutliveItself() {
        var script = way(.drive, seconds: 600)
        script.drive(20, to: 5)
        pedal(12, &script)
        #expect(Course(script).tracker.snapshot.activity?.kind == .onBicycle)
        script.drive(8, to: 16)
        script.drive(110)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    @Test(arguments: [2.6, 3.5, 4.5, 5])
    func whoKeepsARunnersPaceRuns(pace: Double) {
        var script = Script()
        script.stand(60)
        script.drive(4, to: pace)
        let before = script.events.count
        for second in 0..<900 { script.drive(1, to: pace * (1 + 0.05 * Double(second % 5 - 2) / 2)) }
        #expect(kinds(script).dropFirst(before + 60).allSatisfy { $0 == .running })
    }

    /// A parcel every few minutes, seen by a phone that says no speed.
    @Test func aCarrierIsOutOfTheVanAtOnceAndSoonBackInIt() {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (0.2, false, nil)
        script.stand(60)
        for _ in 0..<4 {
            script.drive(10, to: 9)
            script.drive(60)
            script.drive(10, to: 0)
            script.stand(20)
            script.drive(5, to: 1.2)
            script.drive(20)
            script.drive(5, to: 0)
            let answer = Course(script).tracker.snapshot.activity?.kind
            #expect(answer == .onFoot || answer == .still, "\(String(describing: answer))")
        }
        script.drive(10, to: 9)
        script.drive(15)
        #expect(Course(script).tracker.snapshot.activity?.kind == .inVehicle)
    }

    /// A row of creeps is a queue, also when the drive before it is forgotten; the same steps to doors and back are a walk.
    @Test(arguments: [true, false]) func creepsAreAQueueWhereTheyLeadOn(leadOn: Bool) {
        var script = arrived()
        for creep in 0..<24 {
            script.stand(30)
            let direction = leadOn || creep % 2 == 0 ? 1.0 : -1.0
            for speed in [0.6, 1.2, 1.6, 1.6, 1.6, 1.6, 1.6, 1, 0.4] {
                script.elapsed += 1
                script.north += direction * speed
                script.fix(speed: speed, course: direction > 0 ? 0 : 180)
            }
        }
        #expect(kinds(script).suffix(300).allSatisfy { $0 == .inVehicle } == leadOn)
        #expect(kinds(script).suffix(300).contains { $0 == .inVehicle } == leadOn)
    }

    @Test func afterAStopTheNextWayIsOpen() {
        var script = arrived()
        script.stand(400)
        script.drive(1, to: 1.4)
        script.drive(25)
        #expect(Course(script).tracker.snapshot.activity?.kind == .onFoot)
    }

    @Test func afterARestartItIsUnknownUntilEnoughWasSeen() {
        let before = Course(way(.drive))
        var script = Script()
        (script.elapsed, script.speed) = (200, 1.4)
        script.drive(5)
        var course = Course(script, restored: before.tracker.state)
        #expect(course.tracker.snapshot.motion == .moving && course.tracker.snapshot.activity == nil)
        script.drive(20)
        course = Course(script, restored: before.tracker.state)
        #expect(course.tracker.snapshot.activity?.kind == .onFoot)
    }

    @Test func aSourceThatReportsRestMakesItStillSooner() {
        func script(reporting: Bool) -> Script {
            var script = walk()
            script.drive(1, to: 0)
            if reporting { script.happen(.movementSourceChanged(source: "accelerometer", moving: false)) }
            script.stand(8)
            return script
        }
        #expect(Course(script(reporting: false)).tracker.snapshot.activity?.kind == .onFoot)
        #expect(Course(script(reporting: true)).tracker.snapshot.activity?.kind == .still)
    }

    @Test func whereExternalPowerIsTheIgnitionItIsAVehicleWhileItRuns() {
        let settings = Tracker.Settings.car { $0.motion.powerStartsTrip = true }
        var script = Script.parked(60)
        script.happen(.externalPowerChanged(true))
        script.stand(20)
        script.drive(3, to: 1.4)
        script.drive(60)
        #expect(Course(script, settings).tracker.snapshot.activity?.kind == .inVehicle)
        script.drive(2, to: 0)
        script.happen(.externalPowerChanged(false))
        script.stand(30)
        #expect(Course(script, settings).tracker.snapshot.activity?.kind == .still)
        #expect(Course(script).tracker.snapshot.activity?.kind == .still, "without the setting power says nothing")
    }

    @Test func outsideTheHoursNothingIsSaid() {
        var script = walk()
        script.happen(.timeWindowChanged(.tracking, open: false))
        #expect(Course(script).tracker.snapshot.activity == nil)
    }

    @Test func absurdSpeedsDoNoHarm() {
        var script = walk()
        for speed in [Double.nan, .infinity, -1, 1e300, 0] {
            script.elapsed += 1
            script.fix(speed: speed)
        }
        script.drive(30, to: 1.4)
        #expect(Course(script).tracker.snapshot.activity != nil)
    }
}
