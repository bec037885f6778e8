import ConfigurationTestSupport
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration
@testable import Daemon

@Suite struct ReloadPlanTests {
    private let base = """
        [device]
        id = "van"

        """ + smallest + upload

    private func plan(_ old: String, _ new: String) throws -> ReloadPlan { plan(try loaded(old), try loaded(new)) }

    private func plan(_ old: LoadedConfiguration, _ new: LoadedConfiguration) -> ReloadPlan {
        ReloadPlan(from: old.config, old.effective, to: new)
    }

    /// Whoever reloads once more.
    private func plan(after plan: ReloadPlan, _ new: LoadedConfiguration) -> ReloadPlan {
        ReloadPlan(from: plan.config, plan.effective, to: new)
    }

    @Test func nothingNewIsNothingToDo() throws {
        let plan = try plan(base, "# a comment moves every line\n\n" + base)
        #expect(plan.live.isEmpty && plan.atRestart.isEmpty && plan.newCredentials.isEmpty)
    }

    private static let immediate: [(more: String, name: String)] = [
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
    ]

    @Test func takesEffectAtOnce() throws {
        let old = try loaded(base)
        for (more, name) in Self.immediate {
            let new = try loaded(base + more + "\n")
            let plan = plan(old, new)
            #expect(plan.live.contains(name) && plan.atRestart.isEmpty, "\(plan.live) \(plan.atRestart)")
            let same = self.plan(after: plan, new)
            #expect(same.live.isEmpty && same.atRestart.isEmpty, "\(name)")
        }
    }

    private static let late: [(text: String, other: String, name: String)] = [
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
    ]

    @Test func waitsForTheNextStart() throws {
        let old = try loaded(base)
        for (text, other, name) in Self.late {
            let parts = base.split(separator: text, maxSplits: 1, omittingEmptySubsequences: false)
            try #require(parts.count == 2)
            let new = try loaded("\(parts[0])\(other)\(parts[1])")
            let plan = plan(old, new)
            #expect(plan.atRestart.contains { $0.hasPrefix(name) }, "\(name): \(plan.atRestart)")
            // It stays named until it is so, or until it is taken back.
            let again = self.plan(after: plan, new)
            #expect(again.atRestart == plan.atRestart && again.live.isEmpty, "\(again.atRestart) \(again.live)")
            let back = self.plan(after: plan, old)
            #expect(back.atRestart.isEmpty && back.live.isEmpty, "\(back.atRestart) \(back.live)")
            #expect(back.config.endpoints == old.config.endpoints, "\(name)")
        }
    }

    @Test func anEndpointMaySendAtAnotherPaceAtOnce() throws {
        let pace = "batch_size = 7\nbatch_window = \"5s\"\nmin_batch = 2\ntimeout = \"9s\"\nfresh_head = true\n"
        let new = try loaded(base + pace)
        let plan = plan(try loaded(base), new)
        #expect(plan.atRestart.isEmpty && plan.newCredentials.isEmpty)
        let names: [Substring] = plan.live.map { $0.split(separator: " ")[1] }
        #expect(names.sorted() == ["batch_size", "batch_window", "fresh_head", "min_batch", "timeout"])
        #expect(plan.config.endpoints == new.config.endpoints)
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
        let old = try unit("a")
        let plan = plan(old, try unit("b"))
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
        let plan = plan(old, new)
        #expect(plan.live == ["[channel.auth] token"] && plan.atRestart.isEmpty)
        #expect(plan.config.channels == new.config.channels && plan.newCredentials.isEmpty)

        let moved = self.plan(old, try channel("file:\(folder.path)/b", "url = \"wss://realtime.example\"\n"))
        #expect(moved.live == ["[channel.auth] token"] && moved.atRestart == ["[[channel]] url"])
        #expect(moved.config.channels == new.config.channels)

        let waits = self.plan(old, try channel("credential:a"))
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

    /// The rule follows what asks for a resolution at once, in both directions.
    @Test func theRuleFollowsWhatAsks() throws {
        let preset = "[sampling]\npreset = \"active\"\n"
        let more = try plan(base, base + preset)
        #expect(more.config.tracking.ruleReason == .asked(by: "[sampling] preset"))
        #expect(self.plan(after: more, try loaded(base)).config.tracking.sampling.rule == .trackError)
    }

    /// Whoever adds a setting of tracking says whether a reload sees it.
    @Test func everySettingOfTrackingIsCompared() {
        let labels = Mirror(reflecting: Tracker.Settings(trackables: [])).children.compactMap(\.label)
        let compared: Set<String> = [
            "admission", "motion", "receiver", "sampling", "ruleReason", "resolution", "moving", "stationary", "policy",
            "geofences", "trackables", "keepEngineFixes", "tripSummary", "batteryAlarm",
        ]
        #expect(Set(labels) == compared)
    }
}
