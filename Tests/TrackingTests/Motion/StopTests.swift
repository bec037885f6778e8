import Testing
import WaypostCore
import WaypostTracking

@Suite struct StopTests {
    /// Settled, driven away, and back at rest with the wheels just stopped.
    static func arrived(rate: Double = 1) -> Script {
        var script = Script()
        script.rate = rate
        script.stand(60)
        script.trip(metres: 1000)
        return script
    }

    /// Arrived, and then a jam that creeps less than the radius.
    static func crept() -> Script {
        var script = arrived()
        for _ in 0..<6 {
            script.stand(75)
            script.drive(4, to: 1)
            script.drive(2)
            script.drive(4, to: 0)
        }
        return script
    }

    @Test(arguments: [(299.0, ["-start", "+speed"]), (301.0, ["-start", "+speed", "-stop-timeout", "+speed"])])
    func stopsOnlyAfterTheStopTimeout(halt: Double, story: [String]) {
        var script = Self.arrived()
        script.stand(halt)
        script.driveOff(60)
        #expect(Course(script).story == story)
    }

    @Test func announcesTheStopByDeadlineInSilence() throws {
        var script = Self.arrived()
        let standstill = script.elapsed
        script.stand(15)
        var course = Course(script)
        course.runDeadlines(through: script.now + .seconds(900))
        let stop = try #require(course.changes.last)
        #expect(!stop.moving && stop.reason == .stopTimeout)
        #expect(abs(stop.at.seconds - standstill - 300) <= 1)
        #expect(abs(try #require(stop.since).seconds - standstill) <= 1)
        #expect(abs(try #require(stop.decided).seconds - standstill - 300) <= 1)
    }

    @Test func fiveSecondsOfStandingBeforeSilenceAreNoStop() throws {
        var script = Self.arrived()
        let standstill = script.elapsed
        script.stand(5)
        var course = Course(script)
        course.runDeadlines(through: script.now + .seconds(1700))
        #expect(course.story == ["-start", "+speed"])
        course.runDeadlines(through: script.now + .seconds(1900))
        #expect(course.story == ["-start", "+speed", "-no-fix"])
        #expect(abs(try #require(course.changes.last?.since).seconds - standstill) <= 1)
    }

    @Test func driesOutInATunnelAfterTheNoFixTimeout() throws {
        var script = Self.arrived()
        script.pullAway()
        let lost = script.elapsed
        script.void(1900)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-no-fix"])
        #expect(course.changes.last?.since?.seconds == lost)
        #expect(course.changes.last?.at.seconds == lost + 1800)
    }

    @Test(arguments: [10.0, 65, 120, 240])
    func staysMovingThroughRedLight(halt: Double) {
        var script = Self.arrived()
        script.stand(halt)
        script.trip(metres: 800)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed"])
        #expect(course.tracker.counters.halts == 1)
    }

    @Test func staysMovingThroughRedLightAndTunnel() {
        var script = Self.arrived()
        script.stand(60)
        script.driveOff(20, at: 20)
        // 7 km without sky, with a crawl into it just before.
        script.drive(8, to: 0.3)
        script.void(280)
        script.north += 7000
        script.speed = 20
        script.drive(120)
        #expect(Course(script).story == ["-start", "+speed"])
    }

