import Testing
import WaypostCore

@testable import Profiles
@testable import Protocols

@Suite struct VerdictTests {
    /// Ten rows, one each second, `seq` from 1.
    static let batch = Batch(endpoint: "main", id: "7f3a91c2-main-1-10", rows: (1...10).map { row($0) }, sentMs: nil)

    static func row(_ seq: Int64) -> QueuedLocation {
        QueuedLocation(
            seq: seq, bootID: nil, receivedMs: nil,
            location: Location(
                trackable: "van", time: UTCTime(milliseconds: 1_700_000_000_123 + seq * 1000), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true))
    }

    static func verdict(
        _ status: Int, body: String = "", headers: [UplinkRequest.Header] = [], cut: Bool = false,
        rules: ResponseRules = .waypost, rows: Int = 10
    ) -> Verdict {
        var part = batch
        part.rows = Array(part.rows.prefix(rows))
        let reply = UplinkReply(status: status, headers: headers, body: Array(body.utf8), bodyIncomplete: cut)
        let settings = EndpointSettings(baseURL: "http://x", device: "d", profile: Profile(response: rules))
        return AnswerJudge(settings, in: RenderContext(identify: { _, seq in "id-\(seq)" })).verdict(
            for: UplinkOutcome(.reply(reply)), of: part)
    }

    private func verdict(_ status: Int, body: String = "", retryAfter: String) -> Verdict {
        Self.verdict(status, body: body, headers: [.init("retry-after", retryAfter)])
    }

    /// One of each kind: `VerdictTableTests` has all.
    static let statuses: [(Int, Verdict)] = [
        (204, .accepted), (302, .retry(.redirected(status: 302, host: nil), after: nil)), (400, .split(status: 400)),
        (401, .authStop(status: 401)), (404, .goneStop(status: 404)), (405, .misconfigured(status: 405)),
        (409, .retry(.conflict, after: nil)), (413, .tooLarge(status: 413, after: nil)), (415, .encodingRefused()),
        (500, .retry(.status(500), after: nil)), (600, .retry(.status(600), after: nil)),
    ]

    @Test(arguments: statuses)
    func readsTheStatus(status: Int, expected: Verdict) {
        #expect(Self.verdict(status) == expected)
    }

    @Test func honoursRetryAfterWhereItMeansSomething() {
        #expect(verdict(429, retryAfter: "30") == .retry(.status(429), after: .seconds(30)))
        #expect(verdict(503, retryAfter: "30") == .retry(.status(503), after: .seconds(30)))
        #expect(verdict(413, retryAfter: "30") == .tooLarge(status: 413, after: .seconds(30)))
        let statuses = [401, 403, 404, 405, 410, 415, 451, 501, 503]
        #expect(statuses.filter { verdict($0, retryAfter: "30").asked != .seconds(30) } == [])
        #expect(verdict(200, retryAfter: "30") == .accepted)
    }

