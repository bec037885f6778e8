import ConfigurationTestSupport
import Glibc
import Hash
import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Configuration
@testable import Daemon

@Suite struct EndpointCredentialsTests {
    private let directory: TemporaryDirectory
    private static let webhook = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

    init() throws { directory = try TemporaryDirectory() }

    private func requests(_ text: String, _ variables: [String: String] = [:]) throws -> Requests {
        let text =
            "\(smallest)[[endpoint]]\nbase_url = \"https://f.example\"\n"
            + text.replacing("DIR", with: directory.path)
        return try Requests(
            of: try loaded(text, testEnvironment(variables)).config.endpoints[0], variables,
            stateDirectory: directory.path)
    }

    @Test func aKeyGoesIntoAHeaderOfItsOwn() throws {
        try directory.write("key", "k-9\n")
        let requests = try requests(#"auth = { kind = "header", name = "X-Api-Key", key = "file:DIR/key" }"#)
        #expect(try requests.headers() == ["X-Api-Key: k-9"])
    }

    @Test(
        arguments: [
            (#"auth = { kind = "bearer", token = "env:TOKEN" }"#, "the token in the environment variable TOKEN"),
            (
                #"auth = { kind = "basic", user = "van7", password = "file:DIR/p" }"#,
                "user van7 and the password in DIR/p"
            ),
            (#"auth = { kind = "header", name = "X-Key", key = "file:DIR/p" }"#, "the key in DIR/p, sent as X-Key"),
            (#"auth = { kind = "token_command", command = ["/bin/true"] }"#, "the token that /bin/true prints"),
            (#"secrets = { password = "file:DIR/p" }"#, "password in DIR/p"),
            (
                #"""
                auth = { kind = "oauth2", token_url = "https://i.example/t", client_id = "van7", client_secret = "file:DIR/p" }
                """#, "client_id van7 and the client_secret in DIR/p"
            ),
        ] as [(String, String)])
    func whoIsRefusedIsToldWhereItsCredentialIs(_ auth: String, _ place: String) throws {
        try directory.write("p", "s3cret\n")
        let refusal = try requests(auth, ["TOKEN": "t"]).credentials.refusal
        #expect(refusal.words == "the credential is refused")
        #expect(refusal.cure?.hasPrefix("check " + place.replacing("DIR", with: directory.path)) == true, "\(refusal)")
        #expect(refusal.cure?.contains("s3cret") == false)
    }

    @Test func aFileIsReadAgainAfterARefusal() throws {
        try directory.write("key", "old")
        let requests = try requests(
            """
            auth = { kind = "bearer", token = "key" }
            secrets = { key = "file:DIR/key" }
            """)
        func values() throws -> [String?] {
            var secret: String?
            requests.credentials.obtain(at: requests.loop.now) { secret = (try? $0.get())?.values["key"] }
            return [try requests.headers().first, secret]
        }
        #expect(try values() == ["Authorization: Bearer old", "old"])
        #expect(try requests.refresh() == .none)
        try directory.write("key", "new")
        #expect(try values() == ["Authorization: Bearer old", "old"])
        #expect(try requests.refresh() == .new)
        #expect(try values() == ["Authorization: Bearer new", "new"])
        // For the moment it is not there, as while it is replaced.
        unlink("\(directory.path)/key")
        #expect(try requests.refresh() == .none)
        #expect(try values() == ["Authorization: Bearer new", "new"])
    }

    @Test func aCredentialIsFixedAndThatIsSaidOnce() throws {
        try directory.write("fleet", "old", mode: 0o440)
        let requests = try requests(
            #"auth = { kind = "bearer", token = "credential:fleet" }"#, ["CREDENTIALS_DIRECTORY": directory.path])
        try directory.write("fleet", "new", mode: 0o440)
        #expect(try [requests.refresh(), requests.refresh()] == [.none, .none])
        #expect(try requests.headers() == ["Authorization: Bearer old"])
        let words = "credential:fleet was read when waypost started"
        #expect(requests.lines.text.map { $0.contains(words) } == [true])
    }

    @Test func signsWithEverySecretOfTheExchange() throws {
        try directory.write("old", Self.webhook)
        try directory.write("new", "whsec_bmV3IHNlY3JldCBvZiAyNCBieXRlcyEh")
        let requests = try requests(
            """
            secrets = { new = "file:DIR/new", old = "file:DIR/old" }
            sign = { scheme = "standard-webhooks", secret = ["new", "old"] }
            """)
        let request = try requests.request(#"{"a":1}"#, batchID: "msg_1")
        #expect(!request.gzip)
        func header(_ name: String) -> String? { request.headers.first { $0.name == name }?.value }
        #expect(header("webhook-id") == "msg_1" && header("webhook-timestamp") == "1700000000")
        let signatures = header("webhook-signature")?.split(separator: " ") ?? []
        #expect(signatures.count == 2)
        #expect(signatures.last == "v1,WUgAXU8H0NQ1/7M+TtMwKma2b74a3/TCgekiM3YUdN8=")
    }

    @Test func waitsForATimeThatCanBeSigned() throws {
        try directory.write("hook", Self.webhook)
        func times(_ clock: String) throws -> [String] {
            let requests = try requests(
                "sign = { scheme = \"standard-webhooks\", secret = \"file:DIR/hook\" }\n\(clock)")
            requests.clock.isSynchronised = false
            requests.clock.ms = 5_000
            return try [nil, 1_700_000_000_999].map { (receiver: Int64?) in
                requests.clock.receiverMs = receiver
                do {
                    return try requests.request().headers.first { $0.name == "webhook-timestamp" }?.value ?? ""
                } catch let problem as CredentialProblem {
                    return problem.isClock ? "clock" : "credential"
                }
            }
        }
        #expect(try times("") == ["clock", "clock"])
        #expect(try times("signing_clock = \"receiver\"") == ["clock", "1700000000"])
    }

    @Test func gitHubNeedsNoClock() throws {
        try directory.write("hub", "It's a Secret to Everybody")
        let requests = try requests(#"sign = { scheme = "github-hmac", secret = "file:DIR/hub" }"#)
        requests.clock.isSynchronised = false
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        #expect(try requests.request("Hello, World!").headers == [.init("X-Hub-Signature-256", signature)])
    }

    /// A JSON Web Token with these claims, and a signature that nobody checks here.
    private func token(_ claims: String) -> String {
        let part = Base64.encode(Array(claims.utf8)).replacing("+", with: "-").replacing("/", with: "_")
        return "eyJhbGciOiJub25lIn0.\(part.replacing("=", with: "")).c2ln"
    }

    @Test func knowsWhenATokenOfTheConfigurationExpires() throws {
        try directory.write("t", token(#"{"sub":"ü?>~","iat":1699990000,"exp":1700000900.5}"#))
        let requests = try requests(#"auth = { kind = "header", name = "X-Key", key = "file:DIR/t" }"#)
        let life = TokenLife(left: 900.5, validity: 10_900.5, problem: nil)
        #expect(requests.credentials.tokenLife(at: requests.loop.now) == life)
        // Nobody knows what time it is.
        requests.clock.isSynchronised = false
        #expect(requests.credentials.tokenLife(at: requests.loop.now) == TokenLife())
    }

    @Test func readsAFileAgainBeforeItsTokenExpires() throws {
        try directory.write("t", token(#"{"iat":1699996400,"exp":1700000000}"#))
        let requests = try requests(#"auth = { kind = "bearer", token = "file:DIR/t" }"#)
        requests.clock.ms = 1_699_999_000_000
        let old = try requests.headers()
        try directory.write("t", token(#"{"iat":1699999000,"exp":1700002600}"#))
        #expect(try requests.headers() == old)
        requests.clock.ms = 1_699_999_400_000
        #expect(try requests.headers() != old)
        #expect(requests.credentials.tokenLife(at: requests.loop.now).left == 3200)
    }

    @Test func knowsWhenAFetchedTokenExpiresAndWhyThereIsNoOther() throws {
        let requests = try issued()
        #expect(requests.credentials.tokenLife(at: requests.loop.now) == TokenLife())
        requests.answer = answer(200, #"{"access_token":"t-1","expires_in":3600}"#)
        _ = try requests.headers()
        let life = requests.credentials.tokenLife(at: requests.loop.now + .seconds(3000))
        #expect(life.validity == 3600 && life.problem == nil)
        #expect(try (590...601).contains(#require(life.left)))
        requests.answer = answer(401, #"{"error":"invalid_client"}"#)
        #expect(try requests.headers(later: .seconds(3000)) == ["Authorization: Bearer t-1"])
        let problem = "no token: login.example answered with status 401 and gave the error invalid_client"
        #expect(requests.credentials.tokenLife(at: requests.loop.now).problem == problem)
    }

    @Test func whatIsNoTokenOrHasNoEndExpiresNever() {
        let secrets = [
            "", ".", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x.eyJleHAiOiJzb29uIn0.y", "x.eyJleHAiOjFlOTl9.y",
            "x.eyJleHAiOi0xfQ.y", "x.eyJleHAiOjE3MDAwMDAwMDB9", "x.eyJleHAiOjE3MDAwMDAwMDB9.y.z", "x.W10.y", "x.ey!.y",
        ]
        #expect(secrets.filter { TokenClaims($0) != nil } == [])
        // A token may stand behind its scheme.
        #expect(TokenClaims("Bearer x.eyJleHAiOjE3MDAwMDAwMDB9.y")?.expires == 1_700_000_000)
    }

    @Test func keepsAConnectionForTwoWindows() throws {
        #expect(try requests("batch_window = \"5m\"").request().idleLimit == .seconds(600))
        #expect(try requests("batch_window = \"0s\"").request().idleLimit == .seconds(30))
    }

    /// With a token of an issuer.
    private func issued() throws -> Requests {
        try directory.write("cs", "s")
        let issuer = #"token_url = "https://login.example/t", client_id = "c", client_secret = "file:DIR/cs""#
        return try requests(#"auth = { kind = "oauth2", \#(issuer) }"#)
    }

    private func answer(_ status: Int, _ body: String) -> (UplinkRequest) -> UplinkOutcome {
        { _ in UplinkOutcome(.reply(UplinkReply(status: status, body: Array(body.utf8)))) }
    }

    @Test func asksAnIssuerForATokenWithTheCredentialsOfTheClient() throws {
        try directory.write("cs", "s&cret")
        let requests = try requests(
            """
            secrets = { cs = "file:DIR/cs" }
            auth = { kind = "oauth2", token_url = "https://login.example/t/", client_id = "c 1", client_secret = "cs", \
            scope = "a b" }
            """)
        requests.answer = answer(200, #"{"access_token":"t-1","token_type":"bearer","expires_in":3600}"#)
        for _ in 0..<2 { #expect(try requests.headers() == ["Authorization: Bearer t-1"]) }
        #expect(requests.uplink.requests.map(\.url) == ["https://login.example/t/"])
        let asked = try #require(requests.uplink.requests.first)
        let form = "grant_type=client_credentials&client_id=c%201&client_secret=s%26cret&scope=a%20b"
        #expect(String(decoding: asked.body, as: UTF8.self) == form)
        #expect(asked.headers.first == .init("Content-Type", "application/x-www-form-urlencoded"))
        requests.answer = answer(200, #"{"access_token":"t-2","expires_in":3600}"#)
        #expect(try requests.refresh(later: .seconds(61)) == .new)
        #expect(try requests.headers(later: .seconds(62)) == ["Authorization: Bearer t-2"])
    }

    static let issuerAnswers: [(Int, String, String)] = [
        (401, #"{"error":"invalid_client"}"#, "answered with status 401 and gave the error invalid_client"),
        (400, #"{"error":"invalid_grant"}"#, "answered with status 400 and gave the error invalid_grant"),
        (400, "no", "answered with status 400 and gave no valid token response"),
        (403, "<html>", "answered with status 403 and gave no valid token response"),
        (204, "", "answered with status 204 and gave no valid token response"),
        (500, "<html>", "answered with status 500 and gave no valid token response"),
        (200, #"{"access_token":"a\nb"}"#, "answered with status 200 and gave no access_token that a header can hold"),
        (503, #"{"access_token":"t"}"#, "answered with status 503"),
        (302, "", "answered with status 302 and gave no valid token response"),
        (200, "<html>", "answered with status 200 and \(HTMLCheck.words(title: nil, key: "token_url"))"),
    ]

    @Test(arguments: issuerAnswers)
    func saysWhatTheIssuerSaid(status: Int, body: String, words: String) throws {
        let requests = try issued()
        requests.answer = answer(status, body)
        // Nothing but a refusal by the issuer says that another credential is needed.
        let isTransient = !(status == 401 || status == 400 && body.hasPrefix("{"))
        #expect(throws: CredentialProblem(message: "no token: login.example \(words)", isTransient: isTransient)) {
            try requests.headers()
        }
    }

    /// A token that cannot be had for a moment is no reason to look for whoever looks after the credential.
    @Test func anIssuerThatCannotBeAskedIsAskedAgain() throws {
        let requests = try issued()
        requests.answer = answer(200, #"{"access_token":"t-1","expires_in":3600}"#)
        #expect(try requests.headers() == ["Authorization: Bearer t-1"])
        // It was refused at once: the issuer is not asked twice in a minute.
        #expect(try requests.refresh(later: .seconds(5)) == .later)
        requests.answer = answer(503, "")
        #expect(try requests.refresh(later: .seconds(61)) == .later)
        requests.answer = answer(401, #"{"error":"invalid_client"}"#)
        #expect(try requests.refresh(later: .seconds(130)) == .none)
        requests.answer = answer(200, #"{"access_token":"t-2","expires_in":3600}"#)
        #expect(try requests.refresh(later: .seconds(131)) == .none)
        #expect(try requests.refresh(later: .seconds(200)) == .new)
    }

    @Test func keepsARefreshTokenThatTheIssuerChangedOverARestart() throws {
        try directory.write("rt", "first")
        let text = """
            auth = { kind = "oauth2", token_url = "https://login.example/t", client_id = "c", \
            refresh_token = "file:DIR/rt" }
            """
        func run(_ reply: String) throws -> String {
            let requests = try requests(text)
            requests.answer = answer(200, reply)
            _ = try requests.headers()
            return String(decoding: requests.uplink.requests[0].body, as: UTF8.self)
        }
        func asked(_ token: String) -> String { "grant_type=refresh_token&client_id=c&refresh_token=\(token)" }
        #expect(try run(#"{"access_token":"a","refresh_token":"second"}"#) == asked("first"))
        var status = stat()
        #expect(stat("\(directory.path)/main.refresh-token", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try run(#"{"access_token":"a"}"#) == asked("second"))
        // A new one in the configuration wins over what came from the old one.
        try directory.write("rt", "other")
        #expect(try run(#"{"access_token":"a"}"#) == asked("other"))
        // So does a file that was cut short.
        try directory.write("main.refresh-token", String(try directory.read("main.refresh-token").dropLast(3)))
        try directory.write("rt", "first")
        #expect(try run(#"{"access_token":"a"}"#) == asked("first"))
    }
}
