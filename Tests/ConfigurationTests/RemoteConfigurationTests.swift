import JSON
import Remote
import TestSupport
import Testing

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
        TestSupport.problems(text + "[remote]\n" + lines).map { String($0.drop { $0 != " " }.dropFirst()) }
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

    @Test(arguments: [
        ("endpoint", #"found "endpoint", which can never be changed from afar"#),
        ("outbox.max_bytes", #"found "outbox.max_bytes", which can never be changed from afar"#),
        ("remote.allow", #"found "remote.allow", which can never be changed from afar"#),
        ("geofences.file", #"found "geofences.file", which can never be changed from afar"#),
        ("samplings", #"found "samplings", expected a key or table of this file, such as "sampling""#),
        ("tracking.heartbeatInterval", #"found "tracking.heartbeatInterval", expected the name of the key, heartbeat"#),
    ])
    func neverAllowsWhatLosesAVehicle(_ name: String, _ problem: String) {
        #expect(problems(url + "allow = [\"\(name)\"]") == ["remote.allow: \(problem)"])
    }

    @Test func needsASignatureOrTLS() {
        let plain = "settings_url = \"http://fleet.example/settings\"\nallow = [\"sampling\"]\n"
        #expect(
            problems(plain) == [
                "remote.settings_url: found plain http to fleet.example without secret or public_key, expected https"
            ])
        let key = "public_key = \"pIemyEBuQov4MzahXWFCgmQam0I4DpyC7Pisrr9vPAk=\"\n"
        #expect(problems(plain + key) == [])
        #expect(
            problems(url + "public_key = \"AAAA\"") == [
                "remote.public_key: found \"AAAA\", expected the base64 of the 32 bytes of an Ed25519 public key"
            ])
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
        #expect(
            config.endpoints[0].settings.subscriptions == [
                "waypost/0123456789abcdef/settings/desired", "waypost/0123456789abcdef/cmd",
            ])
        let own = try loaded(Self.broker + "[remote]\nallow = [\"sampling\"]\ntopic = \"fleet/7\"\n").config
        #expect(own.endpoints[0].settings.subscriptions == ["fleet/7/settings/desired", "fleet/7/cmd"])
        #expect(
            problems(url + "allow = [\"sampling\"]", after: Self.broker) == [
                "remote.settings_url: found a URL, but documents come from the broker of \"main\""
            ])
        #expect(
            problems("commands = [\"locate\"]", after: Self.broker.replacing("mqtts:", with: "mqtt:")) == [
                "remote.endpoint: found \"main\", which has no TLS, without secret or public_key, expected one of them"
            ])
        #expect(
            problems("commands = [\"locate\"]\ntopic = \"a/#\"", after: Self.broker)
                == ["remote.topic: found \"a/#\", expected a topic without wildcards such as \"fleet/van-7\""])
    }

    @Test func namesAnEndpointThatThereIs() {
        #expect(
            problems(url + "endpoint = \"other\"") == [
                "remote.endpoint: found \"other\", expected an endpoint that is no backup: \"main\""
            ])
        #expect(
            problems(url, after: smallest) == [
                "remote.endpoint: found none, expected an endpoint that is no backup"
            ])
        #expect(
            problems("poll = \"1h\"") == [
                "remote.allow: found neither allow nor commands, expected what a server may do"
            ])
    }

    @Test(arguments: [
        (#""sampling.min_gap" = ["5m", "1s"]"#, "remote.range.sampling.min_gap: found another value, expected ["),
        (#""sampling.min_gap" = ["1m", "1km"]"#, "remote.range.sampling.min_gap: found another value"),
        (#""sampling.rule" = ["a", "b"]"#, "remote.range.sampling.rule: found another value"),
        (#"sampling = 5"#, "remote.range.sampling: found 5, expected \"table.key\" = [least, most]"),
        (#""sampling.gap" = [1, 2]"#, "remote.range.sampling.gap: found a range of an unknown key"),
        (#""log.level" = [1, 2]"#, "remote.range.log.level: found another value"),
    ])
    func aRangeFitsItsKey(_ line: String, _ problem: String) {
        let found = problems(url + "allow = [\"sampling\", \"log\"]\n[remote.range]\n" + line)
        #expect(found.count == 1 && found[0].hasPrefix(problem), "\(found)")
    }

    private func judge(_ settings: [(String, JSONValue)], _ text: String = text) throws -> RemoteOverlay {
        RemoteOverlay(
            settings.map { RemoteSetting($0, $1) }, version: 17, over: try loaded(text), environment: testEnvironment())
    }

    private func rejection(_ key: String, _ value: JSONValue) throws -> [String] {
        guard case .rejected(let problems) = try judge([(key, value)]) else { return [] }
        return problems.map { "\($0.path): \($0.reason)" }
    }

    @Test func isLaidOverTheFile() throws {
        let settings: [(String, JSONValue)] = [
            ("sampling.rule", .string("track-error")), ("tracking.heartbeat", .string("30m")),
            ("log.level", .string("debug")),
        ]
        guard case .accepted(let loaded, let values, let clamped) = try judge(settings) else {
            Issue.record("rejected")
            return
        }
        #expect(clamped == [])
        #expect(values.count == 3)
        #expect(loaded.config.log.level == .debug)
        #expect(loaded.config.tracking.sampling.rule == .trackError)
        #expect(loaded.effective.description.contains("heartbeat = \"30m\"  # remote v17\n"))
        #expect(loaded.texts.map(\.path) == ["w.toml"], "what is kept is the file alone")
    }

    /// Keys of several tables of one name are compared each with its own.
    @Test func anotherEndpointIsNoChange() throws {
        let text =
            Self.text.replacing("[[endpoint]]\n", with: "[[endpoint]]\nname = \"main\"\n")
            + "[[endpoint]]\nname = \"spare\"\nbase_url = \"https://spare.example\"\ncompress = \"none\"\n"
        guard case .accepted = try judge([("sampling.rule", .string("both"))], text) else {
            Issue.record("rejected")
            return
        }
    }

    @Test func isClamped() throws {
        guard
            case .accepted(let loaded, let values, let clamped) = try judge([
                ("sampling.min_gap", .string("10h")), ("tracking.heartbeat", .int(5)),
            ])
        else {
            Issue.record("rejected")
            return
        }
        #expect(values.map(\.value) == [.string("5m"), .string("10m")])
        #expect(clamped.map(\.given) == [.string("5m"), .string("10m")])
        #expect(loaded.config.tracking.sampling.minGap == .seconds(300))
    }

    @Test func noOtherNameOfAKeyEscapesItsRange() throws {
        let text = Self.text.replacing("\"tracking.heartbeat\", \"log\"", with: "\"tracking\"")
        guard case .rejected(let problems) = try judge([("tracking.heartbeatInterval", .int(60))], text) else {
            Issue.record("accepted")
            return
        }
        #expect(problems == [RemoteProblem("tracking.heartbeat", "would be \"1m\", out of its range")])
    }

    /// A state of motion has keys that override those of other tables.
    @Test func noStateOfMotionEscapesARange() throws {
        let text = Self.text.replacing("\"tracking.heartbeat\", \"log\"", with: "\"tracking\"")
        guard
            case .accepted(_, let values, let clamped) = try judge(
                [("tracking.stationary.heartbeat", .string("1s")), ("tracking.moving.min_gap", .string("1h"))], text)
        else {
            Issue.record("rejected")
            return
        }
        #expect(values.map(\.value) == [.string("10m"), .string("5m")])
        #expect(clamped.map(\.key) == ["tracking.stationary.heartbeat", "tracking.moving.min_gap"])
    }

    @Test func noPresetChangesWhatIsNotAllowed() throws {
        let text = Self.text.replacing("\"log\", \"resolution\"", with: "\"log\"")
        guard case .rejected(let problems) = try judge([("sampling.preset", .string("active"))], text) else {
            Issue.record("accepted")
            return
        }
        #expect(problems.contains { $0.path.hasPrefix("resolution.default.") })
        guard case .accepted = try judge([("sampling.preset", .string("active"))]) else {
            Issue.record("rejected where resolution is allowed")
            return
        }
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

    @Test func isRejectedWithThePathOfEachProblem() throws {
        for key in ["endpoint.base_url", "tracking.stop_timeout"] {
            #expect(try rejection(key, .string("http://evil.example")) == ["\(key): not allowed"])
        }
        #expect(
            try rejection("sampling.min_gap", .string("off"))
                == ["sampling.min_gap: cannot be compared with its range"])
        let unknown = try rejection("sampling.min_gab", .string("1s"))
        #expect(unknown.count == 1 && unknown[0].hasPrefix("sampling.min_gab: found an unknown key"))
        let wrong = try rejection("sampling.rule", .string("all"))
        #expect(wrong.count == 1 && wrong[0].hasPrefix("sampling.rule: found \"all\", expected"))
        // A table of an array cannot be replaced by one of another shape.
        #expect(try !rejection("resolution.rule.x", .int(1)).isEmpty)
        #expect(try rejection("sampling.rule.x", .int(1)) != [])
    }

    @Test func judgesTheWholeAndNotEachKey() throws {
        let both = try judge([("sampling.rule", .string("track-error")), ("log.level", .string("loud"))])
        guard case .rejected(let problems) = both else {
            Issue.record("accepted")
            return
        }
        #expect(problems.map(\.path) == ["log.level"])
    }

    @Test func aFileThatAllowsNothingRefusesAll() throws {
        guard case .rejected(let problems) = try judge([("sampling.rule", .string("either"))], smallest + upload) else {
            Issue.record("accepted")
            return
        }
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
        while tries < 400 || accepted < 10 {
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
            for change in ConfigurationDifference(from: base.effective, to: loaded.effective).changes {
                let path = "\(change.table.filter { !"[]".contains($0) }).\(change.key)"
                #expect(policy.allows(path), "seed \(seed): \(settings) changes \(path)")
            }
            #expect(loaded.config.endpoints == base.config.endpoints)
            #expect(loaded.config.remote == base.config.remote)
            #expect(loaded.config.outbox.settings.path == base.config.outbox.settings.path)
        }
    }
}
