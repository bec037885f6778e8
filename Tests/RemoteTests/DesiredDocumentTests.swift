import Testing
import WaypostCore

@testable import Remote

@Suite("A document of settings") struct DesiredDocumentTests {
    @Test func isReadWhole() throws {
        let document = try DesiredDocument.read(
            """
            {"device": "van-7", "version": 17, "confirm_within": "1h30m",
             "set": {"sampling.rule": "track-error", "sampling.bound": 3, "battery.low": 12.5, "log.positions": false,
                     "sampling.turns": ["a", 1]}}
            """
        ).get()
        let settings: [RemoteSetting] = [
            .init("sampling.rule", .string("track-error")), .init("sampling.bound", .int(3)),
            .init("battery.low", .double(12.5)), .init("log.positions", .bool(false)),
            .init("sampling.turns", .array([.string("a"), .int(1)])),
        ]
        let expected = DesiredDocument(device: "van-7", version: 17, settings: settings, confirmWithin: .seconds(5400))
        #expect(document == expected)
        #expect(try DesiredDocument.read(#"{"device":"a","version":1,"set":{}}"#).get().confirmWithin == .seconds(1800))
        let dated = #"{"device":"a","version":1,"set":{},"expires":"2026-11-26T12:00:30Z"}"#
        #expect(try DesiredDocument.read(dated).get().expires == utc(30))
    }

    @Test func isRefusedWithThePlaceOfItsMistake() {
        let number = "version: missing, or not a whole number from 1 to 9007199254740991"
        let value = #"a: not a text without "$", a number, true, false, or an array of these"#
        let duration = #"confirm_within: not a duration from 1m to 7d, such as "30m""#
        let rows: [(problem: String, texts: [String])] = [
            (": not an object", [#"[]"#]),
            (": not valid JSON at byte 34", [#"{"device":"a","version":1,"set":{}"#]),
            ("host: unknown member", [#"{"device":"a","version":1,"set":{},"host":"b"}"#]),
            (
                ": names a member twice",
                [
                    #"{"device":"a","version":1,"version":2,"set":{}}"#,
                    #"{"device":"a","version":1,"set":{"a.b":1,"a.b":2}}"#,
                ]
            ),
            ("device: missing, or not a text", [#"{"device":7,"version":1,"set":{}}"#]),
            (number, ["0", "1.5", "9223372036854775808"].map { #"{"device":"a","version":\#($0),"set":{}}"# }),
            ("set: missing, or not an object", [#"{"device":"a","version":1}"#]),
            ("a..b: not a dotted key", [#"{"device":"a","version":1,"set":{"a..b":1}}"#]),
            (": not a dotted key", [#"{"device":"a","version":1,"set":{"":1}}"#]),
            (
                value,
                ["null", #""${env:HOME}""#, #"{"b":1}"#, "[[1]]"].map {
                    #"{"device":"a","version":1,"set":{"a":\#($0)}}"#
                }
            ),
            ("a: found together with a key within it", [#"{"device":"a","version":1,"set":{"a":1,"a.b":2}}"#]),
            (
                "expires: not a time such as 2026-01-31T12:00:00Z",
                ["1795694400", #""tomorrow""#, "null"].map {
                    #"{"device":"a","version":1,"set":{},"expires":\#($0)}"#
                }
            ),
            (duration, ["30", "8d"].map { #"{"device":"a","version":1,"set":{},"confirm_within":"\#($0)"}"# }),
        ]
        for row in rows {
            for text in row.texts { #expect(problems(text)?.words == [row.problem], "\(text)") }
        }
    }

    /// nil where it is accepted.
    private func problems(_ text: String) -> DocumentProblems? {
        if case .failure(let problems) = DesiredDocument.read(text) { problems } else { nil }
    }

    @Test func namesEveryProblemAndItsVersion() {
        let problems = problems(#"{"version":17,"set":{"a":null,"B C":1},"x":1}"#)
        #expect(problems?.version == 17)
        #expect(problems?.problems.map(\.path) == ["x", "device", "a", "B C"])
    }

    @Test func hasAtMost16KiB() throws {
        let head = #"{"device":"a","version":1,"set":{}"#
        func padded(_ count: Int) -> String { head + String(repeating: " ", count: count - head.utf8.count - 1) + "}" }
        #expect(throws: Never.self) { try DesiredDocument.read(padded(16_384)).get() }
        #expect(throws: DocumentProblems.self) { try DesiredDocument.read(padded(16_385)).get() }
    }

    @Test func neverAllowsWhatLosesAVehicle() {
        let policy = RemotePolicy(
            device: "van-7",
            allow: [
                "sampling", "tracking.heartbeat", "endpoint", "remote", "outbox", "control", "metrics", "geofences",
                "channel", "source", "profile", "device", "receiver", "battery",
            ])
        let keys = [
            "sampling.rule", "sampling", "tracking.heartbeat", "tracking.heartbeats", "tracking", "endpoint.base_url",
            "remote.allow", "remote", "outbox.max_rows", "outbox.commit_window", "control.socket", "metrics.listen",
            "geofences.file", "geofences.hysteresis", "battery.supplies", "battery.low", "samplings.rule",
        ]
        let allowed = [
            "sampling.rule", "sampling", "tracking.heartbeat", "outbox.commit_window", "geofences.hysteresis",
            "battery.low",
        ]
        #expect(keys.filter(policy.allows) == allowed)
        let forbidden = policy.forbidden(in: keys.map { RemoteSetting($0, .int(1)) })
        #expect(forbidden.count == keys.count - 6)
        #expect(forbidden.allSatisfy { $0.reason == "not allowed" })
    }
}
