import Configuration
import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostTracking

/// Unless somebody says how finely, as few points as needed.
@Suite struct DefaultRuleTests {
    private static let resolution = "priority = \"balanced\"\ninterval = \"3s\"\ndisplacement = \"10m\"\n"

    private func tracking(_ text: String) throws -> Tracker.Settings {
        try loaded(smallest + text).config.tracking
    }

    @Test(arguments: [
        "", "[sampling]\nbound = \"3m\"\n", "[sampling]\nmax_delay = \"2m\"\nangle = \"20deg\"\n",
        "[sampling]\nelasticity = \"off\"\nmin_gap = 0\n", "[resolution]\nproximity = \"sticky\"\n",
        "[tracking.moving]\naccuracy_limit = 50\n", "[tracking.stationary]\ninterval = \"60s\"\n",
        "[[trackable]]\nid = \"a\"\n",
    ])
    func asFewPointsAsNeededWhereNothingAsks(text: String) throws {
        let tracking = try tracking(upload + text)
        #expect(tracking.ruleReason == .nothingAsks)
        #expect((tracking.moving ?? tracking.profile).sampling.rule == .trackError)
    }

    static let asking: [(String, String)] = [
        ("[resolution.default]\n" + resolution, "[resolution.default]"),
        ("[resolution.constant_engine]\n" + resolution, "[resolution.constant_engine]"),
        (
            "[resolution.apply_without_constraints]\nbattery_threshold = 20\nlow_battery_multiplier = 3\n",
            "[resolution.apply_without_constraints]"
        ),
        ("[[resolution.rule]]\nactivity = \"on_foot\"\ninterval = 15\n", "[[resolution.rule]]"),
        ("[resolution]\nlocationUpdateInterval = 3000\n", "[resolution] locationUpdateInterval"),
        ("[sampling]\npreset = \"balanced\"\n", "[sampling] preset"),
        ("[sampling]\nelasticity = 1\n", "[sampling] elasticity"),
        ("[sampling]\nmin_gap = \"5s\"\n", "[sampling] min_gap"),
        ("[tracking.moving]\ninterval = \"1s\"\n", "[tracking.moving] interval"),
        ("[tracking.moving]\nmin_gap = \"5s\"\n", "[tracking.moving] min_gap"),
        (
            "[[trackable]]\nid = \"a\"\nconstraints = { battery_threshold = 20, low_battery_multiplier = 3 }\n",
            "constraints of trackable a"
        ),
    ]

    /// The positions of such an endpoint come from memory: what is recorded is the same with it and without.
    @Test(arguments: [
        "delivery = \"latest\"", "delivery = \"latest\"\nfeed = \"engine\"",
        "profile = \"home-assistant\"\nvars = { user = \"a\", tid = \"b\" }",
    ])
    func anEndpointForTheNewestPositionChangesNoSampling(keys: String) throws {
        let latest = "[[endpoint]]\nname = \"now\"\nbase_url = \"https://b.example\"\n\(keys)\n"
        let named = upload.replacing("[[endpoint]]", with: "[[endpoint]]\nname = \"main\"")
        #expect(try tracking(named + latest).isSame(as: tracking(named)))
        #expect(try tracking(named).ruleReason == .nothingAsks)
    }

    @Test(arguments: asking)
    func whatAsksForAResolutionGetsIt(text: String, by setting: String) throws {
        let tracking = try tracking(text)
        #expect(tracking.ruleReason == .asked(by: setting))
        #expect((tracking.moving ?? tracking.profile).sampling.rule == .either)
        let shown = try loaded(smallest + text).effective.description
        #expect(shown.contains("# rule is not set  # \"either\", because a resolution is asked for by \(setting)\n"))
    }

    @Test func aRuleThatIsSetStaysWhateverAsks() throws {
        let both = try tracking("[sampling]\nrule = \"both\"\npreset = \"active\"\n")
        #expect(both.sampling.rule == .both && both.ruleReason == .chosen)
        let few = try tracking("[sampling]\nrule = \"track-error\"\n[resolution.default]\n" + Self.resolution)
        #expect(few.sampling.rule == .trackError && few.ruleReason == .chosen)
        let moving = try tracking("[tracking.moving]\nrule = \"interval\"\n")
        #expect(moving.moving?.sampling.rule == .interval && moving.ruleReason == .chosen)
        #expect(moving.sampling.rule == .trackError)
    }

    /// What is written counts, also with the value that it would have anyhow: so what is not written is a comment.
    @Test(arguments: [
        "", "[resolution.default]\n" + resolution, "[sampling]\npreset = \"passive\"\n",
        "[resolution]\ndistanceFilter = 30\n", "[sampling]\nrule = \"track-error\"\n",
        "[tracking.moving]\nbound = \"3m\"\n", "[tracking.stationary]\nrule = \"both\"\n",
    ])
    func whatIsPrintedGivesTheSame(text: String) throws {
        let first = try loaded(smallest + upload + text)
        let again = try loaded(first.effective.description)
        let waits = first.config.tracking.ruleReason == .nothingAsks
        #expect((again.config.tracking.ruleReason == .nothingAsks) == waits)
        #expect(again.config.tracking.sampling == first.config.tracking.sampling)
        #expect(again.config.tracking.resolution == first.config.tracking.resolution)
    }

    @Test func theRuleInForceIsNamed() throws {
        let shown = try loaded(smallest + upload).effective.description
        #expect(shown.contains("# rule is not set  # \"track-error\", because nothing asks for a resolution\n"))
        let moving = try loaded(smallest + upload + "[tracking.moving]\nrule = \"both\"\n").effective.description
        #expect(moving.contains("# rule is not set  # without effect, because [tracking.moving] rule is set\n"))
        #expect(shown.contains("# [resolution.default]\n# priority = \"balanced\"  # default\n"))
    }
}
