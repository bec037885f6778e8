import Delivery
import Positioning
import TestSupport
import Testing
import Tracking

@testable import Agent
@testable import Configuration

@Suite struct ReloadPlanTests {
    private let base = """
        [device]
        id = "van"

        """ + smallest + upload

    private func plan(_ old: String, _ new: String) throws -> ReloadPlan {
        let before = try loaded(old)
        return ReloadPlan(from: before.config, before.effective, to: try loaded(new))
    }

    @Test func nothingNewIsNothingToDo() throws {
        let plan = try plan(base, "# a comment moves every line\n\n" + base)
        #expect(plan.live.isEmpty && plan.atRestart.isEmpty && plan.newCredentials.isEmpty)
    }

    @Test(arguments: [
        ("[tracking]\nstop_timeout = \"7m\"", "[tracking] stop_timeout"),
        ("[tracking.stationary]\nheartbeat = \"7m\"", "[tracking.stationary] heartbeat"),
        ("[sampling]\nrule = \"both\"", "[sampling] rule"),
        ("[resolution.default]\npriority = \"high\"\ninterval = 1\ndisplacement = 1", "[resolution.default] interval"),
        ("[receiver]\nsleep = true", "[receiver] sleep"),
        ("[battery]\nlow = 30", "[battery] low"),
        ("[battery]\nsource = \"none\"", "[battery] source"),
        ("[schedule]\ntrack = \"mon-fri 08:00-18:00\"", "[schedule] track"),
        ("[log]\nlevel = \"debug\"", "[log] level"),
        ("[metrics]\nlisten = \"127.0.0.1:9477\"", "[metrics] listen"),
        ("[outbox]\ncommit_window = \"1s\"", "[outbox] commit_window"),
        (
            "[[geofence]]\nid = \"depot\"\ncenter = { latitude = 48.1, longitude = 11.5 }\nradius = \"100m\"",
            "[[geofence]]"
        ),
        (
            "[[geofences.source]]\nname = \"venue\"\nprofile = \"geojson\"\nurl = \"https://f.example\"",
            "[[geofences.source]]"
        ),
        (
            "[beacons]\nenabled = true\n[[beacons.source]]\nname = \"venue\"\nprofile = \"accesso-beacons\"\nurl = \"https://f.example\"",
            "[[beacons.source]]"
        ),
    ]) func takesEffectAtOnce(_ more: String, _ name: String) throws {
        let plan = try plan(base, base + more + "\n")
        #expect(plan.live.contains(name), "\(plan.live)")
        #expect(plan.atRestart.isEmpty, "\(plan.atRestart)")
        let same = ReloadPlan(from: plan.config, plan.effective, to: try loaded(base + more + "\n"))
        #expect(same.live.isEmpty && same.atRestart.isEmpty)
    }

