import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct ResolutionBoardTests {
    private static let fine = Resolution(priority: .high, intervalMs: 1000, displacement: 2)
    private static let coarse = Resolution(priority: .minimum, intervalMs: 60_000, displacement: 100)

    private func settings(_ trackables: [Trackable]) -> Tracker.Settings {
        var settings = Tracker.Settings(trackables: trackables)
        settings.motion.heartbeat = .zero
        return settings
    }

    private func constrained(_ id: String, _ resolution: Resolution, battery: LowBattery? = nil) -> Trackable {
        Trackable(
            id: id,
            constraints: .default(
                .init(
                    resolutions: .init(farWithoutSubscriber: resolution, farWithSubscriber: resolution),
                    lowBattery: battery)))
    }

    private func change(_ member: String, _ action: SubscriberChange.Action, of trackable: String = "car")
        -> TrackerEvent
    {
        .subscriberChanged(SubscriberChange(trackable: trackable, member: member, action: action))
    }

    @Test func oneReceiverServesAllTrackables() {
        var script = Script()
        script.happen(change("a", .add(Self.fine), of: "y"))
        script.happen(change("a", .remove, of: "y"))
        var fewer = settings([constrained("x", Self.coarse)])
        script.happen(.settingsReloaded(fewer))
        fewer.resolution.default = Self.fine
        script.happen(.settingsReloaded(fewer))
        let course = Course(script, settings([constrained("x", Self.coarse), Trackable(id: "y")]))
        #expect(course.engine.map(\.intervalMs) == [3000, 1000, 3000, 60_000])
        #expect(course.intervals(of: "x") == [60_000] && course.intervals(of: "y") == [3000, 1000, 3000])
    }

    @Test func aRequestWithdrawnLeavesTheSubscriberPresent() {
        let set = DefaultResolutionConstraints.ResolutionSet(
            farWithoutSubscriber: Self.coarse, farWithSubscriber: .standard)
        var script = Script()
        script.happen(change("a", .update(Self.fine)))
        script.happen(change("a", .add(Self.fine)))
        script.happen(change("a", .update(nil)))
        script.happen(change("a", .remove))
        script.happen(change("a", .remove))
        let trackable = Trackable(id: "car", constraints: .default(.init(resolutions: set)))
        #expect(Course(script, settings([trackable])).intervals() == [60_000, 1000, 3000, 60_000])
    }

    @Test func noSubscriberGetsAShorterIntervalThanTheFloor() {
        var script = Script()
        script.happen(change("a", .add(Resolution(priority: .maximum, intervalMs: 0, displacement: 0))))
        script.happen(change("a", .update(Resolution(priority: .maximum, intervalMs: 201, displacement: 0))))
        var settings = settings([Trackable(id: "car")])
        #expect(Course(script, settings).intervals() == [3000, 200, 201])
        settings.resolution.subscriberIntervalFloor = .zero
        #expect(Course(script, settings).intervals() == [3000, 0, 201])
        // The floor is for strangers: what the owner configures is obeyed.
        settings.resolution.default.intervalMs = 0
        #expect(Course(Script(), settings).tracker.snapshot.trackables[0].resolution.intervalMs == 0)
    }

    @Test func subscribersBeyondTheLimitAreCountedAndRefused() {
        var script = Script()
        for number in 0..<250 { script.happen(change("\(number)", .add(nil))) }
        script.happen(change("249", .update(Self.fine)))
        script.happen(change("0", .add(Self.fine)))
        script.happen(change("1", .remove))
        script.happen(change("249", .add(nil)))
        let course = Course(script, settings([Trackable(id: "car")]))
        #expect(course.tracker.snapshot.trackables[0].subscribers == 200)
        #expect(course.tracker.counters.subscribersRefused == 50)
        let refused = course.effects.filter { if case .count(.subscriberRefused) = $0 { true } else { false } }
        #expect(refused.count == 50)
        #expect(course.intervals() == [3000, 1000])
    }

    @Test func whatDoesNotChangeIsNotAnnounced() {
        var script = Script()
        for _ in 0..<5 {
            script.happen(.refreshRequested)
            script.happen(.settingsReloaded(settings([Trackable(id: "car")])))
            script.happen(.engineSet(nil))
            script.happen(.batteryChanged(percent: 50, charging: nil))
            script.happen(change("a", .add(nil)))
        }
        let course = Course(script, settings([Trackable(id: "car")]))
        #expect(course.intervals() == [3000] && course.engine.count == 1)
    }

    @Test func theSnapshotShowsWhatTheReceiverFollows() {
        var script = Script()
        script.happen(.engineSet(Self.fine))
        var course = Course(script, settings([Trackable(id: "car")]))
        #expect(course.tracker.snapshot.isEngineConstant && course.tracker.snapshot.engine == Self.fine)
        script.happen(.engineSet(nil))
        course = Course(script, settings([Trackable(id: "car")]))
        #expect(!course.tracker.snapshot.isEngineConstant && course.tracker.snapshot.engine == .standard)
        // A reload goes back to what the file says.
        script.happen(.engineSet(Self.fine))
        script.happen(.settingsReloaded(settings([Trackable(id: "car")])))
        #expect(!Course(script, settings([Trackable(id: "car")])).tracker.snapshot.isEngineConstant)
    }

    @Test func aBoostIsFinerThanAnyConstantEngine() {
        var script = Script()
        script.happen(.engineSet(Self.coarse))
        script.happen(.boostChanged(Boost(resolution: Self.fine, duration: .seconds(60))))
        var course = Course(script, settings([Trackable(id: "car")]))
        course.runDeadlines(through: .zero + .seconds(60))
        #expect(course.engine == [.standard, Self.coarse, Self.fine, Self.coarse])
        #expect(course.intervals() == [3000, 1000, 3000] && course.tracker.nextDeadline == nil)
    }

    // Battery.

    @Test func aReadingOfTheBatteryExpires() {
        let trackable = constrained("car", Self.fine, battery: LowBattery(threshold: 20, multiplier: 3))
        var script = Script()
        script.happen(.batteryChanged(percent: 10, charging: nil))
        script.wait(599)
        script.happen(.batteryChanged(percent: 10, charging: nil))
        var course = Course(script, settings([trackable]))
        #expect(course.tracker.nextDeadline == EventTime.zero + .seconds(1199))
        course.runDeadlines(through: .zero + .seconds(1198))
        #expect(course.intervals() == [1000, 3000])
        course.runDeadlines(through: .zero + .seconds(1199))
        #expect(course.intervals() == [1000, 3000, 1000])
        #expect(course.tracker.nextDeadline == nil && !course.tracker.snapshot.trackables[0].batteryLow)
        // Records still carry the last reading.
        #expect(course.tracker.snapshot.power.batteryPercent == 10)
    }

    @Test func aReadingOfAnEarlierRunSaysNothing() {
        let trackable = constrained("car", Self.fine, battery: LowBattery(threshold: 20, multiplier: 3))
        var state = StoredState()
        state.power = PowerState(batteryPercent: 5)
        var script = Script()
        script.happen(.noFix(.void))
        #expect(Course(script, settings([trackable]), restored: state).intervals() == [1000])
    }

    @Test func aLowBatteryMatchesEachTrackableByItsOwnThreshold() {
        let trackables = [
            constrained("a", Self.fine, battery: LowBattery(threshold: 20, multiplier: 3)),
            constrained("b", Self.fine, battery: LowBattery(threshold: 50, multiplier: 2)),
            constrained("c", Self.fine), Trackable(id: "d"),
        ]
        var script = Script()
        for percent in [60, 40, 10, 21, 60] { script.happen(.batteryChanged(percent: percent, charging: nil)) }
        let course = Course(script, settings(trackables))
        #expect(course.intervals(of: "a") == [1000, 3000, 1000])
        #expect(course.intervals(of: "b") == [1000, 2000, 1000])
        #expect(course.intervals(of: "c") == [1000] && course.intervals(of: "d") == [3000])
    }

    @Test func aLowBatterySlowsWhatSubscribersAskAndADefaultThatWasPicked() {
        let trackable = Trackable(
            id: "car", constraints: .default(.init(lowBattery: LowBattery(threshold: 20, multiplier: 2))))
        var script = Script()
        script.happen(.batteryChanged(percent: 10, charging: nil))
        script.happen(change("a", .add(Self.fine)))
        #expect(Course(script, settings([trackable])).intervals() == [3000, 6000, 2000])
    }

    @Test func withoutConstraintsTheBatteryActsOnlyWhereAsked() {
        var script = Script()
        script.happen(.batteryChanged(percent: 10, charging: nil))
        script.happen(change("a", .add(Self.fine)))
        var settings = settings([Trackable(id: "car"), constrained("x", Self.fine)])
        #expect(Course(script, settings).intervals() == [3000, 1000])
        settings.resolution.applyWithoutConstraints = LowBattery(threshold: 20, multiplier: 4)
        #expect(Course(script, settings).intervals() == [3000, 12_000, 4000])
        #expect(Course(script, settings).intervals(of: "x") == [1000])
    }

    @Test func externalPowerSparesTheBatteryByDefault() {
        let trackable = constrained("car", Self.fine, battery: LowBattery(threshold: 20, multiplier: 3))
        var script = Script()
        script.happen(.batteryChanged(percent: 10, charging: nil))
        script.happen(.externalPowerChanged(true))
        script.wait(1)
        script.happen(.externalPowerChanged(false))
        script.wait(5)
        script.happen(.noFix(.void))
        var settings = settings([trackable])
        #expect(Course(script, settings).intervals() == [1000, 3000, 1000, 3000])
        settings.resolution.ignoreBatteryOnExternalPower = false
        #expect(Course(script, settings).intervals() == [1000, 3000])
    }

    @Test func aFullBatteryIsNeverLow() {
        var flag = LowBatteryFlag()
        for (percent, isLow) in [(100.0, false), (98.0, true), (99.0, true), (100.0, false)] {
            flag.observe(percent: percent, threshold: 99, hysteresis: 2)
            #expect(flag.isLow == isLow, "\(percent)")
        }
    }

    // The seam of the profiles.

    @Test func aNewDefaultIsDecidedAgain() {
        var board = ResolutionBoard(settings: ResolutionSettings(), trackables: [Trackable(id: "t")])
        var effects: [Effect] = []
        board.recompute(cap: nil, into: &effects)
        #expect(!board.isStale)
        board.defaultResolution = .standard
        #expect(!board.isStale)
        board.defaultResolution = Self.coarse
        board.recompute(cap: nil, into: &effects)
        #expect(board.entries[0].published == Self.coarse && board.engine == Self.coarse)
    }

    @Test func withoutTrackablesTheReceiverIsAskedForTheDefault() {
        var board = ResolutionBoard(settings: ResolutionSettings(), trackables: [])
        var effects: [Effect] = []
        board.recompute(cap: nil, into: &effects)
        #expect(board.engine == .standard && effects.count == 1)
    }
}
