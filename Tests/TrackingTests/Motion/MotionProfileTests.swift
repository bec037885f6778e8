import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct MotionProfileTests {
    private static let fine = Resolution(priority: .high, intervalMs: 1000, displacement: 1)
    private static let coarse = Resolution(priority: .low, intervalMs: 30_000, displacement: 500)

    private static func settings(
        moving: (inout MotionProfile) -> Void = { _ in }, stationary: (inout MotionProfile) -> Void = { _ in }
    ) -> Tracker.Settings {
        var settings = Tracker.Settings.car
        var profile = settings.profile
        moving(&profile)
        settings.moving = profile
        stationary(&profile)
        settings.stationary = profile
        return settings
    }

    /// Parked, a trip, parked again.
    private static var day: Script {
        var script = Script.parked(100)
        script.trip(metres: 2000, stand: 400)
        return script
    }

    @Test func withoutProfilesBothStatesAreAsTheSettingsSay() {
        for isMoving in [false, true] {
            var choice = ProfileChoice(.car)
            #expect(
                choice.choose(isMoving: isMoving, boost: nil, isWatched: false, isEngineSet: false)
                    == Tracker.Settings.car.profile)
        }
        #expect(Course(Self.day, Self.settings()).effects.count == Course(Self.day).effects.count)
    }

    @Test func aParkedProfileThatIsNotGivenIsTheMovingOne() {
        var settings = Tracker.Settings.car
        settings.moving = settings.profile
        settings.moving?.resolution = Self.fine
        var choice = ProfileChoice(settings)
        #expect(
            choice.choose(isMoving: false, boost: nil, isWatched: false, isEngineSet: false)?.resolution == Self.fine)
    }

    @Test func theDefaultResolutionFollowsTheStateBothWays() {
        let settings = Self.settings(moving: { $0.resolution = Self.fine }, stationary: { $0.resolution = Self.coarse })
        let course = Course(Self.day, settings)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(course.engine == [Self.coarse, Self.fine, Self.coarse])
        // Parked no more than a heartbeat is published, while the receiver is asked for all.
        #expect(course.intervals() == [600_000, 1000, 600_000])
    }

    @Test func whatIsKeptFollowsTheMovingProfile() {
        let plain = Course(Self.day).records(.none).count
        let sparse = Self.settings(moving: {
            $0.sampling.rule = .both
            $0.resolution = Resolution(priority: .low, intervalMs: 20_000, displacement: 10)
        })
        #expect(Course(Self.day, sparse).records(.none).count < plain / 4)
    }

    @Test func theHeartbeatIsTheParkedOne() {
        let settings = Self.settings(stationary: { $0.heartbeat = .seconds(60) })
        var script = Script.parked(400)
        #expect(Course(script, settings).records(.heartbeat).count == 6)
        #expect(Course(script).records(.heartbeat).isEmpty)
        let never = Self.settings(stationary: { $0.heartbeat = .zero })
        script.stand(3600)
        #expect(Course(script, never).records(.heartbeat).isEmpty)
    }

    @Test func theAccuracyLimitFollowsTheState() {
        let settings = Self.settings(moving: { $0.accuracyMax = 50 }, stationary: { $0.accuracyMax = 10 })
        func rejected(_ script: Script) -> Int { Course(script, settings).tracker.counters.rejected(.accuracy) }
        var script = Script.parked(100)
        script.wait(1)
        script.fix(accuracy: 20)
        #expect(rejected(script) == 1)
        script.pullAway()
        script.wait(1)
        script.fix(accuracy: 20)
        #expect(rejected(script) == 1)
        script.stop(400)
        script.wait(1)
        script.fix(accuracy: 20)
        #expect(rejected(script) == 2)
    }

    @Test func aReloadReplacesTheProfiles() {
        var script = Self.day
        script.happen(.settingsReloaded(Self.settings(stationary: { $0.resolution = Self.coarse })))
        #expect(Course(script).engine.last == Self.coarse)
        script.happen(.settingsReloaded(.car))
        #expect(Course(script).engine.last == .standard)
    }

    /// The profile yields to what subscribers ask for, that to the constant engine for the receiver, all to a boost.
    @Test func eachLayerOverridesTheOneBelow() {
        let constant = Resolution(priority: .maximum, intervalMs: 7000, displacement: 0)
        let asked = Resolution(priority: .low, intervalMs: 2000, displacement: 3)
        let settings = Self.settings(moving: { $0.resolution = Self.coarse })
        var script = Script.driving(after: 60)
        script.happen(
            .subscriberChanged(SubscriberChange(trackable: "car", member: "viewer", action: .add(asked))))
        script.happen(.engineSet(constant))
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        script.happen(.engineSet(nil))
        script.happen(.boostChanged(nil))
        script.happen(.subscriberChanged(SubscriberChange(trackable: "car", member: "viewer", action: .remove)))
        let course = Course(script, settings)
        #expect(course.engine == [Self.coarse, asked, constant, Self.fine, asked, Self.coarse])
        #expect(course.intervals() == [600_000, 30_000, 2000, 1000, 2000, 30_000])
    }

    @Test func aBoostWhileMovingKeepsAFixASecondAndThenNoMore() throws {
        var settings = Self.settings(moving: { $0.resolution = Self.coarse })
        settings.sampling.rule = .both
        settings.sampling.minGap = .seconds(20)
        settings.moving?.sampling = settings.sampling
        var script = Script.driving(60, after: 60)
        let start = script.elapsed
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(30))))
        script.drive(120)
        let course = Course(script, settings)
        let kept = course.records(.none).map(\.at.seconds)
        #expect(kept.filter { $0 > start && $0 <= start + 30 }.count >= 29)
        #expect(kept.filter { $0 > start + 30 }.count <= 4)
        #expect(course.records.first { $0.at.seconds > start }?.reason == "profile")
    }

    @Test func aBoostWhileParkedShowsTheHeldPlaceAtItsInterval() {
        var script = Script.parked(100)
        let boost = Boost(
            resolution: Resolution(priority: .high, intervalMs: 5000, displacement: 0), duration: .seconds(60))
        script.happen(.boostChanged(boost))
        script.offset.east = 8
        script.stand(120)
        let course = Course(script)
        let shown = course.records(.none)
        #expect((11...13).contains(shown.count) && shown.allSatisfy { $0.at.seconds <= 160 && !$0.moving })
        #expect(shown.allSatisfy { $0.coordinate == Script.origin && $0.reason == "interval" })
        #expect(course.intervals() == [600_000, 5000, 600_000])
        #expect(course.story == ["-start"])
    }

    @Test func aBoostEndsAtItsTimeAndEachNewOneReplacesIt() throws {
        var script = Script.parked(100)
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        script.wait(40)
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        var course = Course(script)
        #expect(course.tracker.snapshot.boost == Self.fine)
        #expect(course.tracker.snapshot.boostUntil?.seconds == 200)
        course.runDeadlines(through: EventTime(nanoseconds: 199_999_999_999))
        #expect(course.tracker.snapshot.boost == Self.fine)
        course.runDeadlines(through: EventTime(nanoseconds: 200_000_000_000))
        #expect(course.tracker.snapshot.boost == nil && course.tracker.snapshot.boostUntil == nil)
        #expect(course.intervals() == [600_000, 1000, 600_000])
    }

    @Test func anEventAtTheEndOfABoostFindsItOver() {
        var script = Script.parked(100)
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        script.wait(60)
        var course = Course(script)
        _ = course.tracker.handle(.noFix(.void), at: script.now)
        #expect(course.tracker.snapshot.boost == nil)
    }

    @Test(arguments: [Duration.zero, .seconds(-5)])
    func aBoostOfNoDurationEndsTheOneThatLasts(duration: Duration) {
        var script = Script.parked(100)
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: duration)))
        #expect(Course(script).tracker.snapshot.boost == nil)
    }

    @Test(arguments: [86_400, Int64.max])
    func noBoostLastsLongerThanAnHour(seconds: Int64) {
        var script = Script.parked(100)
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(seconds))))
        #expect(Course(script).tracker.snapshot.boostUntil?.seconds == 3700)
    }
}