    @Test(arguments: [
        ("id = \"van\"", "id = \"bus\"", "[device] id"),
        ("kind = \"serial\"\npath = \"/dev/ttyACM0\"", "kind = \"tcp\"\nhost = \"gps\"\nport = 2000", "[source] kind"),
        ("/dev/ttyACM0", "/dev/ttyUSB0", "[source] path"),
        ("[[endpoint]]", "[outbox]\npath = \"/tmp/o.db\"\n[[endpoint]]", "[outbox] path"),
        ("[[endpoint]]", "[control]\nsocket = \"/tmp/c.sock\"\n[[endpoint]]", "[control] socket"),
        ("fleet.example", "other.example", "[[endpoint]] base_url"),
        ("[[endpoint]]", "[[endpoint]]\nprofile = \"traccar-json\"", "[[endpoint]] profile"),
        ("[[endpoint]]", "[[endpoint]]\nfeed = \"engine\"", "[[endpoint]] feed"),
        (
            "[[endpoint]]", "[[endpoint]]\nname = \"b\"\nbase_url = \"https://b.example\"\n[[endpoint]]\nname = \"a\"",
            "[[endpoint]]"
        ),
        ("fleet.example\"\n", "fleet.example\"\n[endpoint.headers]\nX-Fleet = \"7\"\n", "[endpoint.headers]"),
    ]) func waitsForTheNextStart(_ text: String, _ other: String, _ name: String) throws {
        let parts = base.split(separator: text, maxSplits: 1, omittingEmptySubsequences: false)
        try #require(parts.count == 2)
        let new = parts[0] + other + parts[1]
        let plan = try plan(base, String(new))
        #expect(plan.atRestart.contains { $0.hasPrefix(name) }, "\(plan.atRestart)")
        // It stays named until it is so, or until it is taken back.
        let again = ReloadPlan(from: plan.config, plan.effective, to: try loaded(String(new)))
        #expect(again.atRestart == plan.atRestart && again.live.isEmpty, "\(again.atRestart) \(again.live)")
        let back = ReloadPlan(from: plan.config, plan.effective, to: try loaded(base))
        #expect(back.atRestart.isEmpty && back.live.isEmpty, "\(back.atRestart) \(back.live)")
        #expect(back.config.endpoints == (try loaded(base)).config.endpoints)
    }

