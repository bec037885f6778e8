import TestSupport
import Testing
import WaypostCore
import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite struct DepartureTests {
    @Test func pullAwayIsSeenWithinThirtyMetresAndDatedBackToTheParkingPlace() throws {
        var script = Script.parked(300)
        let departure = script.elapsed
        script.driveOff(30)
        let course = Course(script)
        let start = try #require(course.changes.last)
        #expect(start.reason == .speed)
        // s = a/2 t² at 1.5 m/s².
        let seconds = start.at.seconds - departure
        #expect(0.75 * seconds * seconds <= 30)
        #expect(abs(try #require(start.since).seconds - departure) <= 2)

        let record = try #require(course.records(.motionchange).last)
        #expect(record.moving && record.time == start.since && record.coordinate == Script.origin)
        // Every fix since then was sampled, in order of time.
        let kept = course.records.filter { $0.time >= record.time }
        #expect(zip(kept, kept.dropFirst()).allSatisfy { $0.time <= $1.time })
        #expect(kept.dropFirst().first.map { $0.time.seconds - departure <= 4 } == true)
    }

    @Test func effectsAreInOrder() throws {
        let effects = Course(Script.driving(after: 300)).effects.drop {
            if case .announceMotion(let change) = $0 { !change.moving } else { true }
        }
        guard case .announceMotion = effects.first else { return #expect(Bool(false), "no announcement") }
        let rest = effects.dropFirst()
        guard case .announceResolution(_, .standard) = rest.first else {
            return #expect(Bool(false), "the cap of the heartbeat is not lifted")
        }
        guard case .record(let location) = rest.dropFirst().first else { return #expect(Bool(false), "no record") }
        #expect(location.event == .motionchange)
    }

    @Test func reversingOutBelongsToTheTrip() throws {
        var script = Script.parked(300)
        let departure = script.elapsed
        // 12 m back, a pause to change the gear, then forward.
        script.drive(4, to: 2)
        script.drive(3)
        script.drive(4, to: 0)
        script.stand(8)
        script.driveOff(30)
        let start = try #require(Course(script).changes.last)
        #expect(abs(try #require(start.since).seconds - departure) <= 3)
    }

    /// One that is due in the midst of pulling away, as after 95 s, waits for the departure that shows.
    @Test func aHeartbeatBetweenDepartureAndDecisionMovesTheDeparture() throws {
        for phase in 88...99 {
            let course = Course(
                Script.driving(60, after: 30 + Double(phase)), .car { $0.motion.heartbeat = .seconds(100) })
            #expect(course.story == ["-start", "+speed"] && course.recordsAreInOrder, "phase \(phase)")
            let departure = try #require(course.records(.motionchange).last)
            if let heartbeat = course.records(.heartbeat).last, heartbeat.at < departure.at {
                #expect(departure.time > heartbeat.time)
            }
            if phase == 95 { #expect(course.records(.heartbeat).isEmpty) }
        }
    }

    @Test func inaccurateFixesNeitherStartNorHideATrip() {
        var script = Script.parked(300)
        script.accuracy = 1000
        for metres in [400.0, -300, 900, 20] {
            script.offset.north = metres
            script.stand(10)
        }
        script.offset = .zero
        script.accuracy = 4
        script.stand(100)
        #expect(Course(script).story == ["-start"])

        script.accuracy = 1000
        script.pullAway()
        script.accuracy = 4
        script.drive(60)
        #expect(Course(script).changes.map(\.moving) == [false, true])
    }

    @Test func fixesThatAreOffByAKilometreAndSaySoNeitherStartNorHideATripWhereTheyAreBelieved() {
        let settings = Tracker.Settings.car { $0.admission.accuracyMax = 2000 }
        var script = Script.parked(300)
        script.accuracy = 1000
        for metres in [60.0, -90, 150, 120] {
            script.offset.north = metres
            script.stand(10)
        }
        script.offset = .zero
        script.accuracy = 4
        script.stand(100)
        #expect(Course(script, settings).story == ["-start"])

        // A circle of error never keeps the asset in: it leaves by evidence, as ever.
        script.accuracy = 1000
        let departure = script.elapsed
        script.driveOff(60)
        let course = Course(script, settings)
        #expect(course.changes.map(\.moving) == [false, true])
        #expect(course.changes.last.map { $0.at.seconds - departure <= 12 } == true)
        // Nor does such a place become the anchor of a stop.
        script.stop(320)
        #expect(Course(script, settings).changes.map(\.moving) == [false, true, false])
    }

    @Test(arguments: [(0.0, 1...10), (20, 20...30)])
    func theTriggerDelayHoldsADepartureBack(delay: Double, seconds: ClosedRange<Double>) throws {
        var script = Script.parked(300)
        let departure = script.elapsed
        script.driveOff(60)
        let start = try #require(Course(script, .car { $0.motion.motionTriggerDelay = .seconds(delay) }).changes.last)
        #expect(start.moving && seconds.contains(start.at.seconds - departure), "\(start.at.seconds - departure)")
        // Held back, not lost: the trip is dated from where it began.
        #expect(abs(try #require(start.since).seconds - departure) <= 2)
    }

    @Test(arguments: [30.0, 80, 150])
    func aJumpWhileParkedIsNoTrip(metres: Double) {
        var script = Script.parked(300)
        script.offset.east = metres
        script.stand(60)
        script.offset = .zero
        script.stand(300)
        #expect(Course(script).story == ["-start"])
    }

    @Test func aDepartureInTheMidstOfAReflectionStartsAtTheParkingPlace() throws {
        var script = Script.parked(300)
        script.offset.east = 75
        script.stand(10)
        script.driveOff(3)
        script.offset = .zero
        script.drive(30)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed"])
        let record = try #require(course.records(.motionchange).last)
        #expect(record.moving && record.coordinate == Script.origin)
    }

    @Test func aWalkThatBeginsOutOfSightLeavesByTheFence() throws {
        var script = Script.parked(300)
        script.void(40)
        script.north += 45
        script.speed = 1
        script.drive(40)
        let departure = try #require(Course(script).changes.last)
        #expect(departure.moving && departure.reason == .fence)
        #expect(departure.at.seconds <= 340 + 12)
    }

    @Test func speedsThatThePositionsDoNotFollowAreNoise() {
        // A parked receiver off by 60 m that reports 1.7 m/s northward for half a minute.
        var script = Script.parked(300)
        script.offset.east = 60
        for _ in 0..<30 {
            script.elapsed += 1
            script.fix(speed: 1.7)
        }
        script.offset = .zero
        script.stand(100)
        #expect(Course(script).story == ["-start"])
    }

    @Test func aJumpWhileStoppingDoesNotSplitOrMoveTheStop() throws {
        var script = StopTests.arrived()
        let standstill = script.elapsed
        script.stand(100)
        script.offset.east = 80
        script.stand(20)
        script.offset = .zero
        script.stand(300)
        let stop = try #require(Course(script).changes.last)
        #expect(stop.reason == .stopTimeout)
        #expect(abs(try #require(stop.since).seconds - standstill) <= 1)
        #expect(stop.coordinate.distance(to: Script.place(north: script.north)) < 1)
    }

    @Test func aFirstFixThatIsOffDoesNotMakeAnAnchorOrATrip() throws {
        var script = Script()
        script.offset.east = 80
        script.stand(1)
        script.offset = .zero
        script.stand(300)
        let course = Course(script)
        #expect(course.story == ["-start"])
        #expect(try #require(course.changes.first).coordinate.distance(to: Script.origin) < 1)
    }

    @Test func aDriveThatIsUnderWayAtPowerUpDepartsAtOnce() throws {
        var script = Script()
        script.speed = 14
        script.drive(120)
        let course = Course(script)
        #expect(course.story == ["+speed"])
        #expect(try #require(course.changes.first).at.seconds <= 5)
        #expect(try #require(course.changes.first?.since).seconds <= 1)
    }

    /// Minutes of reflections near by are no part of the trip.
    @Test func whatWasAstrayBeforeItDoesNotDateTheDepartureBack() throws {
        var script = Script.parked(700)
        script.offset.east = 60
        script.stand(240)
        let astrayUntil = script.elapsed
        script.offset = .zero
        script.wait(30)
        script.north += 1000
        script.stand(60)
        let course = Course(script)
        #expect(course.story.last == "+backup-fence", "\(course.story)")
        #expect(try #require(course.changes.last?.since).seconds > astrayUntil, "\(course.story)")
    }

    /// Towed, by a ferry, or while the receiver was off: an event, and no trip. So fast that it is not believed at once, after
    /// three minutes.
    @Test(arguments: [(30.0, 180.0), (3600, 0)])
    func movedInASilenceItIsParkedThere(seconds: Double, held: Double) throws {
        var script = Script.parked(700)
        if seconds > 60 { script.happen(.noFix(.void)) }
        script.wait(seconds)
        let back = script.elapsed
        script.north += 11_000
        script.stand(600)
        let course = Course(script)
        #expect(course.story == ["-start"])
        let moves = course.effects.compactMap { effect -> (at: Double, metres: Double)? in
            if case .announceMove(let at, let metres) = effect { (at.seconds, metres) } else { nil }
        }
        let move = try #require(moves.first)
        #expect(moves.count == 1 && abs(move.metres - 11_000) < 20 && abs(move.at - back - held - 30) <= 10)
        let record = try #require(course.records(.gap).last)
        #expect(record.reason == "moved" && !record.moving && record.coordinate == Script.place(north: script.north))
        #expect(course.tracker.snapshot.gapMetres == 0 && course.tracker.snapshot.odometer == 0)
    }

    /// Who goes on from there is on a trip that began there.
    @Test func movedInASilenceAndStillMovingIsATrip() throws {
        var script = Script.parked(700)
        script.wait(3600)
        script.north += 7700
        let from = script.north
        script.speed = 12
        script.drive(120)
        let course = Course(script)
        #expect(course.changes.map(\.moving) == [false, true])
        #expect(try #require(course.changes.last).coordinate.distance(to: Script.place(north: from)) < 30)
        #expect(abs(course.tracker.snapshot.odometer - (script.north - from)) < 30)
    }

    /// A phone writes a position each five seconds, with neither speed nor accuracy.
    @Test func withoutSpeedsFixesThatLeaveTheFenceAreADeparture() throws {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (0.2, false, nil)
        script.stand(600)
        let (start, before) = (script.elapsed, script.north)
        script.drive(20, to: 8)
        script.drive(300)
        let course = Course(script)
        #expect(course.changes.map(\.moving) == [false, true])
        let departure = try #require(course.changes.last)
        #expect(departure.at.seconds - start <= 25)
        #expect(abs(try #require(departure.since).seconds - start) <= 10)
        #expect(abs(course.tracker.snapshot.odometer - (script.north - before)) < 30)
    }

    /// A tracker reports each twelve seconds: by the second fix outside most of the way is seen.
    @Test func withoutSpeedsTwoSlowFixesThatLeadAwayAreADeparture() throws {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (1 / 12.0, false, nil)
        script.stand(600)
        let start = script.elapsed
        script.drive(24, to: 8)
        script.drive(120)
        let departure = try #require(Course(script).changes.last)
        #expect(departure.moving && departure.at.seconds - start <= 37)
    }

    /// Seven positions a hundred metres off, after half a minute of silence and with a receiver that says it stands.
    @Test func fixesThatAgreeOutsideAfterAShortSilenceAreADeparture() {
        var script = Script.parked(600)
        script.accuracy = 9
        script.wait(30)
        script.north += 98
        script.stand(30)
        #expect(Course(script).story == ["-start", "+fence"])
    }

    /// Thrown aside at once, or by an error that fades, it has not left.
    @Test(arguments: [0.0, 20]) func withoutSpeedsAReflectionIsNoDeparture(fade: Double) {
        var script = Script()
        (script.tellsSpeed, script.accuracy) = (false, nil)
        script.stand(600)
        for second in 0..<60 {
            script.offset.east = fade == 0 ? 60 : 90 * exp(-Double(second) / fade)
            script.stand(1)
        }
        script.offset = .zero
        script.stand(300)
        #expect(Course(script).story == ["-start"])
    }

    @Test(arguments: testSeeds(1...2))
    func aParkedNightOfDriftNeverMoves(seed: UInt64) {
        // Street: σ 1 m over a minute, 2.5 m over half an hour, Doppler noise of 0.12 m/s; to the east and to the north.
        var generator = SeededGenerator(seed: seed)
        let noises = [(2.5, 1800.0), (1, 60), (0.12, 4)] as [(Double, Double)]
        var drifts: [Drift] = noises.flatMap { noise in
            [Drift](repeating: Drift(sigma: noise.0, timeConstant: noise.1), count: 2)
        }
        var script = Script()
        for _ in 0..<43_200 {
            script.elapsed += 1
            for index in drifts.indices { drifts[index].step(1, &generator) }
            script.offset.east = drifts[0].value + drifts[2].value
            script.offset.north = drifts[1].value + drifts[3].value
            let velocity = PlanePoint(east: drifts[4].value, north: drifts[5].value)
            script.fix(speed: velocity.length, course: bearing(east: velocity.east, north: velocity.north))
        }
        let course = Course(script)
        #expect(course.story == ["-start"], "seed \(seed)")
        #expect(course.records(.motionchange).count == 1)
        #expect(course.records.count - 1 == course.records(.heartbeat).count)
        #expect((70...72).contains(course.records(.heartbeat).count))
        #expect(Set(course.records.map(\.coordinate)).count == 1)
        #expect(course.tracker.snapshot.odometer == 0)
    }

    /// Without speeds, a position each 12 s: metres to the north of the first one.
    @Test(arguments: [
        ([0, 0, 13, 58, 131, 223, 300], 48.0), ([0, 11, 56, 142, 253, 309, 400], 36),
        // On foot from the first fix on.
        ([0, 15, 30, 42, 57, 75, 90, 105], 36),
        // A cold start whose error fades; a step and back.
        ([0, 60, 95, 112, 121, 126, 128, 129], nil), ([0, 1, 1, 40, 1, 0, 2, 1], nil),
    ])
    func aSearchForTheFirstPlaceEndsWithPositionsThatLeadAway(north: [Double], departs: Double?) throws {
        var script = Script()
        script.accuracy = nil
        script.tellsSpeed = false
        for metres in north {
            script.north = metres
            script.fix()
            script.elapsed += 12
        }
        let changes = Course(script).changes
        #expect(changes.first { $0.moving }?.at.seconds == departs, "\(changes)")
    }
}