    @Test func announcesHaltsAndGapsOnceTheyAreOver() {
        var script = Self.arrived()
        let standstill = script.elapsed
        script.stand(65)
        let departure = script.elapsed
        script.driveOff(20, at: 20)
        let lost = script.elapsed
        script.void(100)
        script.north += 2000
        script.drive(20)
        let silence = script.elapsed
        script.void(100)
        var course = Course(script)
        course.handle(.shutdown, at: script.now)
        let halts = course.effects.compactMap {
            if case .announceHalt(let from, let to) = $0 { (from.seconds, to.seconds) } else { nil }
        }
        #expect(halts.count == 1 && course.tracker.counters.halts == 1)
        for (from, to) in halts { #expect(abs(from - standstill) <= 1 && abs(to - departure) <= 1) }
        let gaps = course.effects.compactMap {
            if case .announceGap(let from, let to, .noSky) = $0 { (from.seconds, to?.seconds) } else { nil }
        }
        #expect(gaps.map(\.0) == [lost, silence] && gaps.map(\.1) == [lost + 101, nil])
        #expect(course.tracker.counters.gaps == 2)
    }

    @Test func jamThatCreepsStaysOneTrip() {
        var script = Self.arrived()
        for _ in 0..<12 {
            // 40 m in 5 min, 5 m at a time.
            script.stand(29)
            script.drive(3, to: 1.3)
            script.drive(2)
            script.drive(3, to: 0)
        }
        script.trip(metres: 500)
        #expect(Course(script).story == ["-start", "+speed"])
    }

    @Test func jamThatCreepsLessThanTheRadiusStaysOneTripAndItsStopIsDatedFromTheLastCreep() throws {
        var script = Self.crept()
        let standstill = script.elapsed
        script.stand(330)
        let course = Course(script)
        let stop = try #require(course.changes.last)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(abs(try #require(stop.since).seconds - standstill) <= 15)
        #expect(stop.coordinate.distance(to: Script.place(north: script.north)) < 1)
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 15)
    }

    /// A phone with neither speed nor accuracy stands for four minutes, and has crept on for one when the stop is due.
    @Test(arguments: [(0.1, 0.5, false), (0.2, 1, true)])
    func withoutSpeedsAHaltThatWasCreptAwayFromIsNoStop(rate: Double, speed: Double, isSilent: Bool) {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (rate, false, nil)
        script.stand(60)
        script.driveOff(300)
        script.brake()
        if isSilent { script.wait(240) } else { script.stand(240) }
        script.drive(1 / rate, to: speed)
        script.drive(260)
        script.driveOff(60, at: 6)
        let story = Course(script).story
        #expect(story.count == 2 && !story.contains("-stop-timeout"), "\(story)")
    }

    /// The end is the last manoeuvre into the bay, not the pause before it.
    @Test func withoutSpeedsATripEndsWithItsLastManoeuvre() throws {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (0.2, false, nil)
        script.stand(600)
        script.driveOff(120)
        script.stop(120)
        script.drive(5, to: 2)
        script.drive(10, to: 0)
        let end = script.elapsed
        script.stand(900)
        let stop = try #require(Course(script).changes.last)
        let since = try #require(stop.since).seconds
        #expect(!stop.moving && abs(since - end) <= 20)
    }

    /// The fixes end while they lead away from a halt: nobody has seen five minutes of it.
    @Test func withoutSpeedsAHaltThatIsBeingLeftBecomesNoStopInASilence() {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (0.2, false, nil)
        script.stand(60)
        script.driveOff(120)
        script.stop(60)
        script.drive(10, to: 9)
        script.wait(900)
        script.north += 6000
        script.driveOff(60)
        let course = Course(script)
        #expect(course.tracker.snapshot.motion == .moving && !course.story.contains("-stop-timeout"))
    }

    /// The receiver falls silent as the asset comes to rest: the silence is part of the halt.
    @Test func withoutSpeedsAHaltMayBeginInASilence() throws {
        var script = Script()
        (script.rate, script.tellsSpeed, script.accuracy) = (0.2, false, nil)
        script.stand(60)
        script.driveOff(120)
        script.brake()
        let end = script.elapsed
        script.wait(240)
        script.stand(90)
        let stop = try #require(Course(script).changes.last)
        let since = try #require(stop.since).seconds
        #expect(!stop.moving && abs(since - end) <= 10)
    }

    @Test func poweredOffWhileStandingStopsSooner() throws {
        var script = Self.arrived()
        script.happen(.externalPowerChanged(true))
        let standstill = script.elapsed
        script.stand(20)
        script.happen(.externalPowerChanged(false))
        script.stand(100)
        let course = Course(script)
        let stop = try #require(course.changes.last)
        #expect(stop.reason == .power)
        #expect(abs(stop.at.seconds - (standstill + 20 + 3 + 60)) <= 1)
        #expect(course.records(.power).map(\.reason) == ["power-off"])
    }