    static let conflicts: [(String, Bool)] = [
        (#"{"error":"asset_taken"}"#, true), ("{ \"x\" : 1,\n \"error\" : \"asset_taken\" }", true),
        (#"{"error":"in progress"}"#, false), ("", false), ("asset_taken", false), (#"{"error":"asset_taken""#, false),
    ]

    @Test(arguments: conflicts)
    func knowsACollisionFromAConflict(body: String, taken: Bool) {
        #expect(Self.verdict(409, body: body) == (taken ? .collision : .retry(.conflict, after: nil)))
    }

    @Test(arguments: [
        TransportFailure.resolve("x"), .connect("x"), .tls("x"), .timeout("x"), .closedWithoutReply("x"), .broken("x"),
    ])
    func retriesWhatDidNotReachTheServer(failure: TransportFailure) {
        let verdict = AnswerJudge(EndpointSettings(baseURL: "http://x", device: "d")).verdict(
            for: UplinkOutcome(.failed(failure)), of: Self.batch)
        #expect(verdict == .retry(.transport(failure), after: nil))
    }

    /// An interim answer is none to end with, whatever a profile says of its status.
    @Test(arguments: [
        ResponseRules.waypost, ResponseRules(okStatus: Set(100...299)), ResponseRules(classes: [.split: [100, 101]]),
    ])
    func takesAnInterimAnswerForNone(rules: ResponseRules) {
        for status in [-1, 0, 99, 100, 101, 199] {
            if case .retry(.transport(.broken), after: nil) = Self.verdict(status, rules: rules) { continue }
            Issue.record("\(status): \(Self.verdict(status, rules: rules))")
        }
    }

    @Test func countsABrokenReplyByItsStatusWhereTheBodyDoesNotMatter() {
        #expect(Self.verdict(200, body: #"{"rejected":[{"se"#, cut: true, rules: ResponseRules()) == .accepted)
        #expect(Self.verdict(503, body: "x", cut: true) == .retry(.status(503), after: nil))
        #expect(Self.verdict(400, body: "x", cut: true) == .split(status: 400))
        #expect(Self.verdict(409, body: #"{"error":"asset_taken"}"#, cut: true) == .retry(.conflict, after: nil))
    }

    @Test func waitsForTheWholeBodyWhereItMatters() {
        var rules = ResponseRules(okJSON: .init(paths: [["result"]], values: ["ok"]))
        let unclear = Verdict.retry(.unclear(.cut), after: nil)
        for missingIsOk in [false, true] {
            rules.okJSON?.missingIsOk = missingIsOk
            #expect(Self.verdict(200, body: "", cut: true, rules: rules) == unclear)
            #expect(Self.verdict(200, body: #"{"result":"ok"}"#, cut: true, rules: rules) == unclear)
            let twice = Self.verdict(200, body: #"{"result":"ok","result":"no"}"#, rules: rules)
            #expect(twice == .retry(.unclear(.repeatedName), after: nil))
        }
    }

    @Test(
        arguments: [
            ("https://portal.example/login?u=1", "portal.example"), ("http://u:p@h.example:8080/x", "h.example:8080"),
            ("/elsewhere", nil), ("http://", nil), ("https://a\u{7F}b/", nil),
        ] as [(String, String?)])
    func namesOnlyTheHostOfALocation(location: String, host: String?) {
        let verdict = Self.verdict(307, headers: [.init("location", location)])
        #expect(verdict == .retry(.redirected(status: 307, host: host), after: nil))
    }

    // What a profile changes.

    private static let profiles: [ResponseRules] = [
        .waypost, ResponseRules(),
        ResponseRules(classes: [.goneStop: [400, 404], .split: []]),
        ResponseRules(okStatus: [200, 201, 204]),
        ResponseRules(classes: [.retry: [202], .misconfigured: []]),
        ResponseRules(okJSON: .init(paths: [["result"]], values: ["ok"])),
        ResponseRules(collision: [.init(status: [409]), .init(paths: [["message"], ["msg"]], contains: "not bound")]),
        ResponseRules(okStatus: [302, 409]),
    ]

    /// Success is nothing but what HTTP or the profile says is one.
    @Test(arguments: VerdictTests.profiles.indices)
    func givesEachCodeOneVerdictForEachProfile(index: Int) {
        let wrong = (-10...700).filter { status in
            let verdict = Self.verdict(status, rules: Self.profiles[index])
            let isSuccess = (200...299).contains(status) || (index == 7 && status == 409)
            let isAccepted = verdict == .accepted
            return verdict.word.isEmpty || (index == 0 ? isAccepted != isSuccess : isAccepted && !isSuccess)
        }
        #expect(wrong.isEmpty)
    }

    @Test func letsAProfileMoveAStatus() {
        let traccar = Self.profiles[2]
        #expect(Self.verdict(400, rules: traccar) == .goneStop(status: 400))
        #expect(Self.verdict(422, rules: traccar) == .misconfigured(status: 422))
        #expect(Self.verdict(410, rules: traccar) == .misconfigured(status: 410))
        #expect(Self.verdict(202, rules: Self.profiles[3]) == .retry(.notConfirmed(status: 202), after: nil))
        #expect(Self.verdict(202, rules: Self.profiles[4]) == .retry(.status(202), after: nil))
        #expect(Self.verdict(418, rules: Self.profiles[4]) == .retry(.status(418), after: nil))
        #expect(Self.verdict(409, rules: Self.profiles[7]) == .accepted)
        #expect(Self.verdict(302, rules: Self.profiles[7]) == .retry(.redirected(status: 302, host: nil), after: nil))
        let explicit = ResponseRules(classes: [.split: [503]])
        #expect(Self.verdict(503, rules: explicit) == .split(status: 503))
    }

    static let confirmations: [(String, Bool, Bool)] = [
        (#"{"result":"ok"}"#, true, true), (#"{"result":"error"}"#, false, false), ("", false, true),
        ("<p>", false, true), (#"{"result":null}"#, false, true), (#"{"result":["ok"]}"#, false, false),
    ]

    @Test(arguments: confirmations)
    func looksForWhatOkJSONWants(body: String, strict: Bool, lenient: Bool) {
        var rules = ResponseRules(okJSON: .init(paths: [["nothing"], ["result"]], values: ["ok"]))
        let notConfirmed = Verdict.retry(.notConfirmed(status: 200), after: nil)
        let doubt = body == "<p>" ? Verdict.retry(.unclear(.notJSON), after: nil) : notConfirmed
        #expect(Self.verdict(200, body: body, rules: rules) == (strict ? .accepted : doubt))
        rules.okJSON?.missingIsOk = true
        #expect(Self.verdict(200, body: body, rules: rules) == (lenient ? .accepted : notConfirmed))
    }

    /// Whatever a profile makes of its status, and whether or not it reads bodies.
    @Test func aPageOfHTMLConfirmsNothing() {
        let page = "<html><title>Sign in</title></html>"
        for rules in Self.profiles {
            for status in [200, 201, 299] where rules.classes[.retry]?.contains(status) != true {
                let verdict = Self.verdict(status, body: page, headers: [.init("retry-after", "9")], rules: rules)
                #expect(verdict == .retry(.page(title: "Sign in"), after: .seconds(9)))
            }
        }
        #expect(Self.verdict(409, body: page, rules: Self.profiles[7]) == .retry(.page(title: "Sign in"), after: nil))
        #expect(Self.verdict(409, body: page, rules: Self.profiles[6]) == .retry(.conflict, after: nil))
        #expect(Self.verdict(404, body: page) == .goneStop(status: 404))
        // What has come does not exclude one.
        #expect(Self.verdict(200, cut: true, rules: .http) == .retry(.unclear(.cut), after: nil))
        let accepting = ResponseRules(acceptsPages: true)
        for cut in [false, true] {
            #expect(Self.verdict(200, body: page, cut: cut, rules: accepting) == .accepted)
            #expect(Self.verdict(200, cut: cut, rules: accepting) == .accepted)
        }
    }

    @Test func wantsAnArrayWhereAProfileSaysSo() {
        let rules = ResponseRules(okJSON: .init(paths: [[]], isArray: true))
        let notConfirmed = Verdict.retry(.notConfirmed(status: 200), after: nil)
        for body in ["[]", #" [{"_type":"location"}]"#] {
            #expect(Self.verdict(200, body: body, rules: rules) == .accepted)
        }
        for body in ["", "{}", "7", #"{"a":[]}"#] {
            #expect(Self.verdict(200, body: body, rules: rules) == notConfirmed)
        }
        #expect(Self.verdict(200, body: "OK", rules: rules) == .retry(.unclear(.notJSON), after: nil))
    }

    @Test func comparesNumbersAndBoolsAsTheyAreWritten() {
        let rules = ResponseRules(okJSON: .init(paths: [["a", "b"], ["c", "0"]], values: ["0", "true", "1.5"]))
        for body in [#"{"a":{"b":0}}"#, #"{"a":{"b":true}}"#, #"{"a":{"b":1.5}}"#, #"{"c":[0]}"#] {
            #expect(Self.verdict(200, body: body, rules: rules) == .accepted, "\(body)")
        }
    }

    @Test(
        arguments: [
            (#"{"message":"device is not bound"}"#, 400, true), (#"{"msg":"not bound"}"#, 200, true),
            (#"{"x":"y"}"#, 409, true), (#"{"message":"bound"}"#, 400, false),
        ] as [(String, Int, Bool)])
    func takesACollisionByAnyOfItsSigns(body: String, status: Int, taken: Bool) {
        #expect((Self.verdict(status, body: body, rules: Self.profiles[6]) == .collision) == taken)
    }

    @Test func countsWhatWasReallyStored() {
        let judge = AnswerJudge(
            EndpointSettings(
                baseURL: "http://x", device: "d", profile: Profile(response: ResponseRules(storedPath: ["saved"]))))
        func stored(_ body: String) -> Int? {
            judge.stored(UplinkOutcome(.reply(UplinkReply(status: 200, body: Array(body.utf8)))))
        }
        #expect(stored(#"{"saved":7}"#) == 7)
        #expect(stored(#"{"saved":-1}"#) == nil)
        #expect(stored("") == nil)
    }
}
