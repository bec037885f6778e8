import ConfigurationTestSupport
import Remote
import TestSupport
import Testing
import WaypostCore

@testable import Configuration

@Suite("Settings from afar, in the file and over it") struct RemoteConfigurationTests {
    private static let text =
        smallest + upload + """
            [sampling]
            rule = "either"
            [remote]
            settings_url = "https://fleet.example/van-7/settings"
            allow = ["sampling", "tracking.heartbeat", "log", "resolution", "geofences"]
            [remote.range]
            "sampling.min_gap" = ["1s", "5m"]
            "tracking.heartbeat" = ["10m", "1d"]

            """

    private func problems(_ lines: String, after text: String = smallest + upload) -> [String] {
        ConfigurationTestSupport.problems(text + "[remote]\n" + lines).map { String($0.drop { $0 != " " }.dropFirst()) }
    }

    private let url = "settings_url = \"https://fleet.example/settings\"\n"

    @Test func isOffUnlessItIsAskedFor() throws {
        #expect(try loaded(smallest + upload).config.remote == nil)
        let printed = try loaded(smallest + upload).effective.description
        #expect(try loaded(printed).config.remote == nil)
    }

    @Test func readsEveryKey() throws {
        let remote = try #require(loaded(Self.text).config.remote)
        #expect(remote.endpoint == "main")
        #expect(remote.way == .http(settings: "https://fleet.example/van-7/settings", reported: nil))
        #expect(remote.poll == .seconds(21_600))
        #expect(remote.policy.device == "0123456789abcdef")
        #expect(remote.policy.allows("sampling.rule") && !remote.policy.allows("tracking.stop_timeout"))
        #expect(remote.ranges.map(\.key) == ["sampling.min_gap", "tracking.heartbeat"])
    }