    private static func trips(rate: Double) -> Course {
        var script = arrived(rate: rate)
        script.stand(400)
        script.trip(metres: 3000, stand: 90)
        script.trip(metres: 900, stand: 400)
        return Course(script)
    }

    @Test func tripsAreTheSameAtAnyRate() throws {
        let reference = Self.trips(rate: 1)
        for rate in [10, 5, 0.5, 0.2] {
            let course = Self.trips(rate: rate)
            #expect(course.story == ["-start", "+speed", "-stop-timeout", "+speed", "-stop-timeout"], "\(rate)")
            for (mine, other) in zip(course.changes.dropFirst(), reference.changes.dropFirst()) {
                let (since, expected) = (try #require(mine.since), try #require(other.since))
                #expect(abs(since.seconds - expected.seconds) <= 2 + 2 / rate, "\(rate)")
            }
        }
    }

    @Test func findsStopsWithoutSpeeds() {
        var script = Script()
        script.tellsSpeed = false
        script.stand(60)
        script.trip(metres: 2000, stand: 400)
        script.trip(metres: 2000, stand: 400)
        #expect(Course(script).story == ["-start", "+speed", "-stop-timeout", "+speed", "-stop-timeout"])
    }

    @Test func aLongGapThatEndsInPlaceWasAStop() throws {
        var script = Self.arrived()
        script.pullAway()
        let lost = script.elapsed
        script.wait(1000)
        script.north += 20
        script.stand(60)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-gap"])
        #expect(course.changes.last?.since?.seconds == lost)
    }

    @Test func aLongGapThatEndsNearbyWasAStopAndADeparture() {
        var script = Self.arrived()
        script.pullAway()
        script.wait(1000)
        script.north += 150
        script.driveOff(60)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-gap", "+gap"])
        // Nothing says how it came there, or when.
        #expect(course.tracker.snapshot.gapMetres == 0)
        // The stop is one, though the same fix begins the next trip.
        #expect(course.records(.motionchange).map(\.moving) == [false, true, false, true])
    }

    /// A tunnel of seven kilometres at 60 km/h, or a minute of it.
    @Test(arguments: [90.0, 420]) func aTunnelIsDrivenThrough(seconds: Double) throws {
        var script = Self.arrived()
        script.driveOff(60, at: 17)
        let before = script.north
        script.void(seconds)
        script.north += 17 * seconds
        script.drive(60)
        script.stop(400)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 20)
        #expect(abs(course.tracker.snapshot.gapMetres - 17 * (seconds + 1)) < 20)
        #expect(try #require(course.changes.last?.trip).distance > before + 17 * seconds)
    }

    @Test func aLongGapThatEndsFarAwayIsNoStop() {
        var script = Self.arrived()
        script.pullAway()
        script.wait(1200)
        script.north += 20_000
        script.drive(60, to: 20)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed"])
        #expect(abs(course.tracker.snapshot.gapMetres - 20_000) < 30)
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 60)
    }

    @Test func standingIsHeldAtTheMedianAndOnlyTheIntervalSelects() throws {
        var script = Self.arrived()
        script.stand(60)
        let standing = Course(script).records.filter { $0.time.seconds > script.elapsed - 45 }
        #expect(standing.count == 15)
        #expect(standing.allSatisfy { $0.speed == 0 && $0.course == nil && $0.moving && $0.reason == "interval" })
        let place = Script.place(north: script.north)
        #expect(standing.allSatisfy { $0.coordinate.distance(to: place) < 1 })
    }

    @Test func withoutStopDetectionOnlyPaceEndsATrip() {
        var script = Self.arrived()
        script.stand(1000)
        script.happen(.paceRequested(.stationary))
        #expect(Course(script, .car { $0.motion.disableStopDetection = true }).story == ["-start", "+speed", "-pace"])
    }
}
