import Delivery
import ProfilesTestSupport
import TestSupport
import Testing
import WaypostCore

@testable import Profiles

@Suite struct TemplateTests {
    static let references: [(String, String)] = [
        ("$lat", "52.5200066"), ("$lat_e7", "525200066"), ("$time_s_float", "1700000000.123"),
        ("$time_ns", "1700000000123000000"), ("$time_iso_s", #""2023-11-14T22:13:20Z""#), ("$speed_kmh", "44.28"),
        ("$speed_knots", "23.91"), ("$speed_mph", "27.51"), ("$speed_mps:round1", "12.3"),
        ("$speed_mps:round0", "12.0"),
        ("$speed_mps:int", "12"), ("$speed_mps:ceil", "13"), ("$speed_mps:floor", "12"), ("$speed_kmh:int", "44"),
        ("$accuracy:ceil", "5"), ("$bearing", "271.0"), ("$bearing:int:string", #""271""#),
        ("$bearing:string", #""271.0""#),
        ("$moving:bool01", "1"), ("$moving:string", #""true""#), ("$fix_mode:upper", #""3D""#),
        ("$battery_frac", "0.87"),
        ("$odometer_km", "15.23"), ("$odometer:int", "15230"), ("$battery_state", #""charging""#), ("$battery_bs", "2"),
        ("$motion_word", #""driving""#), ("$id", #""id-1041""#), ("$first_seq", "1041"), ("$sent_s", "1700000020"),
        ("$batch_count", "1"), ("$outbox", #""7f3a91c2""#), ("$event|\"none\"", #""none""#), ("$event|null", "null"),
        ("$simulated|false", "false"), ("$geofence_id|-1.50", "-1.5"), ("$vars.asset_id:upper", #""A-1""#),
        ("$secret.key", #""s3 cret""#), ("$agent_version", #""1.2.3""#), ("$endpoint", #""main""#),
        ("$vars.none?|7", "7"), ("$$lat", #""$lat""#), ("$[?x]", #""[?x]""#), ("$[", #""[""#),
        ("a[0] $5", #""a[0] $5""#),
        ("seq ${seq}, $${seq}", #""seq 1041, ${seq}""#), ("waypost.${event|\"location\"}", #""waypost.location""#),
        ("${speed_mps:round0}/${bearing:int}", #""12.0/271""#), ("$reason:lptag", #""displacement""#),
    ]

    @Test(arguments: references) func rendersAReference(template: String, expected: String) throws {
        #expect(try Sample.record(["a": Tree(stringLiteral: template)]) == #"{"a":\#(expected)}"#)
    }

    static let activities: [(Activity.Kind?, String)] = [
        (.still, "stationary"), (.onFoot, "walking"), (.running, "running"),
        (.onBicycle, "cycling"),
        (.inVehicle, "driving"), (nil, "driving"),
    ]

    @Test(arguments: activities) func saysTheActivityAsOverlandDoes(kind: Activity.Kind?, word: String)
        throws
    {
        var row = Sample.row
        row.location.activity = kind.map { Activity(kind: $0, confidence: 50) }
        #expect(try Sample.record(["a": "$activity_word"], row) == #"{"a":"\#(word)"}"#)
        let known = try Sample.record(["activity": ["type": "$activity", "confidence": "$activity_confidence"]], row)
        let expected: String? = kind.map { #"{"activity":{"type":"\#($0.rawValue)","confidence":50}}"# }
        #expect(known == expected ?? "{}")
    }

    @Test func aBatteryIsFullFrom99PercentOnExternalPower() throws {
        for (percent, word) in [(98, "charging"), (99, "full")] {
            var row = Sample.row
            row.location.power.batteryPercent = percent
            #expect(try Sample.record(["a": "$battery_state"], row) == #"{"a":"\#(word)"}"#)
        }
    }

    @Test func leavesOutWhatIsNilOrBecameEmpty() throws {
        let record: Tree = [
            "event": "$event", "text": "at ${geofence_name}", "fence": ["id": "$geofence_id", "deep": ["a": "$event"]],
            "list": ["$event"], "none": "$vars.none?", "written": [:], "array": [], "seq": "$seq",
        ]
        #expect(try Sample.record(record) == #"{"written":{},"array":[],"seq":1041}"#)
        let expected = """
            {"event":"geofence","text":"at Depot North","fence":{"id":"f-1","deep":{"a":"geofence"}},\
            "list":["geofence"],"written":{},"array":[],"seq":1041}
            """
        #expect(try Sample.record(record, Sample.crossing) == expected)
        #expect(try Sample.record(["a": "$event"]) == "{}")
    }

    @Test func shortensAnArrayAtItsEndOnly() throws {
        let record: Tree = ["at": ["$lon", "$lat", "$altitude_hae"], "or": ["$altitude|0", "$lat"]]
        #expect(try Sample.record(record) == #"{"at":[13.404954,52.5200066,73.7],"or":[34.1,52.5200066]}"#)
        #expect(try Sample.record(record, Sample.bare(seq: 1)) == #"{"at":[-0.0000001,0.0000001],"or":[0,0.0000001]}"#)
    }

    @Test func writesFloatsAlwaysWithAFractionAndNeverMinusZero() throws {
        var row = Sample.row
        row.location.speed = 13
        row.location.coordinate = try #require(Coordinate(latitude: -0.000_000_04, longitude: 0))
        row.location.course = 359.96
        row.location.horizontalAccuracy = 0.3
        #expect(
            try Sample.record(
                ["a": "$speed_mps", "b": "$lat", "c": "$bearing", "d": "$accuracy:int", "e": 2.5, "f": 3.0], row)
                == #"{"a":13.0,"b":0.0,"c":0.0,"d":1,"e":2.5,"f":3.0}"#)
        row.location.course = 359.6
        #expect(
            try Sample.record(["a": "$bearing:int", "b": "$bearing:round0", "c": "$bearing:ceil"], row)
                == #"{"a":0,"b":0.0,"c":0}"#)
    }

    static let escapes: [(String, String, String)] = [
        ("é", "%C3%A9", #"\u00e9"#), (" ", "%20", " "), ("&", "%26", "&"), ("+", "%2B", "+"), ("%", "%25", "%"),
        ("🚐", "%F0%9F%9A%90", #"\ud83d\ude90"#), ("/", "%2F", "/"), ("~", "~", "~"),
    ]

    @Test(arguments: escapes) func escapesByPlace(text: String, percent: String, ascii: String) throws {
        var row = Sample.row
        row.location.reason = text
        let single: Tree = ["max_records": 1, "url": "${base_url}/x[?/${reason}]", "record": "$lat"]
        #expect(try Sample.url(single, row) == "https://fleet.example/api/x/\(percent)")
        #expect(try Sample.body(["encoding": "form", "record": ["a b": "$reason"]], [row]) == "a%20b=\(percent)")
        #expect(
            try Sample.url(["encoding": "query", "record": ["a": "$reason", "b": "x y"]], row)
                == "https://fleet.example/api?a=\(percent)&b=x%20y")
        #expect(try Sample.record(["a": "$reason", "b": "<${reason}>"], row) == #"{"a":"\#(text)","b":"<\#(text)>"}"#)
        #expect(
            try Sample.record(["a": "$reason", "b": "é${reason}"], row, ascii: true)
                == #"{"a":"\#(ascii)","b":"\u00e9\#(ascii)"}"#)
    }

    @Test func dropsAnOptionalSegmentWhole() throws {
        let tree: Tree = [
            "max_records": 1, "record": "$lat",
            "url": "${base_url}/device[??event=${geofence_action:upper}&fenceId=${geofence_name}]",
            "headers": ["X-Fence": "[?${geofence_name}]", "X-Secret": "$secret.key", "X-None": "[?${vars.none?}]"],
        ]
        #expect(try Sample.url(tree) == "https://fleet.example/api/device")
        #expect(
            try Sample.url(tree, Sample.crossing)
                == "https://fleet.example/api/device?event=ENTER&fenceId=Depot%20North")
        let renderer = RequestRenderer(try Sample.settings(tree), in: Sample.context)
        let headers = renderer.request(for: Sample.batch([Sample.crossing])).headers
        #expect(headers.map(\.name) == ["Content-Type", "Idempotency-Key", "X-Fence", "X-Secret"])
        #expect(headers.map(\.value).suffix(2) == ["Depot North", "s3 cret"])
    }

    /// What is there decides about `?` and `&`, and an outer segment about those within it.
    @Test func aQueryIsJoinedByWhatIsThere() throws {
        let rows: [(url: String, plain: String, crossing: String)] = [
            ("[??a=${geofence_name}][?&b=${lat}]", "?b=52.5", "?a=Depot%20North&b=52.5"),
            ("?k=1[??a=${geofence_name}][?&b=${lat}]", "?k=1&b=52.5", "?k=1&a=Depot%20North&b=52.5"),
            ("[??e=${geofence_action}[?&b=${lat}][?&n=${vars.none?}]]", "", "?e=enter&b=52.5"),
            ("[?/${geofence_name}][??b=${lat}]", "?b=52.5", "/Depot%20North?b=52.5"),
        ]
        for (url, plain, crossing) in rows {
            let tree: Tree = [
                "max_records": 1, "record": "$lat", "url": Tree(ProfileNode(.string("${base_url}\(url)"))),
            ]
            var (parked, entering) = (Sample.row, Sample.crossing)
            let place = Coordinate(latitude: 52.5, longitude: 13)!
            (parked.location.coordinate, entering.location.coordinate) = (place, place)
            #expect(try Sample.url(tree, parked) == "https://fleet.example/api\(plain)", "\(url)")
            #expect(try Sample.url(tree, entering) == "https://fleet.example/api\(crossing)", "\(url)")
        }
    }

    /// A variable chooses a value of the record, and another stands in while it is missing.
    @Test func aVariableMayNameAValue() throws {
        let tree: Tree = ["max_records": 1, "record": "$lat", "url": "${base_url}[?/${vars.by?:upper|$geofence_name}]"]
        var row = Sample.crossing
        row.location.geofence?.serverID = "1"
        func path(_ value: String?) throws -> String {
            var constants = Sample.constants
            constants.vars["by"] = value
            let settings = try Sample.settings(tree, constants: constants)
            let url = RequestRenderer(settings, in: Sample.context).request(for: Sample.batch([row])).url
            return String(url.dropFirst("https://fleet.example/api".count))
        }
        #expect(try path(nil) == "/DEPOT%20NORTH")
        #expect(try path("$geofence_id") == "/F-1")
        #expect(try path("$geofence_server_id") == "/1")
        #expect(try path("$5") == "/%245" && path("$secret.key") == "/%24SECRET.KEY" && path("plain") == "/PLAIN")
        row.location.geofence = nil
        #expect(try path("$geofence_id") == "")
        for text in ["${vars.by|$lat}", "${geofence_id|$lat}"] {
            #expect(throws: (any Error).self) {
                try Sample.settings(["max_records": 1, "record": "$lat", "url": Tree(stringLiteral: text)])
            }
        }
    }

    @Test func masksSecretsEverywhere() throws {
        let tree: Tree = [
            "max_records": 1, "url": "${base_url}?key=${secret.key}", "headers": ["A": "Bearer ${auth.token}"],
            "record": ["k": "$secret.key", "u": "$secret.key:upper"],
        ]
        var constants = Sample.constants
        constants.hasToken = true
        var context = Sample.context
        let settings = try Sample.settings(tree, constants: constants)
        #expect(settings.profile.usesSecrets)
        let open = RequestRenderer(settings, in: context).request(for: Sample.batch([Sample.row]))
        #expect(open.url.hasSuffix("?key=s3%20cret"))
        #expect(open.headers.last?.value == "Bearer t0k")
        context.isMasked = true
        let masked = RequestRenderer(settings, in: context).request(for: Sample.batch([Sample.row]))
        #expect(masked.url.hasSuffix("?key=***"))
        #expect(masked.headers.last?.value == "Bearer ***")
        #expect(String(decoding: masked.body, as: UTF8.self) == #"{"k":"***","u":"***"}"#)
    }

    @Test func neverLetsAHeaderBreakItsLine() throws {
        var row = Sample.crossing
        row.location.geofence?.name = "a\r\nX-Evil: 1"
        let settings = try Sample.settings([
            "max_records": 1, "record": "$lat", "headers": ["X-Fence": "[?${geofence_name}]"],
        ])
        #expect(
            BatchPlanner(settings).plan([row], limit: 1, isEnd: true, ages: nil).settled.map(\.why) == [
                .refused(rule: "headers")
            ])
        let value = RequestRenderer(settings, in: Sample.context).request(for: Sample.batch([row])).headers.last?.value
        #expect(value == "a  X-Evil: 1")
    }

    @Test func namesTheIdempotencyKeyUnlessTheProfileDoes() throws {
        func names(_ headers: Tree, _ encoding: Tree = "json") throws -> [String] {
            let settings = try Sample.settings([
                "encoding": encoding, "record": ["a": "$lat"], "headers": headers, "line": "x",
            ])
            return RequestRenderer(settings, in: Sample.context).request(for: Sample.batch([Sample.row])).headers
                .map(\.name)
        }
        #expect(try names([:]) == ["Content-Type", "Idempotency-Key"])
        #expect(try names(["idempotency-key": "${batch_id}"]) == ["Content-Type", "idempotency-key"])
        #expect(try names(["Idempotency-Key": false]) == ["Content-Type"])
        #expect(try names([:], "form") == ["Content-Type"])
        #expect(try names([:], "query") == [])
        #expect(try names(["content-type": "a/b"]) == ["Idempotency-Key", "content-type"])
    }

    static let tags: [(String, String)] = [
        ("van-7", "van-7"), (#"C:\depot\"#, #"C:\depot"#), (#"\"#, "_"), (#"a\,b"#, #"a\,b"#), (#"a\\ b"#, #"a\ b"#),
        ("a\tb\u{7f}c", #"a\ b\ c"#), ("a\r\nb", #"a\ \ b"#), ("\u{1}", #"\ "#), ("é=1", #"é\=1"#),
    ]

    private static let line: Tree = [
        "encoding": "lines", "line": "m[?,fence=${geofence_name:lptag}] lat=${lat} ${time_ms}",
    ]

    @Test(arguments: tags) func escapesATagOfLineProtocol(_ text: String, _ tag: String) throws {
        var row = Sample.crossing
        row.location.geofence?.name = text
        #expect(try Sample.body(Self.line, [row]) == "m,fence=\(tag) lat=52.5200066 1700000000123\n")
    }

    /// The server of InfluxDB 1 and 2 looks at the one byte before a delimiter; its documents and version 3 take two
    /// backslashes for one that stands for itself.
    @Test(arguments: testSeeds(1...4)) func aTagIsReadAsOneByEveryKindOfReader(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let pieces = [#"\"#, ",", "=", " ", "\n", "\t", "a", "é", "\"", "\u{0}"]
        let renderer = RequestRenderer(try Sample.settings(Self.line), in: Sample.context)
        var wrong: [String] = []
        for _ in 0..<300 {
            let text = (0..<Int.random(in: 1...8, using: &random)).map { _ in pieces.randomElement(using: &random)! }
            var row = Sample.crossing
            row.location.geofence?.name = text.joined()
            let body = renderer.request(for: Sample.batch([row])).body
            for pairs in [false, true] {
                let end = Self.tagEnd(body, pairsAreOne: pairs) ?? 8
                if end == 8 || !body[end...].starts(with: " lat=52.5".utf8) { wrong.append(text.joined()) }
            }
        }
        #expect(wrong.isEmpty)
    }

    /// Where the tag ends whose value begins at the eighth byte; nil where a reader finds no end, another tag or a second `=`.
    private static func tagEnd(_ line: [UInt8], pairsAreOne: Bool) -> Int? {
        var index = 8
        while index < line.count {
            let byte = line[index]
            if byte == UInt8(ascii: "\\"), index + 1 < line.count {
                let next = line[index + 1]
                let isEscape = ",= ".utf8.contains(next)
                if isEscape || (pairsAreOne && next == byte) {
                    index += 2
                    continue
                }
            }
            if byte == UInt8(ascii: " ") { return index }
            if byte < 0x20 || ",=".utf8.contains(byte) { return nil }
            index += 1
        }
        return nil
    }

    @Test func writesLinesAndTables() throws {
        var row = Sample.crossing
        row.location.geofence?.name = "De,pot \"N\"=1"
        let text =
            "loc,device=${device:lptag}[?,fence=${geofence_name:lptag}] lat=${lat}[?,n=${geofence_name:lpstr}] ${time_ms}"
        let line: Tree = ["encoding": "lines", "line": Tree(stringLiteral: text)]
        let expected = #"""
            loc,device=van-7,fence=De\,pot\ "N"\=1 lat=52.5200066,n="De,pot \"N\"=1" 1700000000123
            loc,device=van-7 lat=52.5200066 1700000000123

            """#
        #expect(try Sample.body(line, [row, Sample.row]) == expected)
        let table: Tree = [
            "encoding": "csv", "record": ["seq": "$seq", "fence, name": "$geofence_name", "v": "$speed_mps"],
        ]
        let csv = try Sample.body(table, [row, Sample.bare(seq: 2)])
        #expect(csv == "seq,\"fence, name\",v\r\n1041,\"De,pot \"\"N\"\"=1\",12.3\r\n2,,\r\n")
        row.location.geofence?.name = "two\nlines"
        #expect(try Sample.body(table, [row]).hasSuffix("1041,\"two\nlines\",12.3\r\n"))
        let lines: Tree = ["encoding": "ndjson", "record": ["a": "$seq"]]
        #expect(try Sample.body(lines, [row, Sample.bare(seq: 2)]) == "{\"a\":1041}\n{\"a\":2}\n")
    }

    @Test func usesTheTemplatesOfAnEvent() throws {
        let tree: Tree = [
            "max_records": 1, "record": ["a": "$lat"], "body": ["r": "$record"],
            "on": ["geofence": ["url": "${base_url}/event", "record": ["f": "$geofence_id"]], "heartbeat": "skip"],
        ]
        let settings = try Sample.settings(tree)
        let event = RequestRenderer(settings, in: Sample.context).request(for: Sample.batch([Sample.crossing]))
        #expect(event.url == "https://fleet.example/api/event")
        #expect(String(decoding: event.body, as: UTF8.self) == #"{"r":{"f":"f-1"}}"#)
        let plain = RequestRenderer(settings, in: Sample.context).request(for: Sample.batch([Sample.row]))
        #expect(plain.url == "https://fleet.example/api")
        #expect(String(decoding: plain.body, as: UTF8.self) == #"{"r":{"a":52.5200066}}"#)
    }

    @Test func tellsOtherCrossingsAsPlainFixes() throws {
        var dwell = Sample.crossing
        dwell.location.geofence?.action = .dwell
        let tree: Tree = ["geofence_actions": ["enter", "exit"], "record": ["e": "$event", "f": "$geofence_id"]]
        #expect(try Sample.body(tree, [dwell, Sample.crossing]) == #"[{},{"e":"geofence","f":"f-1"}]"#)
    }

    @Test func bearsTheNewestBesideTheBatch() throws {
        let settings = try Sample.settings(["record": ["a": "$seq"], "body": ["l": "$records", "current": "$newest"]])
        #expect(settings.profile.usesNewest)
        var batch = Sample.batch([Sample.bare(seq: 1), Sample.bare(seq: 2)])
        func body() -> String {
            String(decoding: RequestRenderer(settings, in: Sample.context).request(for: batch).body, as: UTF8.self)
        }
        #expect(body() == #"{"l":[{"a":1},{"a":2}]}"#)
        batch.newest = Sample.row
        #expect(body() == #"{"l":[{"a":1},{"a":2}],"current":{"a":1041}}"#)
    }

    @Test func makesTheRequestThatBinds() throws {
        let settings = try Sample.settings([
            "record": "$lat",
            "bind": [
                "url": "${base_url}/asset/${vars.asset_id}/bind?key=${secret.key}", "body": ["device_id": "$device"],
                "headers": ["X-A": "b"],
            ],
        ])
        let request = try #require(RequestRenderer(settings, in: Sample.context).bindRequest())
        #expect(request.method == "POST")
        #expect(request.url == "https://fleet.example/api/asset/a-1/bind?key=s3%20cret")
        #expect(request.headers == [.init("Content-Type", "application/json"), .init("X-A", "b")])
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"device_id":"van-7"}"#)
        #expect(try RequestRenderer(Sample.settings(["record": "$lat"]), in: Sample.context).bindRequest() == nil)
    }

    @Test func tellsTheValueThatAnItemErrorNames() throws {
        let renderer = RequestRenderer(try Sample.settings(["record": "$lat"]), in: Sample.context)
        let batch = Batch(endpoint: "main", id: "b-1", rows: [Sample.row], sentMs: nil, outbox: Sample.outbox)
        func text(_ reference: String) -> String? { renderer.texts(of: reference, for: batch)[0] }
        let known = ["id", "seq", "accuracy:ceil", "device", "$batch_id", "vars.asset_id", "event", "nonsense"].map(
            text)
        #expect(known == ["id-1041", "1041", "5", "van-7", "b-1", "a-1", nil, nil])
    }

    @Test func changesTheRenderingWithWhateverDecidesTheBytes() throws {
        func rendering(_ tree: Tree, _ change: (inout ProfileConstants) -> Void = { _ in }) throws -> String {
            var constants = Sample.constants
            change(&constants)
            return try Sample.settings(tree, constants: constants).profile.rendering
        }
        let tree: Tree = ["record": ["a": "$lat", "b": "$device"], "url": "${base_url}/${vars.asset_id}"]
        let base = try rendering(tree)
        #expect(base.hasPrefix("test/"))
        #expect(try rendering(tree) == base)
        #expect(try rendering(["record": ["a": "$lat", "b": "$device"], "max_records": 7]) == base)
        #expect(try rendering(tree) { $0.vars["asset_id"] = "b" } == base)
        #expect(try rendering(tree) { $0.device = "b" } != base)
        #expect(try rendering(["record": ["b": "$device", "a": "$lat"]]) != base)
        #expect(try rendering(["record": ["a": "$lat", "b": "$device"], "ascii": true]) != base)
        let other = try Sample.settings(tree).profile
        #expect(other == (try Sample.settings(tree).profile))
        #expect(other != (try Sample.settings(["record": ["a": "$lat", "b": "$device"]]).profile))
    }

    @Test func readsTheRulesForReplies() throws {
        let settings = try Sample.settings([
            "record": "$lat",
            "response": [
                "ok_status": [200, 204],
                "ok_json": ["path": ["msg", "a.b"], "in": ["Ok", 1, true], "missing_ok": true],
                "item_errors": [
                    "path": "errors", "match": ["id": "$id"], "code": "error.code", "reason": "text",
                    "retry_codes": ["busy", 2], "auth_codes": ["denied"],
                ],
                "collision": [["status": [409]], ["json": ["path": "error", "contains": "not bound"]]],
                "retry": ["5xx"], "split": [], "stored": "saved", "html": "accept",
            ],
        ])
        let expected = ResponseRules(
            okStatus: [200, 204],
            okJSON: .init(paths: [["msg"], ["a", "b"]], values: ["Ok", "1", "true"], missingIsOk: true),
            itemErrors: .init(
                path: ["errors"], match: .fields(["id": "id"]), code: ["error", "code"], reason: ["text"],
                retryCodes: ["busy", "2"], authCodes: ["denied"]),
            collision: [.init(status: [409]), .init(paths: [["error"]], contains: "not bound")],
            classes: [.retry: Set(500...599), .split: []], storedPath: ["saved"], acceptsPages: true)
        #expect(settings.profile.response == expected)
        func okJSON(_ tree: Tree) throws -> ResponseRules.OkJSON? {
            try Sample.settings(["record": "$lat", "response": ["ok_json": tree]]).profile.response.okJSON
        }
        #expect(try okJSON(["is": "array"]) == .init(paths: [[]], isArray: true))
        #expect(try okJSON(["is": "array", "path": "a.b"]) == .init(paths: [["a", "b"]], isArray: true))
    }
}
