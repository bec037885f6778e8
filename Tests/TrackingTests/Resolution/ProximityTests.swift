import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct ProximityTests {
    private static let far = Resolution(priority: .low, intervalMs: 9000, displacement: 100)
    private static let near = Resolution(priority: .high, intervalMs: 2000, displacement: 5)

    private static func load(
        _ id: String = "car", at metres: Double, spatial: Double? = 500, temporal: Duration? = nil
    ) -> Trackable {
        Trackable(
            id: id, destination: Script.place(north: metres),
            constraints: .default(
                .init(
                    resolutions: .init(farWithoutSubscriber: far, nearWithoutSubscriber: near),
                    proximity: Proximity(spatial: spatial, temporal: temporal))))
    }

    private static func settings(_ trackables: [Trackable], _ mode: ProximityMode = .perTrackable) -> Tracker.Settings {
        var settings = Tracker.Settings(trackables: trackables)
        settings.motion.heartbeat = .zero
        settings.resolution.proximity = mode
        return settings
    }

    /// Parked at the origin, then north at 12 m/s for a number of seconds.
    private static func northward(_ seconds: Double) -> Script {
        return Script.driving(seconds, after: 100)
    }

    @Test func comesNearAndLeavesAndIsAnnouncedOnceEach() throws {
        let course = Course(Self.northward(400), Self.settings([Self.load(at: 2000)]))
        #expect(course.intervals() == [9000, 2000, 9000])
        // Entered at 500 m, left 550 m behind the destination, in samples of the new resolution.
        let moving = course.records.filter { $0.trackable == "car" && $0.moving && $0.event == .none }
        let fine = zip(moving, moving.dropFirst()).filter { $1.time.milliseconds - $0.time.milliseconds < 3000 }
        #expect(Self.metres(try #require(fine.first).1) > 1500)
        #expect(Self.metres(try #require(fine.last).1) < 2600)
        #expect(course.tracker.snapshot.trackables.map(\.near) == [false])
    }

    private static func metres(_ location: Location) -> Double { Script.origin.distance(to: location.coordinate) }

    @Test func theHysteresisKeepsAPositionThatSwingsAroundTheLimit() {
        var script = Self.northward(120)
        let edge = script.north
        for step in 0..<40 {
            // 30 m in front of and behind the limit; the speed stays that of a drive.
            script.offset = PlanePoint(east: 0, north: step.isMultiple(of: 2) ? 30 : -19)
            script.wait(1)
            script.fix(speed: 12)
        }
        let course = Course(script, Self.settings([Self.load(at: edge + 500)]))
        #expect(course.intervals() == [9000, 2000])
    }

    @Test func timeToTheDestinationCountsByTheSmoothedSpeed() {
        // 60 s at 12 m/s is 720 m; a lower speed is farther away in time.
        let settings = Self.settings([Self.load(at: 3000, spatial: nil, temporal: .seconds(60))])
        #expect(Course(Self.northward(150), settings).intervals() == [9000])
        var script = Self.northward(195)
        #expect(Course(script, settings).intervals() == [9000, 2000])
        // Standing at a light the speed fades: first the time to go grows beyond the limit, then it is not known any more.
        script.stop(200)
        #expect(Course(script, settings).intervals() == [9000, 2000, 9000])
    }

    @Test func withoutSpeedTheTemporalPartHolds() {
        var script = Self.northward(195)
        script.tellsSpeed = false
        script.drive(120)
        let settings = Self.settings([Self.load(at: 3000, spatial: nil, temporal: .seconds(60))])
        #expect(Course(script, settings).intervals() == [9000, 2000])
    }

    @Test func standingAtTheDestinationStaysNear() {
        var script = Self.northward(150)
        let arrival = script.north
        script.stop(900)
        let course = Course(script, Self.settings([Self.load(at: arrival + 48, temporal: .seconds(60))]))
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(course.intervals() == [9000, 2000])
    }

    @Test func eachTrackableIsNearByItself() {
        let trackables = [Self.load("a", at: 1500), Self.load("b", at: 9000), Trackable(id: "c")]
        let course = Course(Self.northward(100), Self.settings(trackables))
        #expect(course.tracker.snapshot.trackables.map(\.near) == [true, false, false])
        #expect(course.intervals(of: "a") == [9000, 2000])
        #expect(course.intervals(of: "b") == [9000] && course.intervals(of: "c") == [3000])
        // The receiver serves the most demanding of them.
        #expect(course.engine.map(\.intervalMs) == [3000, 2000])
    }

    @Test func withoutDestinationOrProximityNothingIsNear() {
        var nowhere = Self.load(at: 0)
        nowhere.destination = nil
        var careless = Self.load("b", at: 1000)
        careless.constraints = .default(.init(resolutions: .init(nearWithoutSubscriber: Self.near)))
        let course = Course(Self.northward(100), Self.settings([nowhere, careless]))
        #expect(course.tracker.snapshot.trackables.map(\.near) == [false, false])
    }

    @Test func aNewDestinationIsJudgedAtOnceAlsoWhileParked() {
        var script = Script.parked(100)
        script.happen(.settingsReloaded(Self.settings([Self.load(at: 300)])))
        script.happen(.settingsReloaded(Self.settings([Self.load(at: 300)])))
        script.happen(.settingsReloaded(Self.settings([Self.load(at: 520)])))
        var course = Course(script, Self.settings([Self.load(at: 5000)]))
        // 520 m is within the hysteresis of the old destination, but not near the new one.
        #expect(course.intervals() == [9000, 2000, 9000])
        course.run(script)
        #expect(course.tracker.snapshot.trackables[0].near == false)
    }

    @Test func parkedAtTheDestinationItIsNearFromTheFirstPlaceOn() {
        #expect(Course(Script.parked(100), Self.settings([Self.load(at: 100)])).intervals() == [9000, 2000])
    }

    @Test func nearSurvivesARestartWithinTheHysteresis() {
        var script = Self.northward(125)
        script.stop(10)
        let destination = script.north + 480
        let settings = Self.settings([Self.load(at: destination)])
        let before = Course(script, settings)
        #expect(before.tracker.snapshot.trackables[0].near)
        // 40 m back, where nothing would be near that was not.
        var later = Script()
        later.north = script.north - 40
        later.clockStep = Int64(script.elapsed * 1000) + 30_000
        later.stand(20)
        #expect(Course(later, settings, restored: before.tracker.state).intervals() == [2000])
        #expect(Course(later, settings).intervals() == [9000])
        // The flag of another destination is not taken over.
        let elsewhere = Self.settings([Self.load(at: destination + 1)])
        #expect(Course(later, elsewhere, restored: before.tracker.state).intervals() == [9000])
    }

    // The reference's way.

    @Test func stickyIsOneFlagThatNeverLeaves() {
        let trackables = [Self.load("a", at: 1500), Self.load("b", at: 90_000)]
        let course = Course(Self.northward(400), Self.settings(trackables, .sticky))
        #expect(course.intervals(of: "a") == [9000, 2000] && course.intervals(of: "b") == [9000, 2000])
    }

    @Test func stickyLooksAtTheActiveTrackableAlone() {
        let trackables = [Self.load("a", at: 90_000), Self.load("b", at: 1500)]
        let course = Course(Self.northward(400), Self.settings(trackables, .sticky))
        #expect(course.tracker.snapshot.trackables.map(\.near) == [false, false])
    }

    @Test func stickyIsClearedByRemovingTheActiveTrackableOnly() {
        let (a, b) = (Self.load("a", at: 1500), Self.load("b", at: 90_000))
        var script = Self.northward(200)
        var course = Course(script, Self.settings([a, b], .sticky))
        #expect(course.tracker.snapshot.trackables.map(\.near) == [true, true])
        func reload(_ trackables: [Trackable]) {
            script = Script()
            script.wait(1000)
            script.happen(.settingsReloaded(Self.settings(trackables, .sticky)))
            course.run(script)
        }
        reload([b, a])
        #expect(course.tracker.snapshot.trackables.map(\.near) == [true, true])
        reload([a])
        #expect(course.tracker.snapshot.trackables.map(\.near) == [true])
        reload([b])
        #expect(course.tracker.snapshot.trackables.map(\.near) == [false])
    }

    @Test func stickySurvivesARestart() {
        let settings = Self.settings([Self.load(at: 1500)], .sticky)
        let before = Course(Self.northward(400), settings)
        #expect(Course(Self.northward(1), settings, restored: before.tracker.state).intervals() == [2000])
    }

    @Test func changingTheModeForgetsWhoIsNear() {
        var script = Self.northward(400)
        script.happen(.settingsReloaded(Self.settings([Self.load(at: 1500)])))
        #expect(Course(script, Self.settings([Self.load(at: 1500)], .sticky)).intervals() == [9000, 2000, 9000])
    }

    @Test func stickyLeavesAnOldThresholdInForceAsTheReferenceDoes() {
        var policy = DefaultResolutionPolicy(proximity: .sticky)
        #expect(
            policy.activeTrackableChanged(Self.load("a", at: 0))
                == [.watchProximity(trackable: "a", Proximity(spatial: 500))])
        #expect(policy.activeTrackableChanged(Trackable(id: "b")) == [])
        #expect(policy.activeTrackableChanged(nil) == [.watchProximity(trackable: "b", nil)])
        #expect(policy.activeTrackableChanged(nil) == [])
    }
}