    static let neverAllowed = rows(
        #"""
        endpoint → found "endpoint", which can never be changed from afar
        outbox.max_bytes → found "outbox.max_bytes", which can never be changed from afar
        remote.allow → found "remote.allow", which can never be changed from afar
        geofences.file → found "geofences.file", which can never be changed from afar
        samplings → found "samplings", expected a key or table of this file, such as "sampling"
        tracking.heartbeatInterval → found "tracking.heartbeatInterval", expected the name of the key, heartbeat
        """#)

    @Test(arguments: neverAllowed) func neverAllowsWhatLosesAVehicle(_ name: String, _ problem: String) {
        #expect(problems(url + "allow = [\"\(name)\"]") == ["remote.allow: \(problem)"])
    }

    @Test func needsASignatureOrTLS() {
        let plain = "settings_url = \"http://fleet.example/settings\"\nallow = [\"sampling\"]\n"
        let insecure =
            "remote.settings_url: found plain http to fleet.example without secret or public_key, expected https"
        #expect(problems(plain) == [insecure])
        let key = "public_key = \"pIemyEBuQov4MzahXWFCgmQam0I4DpyC7Pisrr9vPAk=\"\n"
        #expect(problems(plain + key) == [])
        let short = "remote.public_key: found \"AAAA\", expected the base64 of the 32 bytes of an Ed25519 public key"
        #expect(problems(url + "public_key = \"AAAA\"") == [short])
    }

    private static let broker =
        smallest + """
            [[endpoint]]
            base_url = "mqtts://broker.example"
            profile = "waypost-mqtt"

            """

    @Test func commandsAloneAreEnough() throws {
        let remote = try #require(
            loaded(smallest + upload + "[remote]\ncommands = [\"locate\", \"fence-refresh\"]\n").config.remote)
        #expect(remote.policy.commands == [.locate, .fenceRefresh])
        #expect(remote.way == .http(settings: nil, reported: nil))
        let unknown = problems("commands = [\"reboot\"]")
        #expect(unknown.first?.contains("expected an array of \"locate\", \"flush\"") == true)
        #expect(
            problems("commands = [\"locate\"]\nallow = [\"sampling\"]") == [
                "remote.settings_url: found nothing, expected the URL of the document"
            ])
    }

    @Test func aBrokerHasTopicsInsteadOfURLs() throws {
        let config = try loaded(Self.broker + "[remote]\nallow = [\"sampling\"]\n").config
        #expect(config.remote?.way == .mqtt(topic: "waypost/0123456789abcdef"))
        let usual: [String] = config.endpoints[0].settings.subscriptions
        #expect(usual == ["waypost/0123456789abcdef/settings/desired", "waypost/0123456789abcdef/cmd"])
        let own = try loaded(Self.broker + "[remote]\nallow = [\"sampling\"]\ntopic = \"fleet/7\"\n").config
        #expect(own.endpoints[0].settings.subscriptions == ["fleet/7/settings/desired", "fleet/7/cmd"])
        let commands = "commands = [\"locate\"]"
        let found: [String] =
            [
                problems(url + "allow = [\"sampling\"]", after: Self.broker),
                problems(commands, after: Self.broker.replacing("mqtts:", with: "mqtt:")),
                problems(commands + "\ntopic = \"a/#\"", after: Self.broker),
            ].map { $0.joined(separator: "; ") }
        #expect(
            found == [
                "remote.settings_url: found a URL, but documents come from the broker of \"main\"",
                "remote.endpoint: found \"main\", which has no TLS, without secret or public_key, expected one of them",
                "remote.topic: found \"a/#\", expected a topic without wildcards such as \"fleet/van-7\"",
            ])
    }

    @Test func namesAnEndpointThatThereIs() {
        let other = "remote.endpoint: found \"other\", expected an endpoint that is no backup: \"main\""
        #expect(problems(url + "endpoint = \"other\"") == [other])
        #expect(
            problems(url, after: smallest) == ["remote.endpoint: found none, expected an endpoint that is no backup"])
        let nothing = "remote.allow: found neither allow nor commands, expected what a server may do"
        #expect(problems("poll = \"1h\"") == [nothing])
    }

    static let wrongRanges = rows(
        #"""
        "sampling.min_gap" = ["5m", "1s"] → remote.range.sampling.min_gap: found another value, expected [
        "sampling.min_gap" = ["1m", "1km"] → remote.range.sampling.min_gap: found another value
        "sampling.rule" = ["a", "b"] → remote.range.sampling.rule: found another value
        sampling = 5 → remote.range.sampling: found 5, expected "table.key" = [least, most]
        "sampling.gap" = [1, 2] → remote.range.sampling.gap: found a range of an unknown key
        "log.level" = [1, 2] → remote.range.log.level: found another value
        """#)

    @Test(arguments: wrongRanges) func aRangeFitsItsKey(_ line: String, _ problem: String) {
        let found = problems(url + "allow = [\"sampling\", \"log\"]\n[remote.range]\n" + line)
        #expect(found.count == 1 && found[0].hasPrefix(problem), "\(found)")
    }

    private func judge(_ settings: [(String, JSONValue)], _ text: String = text) throws -> RemoteOverlay {
        RemoteOverlay(
            settings.map { RemoteSetting($0, $1) }, version: 17, over: try loaded(text), environment: testEnvironment())
    }

    private func accepted(
        _ settings: [(String, JSONValue)], _ text: String = text
    ) throws -> (loaded: LoadedConfiguration, values: [RemoteSetting], clamped: [ClampedSetting]) {
        switch try judge(settings, text) {
        case .accepted(let loaded, let values, let clamped): return (loaded, values, clamped)
        case .rejected(let problems): throw Unexpected(problems: problems)
        }
    }

    private func rejected(_ settings: [(String, JSONValue)], _ text: String = text) throws -> [RemoteProblem] {
        guard case .rejected(let problems) = try judge(settings, text) else { throw Unexpected() }
        return problems
    }

    private struct Unexpected: Error {
        var problems: [RemoteProblem] = []
    }

    @Test func isLaidOverTheFile() throws {
        let (loaded, values, clamped) = try accepted([
            ("sampling.rule", .string("track-error")), ("tracking.heartbeat", .string("30m")),
            ("log.level", .string("debug")),
        ])
        #expect(clamped == [] && values.count == 3)
        #expect(loaded.config.log.level == .debug && loaded.config.tracking.sampling.rule == .trackError)
        #expect(loaded.effective.description.contains("heartbeat = \"30m\"  # remote v17\n"))
        #expect(loaded.texts.map(\.path) == ["w.toml"], "what is kept is the file alone")
    }

    /// Keys of several tables of one name are compared each with its own.
    @Test func anotherEndpointIsNoChange() throws {
        let main = Self.text.replacing("[[endpoint]]\n", with: "[[endpoint]]\nname = \"main\"\n")
        let spare = "[[endpoint]]\nname = \"spare\"\nbase_url = \"https://spare.example\"\ncompress = \"none\"\n"
        _ = try accepted([("sampling.rule", .string("both"))], main + spare)
    }

    @Test func isClamped() throws {
        let (loaded, values, clamped) = try accepted([
            ("sampling.min_gap", .string("10h")), ("tracking.heartbeat", .int(5)),
        ])
        let given: [JSONValue] = [.string("5m"), .string("10m")]
        #expect(values.map(\.value) == given && clamped.map(\.given) == given)
        #expect(loaded.config.tracking.sampling.minGap == .seconds(300))
    }

    private static let allTracking = text.replacing("\"tracking.heartbeat\", \"log\"", with: "\"tracking\"")

    @Test func noOtherNameOfAKeyEscapesItsRange() throws {
        let problems = try rejected([("tracking.heartbeatInterval", .int(60))], Self.allTracking)
        #expect(problems == [RemoteProblem("tracking.heartbeat", "would be \"1m\", out of its range")])
    }

    /// A state of motion has keys that override those of other tables.
    @Test func noStateOfMotionEscapesARange() throws {
        let (_, values, clamped) = try accepted(
            [("tracking.stationary.heartbeat", .string("1s")), ("tracking.moving.min_gap", .string("1h"))],
            Self.allTracking)
        #expect(values.map(\.value) == [.string("10m"), .string("5m")])
        #expect(clamped.map(\.key) == ["tracking.stationary.heartbeat", "tracking.moving.min_gap"])
    }

    @Test func noPresetChangesWhatIsNotAllowed() throws {
        let preset: [(String, JSONValue)] = [("sampling.preset", .string("active"))]
        let text = Self.text.replacing("\"log\", \"resolution\"", with: "\"log\"")
        #expect(try rejected(preset, text).contains { $0.path.hasPrefix("resolution.default.") })
        // Where resolution is allowed.
        _ = try accepted(preset)
    }

    @Test(arguments: [
        "battery.path", "battery.batteries", "context.wpa_folder", "context.wifi", "tracking.moving.receiver",
        "tracking.stationary.receiver", "geofences.file", "geofences.source", "beacons.source", "outbox.path",
        "outbox.max_records",
    ])
    func noFileCanAllowIt(key: String) {
        #expect(RemoteKey.isNeverAllowed(key))
        #expect(
            !RemotePolicy(device: "d", allow: ["battery", "beacons", "context", "tracking", "geofences", "outbox"])
                .allows(key))
    }

    static let refusals: [(String, JSONValue, String)] = [
        ("endpoint.base_url", .string("http://evil.example"), "endpoint.base_url: not allowed"),
        ("tracking.stop_timeout", .string("http://evil.example"), "tracking.stop_timeout: not allowed"),
        ("sampling.min_gap", .string("off"), "sampling.min_gap: cannot be compared with its range"),
        ("sampling.min_gab", .string("1s"), "sampling.min_gab: found an unknown key"),
        ("sampling.rule", .string("all"), "sampling.rule: found \"all\", expected"),
        ("resolution.rule.x", .int(1), ""), ("sampling.rule.x", .int(1), ""),
    ]

    /// A table of an array cannot be replaced by one of another shape.
    @Test(arguments: refusals)
    func isRejectedWithThePathOfEachProblem(_ key: String, _ value: JSONValue, _ start: String) throws {
        let found = try rejected([(key, value)]).map { "\($0.path): \($0.reason)" }
        #expect(found.first?.hasPrefix(start) == true && (start.isEmpty || found.count == 1), "\(found)")
    }

    @Test func judgesTheWholeAndNotEachKey() throws {
        let problems = try rejected([("sampling.rule", .string("track-error")), ("log.level", .string("loud"))])
        #expect(problems.map(\.path) == ["log.level"])
    }

    @Test func aFileThatAllowsNothingRefusesAll() throws {
        let problems = try rejected([("sampling.rule", .string("either"))], smallest + upload)
        #expect(problems.map(\.reason) == ["the file allows no settings from afar"])
    }

    /// Any keys and values: what is accepted changes nothing that is not allowed.
    @Test(arguments: testSeeds([1, 2]))
    func nothingOutsideAllowChanges(_ seed: UInt64) throws {
        let base = try loaded(Self.text)
        let policy = try #require(base.config.remote).policy
        let reader = ConfigurationReader(files: [], environment: testEnvironment())
        _ = AgentConfig(reading: reader.root(TOMLTable()))
        let keys = reader.keys.map { "\($0.table.filter { !"[]".contains($0) }).\($0.name)" }
        let values: [JSONValue] = [
            .int(0), .int(5), .int(-1), .double(0.5), .bool(true), .bool(false), .string("5m"), .string("10m"),
            .string("50m"), .string("off"), .string("debug"), .string("/etc/passwd"), .array([.string("a")]),
        ]
        var random = SeededGenerator(seed: seed)
        let allowed = keys.filter(policy.allows)
        var (tries, accepted) = (0, 0)
        while tries < 100 || accepted < 5 {
            tries += 1
            // Most of what is made up is refused.
            try #require(tries < 20_000)
            let count = Int.random(in: 1...3, using: &random)
            let among = Bool.random(using: &random) ? allowed : keys
            let settings = (0..<count).map { _ in
                RemoteSetting(among.randomElement(using: &random)!, values.randomElement(using: &random)!)
            }
            let overlay = RemoteOverlay(settings, version: 1, over: base, environment: testEnvironment())
            guard case .accepted(let loaded, _, _) = overlay else { continue }
            accepted += 1
            let (now, before) = (loaded.config, base.config)
            let changes = ConfigurationDifference(from: base.effective, to: loaded.effective).changes
            let wrong = changes.map { "\($0.table.filter { !"[]".contains($0) }).\($0.key)" }.filter {
                !policy.allows($0)
            }
            #expect(wrong == [], "seed \(seed): \(settings)")
            let isSame = now.endpoints == before.endpoints && now.remote == before.remote
            #expect(isSame && now.outbox.settings.path == before.outbox.settings.path, "seed \(seed): \(settings)")
        }
    }
}
