import Delivery
import Testing

@Suite struct ItemErrorTests {
    private func verdict(_ body: String, _ rules: ResponseRules = .waypost) -> Verdict {
        VerdictTests.verdict(200, body: body, rules: rules)
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

    @Test(arguments: ["", "{}", #"{"rejected":[]}"#, #"{"rejected":null}"#, #"{"rejected":"all"}"#, "not json"])
    func acceptsWhereNothingIsSaid(body: String) {
        #expect(verdict(body) == .accepted)
    }

    @Test(arguments: [
        #"{"rejected":[{"seq":11}]}"#, #"{"rejected":[{"seq":3},{"seq":99}]}"#, #"{"rejected":[{}]}"#,
        #"{"rejected":[7]}"#, #"{"rejected":[{"seq":{"a":1}}]}"#,
    ])
    func keepsTheBatchWhenAnErrorIsAboutNoRowOfIt(body: String) {
        #expect(verdict(body) == .retry(.unclear, after: nil))
    }

    @Test func doubtsTheEndpointWhenItTakesNothing() {
        func all(_ code: String) -> String {
            let entries = (1...10).map { #"{"seq":\#($0),"code":"\#(code)"}"# }
            return #"{"rejected":[\#(entries.joined(separator: ","))]}"#
        }
        #expect(verdict(all("bad")) == .split(status: 200))
        #expect(verdict(all("busy")) == .retry(.status(200), after: nil))
    }

    @Test(arguments: [
        ("2023-11-14T22:13:23.123Z", true), ("2023-11-14T22:13:23.123000Z", true), ("2023-11-14T22:13:23Z", false),
        ("2023-11-15T00:13:23.123+02:00", true), ("2023-11-14T17:43:23.123-04:30", true), ("2023-11-14", false),
        ("2023-11-14t22:13:23.123z", true), ("2023-11-14T22:13:23.123+2:00", false), ("", false),
        ("2023-13-14T22:13:23.123Z", false), ("2023-11-14T22:13:23.Z", false),
    ])
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
                == (matches ? .partlyAccepted(.init(refused: [3: "X"])) : .retry(.unclear, after: nil)))
        if matches {
            #expect(
                verdict(body("AccessDeniedError"), rules)
                    == .partlyAccepted(.init(again: [3], needsCredential: true)))
        }
    }

    @Test(arguments: [
        ("$id", #""id-3""#), ("seq", "3"), ("$seq:string", #""3""#), ("time_ms", "1700000003123"),
        ("time_s", "1700000003"), ("time_iso_s", #""2023-11-14T22:13:23Z""#),
        ("time_iso_s", #""2023-11-15T00:13:23.9+02:00""#), ("time_ns", "1700000003123000000"),
        ("$time_s_float", "1700000003.123"), ("time_s_float", "1.700000003123e9"),
        ("time_ms:string", #""1700000003123""#),
        ("time_s_float:int", "1700000003"),
    ])
    func knowsRowsByManyNames(reference: String, value: String) {
        let verdict = verdict(#"{"errors":[{"k":\#(value),"code":"x"}]}"#, rules(.fields(["k": reference])))
        #expect(verdict == .partlyAccepted(.init(refused: [3: "x"])))
    }

    @Test func countsEntriesByTheirPlace() {
        let body = #"{"errors":[{"code":null},{"code":2},{"offset":1},{"code":50}]}"#
        #expect(verdict(body, rules(.index)) == .partlyAccepted(.init(refused: [4: "50"], again: [2])))
        let many = #"{"errors":[\#(Array(repeating: "{}", count: 10).joined(separator: ",")),{"code":1}]}"#
        #expect(verdict(many, rules(.index)) == .retry(.unclear, after: nil))
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
        #expect(verdict(body("stationary"), rules) == .retry(.unclear, after: nil))
    }

    /// Integers beyond 2^53 are not the same because a floating-point number cannot tell them apart.
    @Test func tellsLongIntegersApart() {
        let body = #"{"errors":[{"k":1700000003123000001,"code":"x"}]}"#
        #expect(verdict(body, rules(.fields(["k": "time_ns"]))) == .retry(.unclear, after: nil))
    }
}
