import Testing
import WaypostCore
import WaypostTracking

@Suite struct RecordTests {
    @Test func firstRecordWaitsUntilThePlaceIsSettled() throws {
        let course = Course(Script.parked(29))
        #expect(course.records.isEmpty && course.tracker.snapshot.motion == .settling)
        let settled = Course(Script.parked(31))
        #expect(settled.story == ["-start"])
        let record = try #require(settled.records.first)
        #expect(record.event == .motionchange && record.reason == "start" && !record.moving && record.speed == 0)
    }

    @Test func heartbeatsNeedNoFixAndSaySo() {
        var script = Script.parked(700)
        script.happen(.batteryChanged(percent: 80, charging: false))
        var course = Course(script)
        course.runDeadlines(through: script.now + .seconds(1900))
        let heartbeats = course.records(.heartbeat)
        #expect(heartbeats.map(\.reason) == ["heartbeat", "no-fix", "no-fix", "no-fix"])
        #expect(heartbeats.last?.power.batteryPercent == 80 && heartbeats.first?.power.batteryPercent == nil)
        #expect(heartbeats.last?.mode == nil && heartbeats.first?.mode == .threeD)
        #expect(heartbeats.allSatisfy { $0.coordinate == Script.origin && $0.speed == 0 && !$0.moving })
        #expect(heartbeats.allSatisfy { $0.time.seconds == $0.at.seconds })
    }

    @Test func withoutHeartbeatsAParkedAssetIsSilent() {
        let course = Course(Script.parked(7200), .car { $0.motion.heartbeat = .zero })
        #expect(course.records.count == 1)
    }

    @Test(arguments: [(true, "no-sky"), (false, "receiver-lost")])
    func aGapIsRecordedOnceWithTheLastPosition(void: Bool, reason: String) throws {
        var script = Script.driving(60, after: 60)
        let (lost, place) = (script.elapsed, script.north)
        if void { script.void(200) } else { script.wait(200) }
        script.north += 2400
        script.drive(60)
        let course = Course(script)
        let gaps = course.records(.gap)
        #expect(gaps.count == 1)
        let gap = try #require(gaps.first)
        #expect(gap.reason == reason && gap.time.seconds == lost && gap.at.seconds == lost + 60 && gap.moving)
        #expect(gap.coordinate.distance(to: Script.place(north: place)) < 0.1)
        // The first fix after it opens a segment.
        let next = try #require(course.records.first { $0.time > gap.time })
        #expect(next.reason == "gap" && next.time.seconds == lost + (void ? 201 : 201))
        #expect(course.story == ["-start", "+speed"])
    }

    /// Without heartbeats one in ten minutes.
    @Test(arguments: [600, 0])
    func aFlappingPlugWritesOneGapInAHeartbeat(heartbeat: Int) {
        var script = Script.parked(60)
        for _ in 0..<40 {
            script.wait(80)
            script.stand(10)
        }
        let course = Course(script, .car { $0.motion.heartbeat = .seconds(heartbeat) })
        #expect(course.tracker.counters.gaps == 40 && course.story == ["-start"])
        let gaps = course.records(.gap).map(\.at.seconds)
        #expect((6...7).contains(gaps.count))
        #expect(zip(gaps, gaps.dropFirst()).allSatisfy { $1 - $0 >= 600 })
    }

    @Test func theReasonOfAGapIsWhatIsHeardWhenItIsOne() {
        // Void for a while, then unplugged.
        var script = Script.driving(60, after: 60)
        script.void(20)
        script.wait(100)
        script.drive(10)
        #expect(Course(script).records(.gap).map(\.reason) == ["receiver-lost"])
        // The supply of receiver and vehicle is one.
        script = Script.parked(60)
        script.happen(.externalPowerChanged(true))
        script.driveOff(60)
        script.happen(.externalPowerChanged(false))
        script.wait(100)
        script.drive(10)
        #expect(Course(script).records(.gap).map(\.reason) == ["power"])
        // Fixes that are not believed are no fixes.
        script = Script.driving(60, after: 60)
        script.accuracy = 500
        script.drive(100)
        #expect(Course(script).records(.gap).map(\.reason) == ["no-sky"])
        // Fixes without a date are a fault of the receiver, and counted.
        script = Script.driving(60, after: 60)
        for _ in 0..<100 {
            script.wait(1)
            script.happen(
                .fixReceived(
                    Fix(
                        time: nil, timeOfDay: 0, at: script.now, coordinate: Script.place(north: script.north),
                        horizontalAccuracy: 4, mode: .threeD)))
        }
        script.drive(10)
        let course = Course(script)
        #expect(course.records(.gap).map(\.reason) == ["receiver-lost"])
        #expect(course.tracker.counters.rejected(.dateless) == 100)
    }

