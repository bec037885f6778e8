import JSON
import Testing

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
        #expect(document.device == "van-7" && document.version == 17)
        #expect(document.confirmWithin == .seconds(5400))
        #expect(
            document.settings == [
                .init("sampling.rule", .string("track-error")), .init("sampling.bound", .int(3)),
                .init("battery.low", .double(12.5)), .init("log.positions", .bool(false)),
                .init("sampling.turns", .array([.string("a"), .int(1)])),
            ])
        #expect(try DesiredDocument.read(#"{"device":"a","version":1,"set":{}}"#).get().confirmWithin == .seconds(1800))
    }

    @Test(arguments: [
        (#"[]"#, ": not an object"),
        (#"{"device":"a","version":1,"set":{}"#, ": not valid JSON at byte 34"),
        (#"{"device":"a","version":1,"set":{},"host":"b"}"#, "host: unknown member"),
        (#"{"device":"a","version":1,"version":2,"set":{}}"#, ": names a member twice"),
        (#"{"device":"a","version":1,"set":{"a.b":1,"a.b":2}}"#, ": names a member twice"),
        (#"{"device":7,"version":1,"set":{}}"#, "device: missing, or not a text"),
        (#"{"device":"a","version":0,"set":{}}"#, "version: missing, or not a whole number from 1 to 9007199254740991"),
        (
            #"{"device":"a","version":1.5,"set":{}}"#,
            "version: missing, or not a whole number from 1 to 9007199254740991"
        ),
        (
            #"{"device":"a","version":9223372036854775808,"set":{}}"#,
            "version: missing, or not a whole number from 1 to 9007199254740991"
        ),
        (#"{"device":"a","version":1}"#, "set: missing, or not an object"),
        (#"{"device":"a","version":1,"set":{"a..b":1}}"#, "a..b: not a dotted key"),
        (#"{"device":"a","version":1,"set":{"":1}}"#, ": not a dotted key"),
        (
            #"{"device":"a","version":1,"set":{"a":null}}"#,
            #"a: not a text without "$", a number, true, false, or an array of these"#
        ),
        (
            #"{"device":"a","version":1,"set":{"a":"${env:HOME}"}}"#,
            #"a: not a text without "$", a number, true, false, or an array of these"#
        ),
        (
            #"{"device":"a","version":1,"set":{"a":{"b":1}}}"#,
            #"a: not a text without "$", a number, true, false, or an array of these"#
        ),
        (
            #"{"device":"a","version":1,"set":{"a":[[1]]}}"#,
            #"a: not a text without "$", a number, true, false, or an array of these"#
        ),
        (#"{"device":"a","version":1,"set":{"a":1,"a.b":2}}"#, "a: found together with a key within it"),
        (
            #"{"device":"a","version":1,"set":{},"confirm_within":"30"}"#,
            #"confirm_within: not a duration from 1m to 7d, such as "30m""#
        ),
        (
            #"{"device":"a","version":1,"set":{},"confirm_within":"8d"}"#,
            #"confirm_within: not a duration from 1m to 7d, such as "30m""#
        ),
    ])
    func isRefusedWithThePlaceOfItsMistake(_ text: String, _ problem: String) {
        guard case .failure(let problems) = DesiredDocument.read(text) else {
            Issue.record("accepted: \(text)")
            return
        }
        #expect(problems.words == [problem])
    }

    @Test func namesEveryProblemAndItsVersion() {
        let text = #"{"version":17,"set":{"a":null,"B C":1},"x":1}"#
        guard case .failure(let problems) = DesiredDocument.read(text) else {
            Issue.record("accepted")
            return
        }
        #expect(problems.version == 17)
        #expect(problems.problems.map(\.path) == ["x", "device", "a", "B C"])
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
        #expect(
            keys.filter(policy.allows) == [
                "sampling.rule", "sampling", "tracking.heartbeat", "outbox.commit_window", "geofences.hysteresis",
                "battery.low",
            ])
        let forbidden = policy.forbidden(in: keys.map { RemoteSetting($0, .int(1)) })
        #expect(forbidden.count == keys.count - 6)
        #expect(forbidden.allSatisfy { $0.reason == "not allowed" })
    }
}
