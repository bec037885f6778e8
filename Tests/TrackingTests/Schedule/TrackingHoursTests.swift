import Testing
import WaypostCore
import WaypostTracking

/// What the tracker does outside the hours in which it tracks.
@Suite struct TrackingHoursTests {
    private static let closed = TrackerEvent.timeWindowChanged(.tracking, open: false)
    private static let open = TrackerEvent.timeWindowChanged(.tracking, open: true)

    @Test func aTripEndsWithItsHoursWhereItIs() throws {
        var script = Script.driving(60, after: 100)
        script.happen(Self.closed)
        let (end, place) = (script.elapsed, Script.place(north: script.north))
        script.drive(600)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-schedule"])
        let stop = try #require(course.records.last)
        #expect(stop.event == .motionchange && stop.reason == "schedule" && !stop.moving)
        #expect(stop.time.seconds == end && stop.coordinate == place && stop.speed == 0)
        #expect(course.changes.last?.since?.seconds == end)
        #expect(!course.tracker.snapshot.inHours && course.records.allSatisfy { $0.at.seconds <= end })
        // Who stands elsewhere when they begin again was moved, and is on no trip.
        script.stop(3600)
        script.happen(Self.open)
        script.stand(100)
        let again = Course(script)
        #expect(again.story == course.story && again.records.last?.reason == "moved")
        #expect(again.tracker.snapshot.reportedCoordinate == Script.place(north: script.north))
    }

    @Test func aHaltThatTheEndOfTheHoursCutsOffIsDatedToItsBeginning() throws {
        var script = StopTests.arrived()
        script.stand(60)
        let halt = try #require(Course(script).tracker.snapshot.since)
        script.happen(Self.closed)
        let course = Course(script)
        #expect(course.story.last == "-schedule")
        #expect(course.changes.last?.since == halt)
    }

    @Test func outsideTheHoursNothingIsRecordedWhateverHappens() {
        var script = Script.parked(100)
        script.happen(.externalPowerChanged(true))
        script.happen(Self.closed)
        let end = script.elapsed
        script.stand(2000)
        script.happen(.paceRequested(.moving))
        script.happen(.externalPowerChanged(false))
        script.trip(metres: 3000)
        script.happen(.paceRequested(.stationary))
        script.void(120)
        script.wait(4000)
        script.stand(2000)
        let course = Course(script)
        #expect(course.records.allSatisfy { $0.at.seconds <= end })
        #expect(course.story == ["-start"])
        #expect(course.tracker.nextDeadline == nil)
    }

    @Test func aPanicIsRecordedAtAnyHourWhereTheAssetIs() throws {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.trip(metres: 3000)
        script.happen(.panicRequested)
        let panic = try #require(Course(script).records.last)
        #expect(panic.event == .panic && panic.coordinate == Script.place(north: script.north))
    }

    @Test func theFirstHeartbeatComesAHeartbeatAfterTheHoursBegin() {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.stand(7200)
        script.happen(Self.open)
        let start = script.elapsed
        script.stand(700)
        #expect(Course(script).records(.heartbeat).map(\.at.seconds) == [start + 600])
    }

    @Test func whatWasDrivenMeanwhileIsNotOnTheOdometer() throws {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.trip(metres: 5000, stand: 3600)
        let driven = script.north
        script.happen(Self.open)
        script.stand(60)
        let course = Course(script)
        #expect(course.story == ["-start"])
        #expect(course.tracker.snapshot.odometer < 5 && course.tracker.snapshot.gapMetres == 0)
        let moved = try #require(course.records.last)
        #expect(moved.event == .gap && moved.reason == "moved" && !moved.moving)
        #expect(moved.coordinate.distance(to: Script.place(north: driven)) < 1)
    }

    @Test func whoDrivesWhenTheHoursBeginHasLeft() {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.driveOff(300)
        script.happen(Self.open)
        let before = script.north
        script.drive(60)
        let course = Course(script)
        #expect(course.changes.last?.moving == true)
        #expect(course.tracker.snapshot.odometer < script.north - before + 1)
        #expect(course.tracker.snapshot.odometer > script.north - before - 60)
    }

    @Test func whoStayedIsStillParked() {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.stand(3600)
        script.happen(Self.open)
        script.stand(300)
        let course = Course(script)
        #expect(course.story == ["-start"])
        #expect(course.records.count == 1)
    }

    @Test func theFirstPlaceIsSoughtAgainWithinTheHours() throws {
        var script = Script.parked(10)
        script.happen(Self.closed)
        script.trip(metres: 3000, stand: 600)
        script.happen(Self.open)
        let start = script.elapsed
        script.stand(60)
        let course = Course(script)
        #expect(course.story == ["-start"])
        let place = try #require(course.records.first)
        #expect(place.at.seconds > start + 20)
        #expect(place.coordinate.distance(to: Script.place(north: script.north)) < 1)
    }

