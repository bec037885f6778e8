import Delivery
import Testing

/// Every mistake that a profile can hold is found when it is compiled, with the way to it.
@Suite struct ProfileProblemTests {
    struct Mistake: CustomTestStringConvertible {
        var keyPath: String
        var tree: Tree
        var suggestion: String?
        var words: String = "expected"

        var testDescription: String { "\(keyPath) \(words)" }
    }

    static let mistakes: [Mistake] = [
        .init(keyPath: "records", tree: ["record": "$lat", "records": "$lat"], suggestion: "record"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$speed_kmph"]], suggestion: "$speed_kmh"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$latitude"]], suggestion: "$lat"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$longitud"]], suggestion: "$lon"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$speed"]], suggestion: "$speed_mps"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$xyzzy"]], words: "name of a value"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$lat:round8"]], suggestion: ":round0"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$event:round1"]], words: "is text, expected a number"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$moving:upper"]], words: "expected text"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$lat:bool01"]], words: "expected a truth value"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$lat degrees"]], words: "one reference alone"),
        .init(keyPath: "record.a", tree: ["record": ["a": "it is $lat"]], suggestion: "${lat}"),
        .init(keyPath: "record.a", tree: ["record": ["a": "it is ${lat"]], words: "expected }"),
        .init(keyPath: "record.a", tree: ["record": ["a": "${}"]], words: "expected a name"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$speed_mps|1e3"]], words: "without exponent"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$speed_mps|none"]], suggestion: "$speed_mps|\"none\""),
        .init(keyPath: "record.a", tree: ["record": ["a": "$lat?"]], words: "only after vars.NAME"),
        .init(keyPath: "record.a", tree: ["record": ["a": "[?${event}]"]], words: "only in url"),
        .init(keyPath: "record.a", tree: ["record": ["a": "x ${location}"]], words: "value of its own"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$records"]], words: "only in body"),
        .init(keyPath: "record.a", tree: ["record": ["a": Tree(ProfileNode(.float(.infinity)))]]),
        .init(keyPath: "record.a[1]", tree: ["record": ["a": ["$lat", "$altitude", "$lon"]]], words: "never nil"),
        .init(keyPath: "record.a[0]", tree: ["record": ["a": [["b": "$altitude"], "$lon"]]], words: "never nil"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$vars.asset"]], suggestion: "$vars.asset_id"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$secret.kee"]], suggestion: "$secret.key"),
        .init(keyPath: "record.a", tree: ["record": ["a": "$auth.token"]], words: "without auth"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "${base_url}/${batch_trackable}"], words: "may be nil"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "${base_url}/${lat}"], words: "max_records = 1"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "https://fleet.example"], words: "${base_url}"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "${base_url}/a b"], words: "%XX"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "${base_url}[?a[?b]]"], words: "no nesting"),
        .init(keyPath: "url", tree: ["record": "$lat", "url": "${base_url}[?a"], words: "expected [? … ]"),
        .init(keyPath: "headers.X-A", tree: ["record": "$lat", "headers": ["X-A": "${sent_ms}"]], words: "may be nil"),
        .init(
            keyPath: "headers.X-A", tree: ["record": "$lat", "headers": ["X-A": "${seq}"]], words: "max_records = 1"),
        .init(
            keyPath: "headers.X-A", tree: ["record": "$lat", "headers": ["X-A": "a\r\nX-B: c"]], words: "line break"),
        .init(keyPath: "headers.X A", tree: ["record": "$lat", "headers": ["X A": "a"]], words: "name of a header"),
        .init(keyPath: "headers.X-A", tree: ["record": "$lat", "headers": ["X-A": 1]], words: "a string, or false"),
        .init(keyPath: "headers.X-A", tree: ["record": "$lat", "headers": ["X-A": "${sent_ms|null}"]], words: "null"),
        .init(keyPath: "line", tree: ["encoding": "lines", "line": "a ${speed_mps}"], words: "may be nil"),
        .init(keyPath: "line", tree: ["encoding": "lines"], words: "found no line"),
        .init(keyPath: "body", tree: ["record": "$lat", "body": ["a": "$device"]], words: "without $records"),
        .init(keyPath: "body", tree: ["record": "$lat", "body": ["a": "$record"]], words: "without $records"),
        .init(keyPath: "body.a", tree: ["record": "$lat", "body": ["a": "$seq", "b": "$records"]], words: "share"),
        .init(keyPath: "record", tree: ["body": ["a": "$records"]], words: "found no record"),
        .init(keyPath: "record.a", tree: ["encoding": "form", "record": ["a": ["b": "$lat"]]], words: "is flat"),
        .init(keyPath: "record.a", tree: ["encoding": "query", "record": ["a": ["$lat"]]], words: "is flat"),
        .init(keyPath: "max_records", tree: ["encoding": "form", "max_records": 2, "record": ["a": "$lat"]]),
        .init(keyPath: "max_records", tree: ["record": "$lat", "max_records": 0]),
        .init(keyPath: "max_bytes", tree: ["record": "$lat", "max_bytes": "1M"]),
        .init(keyPath: "encoding", tree: ["record": "$lat", "encoding": "jason"], suggestion: "\"json\""),
        .init(keyPath: "method", tree: ["record": "$lat", "method": "DELETE"]),
        .init(keyPath: "ascii", tree: ["record": "$lat", "ascii": "yes"]),
        .init(keyPath: "content_type", tree: ["record": "$lat", "content_type": "a\nb"]),
        .init(keyPath: "columns", tree: ["record": "$lat", "columns": ["odometer"]], words: "encoding = \"compact\""),
        .init(
            keyPath: "columns[0]", tree: ["encoding": "compact", "columns": ["odometr"]], suggestion: "\"odometer\""),
        .init(keyPath: "on.geofense", tree: ["record": "$lat", "on": ["geofense": "skip"]], suggestion: "geofence"),
        .init(keyPath: "on.geofence", tree: ["record": "$lat", "on": ["geofence": "skp"]], words: "\"skip\""),
        .init(
            keyPath: "on.geofence.urls", tree: ["record": "$lat", "on": ["geofence": ["urls": "x"]]], suggestion: "url"),
        .init(keyPath: "on.trip.record.a", tree: ["record": "$lat", "on": ["trip": ["record": ["a": "$x"]]]]),
        .init(
            keyPath: "geofence_actions[0]", tree: ["record": "$lat", "geofence_actions": ["entr"]],
            suggestion: "\"enter\""),
        .init(keyPath: "require[0]", tree: ["record": "$lat", "require": ["acuracy"]], suggestion: "\"accuracy\""),
        .init(
            keyPath: "limits.devise", tree: ["record": "$lat", "limits": ["devise": ["max_len": 1]]],
            suggestion: "device"),
        .init(keyPath: "limits.device.max_len", tree: ["record": "$lat", "limits": ["device": ["max_len": 4]]]),
        .init(keyPath: "limits.device.pattern", tree: ["record": "$lat", "limits": ["device": ["pattern": "[a-z]+"]]]),
        .init(keyPath: "limits.device.pattern", tree: ["record": "$lat", "limits": ["device": ["pattern": "(a|b)"]]]),
        .init(keyPath: "limits.lat.max_len", tree: ["record": "$lat", "limits": ["lat": ["max_len": 4]]]),
        .init(
            keyPath: "bind.url", tree: ["record": "$lat", "bind": ["url": "${base_url}/${seq}"]], words: "without rows"),
        .init(keyPath: "bind.path", tree: ["record": "$lat", "bind": ["path": "x"]]),
        .init(keyPath: "response.ok", tree: ["record": "$lat", "response": ["ok": true]]),
        .init(keyPath: "response.ok_status[0]", tree: ["record": "$lat", "response": ["ok_status": ["20x"]]]),
        .init(keyPath: "response.retry[0]", tree: ["record": "$lat", "response": ["retry": [42]]]),
        .init(keyPath: "response.ok_json.in", tree: ["record": "$lat", "response": ["ok_json": ["path": "a"]]]),
        .init(
            keyPath: "response.item_errors.match.id",
            tree: [
                "record": "$lat",
                "response": ["item_errors": ["path": "errors", "match": ["id": "$idd"], "code": "code"]],
            ], suggestion: "$id"),
        .init(
            keyPath: "response.item_errors.match",
            tree: ["record": "$lat", "response": ["item_errors": ["path": "errors", "code": "code"]]]),
        .init(
            keyPath: "response.collision[0].json.path",
            tree: ["record": "$lat", "response": ["collision": [["json": ["contains": "x"]]]]]),
    ]

    @Test(arguments: mistakes) func namesTheWayToEachMistake(_ mistake: Mistake) throws {
        let problems = Sample.problems(mistake.tree)
        let problem = try #require(problems.first, "no mistake was found")
        #expect(problem.keyPath == mistake.keyPath, "\(problem)")
        #expect(problem.message.hasPrefix("found ") && problem.message.contains(", expected "), "\(problem)")
        #expect(problem.message.contains(mistake.words), "\(problem)")
        if let suggestion = mistake.suggestion { #expect(problem.suggestion == suggestion, "\(problem)") }
        #expect(problems.count == 1, "\(problems)")
    }

    @Test func tellsAllMistakesTogetherWithTheirPlaces() {
        let place = SourcePosition(file: "waypost.toml", line: 7, column: 12)
        let tree: Tree = [
            "url": "${base_url}/${nonsense}",
            "record": ["a": Tree(ProfileNode(.string("$latt"), at: place)), "b": "$lonn"],
            "max_bytes": -1,
        ]
        let problems = Sample.problems(tree)
        #expect(Set(problems.map(\.keyPath)) == ["url", "record.a", "record.b", "max_bytes"])
        #expect(problems.first { $0.keyPath == "record.a" }?.position == place)
    }

    @Test func refusesALineBreakInATag() {
        var constants = Sample.constants
        constants.vars["tag"] = "a\nb"
        let tree: Tree = ["encoding": "lines", "line": "m,t=${vars.tag:lptag} v=1"]
        #expect(Sample.problems(tree, constants: constants).map(\.keyPath) == ["line"])
        constants.vars["tag"] = "a\\"
        #expect(Sample.problems(tree, constants: constants).map(\.keyPath) == ["line"])
        constants.vars["tag"] = "a b"
        #expect(Sample.problems(tree, constants: constants).isEmpty)
    }

    @Test func refusesALineBreakOfAConstantInAHeader() {
        var constants = Sample.constants
        constants.vars["team"] = "a\rb"
        let tree: Tree = ["record": "$lat", "headers": ["X-Team": "${vars.team}"]]
        #expect(Sample.problems(tree, constants: constants).map(\.keyPath) == ["headers.X-Team"])
    }

    @Test func bearsTheKeysThatTheConfigurationReads() {
        let tree: Tree = [
            "record": "$lat", "batch_size": 5, "batch_window": "20s", "min_batch": 1, "delivery": "latest",
            "max_age": "5m", "fresh_head": true, "compress": "gzip", "auth": ["kind": "basic"], "sign": ["scheme": "x"],
        ]
        #expect(Sample.problems(tree).isEmpty)
    }

    @Test func refusesATreeThatIsTooDeep() {
        var tree: Tree = "$lat"
        for _ in 0..<10_000 { tree = ["a": tree] }
        #expect(Sample.problems(["record": tree]).count == 1)
    }
}
