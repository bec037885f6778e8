import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration

@Suite struct MotionProfileConfigurationTests {
    private func tracking(_ text: String) throws -> Tracker.Settings {
        try loaded(smallest + upload + text).config.tracking
    }

    @Test func withoutTheTablesNothingDiffersByState() throws {
        let tracking = try tracking("[tracking]\nheartbeat = \"1m\"")
        #expect(tracking.moving == nil && tracking.stationary == nil)
    }

    @Test func movingOverridesSingleKeys() throws {
        let settings = try tracking(
            """
            [tracking]
            heartbeat = "1m"
            [sampling]
            min_gap = "2s"
            [resolution]
            default = { priority = "low", interval = "7s", displacement = 3 }
            [tracking.moving]
            rule = "both"
            interval = "1s"
            accuracy_limit = 30
            """)
        var expected = settings.profile
        expected.sampling.rule = .both
        expected.resolution.intervalMs = 1000
        expected.accuracyMax = 30
        #expect(settings.moving == expected)
        #expect(settings.sampling.rule == .either && expected.sampling.minGap == .seconds(2))
        // Parked is as moving where it is not written.
        #expect(settings.stationary == nil)
    }

    @Test func whatParkedLeavesOutIsAsMovingButForTheHeartbeat() throws {
        let settings = try tracking(
            """
            [tracking.stationary]
            displacement = "200m"
            [tracking.moving]
            priority = "high"
            displacement = 1
            heartbeat = "5s"
            accuracy_limit = 40
            """)
        let moving = try #require(settings.moving)
        let parked = try #require(settings.stationary)
        #expect(moving.resolution == Resolution(priority: .high, intervalMs: 3000, displacement: 1))
        #expect(parked.resolution == Resolution(priority: .high, intervalMs: 3000, displacement: 200))
        #expect(parked.accuracyMax == 40)
        #expect(parked.heartbeat == .seconds(600))
    }

    @Test func theReceiverSleepsByState() throws {
        let moving = try tracking("[tracking.moving]\nreceiver = \"sleep\"").receiver
        #expect(moving.sleepMoving && !moving.sleep)
        let parked = try tracking("[tracking.stationary]\nreceiver = \"sleep\"").receiver
        #expect(!parked.sleepMoving && parked.sleep)
        // The state's own table is the upper layer.
        let never = try tracking("[receiver]\nsleep = true\n[tracking.stationary]\nreceiver = \"on\"").receiver
        #expect(!never.sleep)
        let shown = try loaded(smallest + upload + "[receiver]\nsleep = true").effective.description
        #expect(shown.contains("receiver = \"sleep\"  # as [receiver] sleep"))
        let both = "[receiver]\nsettle = \"1m\"\n[tracking.moving]\nreceiver = \"sleep\""
        #expect(try loaded(smallest + upload + both).warnings.isEmpty)
    }

    @Test func aPresetIsTheLayerBelow() throws {
        let settings = try tracking("[tracking.moving]\ninterval = \"2s\"\n[sampling]\npreset = \"passive\"")
        #expect(settings.moving?.resolution == Resolution(priority: .balanced, intervalMs: 2000, displacement: 200))
    }

    @Test func printingNamesTheLayerOfEachValue() throws {
        let text = """
            [tracking]
            heartbeat = "1m"
            [tracking.moving]
            interval = "1s"
            [tracking.stationary]
            accuracy_limit = "20m"
            """
        let shown = try loaded(smallest + upload + text).effective.description
        let moving = shown.split(separator: "\n[tracking.moving]\n").last?.split(separator: "\n\n").first ?? ""
        #expect(moving.contains("interval = \"1s\"  # from w.toml:9\n"))
        #expect(moving.contains("# rule is not set  # as [sampling]\n"))
        #expect(moving.contains("displacement = \"10m\"  # as [resolution.default]\n"))
        #expect(moving.contains("accuracy_limit = \"100m\"  # as [tracking]\n"))
        let parked = shown.split(separator: "\n[tracking.stationary]\n").last?.split(separator: "\n\n").first ?? ""
        #expect(parked.contains("interval = \"1s\"  # as [tracking.moving]\n"))
        #expect(parked.contains("accuracy_limit = \"20m\"  # from w.toml:11\n"))
        #expect(parked.contains("heartbeat = \"1m\"  # as [tracking]"))
    }

    @Test func whatIsPrintedReadsAsTheSame() throws {
        let text = """
            [tracking.moving]
            interval = "1s"
            [tracking.stationary]
            accuracy_limit = "20m"
            heartbeat = "2m"
            [schedule]
            track = ["mon-fri 08:00-18:00", "sat"]
            timezone = "UTC"
            """
        let first = try loaded(smallest + upload + text)
        let second = try loaded(first.effective.description)
        #expect(second.config.tracking.moving == first.config.tracking.moving)
        #expect(second.config.tracking.stationary == first.config.tracking.stationary)
        #expect(second.config.timetable == first.config.timetable)
    }

    static let withoutEffect = rows(
        #"""
        [tracking.stationary] ⏎ min_gap = "5s"
        → w.toml:7:11: tracking.stationary.min_gap: has no effect: while parked heartbeats and events are kept, whatever the rule
        [tracking.moving] ⏎ heartbeat = "5s"
        → w.toml:7:13: tracking.moving.heartbeat: has no effect: it is of a parked asset: see [tracking.stationary]
        [sampling] ⏎ max_delay = "60s" ⏎ min_gap = "5s"
        → w.toml:7:13: sampling.max_delay: has no effect: the rule is "either", because a resolution is asked for by [sampling] min_gap
        [sampling] ⏎ bound = "9m" ⏎ rule = "both" → w.toml:7:9: sampling.bound: has no effect: the rule is "both"
        """#)

    @Test(arguments: withoutEffect) func warnsOfWhatHasNoEffect(text: String, warning: String) throws {
        #expect(try loaded(smallest + upload + text).warnings.map(\.description) == [warning])
    }

    static let mistakes = rows(
        #"""
        [tracking.moving] ⏎ preset = "active"
        → w.toml:7:1: tracking.moving.preset: found an unknown key, expected a key of [tracking.moving] (it belongs in [sampling])
        [tracking.stationary] ⏎ intervall = 5
        → w.toml:7:1: tracking.stationary.intervall: found an unknown key, expected a key of [tracking.stationary] (did you mean interval?)
        [tracking.moving] ⏎ accuracy_limit = "5s"
        → w.toml:7:18: tracking.moving.accuracy_limit: found "5s", expected a distance such as "50m" (units m, km; a bare number is metres)
        [tracking] ⏎ moving = 5 → w.toml:7:10: tracking.moving: found 5, expected a table, written [tracking.moving]
        """#)

    @Test(arguments: mistakes) func namesMistakes(text: String, problem: String) {
        #expect(problems(smallest + upload + text) == [problem])
    }
}
