import ConfigurationTestSupport
import Profiles
import Protocols
import TestSupport
import Testing

@testable import Configuration
@testable import Daemon

@Suite struct CredentialConfigurationTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("key", "MARKER")
        try directory.write("hook", "whsec_TUFSS0VSTUFSS0VSTUFSS0VSTUFSS0VS")
    }

    /// KEY stands for the file of that name, DIR for the folder.
    private func filled(_ text: String) -> String {
        text.replacing("KEY", with: #""file:DIR/key""#).replacing("DIR", with: directory.path)
    }

    private func endpoint(_ text: String, url: String = "https://fleet.example") -> String {
        "\(smallest)[[endpoint]]\nbase_url = \"\(url)\"\n\(filled(text))"
    }

    @Test func wrongCredentials() {
        let rows: [(text: String, message: String)] = [
            (#"auth = { kind = "header", name = "X A", key = KEY }"#, "auth.name: found \"X A\""),
            (#"auth = { kind = "bearer", token = KEY, key = KEY }"#, "auth.key: found with kind"),
            (
                #"auth = { kind = "token_command", command = ["true"] }"#,
                "auth.command: found an array, expected the absolute"
            ),
            (
                #"auth = { kind = "token_command", command = ["/no/such"] }"#,
                "auth.command: found /no/such: No such file"
            ),
            (#"auth = { kind = "token_command", command = "/bin/true" }"#, "auth.command: found \"/bin/true\""),
            (
                #"auth = { kind = "token_command", command = ["/bin/true"], header = "Authorization: x" }"#,
                "auth.header: found a literal, expected \"NAME: … ${auth.token} …\""
            ),
            (
                #"auth = { kind = "oauth2", token_url = "http://l.example/t", client_id = "c", client_secret = KEY }"#,
                "auth.token_url: found plain http to l.example with a secret, expected https"
            ),
            (
                #"auth = { kind = "oauth2", token_url = "https://l.example/t", client_id = "c" }"#,
                "auth.client_secret: found neither client_secret nor refresh_token"
            ),
            (
                #"auth = { kind = "none", token = KEY }"#,
                "auth.token: found with kind = \"none\", expected nothing else"
            ),
            (#"sign = { scheme = "standard-webhooks", secret = KEY }"#, "sign.secret: found file:"),
            (#"sign = { scheme = "standard-webhooks", secret = "whsec_MARKER" }"#, "sign.secret: found a literal"),
            (#"sign = { scheme = "aws-sigv4", region = "eu", service = "geo" }"#, "sign.access_key: found nothing"),
            (
                "sign = { scheme = \"github-hmac\", secret = KEY }\ncompress = \"gzip\"",
                "endpoint.compress: found it together with sign"
            ),
            (#"tls = { ca = "relative.pem" }"#, "tls.ca: found \"relative.pem\", expected the absolute path"),
            (#"tls = { ca = KEY }"#, "tls.ca: found no certificate in it"),
            (#"tls = { client_key = KEY }"#, "tls.client_cert: found nothing, expected it together with client_key"),
            (#"tls = { client_key = "MARKER" }"#, "tls.client_key: found a literal"),
            (#"tls = { pins = ["AAAA"] }"#, "tls.pins: found \"AAAA\", expected up to 8 hashes"),
            (#"tls = { insecure = true }"#, "endpoint.tls.insecure: found an unknown key"),
            (#"signing_clock = "gps""#, "signing_clock: found \"gps\", expected \"host\" or \"receiver\""),
        ]
        for (text, message) in rows {
            let found = problems(endpoint(text))
            #expect(found.contains { $0.contains(message) }, "\(found)")
            #expect(!found.contains { $0.contains("MARKER") })
        }
    }

    @Test(arguments: [
        #"secrets = { key = "file:DIR/key" }"#, #"sign = { scheme = "github-hmac", secret = "file:DIR/key" }"#,
        #"auth = { kind = "token_command", command = ["/bin/true"] }"#,
    ])
    func nothingSecretGoesOverPlainHTTPUnasked(text: String) throws {
        let found = problems(endpoint(text, url: "http://fleet.example"))
        #expect(found.count == 1 && found[0].contains("plain http to fleet.example with a secret"), "\(found)")
        _ = try loaded(endpoint(text + "\nallow_plaintext = true", url: "http://fleet.example"))
    }

    @Test func aSignatureTurnsCompressionOff() throws {
        let loaded = try loaded(endpoint(#"sign = { scheme = "github-hmac", secret = "file:DIR/key" }"#))
        #expect(!loaded.config.endpoints[0].settings.gzip)
        #expect(loaded.effective.description.contains("compress = \"none\"  # default"))
    }

    @Test func endpointsAreEqualAsTheirTextsAre() throws {
        func config(_ text: String) throws -> EndpointConfig { try loaded(endpoint(text)).config.endpoints[0] }
        let text = #"auth = { kind = "bearer", token = "file:DIR/key" }"#
        let before = try config(text)
        try directory.write("key", "another")
        #expect(try config(text) == before)
        #expect(try config(#"auth = { kind = "header", name = "X", key = "file:DIR/key" }"#) != before)
    }

    private static let kinds = [
        #"auth = { kind = "bearer", token = KEY }"#,
        #"auth = { kind = "basic", user = "u", password = KEY }"#,
        #"auth = { kind = "header", name = "X-Key", key = KEY }"#,
        #"auth = { kind = "token_command", command = ["/bin/cat", "DIR/key"] }"#,
        #"auth = { kind = "oauth2", token_url = "https://l.example/t", client_id = "c", client_secret = KEY }"#,
        "headers = { X-Key = \"k=${secret.k}\" }\nsecrets = { k = KEY }",
        #"sign = { scheme = "standard-webhooks", secret = "file:DIR/hook" }"#,
        #"sign = { scheme = "github-hmac", secret = KEY }"#,
        #"sign = { scheme = "aws-sigv4", region = "r", service = "s", access_key = KEY, secret_key = KEY }"#,
    ]

    /// The marker is in every secret, as it is and in the base64 of basic auth and of the hook.
    @Test(arguments: kinds)
    func secretsAreOnTheWireAlone(kind: String) throws {
        let marks = ["MARKER", "TUFSS0VS", "TUFSS0VSTUFSS0VS", "TWFya2Vy", "dTpNQVJLRVI="]
        func isQuiet(_ text: String) -> Bool { !marks.contains { text.contains($0) } }
        let loaded = try loaded(endpoint(kind))
        let config = loaded.config.endpoints[0]
        let requests = try Requests(of: config, ["PATH": "/bin"])
        requests.answer = { _ in
            UplinkOutcome(.reply(UplinkReply(status: 200, body: Array(#"{"access_token":"MARKER"}"#.utf8))))
        }
        let request = try requests.request()
        if config.auth != nil { #expect(!isQuiet("\(request.headers)")) }
        _ = try requests.refresh()
        requests.answer = { _ in
            UplinkOutcome(.reply(UplinkReply(status: 400, body: Array(#"{"error":"MARKER","MARKER":1}"#.utf8))))
        }
        _ = try requests.refresh(later: .seconds(100))
        #expect(isQuiet(loaded.effective.description), "\(loaded.effective.description)")
        #expect(loaded.warnings.allSatisfy { isQuiet($0.description) })
        #expect(isQuiet("\(config)"), "\(config)")
        #expect(isQuiet("\(config.shownHeaders)"))
        #expect(isQuiet(requests.lines.text.joined()))
    }

    @Test func suggestionOfAProfileNamesSecretsOfTheEndpoint() throws {
        let suggestion = ProfileNode(
            .table([
                .init(
                    "auth",
                    ProfileNode(
                        .table([
                            .init("kind", ProfileNode(.string("basic"))),
                            .init("user", ProfileNode(.string("${vars.user}"))),
                            .init("password", ProfileNode(.string("pw"))),
                        ])))
            ]))
        func read(_ text: String) throws -> (auth: EndpointAuth?, problems: [String]) {
            let table = try TOMLTable.parse(Array(filled(text).utf8), file: "w.toml")
            let reader = ConfigurationReader(files: ["w.toml"], environment: testEnvironment())
            var config = EndpointConfig(settings: EndpointSettings(baseURL: "https://f.example", device: "d"))
            config.profileTree = suggestion
            config.readRequest(reader.root(table), allowsPlaintext: false, vars: ["user": "ada"])
            return (config.auth, reader.sortedProblems.map(\.description))
        }
        #expect(try read(#"secrets = { pw = KEY }"#).auth == .basic(user: "ada", password: "pw"))
        #expect(
            try read("").problems == [
                "w.toml:1:1: secrets: found none named pw, which the profile needs: "
                    + "add secrets = { pw = \"file:/etc/waypost/pw\" } (or auth = { kind = \"none\" })"
            ])
        let unreadable = try read(#"secrets = { pw = "file:DIR/nowhere" }"#).problems
        #expect(unreadable.count == 1 && unreadable[0].hasPrefix("w.toml:1:18: secrets.pw: "), "\(unreadable)")
        let none = try read(#"auth = { kind = "none" }"#)
        #expect(none.auth == nil && none.problems.isEmpty)
    }
}
