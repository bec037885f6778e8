import Positioning
import Testing
import Tracking

@Suite struct RequestTests {
    @Test func paceBeforeAnyFixIsKeptForTheFirst() throws {
        for (pace, story) in [(Pace.moving, ["+pace"]), (.stationary, ["-pace"]), (.auto, [])] {
            var script = Script()
            script.happen(.paceRequested(pace))
            #expect(Course(script).effects.allSatisfy { if case .record = $0 { false } else { true } })
            script.stand(3)
            let course = Course(script)
            #expect(course.story == story)
            #expect(course.records(.motionchange).count == story.count)
        }
    }

    @Test func whatIsObservedBeforeAnyFixIsRecordedWithoutAPlace() throws {
        let crossing = GeofenceCrossing(id: "hall", name: nil, action: .enter, source: .beacon)
        let seen = TrackerEvent.observed(Observation(event: .geofence, reason: "beacon", geofence: crossing))
        var script = Script()
        script.happen(seen)
        script.stand(100)
        script.happen(seen)
        let records = Course(script).records(.geofence)
        #expect(records.map(\.isPlaced) == [false, true])
        #expect(records.allSatisfy { $0.geofence == crossing && $0.reason == "beacon" && $0.trackable != nil })
    }

    private static func observed(_ action: GeofenceCrossing.Action) -> TrackerEvent {
        let crossing = GeofenceCrossing(id: "hall", name: nil, action: action, source: .beacon)
        return .observed(Observation(event: .geofence, reason: "beacon", geofence: crossing))
    }

    /// Also over a restart.
    @Test func anExitKnowsWhetherItsEnterHadAPlace() throws {
        var script = Script()
        script.happen(Self.observed(.enter))
        var course = Course(script)
        let state = try #require(StoredState(bytes: course.tracker.state.bytes))
        #expect(state.unplacedEntries == ["hall"])
        script = Script()
        script.stand(100)
        for action in [GeofenceCrossing.Action.exit, .enter, .exit] { script.happen(Self.observed(action)) }
        course = Course(script, restored: state)
        let records = course.records(.geofence)
        #expect(records.map(\.geofence?.entryIsUnplaced) == [true, false, false])
        #expect(records.allSatisfy(\.isPlaced) && course.tracker.state.unplacedEntries.isEmpty)
    }

    /// What began at a place ends at one: before the first fix of the next run, and outside of the hours.
    @Test func whatWasEnteredAtAPlaceIsLeftAtOne() throws {
        var script = Script()
        script.stand(100)
        script.happen(Self.observed(.enter))
        var course = Course(script)
        let entered = try #require(course.records(.geofence).first)
        #expect(entered.isPlaced)
        let state = try #require(StoredState(bytes: course.tracker.state.bytes))
        var next = Course(restored: state)
        next.handle(Self.observed(.exit), at: EventTime(nanoseconds: 1))
        let left = try #require(next.records(.geofence).first)
        #expect(left.isPlaced && left.coordinate == entered.coordinate && left.time == entered.time)
        #expect(left.geofence?.entryIsUnplaced == false)

        script.happen(.timeWindowChanged(.tracking, open: false))
        script.happen(Self.observed(.exit))
        script.happen(Self.observed(.enter))
        course = Course(script)
        #expect(course.records(.geofence).map(\.isPlaced) == [true, true, false])
        #expect(course.records(.geofence)[1].coordinate == entered.coordinate)
    }

    @Test func startMovingIsPaceAtEveryStart() {
        var settings = Tracker.Settings.car
        settings.motion.startMoving = true
        var script = Script()
        script.stand(400)
        #expect(Course(script, settings).story == ["+pace", "-stop-timeout"])
    }

