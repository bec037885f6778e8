import Testing
import WaypostCore

@testable import WaypostTracking

/// The six example scenarios of the documentation of Ably Asset Tracking, with its values (ably/docs,
/// `src/pages/docs/asset-tracking/index.mdx`, before its removal).
@Suite struct ExampleScenarioTests {
    struct Scenario: Sendable {
        /// Of trackables A and B, which stand in all four members of the constraints; nil = no constraints.
        var constraints: [Resolution?]
        /// What subscribers of A ask for.
        var requests: [Resolution] = []
        var network: [Resolution]
        var engine: Resolution
        /// Of A, with the floor of the shipped defaults.
        var floored: Int64?
    }

    private static let standard = Resolution(priority: .balanced, intervalMs: 3000, displacement: 10)
    private static let a = Resolution(priority: .balanced, intervalMs: 1000, displacement: 1)
    private static let b = Resolution(priority: .high, intervalMs: 2000, displacement: 3)
    private static let finest = Resolution(priority: .maximum, intervalMs: 50, displacement: 2)
    private static let frequent = Resolution(priority: .low, intervalMs: 10, displacement: 5)

    private static func of(_ priority: AccuracyPriority, _ intervalMs: Int64, _ displacement: Double) -> Resolution {
        Resolution(priority: priority, intervalMs: intervalMs, displacement: displacement)
    }

    static let scenarios = [
        Scenario(constraints: [a], network: [a], engine: a),
        Scenario(
            constraints: [a], requests: [finest], network: [of(.maximum, 50, 1)], engine: of(.maximum, 50, 1),
            floored: 200),
        Scenario(
            constraints: [a], requests: [finest, frequent], network: [of(.maximum, 10, 1)],
            engine: of(.maximum, 10, 1), floored: 200),
        Scenario(constraints: [a, b], network: [a, b], engine: of(.high, 1000, 1)),
        Scenario(constraints: [nil], requests: [finest], network: [finest], engine: finest, floored: 200),
        Scenario(constraints: [nil], network: [standard], engine: standard),
    ]

    /// - Parameter floor: nil = as shipped.
    private func decided(_ scenario: Scenario, floor: Duration?) -> (network: [Resolution], engine: Resolution) {
        let trackables = zip(["A", "B"], scenario.constraints).map { id, resolution in
            Trackable(
                id: id,
                constraints: resolution.map {
                    .default(
                        DefaultResolutionConstraints(
                            resolutions: .init(
                                farWithoutSubscriber: $0, farWithSubscriber: $0, nearWithoutSubscriber: $0,
                                nearWithSubscriber: $0)))
                })
        }
        var settings = Tracker.Settings(trackables: trackables)
        if let floor { settings.resolution.subscriberIntervalFloor = floor }
        // While it is parked nothing is published more often than the heartbeat.
        settings.motion.startMoving = true
        var tracker = Tracker(settings: settings, restored: nil)
        let script = Script.parked(5)
        for (at, event) in script.events { _ = tracker.handle(event, at: at) }
        for (number, request) in scenario.requests.enumerated() {
            let change = SubscriberChange(trackable: "A", member: "\(number)", action: .add(request))
            _ = tracker.handle(.subscriberChanged(change), at: script.now)
        }
        let snapshot = tracker.snapshot
        return (snapshot.trackables.map(\.resolution), snapshot.engine)
    }

    @Test(arguments: scenarios) func shippedDefaultsGiveWhatIsDocumented(_ scenario: Scenario) {
        let found = decided(scenario, floor: nil)
        var (network, engine) = (scenario.network, scenario.engine)
        if let floored = scenario.floored { (network[0].intervalMs, engine.intervalMs) = (floored, floored) }
        #expect(found.network == network && found.engine == engine)
    }

    @Test(arguments: scenarios) func withoutTheFloorRequestsAreGranted(_ scenario: Scenario) {
        let found = decided(scenario, floor: .zero)
        #expect(found.network == scenario.network && found.engine == scenario.engine)
    }
}
