import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct ResolutionRuleTests {
    private func rule(_ intervalMs: Int64?, _ change: (inout ResolutionRule) -> Void = { _ in }) -> ResolutionRule {
        var rule = ResolutionRule()
        rule.intervalMs = intervalMs
        change(&rule)
        return rule
    }

    private func settings(_ rules: [ResolutionRule], _ trackable: Trackable = Trackable(id: "car")) -> Tracker.Settings
    {
        var settings = Tracker.Settings(trackables: [trackable])
        settings.motion.heartbeat = .zero
        settings.resolution.rules = rules
        return settings
    }

    @Test func theFirstRuleThatHoldsDecidesAndNoneIsTheDefaultPolicy() {
        let rules = [rule(1000) { $0.near = true }, rule(2000) { $0.externalPower = true }, rule(3500)]
        func interval(near: Bool, power: Bool?) -> Int64 {
            let policy = RuleResolutionPolicy(rules: rules)
            return policy.networkResolution(
                for: TrackableResolutionRequest(
                    trackable: Trackable(id: "t"), near: near, circumstances: Circumstances(externalPower: power))
            ).intervalMs
        }
        #expect(interval(near: true, power: true) == 1000)
        #expect(interval(near: false, power: true) == 2000)
        #expect(interval(near: false, power: false) == 3500 && interval(near: false, power: nil) == 3500)
        let nothing = RuleResolutionPolicy(rules: [rule(1) { $0.near = true }])
        #expect(nothing.networkResolution(for: .init(trackable: Trackable(id: "t"))) == .standard)
    }

    @Test func aRuleReplacesConstraintsAndRequestsAndBatteryStillAct() {
        let picked = Resolution(priority: .low, intervalMs: 60_000, displacement: 100)
        let constraints = DefaultResolutionConstraints(
            resolutions: .init(farWithoutSubscriber: picked, farWithSubscriber: picked),
            lowBattery: LowBattery(threshold: 20, multiplier: 2))
        let trackable = Trackable(id: "t", constraints: .default(constraints))
        let policy = RuleResolutionPolicy(rules: [rule(10_000)])
        #expect(
            policy.networkResolution(for: .init(trackable: trackable))
                == Resolution(priority: .low, intervalMs: 10_000, displacement: 100))
        let asked = Resolution(priority: .high, intervalMs: 30_000, displacement: 5)
        #expect(
            policy.networkResolution(
                for: .init(trackable: trackable, hasSubscribers: true, remoteRequests: [asked], batteryLow: true))
                == Resolution(priority: .high, intervalMs: 20_000, displacement: 5))
    }

    @Test func everyConditionIsOfTheRequest() {
        let conditions: [(change: (inout ResolutionRule) -> Void, request: TrackableResolutionRequest)] = [
            ({ $0.motion = [.stopping] }, request { $0.motion = .stopping }),
            ({ $0.motion = [.moving, .stationary] }, request { $0.motion = .stationary }),
            ({ $0.motion = [.stationary] }, request { $0.motion = .settling }),
            ({ $0.externalPower = false }, request { $0.externalPower = false }),
            ({ $0.geofence = "depot" }, request { $0.insideFences = ["home", "depot"] }),
            ({ $0.activity = [.onFoot, .running] }, request { $0.activity = .running }),
            ({ $0.hours = "sat" }, request { $0.openHours = ["sat"] }),
            ({ $0.near = true }, TrackableResolutionRequest(trackable: Trackable(id: "t"), near: true)),
            (
                { $0.subscribers = true },
                TrackableResolutionRequest(trackable: Trackable(id: "t"), hasSubscribers: true)
            ),
        ]
        for (index, condition) in conditions.enumerated() {
            let policy = RuleResolutionPolicy(rules: [rule(7, condition.change)])
            #expect(policy.networkResolution(for: condition.request).intervalMs == 7, "condition \(index)")
            let other = request {
                $0.motion = .moving
                $0.externalPower = true
            }
            if index != 1 { #expect(policy.networkResolution(for: other).intervalMs == 3000, "condition \(index)") }
        }
    }

    private func request(_ change: (inout Circumstances) -> Void) -> TrackableResolutionRequest {
        var request = TrackableResolutionRequest(trackable: Trackable(id: "t"))
        change(&request.circumstances)
        return request
    }

    @Test func motionChangesTheResolutionAlsoAtAHaltThatIsNotAnnounced() {
        let rules = [rule(20_000) { $0.motion = [.stopping] }, rule(1000) { $0.motion = [.moving] }]
        var script = Script.driving(60, after: 100)
        script.stop(60)
        script.driveOff(30)
        script.stop(400)
        let course = Course(script, settings(rules))
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(course.intervals() == [3000, 1000, 20_000, 1000, 20_000, 3000])
    }

    @Test func activityChangesTheResolution() {
        let rules = [rule(1000) { $0.activity = [.inVehicle] }, rule(10_000) { $0.activity = [.onFoot] }]
        var script = Script.parked(100)
        script.drive(2, to: 1.4)
        script.drive(60)
        script.drive(1, to: 0)
        script.stand(20)
        script.driveOff(60)
        script.stop(400)
        let course = Course(script, settings(rules))
        // A standstill on foot is still. The first seconds after it may be more of the same walk.
        #expect(course.intervals() == [3000, 10_000, 3000, 10_000, 1000, 3000])
        #expect(Set(course.records.map(\.activity?.kind)).isSuperset(of: [.still, .onFoot, .inVehicle]))
        #expect(course.records.last?.activity == Activity(kind: .still, confidence: 100))
    }

    @Test func speedCrossesALimitWithHysteresis() {
        let rules = [rule(10_000) { $0.speedAbove = 20 }]
        var script = Script.driving(120, after: 100, at: 25)
        #expect(Course(script, settings(rules)).intervals() == [3000, 10_000])
        // Within a tenth of the limit nothing changes, however often it is crossed.
        for speed in [19.0, 21, 19, 21, 19, 21, 19] { script.drive(60, to: speed) }
        script.drive(60)
        #expect(Course(script, settings(rules)).intervals() == [3000, 10_000])
        script.drive(10, to: 15)
        script.drive(90)
        #expect(Course(script, settings(rules)).intervals() == [3000, 10_000, 3000])
    }

    @Test func aParkedAssetIsSlowAndAnUnknownSpeedHoldsNothing() {
        let rules = [rule(10_000) { $0.speedBelow = 3 }]
        var script = Script()
        script.tellsSpeed = false
        script.drive(100, to: 0)
        #expect(Course(script, settings(rules)).intervals() == [3000, 10_000])
        var policy = RuleResolutionPolicy(rules: rules)
        #expect(policy.speedChanged(nil) == [])
        #expect(policy.speedChanged(2) == [.recomputeAll] && policy.speedChanged(2.9) == [])
        #expect(policy.speedChanged(3.4) == [] && policy.speedChanged(3.5) == [.recomputeAll])
        #expect(policy.speedChanged(1) == [.recomputeAll] && policy.speedChanged(nil) == [.recomputeAll])
    }

    @Test func batteryLimitsHaveHysteresisAndEndAtEmptyAndFull() {
        func held(_ levels: [Double?], above: Double? = nil, below: Double? = nil) -> [Bool] {
            var condition = RangeCondition.battery(above: above, below: below, hysteresis: 2)
            return levels.map {
                _ = condition?.observe($0)
                return condition?.holds ?? false
            }
        }
        #expect(held([30, 29, 31, 32, 31], below: 30) == [false, true, true, false, false])
        #expect(held([80, 81, 79, 78, 80], above: 80) == [false, true, true, false, false])
        #expect(held([50, nil, 50], below: 60) == [true, false, true])
        #expect(held([99, 100], below: 100) == [true, false])
        #expect(held([1, 0], above: 0.5) == [true, false])
        #expect(RangeCondition.battery(above: nil, below: nil, hysteresis: 2) == nil)
        #expect(RangeCondition.speed(above: nil, below: nil) == nil)
        var standing = RangeCondition.speed(above: 0.3, below: nil)
        #expect(standing?.observe(1) == true && standing?.observe(0) == true)
    }

    @Test func batteryAndPowerAreTriggers() {
        let rules = [rule(60_000) { $0.batteryBelow = 30 }, rule(1000) { $0.externalPower = true }]
        var script = Script()
        for percent in [80, 29, 31, 32] as [Int?] { script.happen(.batteryChanged(percent: percent, charging: nil)) }
        script.happen(.externalPowerChanged(true))
        // With external power the level does not matter.
        script.happen(.batteryChanged(percent: 5, charging: true))
        #expect(Course(script, settings(rules)).intervals() == [3000, 60_000, 3000, 1000])
    }

    @Test func hoursOpenAndClose() {
        let rules = [rule(60_000) { $0.hours = "sat-sun" }, rule(1000) { $0.hours = "mon-fri 08:00-18:00" }]
        var script = Script()
        for (hours, open) in [
            ("mon-fri 08:00-18:00", true), ("mon-fri 08:00-18:00", true), ("never heard of", true), ("sat-sun", true),
            ("mon-fri 08:00-18:00", false), ("sat-sun", false),
        ] { script.happen(.timeWindowChanged(.hours(hours), open: open)) }
        let settings = settings(rules)
        #expect(Course(script, settings).intervals() == [3000, 1000, 60_000, 3000])
        #expect(settings.resolution.hours == ["sat-sun", "mon-fri 08:00-18:00"])
    }

    @Test func subscribersAreATriggerOfRules() {
        let rules = [rule(60_000) { $0.subscribers = false }]
        var script = Script()
        script.happen(.subscriberChanged(.init(trackable: "car", member: "a", action: .add(nil))))
        script.happen(.subscriberChanged(.init(trackable: "car", member: "a", action: .remove)))
        #expect(Course(script, settings(rules)).intervals() == [60_000, 3000, 60_000])
    }

    @Test func geofencesAreATrigger() {
        var board = ResolutionBoard(
            settings: settings([rule(7000) { $0.geofence = "depot" }]).resolution, trackables: [Trackable(id: "t")])
        var effects: [Effect] = []
        for ids in [[], ["home"], ["home", "depot"], ["depot"], []] as [Set<String>] {
            board.insideFencesChanged(ids)
            board.recompute(cap: nil, into: &effects)
        }
        let intervals = effects.compactMap {
            if case .announceResolution(_, let it) = $0 { it.intervalMs } else { nil }
        }
        #expect(intervals == [3000, 7000, 3000])
    }

    @Test func rulesThatAreReloadedActAtOnce() {
        var script = Script()
        script.happen(.batteryChanged(percent: 10, charging: nil))
        script.happen(.settingsReloaded(settings([rule(5000) { $0.batteryBelow = 30 }])))
        script.happen(.settingsReloaded(settings([])))
        #expect(Course(script, settings([])).intervals() == [3000, 5000, 3000])
    }
}