    @Test func anEventThatIsDatedByTheHostDoesNotSetTheTrackBack() {
        var script = Script.driving(30, after: 60)
        // The next fix arrives 0.9 s late; meanwhile the host dates a panic 1.5 s after the last one.
        script.wait(1.5)
        script.happen(.panicRequested)
        script.wait(0.4)
        script.clockStep = -900
        script.fix()
        script.wait(0.1)
        script.clockStep = 0
        script.drive(30)
        let times = Course(script).records.map(\.time)
        #expect(Course(script).records(.panic).count == 1)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test func everyTrackableIsRecordedByItsOwnResolution() {
        let coarse = Resolution(priority: .low, intervalMs: 60_000, displacement: 10_000)
        var settings = Tracker.Settings(trackables: [
            Trackable(id: "car"),
            Trackable(id: "load", constraints: .default(.init(resolutions: .init(farWithoutSubscriber: coarse)))),
        ])
        let script = Script.driving(300, after: 60)
        let course = Course(script, settings)
        let car = course.records.filter { $0.trackable == "car" }
        let load = course.records.filter { $0.trackable == "load" }
        #expect(car.count > 250 && load.count == 2 + 308 / 60)
        #expect(car.count + load.count == course.records.count)
        #expect(load.filter { $0.event == .motionchange }.count == 2)

        settings.trackables.removeFirst()
        settings.keepEngineFixes = true
        let engine = Course(script, settings).records.filter { $0.trackable == nil }
        #expect(engine.count > 250 && engine.allSatisfy { !$0.published })
    }

    @Test func powerIsRecordedAtOnceAndADipIsNot() {
        var script = Script.parked(60)
        script.happen(.externalPowerChanged(true))
        script.stand(10)
        script.happen(.externalPowerChanged(false))
        script.wait(2)
        script.happen(.externalPowerChanged(true))
        script.stand(10)
        #expect(Course(script).records(.power).isEmpty)
        script.happen(.externalPowerChanged(nil))
        script.happen(.externalPowerChanged(false))
        let lost = script.elapsed
        script.stand(10)
        let records = Course(script).records(.power)
        #expect(records.map(\.reason) == ["power-off"])
        #expect(records.first?.at.seconds == lost + 3 && records.first?.power.externalPower == false)
    }

    @Test func panicIsRecordedInPlaceAndRefusedWithoutAFix() throws {
        var script = Script()
        script.happen(.panicRequested)
        let refused = Course(script)
        guard case .count(.panicRefused) = refused.effects.last else {
            return #expect(Bool(false), "panic without a place")
        }
        script = Script.parked(100)
        script.happen(.panicRequested)
        let panic = try #require(Course(script).records.last)
        #expect(panic.event == .panic && panic.coordinate == Script.origin && panic.time.seconds == 100)
        #expect(Course(script).story == ["-start"])
    }

    @Test func tripSummaryFollowsTheStop() throws {
        var script = Script.parked(100)
        script.trip(metres: 2000, stand: 60)
        script.trip(metres: 1000)
        let standstill = script.elapsed
        script.stand(310)
        let course = Course(script, .car { $0.tripSummary = true })
        let stop = try #require(course.records.lastIndex { $0.event == .motionchange })
        let record = course.records[stop + 1]
        let trip = try #require(record.trip)
        #expect(record.event == .trip && record.reason == "stop-timeout")
        #expect(abs(trip.start.seconds - 100) <= 2 && abs(trip.end.seconds - standstill) <= 1)
        #expect(abs(trip.distance - 3000) < 30 && abs(trip.idle - 60) < 5)
        #expect(abs(try #require(trip.maxSpeed) - 12) < 0.2)
        #expect(course.records.filter { $0.trip != nil }.count == 1)
    }