    @Test func anEndpointMaySendAtAnotherPaceAtOnce() throws {
        let new = base + "batch_size = 7\nbatch_window = \"5s\"\nmin_batch = 2\ntimeout = \"9s\"\nfresh_head = true\n"
        let plan = try plan(base, new)
        #expect(plan.atRestart.isEmpty)
        #expect(
            Set(plan.live.map { $0.split(separator: " ")[1] }) == [
                "timeout", "batch_size", "batch_window", "min_batch", "fresh_head",
            ])
        #expect(plan.config.endpoints == (try loaded(new)).config.endpoints)
        #expect(plan.newCredentials.isEmpty)
    }

    @Test func aSecretMayComeFromAnotherFile() throws {
        let folder = try TemporaryDirectory()
        try folder.write("a", "one")
        try folder.write("b", "two")
        func file(_ name: String) -> String {
            base + "[endpoint.auth]\nkind = \"bearer\"\ntoken = \"file:\(folder.path)/\(name)\"\n"
        }
        let plan = try plan(file("a"), file("b"))
        #expect(plan.newCredentials == ["main"] && plan.atRestart.isEmpty)
        #expect(plan.live == ["[endpoint.auth] token"])
        // Never to the server that it is not for.
        let elsewhere = file("b").replacing("fleet.example", with: "other.example")
        let moved = try self.plan(file("a"), elsewhere)
        #expect(moved.newCredentials.isEmpty && moved.live.isEmpty)
        #expect(moved.config.endpoints == (try loaded(file("a"))).config.endpoints)
        #expect(Set(moved.atRestart) == ["[[endpoint]] base_url", "[endpoint.auth] token"])
    }

    @Test func aCredentialOfTheUnitWaitsForTheNextStart() throws {
        let folder = try TemporaryDirectory()
        try folder.write("a", "one")
        try folder.write("b", "two")
        let environment = testEnvironment(["CREDENTIALS_DIRECTORY": folder.path])
        func unit(_ name: String) throws -> LoadedConfiguration {
            try loaded(base + "[endpoint.auth]\nkind = \"bearer\"\ntoken = \"credential:\(name)\"\n", environment)
        }
        let (old, new) = (try unit("a"), try unit("b"))
        let plan = ReloadPlan(from: old.config, old.effective, to: new)
        #expect(plan.atRestart == ["[endpoint.auth] token"] && plan.newCredentials.isEmpty)
        #expect(plan.config.endpoints == old.config.endpoints)
    }

    @Test func aChannelTakesItsCredentialsAtOnceUnlessTheUnitHasThem() throws {
        let folder = try TemporaryDirectory()
        for name in ["a", "b"] { try folder.write(name, name) }
        let environment = testEnvironment(["CREDENTIALS_DIRECTORY": folder.path])
        func channel(_ token: String, _ more: String = "") throws -> LoadedConfiguration {
            try loaded(
                base + "[[channel]]\n\(more)[channel.auth]\nkind = \"bearer\"\ntoken = \"\(token)\"\n", environment)
        }
        let (old, new) = (try channel("file:\(folder.path)/a"), try channel("file:\(folder.path)/b"))
        let plan = ReloadPlan(from: old.config, old.effective, to: new)
        #expect(plan.live == ["[channel.auth] token"] && plan.atRestart.isEmpty)
        #expect(plan.config.channels == new.config.channels && plan.newCredentials.isEmpty)

        let elsewhere = try channel("file:\(folder.path)/b", "url = \"wss://realtime.example\"\n")
        let moved = ReloadPlan(from: old.config, old.effective, to: elsewhere)
        #expect(moved.live == ["[channel.auth] token"] && moved.atRestart == ["[[channel]] url"])
        #expect(moved.config.channels == new.config.channels)

        let unit = try channel("credential:a")
        let waits = ReloadPlan(from: old.config, old.effective, to: unit)
        #expect(waits.atRestart == ["[channel.auth] token"] && waits.live.isEmpty)
        #expect(waits.config.channels == old.config.channels)
    }

    @Test func theTrackableOfADeviceKeepsItsName() throws {
        let plan = try plan(base, base.replacing("\"van\"", with: "\"bus\"") + "[tracking]\nheartbeat = 60\n")
        #expect(plan.config.tracking.trackables.map(\.id) == ["van"])
        #expect(plan.config.tracking.motion.heartbeat == .seconds(60))
        #expect(plan.live == ["[tracking] heartbeat"])
        #expect(plan.atRestart.contains("[device] id"))
    }

    /// What is kept follows the endpoints that run, and they wait for a restart.
    @Test func theRuleIsThatOfTheEndpointsThatRun() throws {
        let base = base.replacing("[[endpoint]]", with: "[[endpoint]]\nname = \"main\"")
        let latest = base + "[[endpoint]]\nname = \"now\"\nbase_url = \"https://b.example\"\ndelivery = \"latest\"\n"
        let asked = LocationSampler.RuleReason.asked(by: "delivery = \"latest\" of endpoint now")
        let removed = try plan(latest, base)
        #expect(removed.config.tracking.sampling.rule == .either && removed.config.tracking.ruleReason == asked)
        #expect(removed.live.isEmpty && removed.atRestart.contains { $0.hasPrefix("[[endpoint]]") })
        let added = try plan(base, latest)
        #expect(added.config.tracking.sampling.rule == .trackError)
        #expect(added.config.tracking.ruleReason == .nothingAsks && added.live.isEmpty)
        // What else asks does so at once, and gives way at once.
        let preset = "[sampling]\npreset = \"active\"\n"
        let more = try plan(base, latest + preset)
        #expect(more.config.tracking.ruleReason == .asked(by: "[sampling] preset"))
        let less = ReloadPlan(from: more.config, more.effective, to: try loaded(base))
        #expect(less.config.tracking.sampling.rule == .trackError)
        let kept = try plan(latest + preset, base)
        #expect(kept.config.tracking.sampling.rule == .either && kept.config.tracking.ruleReason == asked)
    }

    /// Whoever adds a setting of tracking says whether a reload sees it.
    @Test func everySettingOfTrackingIsCompared() {
        let labels = Mirror(reflecting: Tracker.Settings(trackables: [])).children.compactMap(\.label)
        #expect(
            Set(labels) == [
                "admission", "motion", "receiver", "sampling", "ruleReason", "resolution", "moving", "stationary",
                "policy",
                "geofences", "trackables", "keepEngineFixes", "tripSummary", "batteryAlarm",
            ])
    }
}
