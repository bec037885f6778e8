import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct ResolutionTests {
    private static let coarse = Resolution(priority: .minimum, intervalMs: 60_000, displacement: 100)
    private static let fine = Resolution(priority: .high, intervalMs: 1000, displacement: 20)
    private static let near = Resolution(priority: .low, intervalMs: 2000, displacement: 2)
    private static let policy = DefaultResolutionPolicy()

    private func resolve(
        _ constraints: DefaultResolutionConstraints?, near: Bool = false, subscribers: Bool = false,
        requests: [Resolution] = [], batteryLow: Bool = false
    ) -> Resolution {
        Self.policy.networkResolution(
            for: TrackableResolutionRequest(
                trackable: Trackable(id: "t", constraints: constraints.map { .default($0) }), near: near,
                hasSubscribers: subscribers,
                remoteRequests: requests, batteryLow: batteryLow))
    }

    @Test func withoutConstraintsTheDefaultDoesNotCompete() {
        #expect(resolve(nil) == .standard)
        #expect(resolve(nil, requests: [Self.coarse]) == Self.coarse)
        #expect(
            resolve(nil, requests: [Self.coarse, Self.fine, Self.near])
                == Resolution(priority: .high, intervalMs: 1000, displacement: 2))
        #expect(resolve(nil, batteryLow: true) == .standard)
    }

    @Test func picksByNearnessAndSubscribers() {
        let set = DefaultResolutionConstraints.ResolutionSet(
            farWithoutSubscriber: Self.coarse, nearWithSubscriber: Self.near)
        let constraints = DefaultResolutionConstraints(resolutions: set)
        #expect(resolve(constraints) == Self.coarse)
        // Far falls back to near, near never to far, and the subscriber flag is not crossed.
        #expect(resolve(constraints, subscribers: true) == Self.near)
        #expect(resolve(constraints, near: true) == .standard)
        #expect(resolve(constraints, near: true, subscribers: true) == Self.near)
        #expect(
            resolve(constraints, near: true, requests: [Self.fine])
                == Resolution(priority: .high, intervalMs: 1000, displacement: 10))
    }

    @Test(
        arguments: [(100, 1.15, 115), (3, 1.5, 4), (1000, 1, 1000), (Int64.max, 3, Int64.max / 2)]
            as [(Int64, Double, Int64)])
    func aLowBatterySlowsTheIntervalOnly(interval: Int64, multiplier: Double, expected: Int64) {
        let resolution = Resolution(priority: .high, intervalMs: interval, displacement: 7)
        let constraints = DefaultResolutionConstraints(
            resolutions: .init(farWithoutSubscriber: resolution),
            lowBattery: .init(threshold: 20, multiplier: multiplier))
        let slowed = resolve(constraints, batteryLow: true)
        #expect(slowed.priority == .high && slowed.displacement == 7)
        #expect(expected > Int64.max / 4 ? slowed.intervalMs > Int64.max / 4 : slowed.intervalMs == expected)
    }

    private static var withBattery: Tracker.Settings {
        let constraints = DefaultResolutionConstraints(
            resolutions: .init(farWithoutSubscriber: fine), lowBattery: .init(threshold: 20, multiplier: 3))
        var settings = Tracker.Settings(trackables: [Trackable(id: "car", constraints: .default(constraints))])
        settings.motion.heartbeat = .zero
        return settings
    }

    @Test func theLowFlagHasHysteresisAndForgetsAnUnknownLevel() {
        var script = Script()
        for percent in [50, 20, 19, 21, 22, 19, nil, 19] as [Int?] {
            script.happen(.batteryChanged(percent: percent, charging: nil))
        }
        script.happen(.externalPowerChanged(true))
        #expect(Course(script, Self.withBattery).intervals() == [1000, 3000, 1000, 3000, 1000, 3000, 1000])
    }

    @Test func aConstantEngineReplacesOnlyWhatTheReceiverIsAsked() {
        var script = Script()
        script.happen(.sourceStateChanged(.receiving))
        script.happen(.engineSet(Self.fine))
        script.happen(.engineSet(Self.fine))
        script.happen(.engineSet(nil))
        let course = Course(script, .car { $0.resolution.constantEngine = Self.coarse })
        #expect(course.engine == [Self.coarse, Self.fine, .standard])
        #expect(course.intervals() == [600_000])
    }

    @Test func subscribersComeAskAndGo() {
        var script = Script()
        func change(_ member: String, _ action: SubscriberChange.Action, of trackable: String = "car") {
            script.happen(.subscriberChanged(SubscriberChange(trackable: trackable, member: member, action: action)))
        }
        change("a", .update(Self.near))
        change("a", .add(Self.near))
        change("b", .add(nil))
        change("a", .update(Self.fine), of: "bike")
        change("b", .update(Self.fine))
        change("b", .update(nil))
        change("a", .remove)
        let course = Course(script, .car { $0.motion.heartbeat = .zero })
        #expect(course.intervals() == [3000, 2000, 1000, 2000, 3000])
        #expect(course.tracker.snapshot.trackables[0].subscribers == 1)
    }

}
