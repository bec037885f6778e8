import Profiles
import ProfilesTestSupport
import Testing

/// Every mistake that a profile can hold is found when it is compiled, with the way to it.
@Suite struct ProfileProblemTests {
    struct Mistake: CustomTestStringConvertible {
        var keyPath: String
        var tree: Tree
        var suggestion: String?
        var words: String

        init(_ keyPath: String, _ tree: Tree, suggestion: String? = nil, words: String = "expected") {
            (self.keyPath, self.tree, self.suggestion, self.words) = (keyPath, tree, suggestion, words)
        }

        var testDescription: String { "\(keyPath) \(words)" }
    }

    static let mistakes: [Mistake] = [
        .init("records", ["record": "$lat", "records": "$lat"], suggestion: "record"),
        .init("record.a", ["record": ["a": "$speed_kmph"]], suggestion: "$speed_kmh"),
        .init("record.a", ["record": ["a": "$latitude"]], suggestion: "$lat"),
        .init("record.a", ["record": ["a": "$longitud"]], suggestion: "$lon"),
        .init("record.a", ["record": ["a": "$speed"]], suggestion: "$speed_mps"),
        .init("record.a", ["record": ["a": "$xyzzy"]], words: "name of a value"),
        .init("record.a", ["record": ["a": "$lat:round8"]], suggestion: ":round0"),
        .init("record.a", ["record": ["a": "$event:round1"]], words: "is text, expected a number"),
        .init("record.a", ["record": ["a": "$moving:upper"]], words: "expected text"),
        .init("record.a", ["record": ["a": "$lat:bool01"]], words: "expected a truth value"),
        .init("record.a", ["record": ["a": "$lat degrees"]], words: "one reference alone"),
        .init("record.a", ["record": ["a": "it is $lat"]], suggestion: "${lat}"),
        .init("record.a", ["record": ["a": "it is ${lat"]], words: "expected }"),
        .init("record.a", ["record": ["a": "${}"]], words: "expected a name"),
        .init("record.a", ["record": ["a": "$speed_mps|1e3"]], words: "without exponent"),
        .init("record.a", ["record": ["a": "$speed_mps|none"]], suggestion: "$speed_mps|\"none\""),
        .init("record.a", ["record": ["a": "$lat?"]], words: "only after vars.NAME"),
        .init("record.a", ["record": ["a": "[?${event}]"]], words: "only in url"),
        .init("record.a", ["record": ["a": "x ${location}"]], words: "value of its own"),
        .init("record.a", ["record": ["a": "$records"]], words: "only in body"),
        .init("record.a", ["record": ["a": Tree(ProfileNode(.float(.infinity)))]]),
        .init("record.a[1]", ["record": ["a": ["$lat", "$altitude", "$lon"]]], words: "never nil"),
        .init("record.a[0]", ["record": ["a": [["b": "$altitude"], "$lon"]]], words: "never nil"),
        .init("record.a", ["record": ["a": "$vars.asset"]], suggestion: "$vars.asset_id"),
        .init("record.a", ["record": ["a": "$secret.kee"]], suggestion: "$secret.key"),
        .init("record.a", ["record": ["a": "$auth.token"]], words: "without auth"),
        .init("url", ["record": "$lat", "url": "${base_url}/${batch_trackable}"], words: "may be nil"),
        .init("url", ["record": "$lat", "url": "${base_url}/${lat}"], words: "max_records = 1"),
        .init("url", ["record": "$lat", "url": "https://fleet.example"], words: "${base_url}"),
        .init("url", ["record": "$lat", "url": "${base_url}/a b"], words: "%XX"),
        .init("url", ["record": "$lat", "url": "${base_url}[?a[?b[?c]]]"], words: "at most two"),
        .init("url", ["record": "$lat", "url": "${base_url}[?a"], words: "expected [? … ]"),
        .init("headers.X-A", ["record": "$lat", "headers": ["X-A": "${sent_ms}"]], words: "may be nil"),
        .init("headers.X-A", ["record": "$lat", "headers": ["X-A": "${seq}"]], words: "max_records = 1"),
        .init("headers.X-A", ["record": "$lat", "headers": ["X-A": "a\r\nX-B: c"]], words: "line break"),
        .init("headers.X A", ["record": "$lat", "headers": ["X A": "a"]], words: "name of a header"),
        .init("headers.X-A", ["record": "$lat", "headers": ["X-A": 1]], words: "a string, or false"),
        .init("headers.X-A", ["record": "$lat", "headers": ["X-A": "${sent_ms|null}"]], words: "null"),
        .init("line", ["encoding": "lines", "line": "a ${speed_mps}"], words: "may be nil"),
        .init("line", ["encoding": "lines"], words: "found no line"),
        .init("body", ["record": "$lat", "body": ["a": "$device"]], words: "without $records"),
        .init("body", ["record": "$lat", "body": ["a": "$record"]], words: "without $records"),
        .init("body.a", ["record": "$lat", "body": ["a": "$seq", "b": "$records"]], words: "share"),
        .init("record", ["body": ["a": "$records"]], words: "found no record"),
        .init("record.a", ["encoding": "form", "record": ["a": ["b": "$lat"]]], words: "is flat"),
        .init("record.a", ["encoding": "query", "record": ["a": ["$lat"]]], words: "is flat"),
        .init("max_records", ["encoding": "form", "max_records": 2, "record": ["a": "$lat"]]),
        .init("max_records", ["record": "$lat", "max_records": 0]),
        .init("max_bytes", ["record": "$lat", "max_bytes": "1M"]),
        .init("encoding", ["record": "$lat", "encoding": "jason"], suggestion: "\"json\""),
        .init("method", ["record": "$lat", "method": "DELETE"]),
        .init("ascii", ["record": "$lat", "ascii": "yes"]),
        .init("content_type", ["record": "$lat", "content_type": "a\nb"]),
        .init("columns", ["record": "$lat", "columns": ["odometer"]], words: "encoding = \"compact\""),
        .init("columns[0]", ["encoding": "compact", "columns": ["odometr"]], suggestion: "\"odometer\""),
        .init("on.geofense", ["record": "$lat", "on": ["geofense": "skip"]], suggestion: "geofence"),
        .init("on.geofence", ["record": "$lat", "on": ["geofence": "skp"]], words: "\"skip\""),
        .init("on.geofence.urls", ["record": "$lat", "on": ["geofence": ["urls": "x"]]], suggestion: "url"),
        .init("on.trip.record.a", ["record": "$lat", "on": ["trip": ["record": ["a": "$x"]]]]),
        .init("geofence_actions[0]", ["record": "$lat", "geofence_actions": ["entr"]], suggestion: "\"enter\""),
        .init("require[0]", ["record": "$lat", "require": ["acuracy"]], suggestion: "\"accuracy\""),
        .init("limits.devise", ["record": "$lat", "limits": ["devise": ["max_len": 1]]], suggestion: "device"),
        .init("limits.device.max_len", ["record": "$lat", "limits": ["device": ["max_len": 4]]]),
        .init("limits.device.pattern", ["record": "$lat", "limits": ["device": ["pattern": "[a-z]+"]]]),
        .init("limits.device.pattern", ["record": "$lat", "limits": ["device": ["pattern": "(a|b)"]]]),
        .init("limits.lat.max_len", ["record": "$lat", "limits": ["lat": ["max_len": 4]]]),
        .init("bind.url", ["record": "$lat", "bind": ["url": "${base_url}/${seq}"]], words: "without rows"),
        .init("bind.path", ["record": "$lat", "bind": ["path": "x"]]),
        .init("response.ok", ["record": "$lat", "response": ["ok": true]]),
        .init("response.ok_status[0]", ["record": "$lat", "response": ["ok_status": ["20x"]]]),
        .init("response.retry[0]", ["record": "$lat", "response": ["retry": [42]]]),
        .init("response.ok_json.in", ["record": "$lat", "response": ["ok_json": ["path": "a"]]]),
        .init(
            "response.ok_json.is", ["record": "$lat", "response": ["ok_json": ["is": "object"]]], words: "\"array\""),
        .init(
            "response.ok_json.is",
            ["record": "$lat", "response": ["ok_json": ["path": "a", "is": "array", "in": [1]]]]),
        .init("response.html", ["record": "$lat", "response": ["html": true]], words: "\"accept\""),
        .init(
            "response.item_errors.match.id",
            [
                "record": "$lat",
                "response": ["item_errors": ["path": "errors", "match": ["id": "$idd"], "code": "code"]],
            ], suggestion: "$id"),
        .init(
            "response.item_errors.match",
            ["record": "$lat", "response": ["item_errors": ["path": "errors", "code": "code"]]]),
        .init(
            "response.collision[0].json.path",
            ["record": "$lat", "response": ["collision": [["json": ["contains": "x"]]]]]),
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

    @Test(arguments: [("a\nb", ["line"]), ("a\\", ["line"]), ("a b", [])] as [(String, [String])])
    func refusesALineBreakInATag(value: String, problems: [String]) {
        var constants = Sample.constants
        constants.vars["tag"] = value
        let tree: Tree = ["encoding": "lines", "line": "m,t=${vars.tag:lptag} v=1"]
        #expect(Sample.problems(tree, constants: constants).map(\.keyPath) == problems)
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
