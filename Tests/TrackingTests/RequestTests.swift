import Testing
import WaypostCore
import WaypostTracking

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
        var script = Script()
        script.happen(Self.observed(.enter))
        script.stand(100)
        script.happen(Self.observed(.enter))
        let records = Course(script).records(.geofence)
        #expect(records.map(\.isPlaced) == [false, true])
        let crossing = GeofenceCrossing(id: "hall", name: nil, action: .enter, source: .beacon)
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
        script = Script.parked(100)
        for action in [GeofenceCrossing.Action.exit, .enter, .exit] { script.happen(Self.observed(action)) }
        course = Course(script, restored: state)
        let records = course.records(.geofence)
        #expect(records.map(\.geofence?.entryIsUnplaced) == [true, false, false])
        #expect(records.allSatisfy(\.isPlaced) && course.tracker.state.unplacedEntries.isEmpty)
    }

    /// What began at a place ends at one: before the first fix of the next run, and outside of the hours.
    @Test func whatWasEnteredAtAPlaceIsLeftAtOne() throws {
        var script = Script.parked(100)
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
        #expect(Course(Script.parked(400), .car { $0.motion.startMoving = true }).story == ["+pace", "-stop-timeout"])
    }

    /// What `pace` does in each state, each time twice.
    @Test func paceInEachState() {
        let settling = Script.parked(10)
        let stationary = Script.parked(100)
        var moving = stationary
        moving.driveOff(60)
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
            guard change != nil, let last = course.changes.last else { continue }
            // At once, and where it stands.
            #expect(last.at == script.now && (!last.moving || last.since?.seconds == script.elapsed))
            let place = Script.place(north: script.north)
            #expect(before == .moving || last.coordinate.distance(to: place) < 1, "\(pace) while \(before)")
        }
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
        var script = Script.driving(60, after: 100)
        script.happen(.paceRequested(.stationary))
        script.drive(60)
        let course = Course(script)
        #expect(course.changes.map(\.moving) == [false, true, false, true])
        #expect(course.changes[2].reason == .pace)
    }

    @Test func reloadKeepsTheMotionAndTheTracksThatStay() throws {
        var script = Script.driving(after: 100)
        var settings = Tracker.Settings(trackables: [Trackable(id: "bike"), Trackable(id: "car")])
        settings.motion.stopTimeout = .seconds(60)
        script.happen(.settingsReloaded(settings))
        script.drive(30)
        script.stop(70)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(Set(course.records.compactMap(\.trackable)) == ["car", "bike"])
        let stop = try #require(course.changes.last)
        #expect(abs(stop.at.seconds - (try #require(stop.since).seconds) - 60) <= 1)
    }
}