    @Test func aSilenceThatBeganOutsideTheHoursIsAGapFromTheirBeginningOn() throws {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.stand(600)
        script.wait(3000)
        script.happen(Self.open)
        let start = script.elapsed
        var course = Course(script)
        course.runDeadlines(through: script.now + .seconds(300))
        let gap = try #require(course.records(.gap).first)
        #expect(course.records(.gap).count == 1)
        #expect(gap.time.seconds == start && gap.at.seconds == start + 60)
    }

    /// The process starts again outside the hours; the agent says so before it hands over the first fix.
    private func restarted(_ script: Script, _ rest: (inout Script) -> Void) -> Course {
        var later = Script()
        later.north = script.north
        later.clockStep = Int64((script.elapsed + 3600) * 1000)
        later.happen(Self.closed)
        rest(&later)
        return Course(later, restored: Course(script).tracker.state)
    }

    @Test func aRestartOutsideTheHoursStaysParkedAndSilent() {
        let course = restarted(Script.parked(100)) { $0.stand(3600) }
        #expect(course.records.isEmpty && course.story.isEmpty)
        #expect(course.tracker.snapshot.motion == .stationary)
    }

    @Test func aTripThatTheProcessDidNotSeeEndIsEndedWhereItWasSeen() throws {
        let script = Script.driving(60, after: 100)
        let (time, place) = (script.elapsed, Script.place(north: script.north))
        let course = restarted(script) {
            $0.north += 4000
            $0.stand(600)
        }
        #expect(course.story == ["-schedule"])
        #expect(course.changes[0].since?.seconds == time && course.changes[0].coordinate == place)
        #expect(course.records.map(\.event) == [.motionchange])
    }

    private static func fenced(dwell: Duration? = nil) -> Tracker.Settings {
        var settings = Tracker.Settings.car
        settings.geofences.fences = [
            Geofence(id: "depot", shape: .circle(centre: Script.origin, radius: 100), dwell: dwell)
        ]
        return settings
    }

    @Test func fencesThatChangeOutsideTheHoursAreRecordedWhenTheyBegin() {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.stand(100)
        script.happen(
            .fencesChanged([Geofence(id: "yard", shape: .circle(centre: Script.origin, radius: 200))]))
        script.stand(100)
        script.happen(Self.open)
        let start = script.elapsed
        script.stand(100)
        let crossings = Course(script, Self.fenced()).records(.geofence)
        #expect(crossings.map(\.geofence?.id) == ["depot", "depot", "yard"])
        #expect(crossings.map(\.geofence?.action) == [.enter, .exit, .enter])
        #expect(crossings.dropFirst().allSatisfy { $0.time.seconds > start && $0.at.seconds > start })
    }

    @Test func aFenceThatIsGoneAfterARestartOutsideTheHoursIsLeftWhenTheyBegin() {
        var later = Script()
        later.clockStep = 3_600_000
        later.happen(Self.closed)
        later.stand(100)
        later.happen(Self.open)
        later.stand(100)
        let course = Course(later, restored: Course(Script.parked(100), Self.fenced()).tracker.state)
        #expect(course.records(.geofence).map(\.at.seconds) == [101])
        #expect(course.records.allSatisfy { $0.at.seconds > 100 })
    }

    @Test func anUnwatchedStayIsNotLongUntilItIsSeenToGoOn() {
        var script = Script.parked(100)
        script.happen(Self.closed)
        script.stand(1000)
        var stays = script
        stays.happen(Self.open)
        let start = stays.elapsed
        stays.stand(300)
        let dwells = Course(stays, Self.fenced(dwell: .seconds(200))).records(.geofence).dropFirst()
        #expect(dwells.map(\.geofence?.action) == [.dwell])
        #expect(dwells.map(\.time.seconds) == [start + 200])

        script.trip(metres: 3000)
        script.happen(Self.open)
        script.stand(300)
        let left = Course(script, Self.fenced(dwell: .seconds(200))).records(.geofence)
        #expect(left.map(\.geofence?.action) == [.enter, .exit])
    }

    @Test func aReceiverThatWasReleasedIsWantedWhenTheHoursBegin() {
        var script = Script.driving(60, after: 100)
        script.happen(Self.closed)
        var course = Course(script, .releasing)
        #expect(course.tracker.snapshot.receiverSleep == .released)
        course.handle(Self.open, at: script.now + .seconds(3600))
        #expect(course.tracker.snapshot.receiverSleep == nil)
    }

    @Test func openingWithoutAnyFixWaitsForOne() {
        var script = Script()
        script.happen(Self.closed)
        script.wait(10)
        script.happen(Self.open)
        var state = Course(Script.parked(100)).tracker.state
        state.power.externalPower = true
        var course = Course(script, restored: state)
        course.runDeadlines(through: script.now + .seconds(86_400))
        #expect(course.records.isEmpty)
    }
}
