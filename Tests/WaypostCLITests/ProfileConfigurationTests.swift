import ConfigurationTestSupport
import Profiles
import TestSupport
import Testing

@testable import Configuration
@testable import WaypostCLI

@Suite struct ProfileConfigurationTests {
    private func endpoint(_ text: String) -> String { "\(smallest)\(upload)\(text)" }

    private func settings(_ text: String) throws -> EndpointSettings {
        try loaded(endpoint(text)).config.endpoints[0].settings
    }

    private func warnings(_ text: String) throws -> [String] {
        try loaded(endpoint(text)).warnings.map(\.description)
    }

    @Test func withoutAWordItIsTheProfileWaypost() throws {
        let settings = try settings("")
        #expect(settings.profile.name == "waypost")
        #expect(settings.batchSize == 100 && settings.batchWindow == .seconds(60) && settings.gzip)
        #expect(settings.delivery == .all && settings.maxAge == nil && !settings.freshHead)
        #expect(settings.onCollision == .keep && settings.meteredInterfaces == ["wwan*"] && settings.metered == .send)
    }

    @Test func profileSuggestsDefaultsAndTheEndpointDecides() throws {
        let vendor = "profile = \"nextbillion\"\nvars = { asset_id = \"a-1\" }\nsecrets = { key = \"credential:k\" }\n"
        let relaxed = testEnvironment(requiresCredentials: false)
        let suggested = try loaded(endpoint(vendor), relaxed)
        let settings = suggested.config.endpoints[0].settings
        #expect(settings.batchSize == 30 && settings.batchWindow == .seconds(20) && !settings.gzip)
        #expect(settings.assetID == "a-1")
        #expect(suggested.effective.description.contains("batch_size = 30  # profile \"nextbillion\""))
        #expect(suggested.effective.description.contains("batch_window = \"20s\"  # profile \"nextbillion\""))
        let own = try loaded(endpoint(vendor + "batch_window = \"5s\"\ncompress = \"gzip\"\n"), relaxed)
        #expect(own.config.endpoints[0].settings.batchWindow == .seconds(5))
        #expect(own.config.endpoints[0].settings.gzip)
    }

    @Test func latestHasAnAgeOfItsOwn() throws {
        #expect(try settings("delivery = \"latest\"").maxAge == .seconds(600))
        #expect(try settings("delivery = \"latest\"\nmax_age = \"off\"").maxAge == nil)
        let home = try settings("profile = \"home-assistant\"\nvars = { user = \"ada\", tid = \"V7\" }")
        #expect(home.delivery == .latest && home.maxAge == .seconds(300))
    }