    /// What `pace` does in each state, each time twice.
    @Test func paceInEachState() {
        var settling = Script()
        settling.stand(10)
        var stationary = Script()
        stationary.stand(100)
        var moving = stationary
        moving.pullAway()
        moving.drive(60)
        var stopping = StopTests.arrived()
        stopping.stand(100)
        let table: [(Script, TrackerSnapshot.Motion, Pace, TrackerSnapshot.Motion, change: String?)] = [
            (Script(), .waiting, .moving, .waiting, nil), (Script(), .waiting, .stationary, .waiting, nil),
            (Script(), .waiting, .auto, .waiting, nil), (settling, .settling, .moving, .moving, "+pace"),
            (settling, .settling, .stationary, .stationary, "-pace"), (settling, .settling, .auto, .settling, nil),
            (stationary, .stationary, .moving, .moving, "+pace"),
            (stationary, .stationary, .stationary, .stationary, nil),
            (stationary, .stationary, .auto, .stationary, nil), (moving, .moving, .moving, .moving, nil),
            (moving, .moving, .stationary, .stationary, "-pace"), (moving, .moving, .auto, .moving, nil),
            (stopping, .stopping, .moving, .moving, nil),
            (stopping, .stopping, .stationary, .stationary, "-pace"), (stopping, .stopping, .auto, .stopping, nil),
        ]
        for (script, before, pace, after, change) in table {
            var course = Course(script)
            #expect(course.tracker.snapshot.motion == before)
            let (story, records) = (course.story, course.records.count)
            for _ in 0..<2 { course.handle(.paceRequested(pace), at: script.now) }
            #expect(course.tracker.snapshot.motion == after, "\(pace) while \(before)")
            #expect(course.story == story + (change.map { [$0] } ?? []), "\(pace) while \(before)")
            #expect(course.records.count == records + (change == nil ? 0 : 1), "\(pace) while \(before)")
        }
    }

    @Test func paceIsIdempotentAndActsAtOnce() throws {
        var script = Script()
        script.stand(100)
        script.happen(.paceRequested(.stationary))
        script.happen(.paceRequested(.moving))
        script.happen(.paceRequested(.moving))
        script.stand(2)
        script.happen(.paceRequested(.stationary))
        script.happen(.paceRequested(.stationary))
        let course = Course(script)
        #expect(course.story == ["-start", "+pace", "-pace"])
        #expect(course.records(.motionchange).count == 3)
        #expect(course.changes[1].since?.seconds == 100 && course.changes[2].coordinate == Script.origin)
    }

    @Test func paceMovingWhileStoppingCancelsTheStop() {
        var script = StopTests.arrived()
        script.stand(250)
        script.happen(.paceRequested(.moving))
        script.stand(200)
        #expect(Course(script).story == ["-start", "+speed"])
        // Stop detection stays on.
        script.stand(150)
        #expect(Course(script).story == ["-start", "+speed", "-stop-timeout"])
    }

    @Test func aRollingVehicleDepartsAgainAfterPaceStationary() {
        var script = Script()
        script.stand(100)
        script.pullAway()
        script.drive(60)
        script.happen(.paceRequested(.stationary))
        script.drive(60)
        let course = Course(script)
        #expect(course.changes.map(\.moving) == [false, true, false, true])
        #expect(course.changes[2].reason == .pace)
    }

    @Test func outsideItsHoursNothingIsRecorded() {
        var script = Script()
        script.stand(100)
        script.pullAway()
        script.happen(.timeWindowChanged(.tracking, open: false))
        let closed = script.elapsed
        script.trip(metres: 5000)
        script.stand(3600)
        let before = Course(script)
        #expect(before.changes.map(\.moving) == [false, true, false])
        #expect(before.records.allSatisfy { $0.at.seconds <= closed })
        script.happen(.timeWindowChanged(.tracking, open: true))
        script.stand(100)
        #expect(Course(script).changes.last?.moving == true)
    }

    @Test func everyInputIsAcceptedInEveryState() {
        let events: [TrackerEvent] = [
            .fencesChanged([Geofence(id: "home", shape: .circle(centre: Script.origin, radius: 100))]),
            .movementSourceChanged(source: "gpio", moving: true), .noFix(.noPosition),
            .sourceStateChanged(.lost(reason: "unplugged")), .batteryChanged(percent: 300, charging: true),
            .settingsReloaded(.car), .deadlineReached, .shutdown, .boostChanged(nil), .engineSet(nil),
            .externalPowerChanged(true), .paceRequested(.auto),
        ]
        var script = Script()
        for length in [0.0, 10, 60, 30, 30, 300] {
            for event in events { script.happen(event) }
            if length == 30 { script.pullAway() } else { script.stand(length) }
        }
        let course = Course(script)
        #expect(course.changes.first?.moving == false && course.tracker.snapshot.power.batteryPercent == 100)
    }

    @Test func reloadKeepsTheMotionAndTheTracksThatStay() throws {
        var script = Script()
        script.stand(100)
        script.pullAway()
        var settings = Tracker.Settings(trackables: [Trackable(id: "bike"), Trackable(id: "car")])
        settings.motion.stopTimeout = .seconds(60)
        script.happen(.settingsReloaded(settings))
        script.drive(30)
        script.brake()
        script.stand(70)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(Set(course.records.compactMap(\.trackable)) == ["car", "bike"])
        let stop = try #require(course.changes.last)
        #expect(abs(stop.at.seconds - (try #require(stop.since).seconds) - 60) <= 1)
    }
}