    @Test func idleCountsTheWholeOfAHaltThatCrept() throws {
        var script = StopTests.crept()
        script.stand(330)
        let trip = try #require(Course(script, .car { $0.tripSummary = true }).records(.trip).first?.trip)
        // From the first standing to the last creep, whose evidence fades within some seconds.
        #expect(trip.idle > 6 * 75 - 30 && trip.idle <= 6 * 85 + 15, "\(trip.idle)")
    }

    @Test(arguments: [Int64(-86_400), -60, 60, 86_400])
    func aClockStepDoesNotStretchATrip(step: Int64) throws {
        var script = Script.driving(300, after: 100)
        script.clockStep = step * 1000
        script.drive(300)
        script.brake()
        let duration = script.elapsed - 100
        script.stand(310)
        let trip = try #require(Course(script, .car { $0.tripSummary = true }).records(.trip).first?.trip)
        #expect(abs(Double(trip.end.milliseconds(since: trip.start)) / 1000 - duration) <= 13)
    }

    /// Brakes for some seconds before a tunnel and comes out of it before or after its timer has run out.
    @Test(arguments: [(280, 7000), (400, 9000)] as [(Double, Double)])
    func theUnseenWayWithinAHaltIsAGapOnTheOdometer(seconds: Double, metres: Double) {
        var script = Script.driving(60, after: 100, at: 20)
        script.drive(8, to: 0.3)
        script.drive(6)
        script.void(seconds)
        script.north += metres
        script.speed = 20
        script.drive(120)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed"])
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 40)
        #expect(abs(course.tracker.snapshot.gapMetres - metres) < 40)
    }

    @Test func odometerCountsOnlyWhatWasDriven() {
        var script = Script.parked(300)
        script.trip(metres: 5000, stand: 120)
        script.trip(metres: 5000, stand: 1000)
        let course = Course(script)
        #expect(abs(course.tracker.snapshot.odometer - 10_000) < 60)
        let odometers = course.records.map(\.odometer)
        #expect(zip(odometers, odometers.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test func odometerDoesNotSeeJumpsButDoesCountWithoutSpeeds() {
        var script = Script.driving(100, after: 100)
        script.offset.east = 60
        script.drive(20)
        script.offset = .zero
        script.drive(100)
        let jumped = Course(script).tracker.snapshot.odometer
        #expect(abs(jumped - script.north) < 15)

        var silent = Script()
        silent.tellsSpeed = false
        silent.stand(100)
        silent.trip(metres: 5000)
        #expect(abs(Course(silent).tracker.snapshot.odometer - 5000) < 100)
    }

    @Test func odometerDoesNotCountTheNoiseOfHalts() {
        var script = Script.parked(100)
        for _ in 0..<20 {
            script.trip(metres: 100)
            script.standNoisily(30, speed: 0.45)
        }
        let course = Course(script)
        #expect(course.tracker.counters.halts == 19)
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 0.01 * script.north)
    }

    @Test func speedsThatAreNoneDoNotTurnTheOdometer() {
        var script = Script.driving(100, after: 100)
        let before = script.north
        for speed in [-5, .nan, .infinity, 4000, -.infinity] as [Double] {
            script.north += 12
            script.elapsed += 1
            script.fix(speed: speed, course: speed)
        }
        script.drive(20)
        let odometer = Course(script).tracker.snapshot.odometer
        #expect(odometer.isFinite && abs(odometer - script.north) < 15 && odometer > before)
    }

    @Test func replayedTwiceGivesTheSame() {
        var script = Script.parked(100)
        script.trip(metres: 3000, stand: 400)
        script.wait(500)
        script.trip(metres: 900)
        let (first, second) = (Course(script), Course(script))
        #expect(first.records == second.records && first.changes == second.changes)
        #expect(first.tracker.state == second.tracker.state)
    }
}