    @Test func sizeIsClippedToWhatTheProfileAllows() throws {
        #expect(try settings("batch_size = 500").batchSize == 100)
        #expect(
            try warnings("batch_size = 500") == [
                "w.toml:6:14: endpoint.batch_size: found more than the 100 locations that the profile waypost puts into a "
                    + "request: 100 is used"
            ])
        #expect(try settings("profile = \"traccar\"").batchSize == 1)
        #expect(try warnings("profile = \"traccar\"").isEmpty)
    }

    static let mistakes: [(String, String)] = [
        (
            "profile = \"trackar\"",
            "w.toml:6:11: endpoint.profile: found \"trackar\", expected a profile of waypost or [profile.NAME] (did you mean \"traccar\"?)"
        ),
        (
            "profile = \"nextbillion\"\nsecrets = { key = \"credential:k\" }",
            "w.toml:4:1: endpoint.vars.asset_id: found nothing, expected a text: the profile \"nextbillion\" needs it"
        ),
        (
            "profile = \"traccar\"\nverbose = true",
            "w.toml:7:11: endpoint.verbose: found true with the profile \"traccar\", expected it with \"waypost\" alone"
        ),
        (
            "backup_for = \"main\"",
            "w.toml:6:14: endpoint.backup_for: found its own name, expected the name of another endpoint"
        ),
        (
            "profile = \"cloudevents\"\ndevice = \"van 7\"",
            "w.toml:6:11: endpoint.profile: profile cloudevents: "
        ),
        (
            "metered_interfaces = [\"wwan*\", 3]",
            "w.toml:6:32: endpoint.metered_interfaces: found 3, expected the name of an interface, in which * matches anything"
        ),
    ]

    @Test(arguments: mistakes)
    func mistakeIsToldWhereItCanBeMended(text: String, problem: String) {
        let found = problems(endpoint(text), testEnvironment(requiresCredentials: false))
        #expect(found.count == 1 && found[0].hasPrefix(problem), "\(found)")
    }

    static let ownMistakes: [(String, String)] = [
        (
            "[profile.mine]\nrecord = { v = \"$speed_mp\" }",
            "w.toml:8:16: profile.mine.record.v: found "
        ),
        ("[profile.mine]\nrecrd = { v = \"$lat\" }\nrecord = { v = \"$lat\" }", "w.toml:8:1: profile.mine.recrd: "),
        ("[profile.mine]\nextends = \"waypots\"", "w.toml:8:11: profile.mine.extends: found \"waypots\", expected"),
        (
            "[profile.mine]\nextends = \"mine\"",
            "w.toml:8:11: profile.mine.extends: found a cycle (mine → mine), expected a chain that ends"
        ),
        (
            "[profile.mine]\nextends = \"p1\"\n"
                + (1...20).map { "[profile.p\($0)]\nextends = \"p\($0 + 1)\"\n" }.joined(),
            "w.toml:38:11: profile.p15.extends: found a chain of more than 16 profiles, expected a shorter one"
        ),
        ("[profile.mine]\nrecord = { t = 2024-01-01 }", "w.toml:8:"),
        (
            "[profile.mine]\nheaders = { Authorization = \"Bearer hunter2\" }\nrecord = { v = \"$lat\" }",
            "w.toml:8:29: profile.mine.headers.Authorization: found a literal, expected a reference: \"${secret.NAME}\""
        ),
        (
            "[profile.mine]\nbatch_window = \"5k\"\nrecord = { v = \"$lat\" }",
            "w.toml:8:16: profile.mine.batch_window: found \"5k\", expected"
        ),
    ]

    @Test(arguments: ownMistakes)
    func mistakeInAnOwnProfileIsToldWithItsPlace(text: String, problem: String) {
        let found = problems(endpoint("profile = \"mine\"\n\(text)"))
        #expect(found.count >= 1 && found[0].hasPrefix(problem), "\(found)")
        #expect(!found.joined().contains("hunter2"))
    }

    @Test func profileThatNobodyUsesIsJudgedAllTheSame() {
        let text = "[profile.mine]\nrecord = { v = \"$speed_mp\", x = \"$vars.anything\" }"
        let found = problems(endpoint(text))
        #expect(found.count == 1 && found[0].hasPrefix("w.toml:7:16: profile.mine.record.v: found "), "\(found)")
        #expect(
            problems(endpoint("[profile.traccar]\nmax_records = 1")) == [
                "w.toml:6:10: profile.traccar: found the name of a profile of waypost, expected another one "
                    + "(with extends = \"traccar\")"
            ])
    }

    @Test func spareNeedsAPrimaryThatIsNone() throws {
        func spare(_ name: String, of primary: String) -> String {
            "[[endpoint]]\nname = \"\(name)\"\nbase_url = \"https://\(name).example\"\nbackup_for = \"\(primary)\"\n"
        }
        let first = "[[endpoint]]\nname = \"first\"\nbase_url = \"https://first.example\"\n"
        let good = try loaded(smallest + first + spare("second", of: "first")).config
        #expect(good.endpoints.map(\.settings.backupFor) == [nil, "first"])
        #expect(
            problems(smallest + first + spare("second", of: "frist")) == [
                "w.toml:10:14: endpoint.backup_for: found \"frist\", expected the name of another endpoint "
                    + "(did you mean \"first\"?)"
            ])
        let chain = problems(smallest + first + spare("second", of: "first") + spare("third", of: "second"))
        #expect(chain.count == 1 && chain[0].contains("found \"second\", which is itself the backup of \"first\""))
    }

    static let collisions: [(String, EndpointSettings.OnCollision)] = [
        ("true", EndpointSettings.OnCollision.clear), ("false", .keep),
    ]

    @Test(arguments: collisions)
    func vendorsWordForCollisions(word: String, meaning: EndpointSettings.OnCollision) throws {
        let text = "[endpoint.data_tracking_config]\nshouldClearLocalDataWhenCollision = \(word)"
        #expect(try settings(text).onCollision == meaning)
    }

    @Test func varThatNobodyNamesIsToldOf() throws {
        #expect(
            try warnings("vars = { colour = \"red\" }") == [
                "w.toml:6:19: endpoint.vars.colour: has no effect: the profile \"waypost\" has no ${vars.colour}"
            ])
    }

    @Test func ownProfilesAndTheirKeysArePrintedAsTheyAre() throws {
        let text = """
            profile = "mine"
            vars = { depot = "north" }
            [profile.mine]
            extends = "geojson"
            max_records = 7
            [profile.mine.record.properties]
            depot = "$vars.depot"
            """
        let first = try loaded(endpoint(text))
        let printed = first.effective.description
        #expect(printed.contains("[profile.mine]\nextends = \"geojson\"  # from w.toml:"))
        let second = try loaded(printed)
        #expect(first.config.endpoints[0].settings == second.config.endpoints[0].settings)
        #expect(first.config.endpoints[0].settings.batchSize == 7)
    }

    /// What `profile show` prints is the profile.
    @Test(arguments: BuiltInProfiles.names)
    func shownProfileIsTheSameAgain(name: String) throws {
        let text = try ProfileReport(nil).show(name)
        let shown = ProfileNode(try TOMLTable.parse(Array(text.utf8), file: "shown"))
        let tree = try ProfileLibrary().resolve(name).get()
        #expect(shown.bare == tree.bare)
        let constants = ProfileConstants.placeholders(for: tree)
        #expect(try Profile.compile(name, tree: shown, constants: constants).get().name == name)
    }
}

extension ProfileNode {
    /// Without places; the order of the outermost table and of `on` means nothing.
    fileprivate var bare: [String] { sections().split(separator: "\n").map(String.init).sorted() }
}
