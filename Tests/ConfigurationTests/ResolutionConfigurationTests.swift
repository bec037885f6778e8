import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration

@Suite struct ResolutionConfigurationTests {
    private let depot = """

        [[geofence]]
        id = "depot"
        center = { latitude = 52.5, longitude = 13.4 }
        radius = 100

        """

    private func settings(_ text: String) throws -> ResolutionSettings {
        try loaded(smallest + upload + text).config.tracking.resolution
    }

    @Test func everyKeyArrives() throws {
        let settings = try settings(
            """
            [resolution]
            proximity = "sticky"
            subscriber_interval_floor = "1s"
            ignore_battery_on_external_power = false
            [resolution.apply_without_constraints]
            battery_threshold = 15
            low_battery_multiplier = 3
            """)
        #expect(settings.proximity == .sticky)
        #expect(settings.subscriberIntervalFloor == .seconds(1))
        #expect(!settings.ignoreBatteryOnExternalPower)
        #expect(settings.applyWithoutConstraints == LowBattery(threshold: 15, multiplier: 3))
        #expect(settings.rules.isEmpty && settings.policy is DefaultResolutionPolicy)
    }

    private let rules = """
        [[resolution.rule]]
        motion = ["stopping", "moving"]
        activity = ["on_foot", "in_vehicle"]
        speed_above = "36km/h"
        speed_below = 30
        battery_above = 10
        battery_below = 50.5
        external_power = false
        subscribers = true
        near = false
        geofence = "depot"
        hours = "mon-fri 08:00-18:00"
        priority = "high"
        interval = "10s"
        displacement = "1.5km"
        [[resolution.rule]]
        motion = "stationary"
        activity = "still"
        interval = "1h"
        """

    @Test func rulesArriveInOrder() throws {
        var first = ResolutionRule()
        first.motion = [.moving, .stopping]
        first.activity = [.onFoot, .inVehicle]
        first.speedAbove = 10
        first.speedBelow = 30
        first.batteryAbove = 10
        first.batteryBelow = 50.5
        first.externalPower = false
        first.subscribers = true
        first.near = false
        first.geofence = "depot"
        first.hours = "mon-fri 08:00-18:00"
        first.priority = .high
        first.intervalMs = 10_000
        first.displacement = 1500
        var second = ResolutionRule()
        second.motion = [.stationary]
        second.activity = [.still]
        second.intervalMs = 3_600_000
        let settings = try settings(rules + depot)
        #expect(settings.rules == [first, second])
        #expect(settings.hours == ["mon-fri 08:00-18:00"])
        #expect(settings.policy is RuleResolutionPolicy)
    }

    @Test func whatIsPrintedIsTheSameConfiguration() throws {
        let printed = try loaded(smallest + upload + rules + depot).effective.description
        #expect(printed.contains("[[resolution.rule]]\nmotion = [\"moving\", \"stopping\"]"))
        let again = try loaded(printed).config.tracking.resolution
        #expect(again == (try settings(rules + depot)))
    }

    static let wrongRules = rows(
        #"""
        interval = "1s" ⏎ speed_above = 20 ⏎ speed_below = 20 → speed_above: found a speed that is not below
        interval = "1s" ⏎ battery_above = 20 ⏎ battery_below = 5 → battery_above: found a level that is not below
        near = true → interval: found none of priority, interval and displacement
        interval = "1s" ⏎ motion = "parked" → motion: found "parked", expected "moving", "stopping"
        interval = "1s" ⏎ motion = ["moving", "stationry"] → (did you mean "stationary"?)
        interval = "1s" ⏎ motion = [] → motion: found an empty array
        interval = "1s" ⏎ battery_below = 120 → battery_below: found 120, expected a percentage from 0 to 100
        intervall = "1s" → (did you mean interval?)
        """#)

    @Test(arguments: wrongRules) func whatIsWrongWithARuleIsTold(_ rule: String, _ message: String) {
        let found = problems(smallest + upload + "[[resolution.rule]]\n" + rule)
        #expect(found.contains { $0.contains("resolution.rule.") && $0.contains(message) }, "\(found)")
    }

    @Test func aRuleAboutAGeofenceThatDoesNotExistIsAMistake() {
        let rule = "[[resolution.rule]]\ninterval = \"1s\"\ngeofence = \"depott\"\n"
        let found = problems(smallest + upload + rule + depot)
        #expect(
            found == [
                "w.toml:8:12: resolution.rule.geofence: found \"depott\", expected the id of a geofence of this "
                    + "configuration (did you mean \"depot\"?)"
            ])
        #expect(problems(smallest + upload + rule).count == 1)
        #expect(problems(smallest + upload + rule.replacing("depott", with: "depot") + depot).isEmpty)
        // A fence that is wrong itself is told alone.
        let broken = problems(smallest + upload + rule + depot.replacing("radius = 100", with: "radius = 1"))
        #expect(broken.count == 1 && broken[0].contains("geofence.radius"))
    }

    static let mistakes = rows(
        #"""
        proximity = "stickey" → resolution.proximity: found "stickey"
        subscriber_interval_floor = "-1s" → resolution.subscriber_interval_floor: found
        apply_without_constraints = { battery_threshold = 20 } → low_battery_multiplier: found nothing
        rule = { interval = "1s" } → expected tables, each written [[resolution.rule]]
        """#)

    @Test(arguments: mistakes) func whatIsWrongIsTold(_ key: String, _ message: String) {
        let found = problems(smallest + upload + "[resolution]\n" + key)
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test func anEngineCoarserThanTheDefaultIsDoubtful() throws {
        func warnings(_ engine: String) throws -> [String] {
            try loaded(smallest + upload + "[resolution]\nconstant_engine = \(engine)\n").warnings.map(\.description)
        }
        let coarse = try warnings("{ priority = \"high\", interval = \"1m\", displacement = 0 }")
        #expect(coarse.count == 1 && coarse[0].contains("resolution.constant_engine: found an engine coarser"))
        #expect(try warnings("{ priority = \"low\", interval = \"1s\", displacement = 0 }").count == 1)
        #expect(try warnings("{ priority = \"balanced\", interval = \"3s\", displacement = 10 }").isEmpty)
    }
}
