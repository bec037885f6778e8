import Testing

@testable import Profiles
@testable import Protocols

@Suite struct ItemErrorTests {
    private func verdict(_ body: String, _ rules: ResponseRules = .waypost, rows: Int = 10) -> Verdict {
        VerdictTests.verdict(200, body: body, rules: rules, rows: rows)
    }

    private func rules(_ match: ResponseRules.ItemErrors.Match, path: [String] = ["errors"]) -> ResponseRules {
        ResponseRules(
            itemErrors: .init(
                path: path, match: match, code: ["code"], retryCodes: ["busy", "2"], authCodes: ["denied"]))
    }

    @Test func findsRefusedRowsByTheirNumber() {
        let verdict = verdict(
            #"{"rejected":[{"seq":3,"code":"bad","reason":"no such place"},{"seq":4,"code":"busy"}]}"#)
        #expect(verdict == .partlyAccepted(.init(refused: [3: "bad: no such place"], again: [4])))
    }

    @Test(arguments: [
        "", " \r\n", "{}", #"{"rejected":[]}"#, #"{"rejected":null}"#, #"{"ok":true,"stored":10}"#, "\u{FEFF}{}",
    ])
    func acceptsWhereNothingIsSaid(body: String) {
        #expect(verdict(body) == .accepted)
    }

    static let otherForms: [(String, UnclearBody)] = [
        (#"{"rejected":"all"}"#, .otherForm), (#"{"rejected":{"seq":3}}"#, .otherForm),
        (#"{"rejected":true}"#, .otherForm), (#"{"rejected":[7]}"#, .otherForm), (#"{"rejected":[[3]]}"#, .otherForm),
        (#"{"rejected":[{"seq":3},null]}"#, .otherForm), (#"{"rejected":[{"seq":3,"code":{"id":1}}]}"#, .otherForm),
        ("[]", .otherForm), ("7", .otherForm), ("null", .otherForm), (#""ok""#, .otherForm), ("ok", .notJSON),
        ("<p></p>", .notJSON),
        (#"{"rejected":[{"seq":3}"#, .notJSON), (#"{"rejected":[]}{"rejected":[{"seq":3}]}"#, .notJSON),
        (#"{"rejected":[],"rejected":[{"seq":3}]}"#, .repeatedName),
        (#"{"rejected":[{"seq":3,"seq":4}]}"#, .repeatedName),
        // An error that is about no row of the batch.
        (#"{"rejected":[{"seq":11}]}"#, .unknownRow), (#"{"rejected":[{"seq":3},{"seq":99}]}"#, .unknownRow),
        (#"{"rejected":[{}]}"#, .unknownRow), (#"{"rejected":[{"seq":{"a":1}}]}"#, .unknownRow),
    ]

    @Test(arguments: otherForms)
    func keepsTheBatchWhenTheBodyHasAnotherForm(body: String, why: UnclearBody) {
        #expect(verdict(body) == .retry(.unclear(why), after: nil))
    }

    /// What is missing may be the entry of any row.
    @Test(arguments: ["", "{}", #"{"rejected":[{"seq":3,"code":"busy"}]}"#, #"{"rejected":[{"se"#])
    func keepsTheBatchWhenTheBodyIsCut(body: String) {
        #expect(VerdictTests.verdict(200, body: body, cut: true) == .retry(.unclear(.cut), after: nil))
    }

    @Test func waitsForAListThatIsPromisedEachTime() {
        var rules = rules(.fields(["seq": "seq"]))
        rules.itemErrors?.always = true
        for body in ["", "{}", #"{"errors":null}"#] {
            #expect(verdict(body, rules) == .retry(.unclear(.noList), after: nil), "\(body)")
        }
        #expect(verdict(#"{"errors":[]}"#, rules) == .accepted)
    }

    @Test func doubtsTheEndpointWhenItTakesNothing() {
        func all(_ code: String) -> String {
            let entries = (1...10).map { #"{"seq":\#($0),"code":"\#(code)"}"# }
            return #"{"rejected":[\#(entries.joined(separator: ","))]}"#
        }
        #expect(verdict(all("bad")) == .split(status: 200))
        // Of a row that is alone, what the server says is known.
        let alone = #"{"rejected":[{"seq":1,"code":"bad","reason":"why"}]}"#
        #expect(verdict(alone, rows: 1) == .split(status: 200, reason: "bad: why"))
        #expect(verdict(all("busy")) == .retry(.status(200), after: nil))
    }

    static let times: [(String, Bool)] = [
        ("2023-11-14T22:13:23.123Z", true), ("2023-11-14T22:13:23.123000Z", true), ("2023-11-14T22:13:23Z", false),
        ("2023-11-15T00:13:23.123+02:00", true), ("2023-11-14T17:43:23.123-04:30", true), ("2023-11-14", false),
        ("2023-11-14t22:13:23.123z", true), ("2023-11-14T22:13:23.123+2:00", false), ("", false),
        ("2023-13-14T22:13:23.123Z", false), ("2023-11-14T22:13:23.Z", false),
    ]

    @Test(arguments: times)
    func matchesTimesAsInstants(text: String, matches: Bool) {
        let rules = ResponseRules(
            itemErrors: .init(
                path: ["Errors"], match: .fields(["DeviceId": "$device", "SampleTime": "$time_iso"]),
                code: ["Error", "Code"], authCodes: ["AccessDeniedError"]))
        func body(_ code: String) -> String {
            #"{"Errors":[{"DeviceId":"d","SampleTime":"\#(text)","Error":{"Code":"\#(code)"}}]}"#
        }
        #expect(
            verdict(body("X"), rules)
                == (matches ? .partlyAccepted(.init(refused: [3: "X"])) : .retry(.unclear(.unknownRow), after: nil)))
        if matches {
            #expect(
                verdict(body("AccessDeniedError"), rules)
                    == .partlyAccepted(.init(again: [3], needsCredential: true)))
        }
    }

    static let names: [(String, String)] = [
        ("$id", #""id-3""#), ("seq", "3"), ("$seq:string", #""3""#), ("time_ms", "1700000003123"),
        ("time_s", "1700000003"), ("time_iso_s", #""2023-11-14T22:13:23Z""#),
        ("time_iso_s", #""2023-11-15T00:13:23.9+02:00""#), ("time_ns", "1700000003123000000"),
        ("$time_s_float", "1700000003.123"), ("time_s_float", "1.700000003123e9"),
        ("time_ms:string", #""1700000003123""#), ("time_s_float:int", "1700000003"),
    ]

    @Test(arguments: names)
    func knowsRowsByManyNames(reference: String, value: String) {
        let verdict = verdict(#"{"errors":[{"k":\#(value),"code":"x"}]}"#, rules(.fields(["k": reference])))
        #expect(verdict == .partlyAccepted(.init(refused: [3: "x"])))
    }

    @Test func countsEntriesByTheirPlace() {
        func body(_ entries: [String], others: Int = 0) -> String {
            let all: [String] = entries + [String](repeating: "{}", count: others)
            return #"{"errors":[\#(all.joined(separator: ","))]}"#
        }
        func unclear(_ why: UnclearBody) -> Verdict { .retry(.unclear(why), after: nil) }
        let some = [#"{"code":null}"#, #"{"code":2}"#, #"{"offset":1}"#, #"{"code":50}"#]
        var always = rules(.index)
        always.itemErrors?.always = true
        let rows: [(String, ResponseRules, Verdict)] = [
            (body(some, others: 6), rules(.index), .partlyAccepted(.init(refused: [4: "50"], again: [2]))),
            (body([], others: 10), rules(.index), .accepted), (body([]), rules(.index), .accepted),
            // A list of another length: whose entry is missing, or too much, is not known.
            (body([], others: 1), rules(.index), unclear(.incompleteList)),
            (body([], others: 9), rules(.index), unclear(.incompleteList)),
            (body([], others: 11), rules(.index), unclear(.incompleteList)),
            (body(some), rules(.index), unclear(.incompleteList)), (body([]), always, unclear(.incompleteList)),
            (body([#"{"code":{"a":1}}"#], others: 9), rules(.index), unclear(.otherForm)),
            (body(["null"], others: 9), rules(.index), unclear(.otherForm)), ("", always, unclear(.noList)),
        ]
        for (body, rules, expected) in rows { #expect(verdict(body, rules) == expected, "\(body)") }
    }

    /// 692 of 693 rows are busy: 71 kB say so.
    @Test func readsAsMuchAsItTakesToNameEachRow() {
        let batch = Batch(endpoint: "main", id: "b", rows: (1...693).map { VerdictTests.row($0) }, sentMs: nil)
        let settings = EndpointSettings(baseURL: "http://x", device: "d", profile: Profile(response: .waypost))
        let entries = (2...693).map {
            #"{"seq":\#($0),"code":"busy","reason":"the store takes no more at the moment, try it again later"}"#
        }
        let body = Array(#"{"rejected":[\#(entries.joined(separator: ","))]}"#.utf8)
        #expect(
            (65_537...RequestRenderer(settings).request(for: batch).replyLimit).contains(body.count), "\(body.count)")
        let verdict = AnswerJudge(settings).verdict(
            for: UplinkOutcome(.reply(UplinkReply(status: 200, body: body))), of: batch)
        #expect(verdict == .partlyAccepted(.init(again: Set(2...693))))
        // Where only the status counts there is nothing to read.
        let plain = EndpointSettings(baseURL: "http://x", device: "d", profile: Profile(response: ResponseRules()))
        #expect(RequestRenderer(plain).request(for: batch).replyLimit == 65_536)
    }

    /// Each of many entries names all rows: no list of errors, but the work of one that never ends.
    @Test func leavesAListThatNamesTheRowsOverAndOver() {
        let entry = #"{"d":"main","code":"busy"}"#
        func body(_ count: Int) -> String {
            #"{"errors":[\#(Array(repeating: entry, count: count).joined(separator: ","))]}"#
        }
        #expect(verdict(body(1), rules(.fields(["d": "endpoint"]))) == .retry(.status(200), after: nil))
        #expect(verdict(body(17), rules(.fields(["d": "endpoint"]))) == .retry(.unclear(.otherForm), after: nil))
    }

    @Test func sendsARowAgainThatIsBothBusyAndBad() {
        let body = #"{"errors":[{"seq":1,"code":"bad"},{"seq":1,"code":"busy"}]}"#
        #expect(verdict(body, rules(.fields(["seq": "seq"]))) == .partlyAccepted(.init(again: [1])))
    }

    @Test func wantsAllNamesOfARow() {
        let rules = rules(.fields(["k": "seq", "at": "lat_e7", "d": "endpoint", "t": "motion_word"]))
        func body(_ word: String) -> String {
            #"{"errors":[{"k":3,"at":1,"d":"main","t":"\#(word)","code":"x"}]}"#
        }
        #expect(verdict(body("driving"), rules) == .partlyAccepted(.init(refused: [3: "x"])))
        #expect(verdict(body("stationary"), rules) == .retry(.unclear(.unknownRow), after: nil))
    }

    /// Integers beyond 2^53 are not the same because a floating-point number cannot distinguish them.
    @Test func tellsLongIntegersApart() {
        let body = #"{"errors":[{"k":1700000003123000001,"code":"x"}]}"#
        #expect(verdict(body, rules(.fields(["k": "time_ns"]))) == .retry(.unclear(.unknownRow), after: nil))
    }
}
