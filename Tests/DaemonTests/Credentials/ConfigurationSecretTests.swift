import ConfigurationTestSupport
import Glibc
import Profiles
import TestSupport
import Testing

@testable import Configuration
@testable import Daemon

@Suite struct ConfigurationSecretTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func endpoint(_ text: String, url: String = "https://fleet.example") -> String {
        "\(smallest)[[endpoint]]\nbase_url = \"\(url)\"\n\(text)"
    }

    private func headers(_ text: String, _ environment: ConfigurationEnvironment) throws -> [String] {
        try Requests(of: loaded(endpoint(text), environment).config.endpoints[0], environment.variables).headers()
    }

    @Test func bearerTokenComesFromACredential() throws {
        try directory.write("fleet", "t-123\n", mode: 0o440)
        let environment = testEnvironment(["CREDENTIALS_DIRECTORY": directory.path])
        let text = "auth = { kind = \"bearer\", token = \"credential:fleet\" }"
        let loaded = try loaded(endpoint(text), environment)
        #expect(
            try Requests(of: loaded.config.endpoints[0], environment.variables).headers() == [
                "Authorization: Bearer t-123"
            ])
        #expect(loaded.config.endpoints[0].shownHeaders == [.init("Authorization", "Bearer ***")])
        #expect(!loaded.effective.description.contains("t-123"))
        #expect(loaded.effective.description.contains("token = \"credential:fleet\""))
    }

    @Test func basicAuthIsEncoded() throws {
        try directory.write("pw", "open sesame")
        let text = """
            auth = { kind = "basic", user = "Aladdin", password = "mine" }
            secrets = { mine = "file:\(directory.path)/pw" }
            """
        // The example of RFC 7617 §2.
        #expect(try headers(text, testEnvironment()) == ["Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])
    }

    @Test func headersTakeSecretsByName() throws {
        try directory.write("key", "k-9")
        let text = """
            secrets = { key = "file:\(directory.path)/key" }
            headers = { X-Api-Key = "${secret.key}", X-From = "${device} of ${hostname}" }
            """
        #expect(
            try headers(text, testEnvironment()) == ["X-Api-Key: k-9", "X-From: 0123456789abcdef of van"])
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o644])
    func fileThatOthersMayReadIsRefused(mode: Int) throws {
        try directory.write("key", "k-9", mode: UInt32(mode))
        let found = problems(endpoint("secrets = { key = \"file:\(directory.path)/key\" }"))
        #expect(
            found == [
                "w.toml:6:19: endpoint.secrets.key: found file:\(directory.path)/key with mode "
                    + "0\(String(mode, radix: 8)), expected a file that only its owner can read (chmod 600)"
            ])
    }

    @Test(
        arguments: [
            "secrets = { key = \"hunter2\" }",
            "secrets = { key = \"file:relative-hunter2\" }",
            "secrets = { key = \"credential:../hunter2\" }",
            "auth = { kind = \"bearer\", token = \"hunter2\" }",
            "headers = { Authorization = \"Bearer hunter2\" }",
            "headers = { X-Api-Key = \"hunter2\" }",
        ])
    func literalSecretIsRefusedAndNotRepeated(text: String) {
        let found = problems(endpoint(text))
        #expect(found.count == 1)
        #expect(found.allSatisfy { $0.contains("found a literal, expected ") && !$0.contains("hunter2") })
    }

    @Test func contentsOfSecretsAreJudgedWithoutShowingThem() throws {
        try directory.write("empty", "\n")
        try directory.write("two", "hunter2\nhunter3\n")
        try directory.write("bom", "\u{FEFF}hunter2\n")
        try directory.makeDirectory("folder")
        try directory.write("long", String(repeating: "x", count: 65_537))
        for (name, words) in [
            ("empty", "which is empty"), ("two", "with line breaks or control characters"),
            ("bom", "which begins with a byte order mark"), ("folder", "which is not a regular file"),
            ("none", "No such file or directory"),
            ("long", "which cannot be read"),
        ] {
            let found = problems(endpoint("secrets = { key = \"file:\(directory.path)/\(name)\" }"))
            #expect(found.count == 1)
            #expect(found.allSatisfy { $0.contains(words) && !$0.contains("hunter") }, "\(found)")
        }
    }

    @Test func credentialsNeedTheUnitUnlessOnlyChecking() throws {
        let text = endpoint("auth = { kind = \"bearer\", token = \"credential:fleet\" }")
        #expect(
            problems(text) == [
                "w.toml:6:35: endpoint.auth.token: found no credential fleet from systemd, "
                    + "expected LoadCredential=fleet:PATH below [Service]: sudo systemctl edit waypost"
            ])
        #expect(problems(text, testEnvironment(requiresCredentials: false)).isEmpty)
    }

    @Test func secretsOfAnotherProcessAreTakenForGood() throws {
        try directory.write("key", "k-9")
        try #require(chmod("\(directory.path)/key", 0) == 0)
        let text = endpoint("secrets = { a = \"env:KEY\", b = \"file:\(directory.path)/key\" }")
        var foreign = testEnvironment(requiresCredentials: false)
        foreign.isForeign = true
        #expect(problems(text, foreign).isEmpty)
        // What is missing for everyone is still a mistake.
        #expect(problems(endpoint("secrets = { b = \"file:\(directory.path)/none\" }"), foreign).count == 1)
    }

    @Test func whatIsMissingHereMayNotBeElsewhere() {
        do throws(ConfigurationProblems) {
            _ = try loaded(endpoint("device = \"${env:NAME}\"\ntimout = \"5s\""))
            Issue.record("accepted")
        } catch {
            #expect(error.problems.map(\.dependsOnReader) == [true, false], "\(error)")
        }
    }

    @Test func environmentVariableIsAcceptedWithAWarning() throws {
        let text = endpoint("secrets = { key = \"env:KEY\" }\nheaders = { X-Api-Key = \"${secret.key}\" }")
        let loaded = try loaded(text, testEnvironment(["KEY": "k"]))
        #expect(try Requests(of: loaded.config.endpoints[0], ["KEY": "k"]).headers() == ["X-Api-Key: k"])
        #expect(loaded.warnings.count == 1)
    }

    @Test func unknownSecretNameIsPutRight() throws {
        try directory.write("key", "k-9")
        let text = "secrets = { fleet = \"file:\(directory.path)/key\" }\nheaders = { X-Api-Key = \"${secret.fleat}\" }"
        #expect(
            problems(endpoint(text)) == [
                "w.toml:7:25: endpoint.headers.X-Api-Key: found ${secret.fleat}, expected a name of [endpoint.secrets] "
                    + "(did you mean ${secret.fleet}?)"
            ])
    }

    @Test(
        arguments: [
            ("http://fleet.example", false, false), ("http://fleet.example", true, true),
            ("http://127.0.0.1.example", true, true), ("http://localhost.example", true, true),
            ("http://10.0.0.1:80", true, true),
        ])
    func plainHTTPToAnotherMachine(url: String, secret: Bool, isError: Bool) throws {
        let auth = secret ? "headers = { X-Api-Key = \"${env:KEY}\" }\n" : ""
        let environment = testEnvironment(["KEY": "k"])
        let found = problems(endpoint(auth, url: url), environment)
        if isError {
            #expect(found.count == 1)
            #expect(found[0].hasPrefix("w.toml:5:12: endpoint.base_url: found plain http to "))
            #expect(try loaded(endpoint(auth + "allow_plaintext = true", url: url), environment).warnings.isEmpty)
        } else {
            #expect(
                try loaded(endpoint(auth, url: url), environment).warnings.map(\.description) == [
                    "w.toml:5:12: endpoint.base_url: found plain http to fleet.example, expected https: anyone on the way "
                        + "can read and change the locations"
                ])
        }
    }

    @Test(arguments: [
        "http://127.0.0.1:8080", "http://localhost", "http://[::1]:80", "http://127.9.9.9", "https://f.example",
    ])
    func secretMayGoHereWithoutAWord(url: String) throws {
        let text = endpoint("headers = { X-Api-Key = \"${env:KEY}\" }", url: url)
        #expect(try loaded(text, testEnvironment(["KEY": "k"])).warnings.isEmpty)
    }
}
