import ProfilesTestSupport
import Testing
import WaypostCore

@testable import Profiles
@testable import Protocols

/// Profiles whose rows are messages to a broker.
@Suite struct BrokerProfileTests {
    private static let single: Tree = ["mqtt": ["topic": "fleet/${device}/${trackable}"], "record": ["lat": "$lat"]]

    private func messages(_ tree: Tree, _ rows: [QueuedLocation] = [Sample.row]) throws -> [MQTTMessage] {
        let request = try RequestRenderer(Sample.settings(tree), in: Sample.context).request(for: Sample.batch(rows))
        return Array(try #require(request.broker).messages)
    }

    private func text(_ message: MQTTMessage?) -> String { String(decoding: message?.payload ?? [], as: UTF8.self) }

    @Test func eachRowIsAMessage() throws {
        var other = Sample.row
        other.location.trackable = "truck.12/a b"
        let messages = try messages(Self.single, [Sample.row, other])
        // A value stays one level.
        #expect(messages.map(\.topic) == ["fleet/van-7/van-7", "fleet/van-7/truck-12-a-b"])
        #expect(messages.map(text) == [#"{"lat":52.5200066}"#, #"{"lat":52.5200066}"#])
        #expect(messages.allSatisfy { $0.qos == .atLeastOnce && !$0.isRetained })
    }

    @Test func severalRowsMayShareAMessage() throws {
        let tree: Tree = ["mqtt": ["topic": "t", "records": 2], "record": ["n": "$seq"]]
        let messages = try messages(tree, (1...5).map { Sample.bare(seq: $0) })
        #expect(messages.map(text) == [#"[{"n":1},{"n":2}]"#, #"[{"n":3},{"n":4}]"#, #"[{"n":5}]"#])
    }

    @Test func anEventHasATopicOfItsOwnAndIsNotRetained() throws {
        let tree: Tree = [
            "mqtt": ["topic": "t", "retain": true], "record": ["lat": "$lat"],
            "on": ["geofence": ["topic": "t/event", "record": ["name": "$geofence_name"]]],
        ]
        let plain = try #require(try messages(tree).first)
        #expect(plain.topic == "t" && plain.isRetained)
        let event = try #require(try messages(tree, [Sample.crossing]).first)
        #expect(event.topic == "t/event" && !event.isRetained && text(event) == #"{"name":"Depot North"}"#)
    }

    @Test func whatIsSaidOnConnecting() throws {
        let tree: Tree = [
            "mqtt": [
                "topic": "t", "user": "${secret.key}", "client_id": "c-${device}", "qos": 0,
                "will": ["topic": "s/${device}", "payload": "off", "retain": true],
                "birth": [
                    ["topic": "s/${device}", "payload": "on", "retain": true],
                    ["topic": "c", "payload": ["id": "$device", "old": false]], ["topic": "gone", "payload": ""],
                ],
            ], "record": ["lat": "$lat"],
        ]
        let renderer = RequestRenderer(try Sample.settings(tree), in: Sample.context)
        let broker = try #require(renderer.connectRequest()?.broker)
        #expect(broker.messages.isEmpty && broker.session.staysOpen)
        #expect(broker.session.clientID == "c-van-7" && broker.session.user == "s3 cret")
        #expect(broker.session.will == MQTTMessage(topic: "s/van-7", payload: Array("off".utf8), isRetained: true))
        #expect(broker.session.births.map(text) == ["on", #"{"id":"van-7","old":false}"#, ""])
        #expect(broker.session.births.map(\.isRetained) == [true, false, false])
        #expect(try messages(tree).first?.qos == .atMostOnce)
    }

    /// A name that keeps a letter or digit has the id that it always had; what others left under the id that they shared is cleared.
    @Test func namesOfOtherScriptsHaveIDsOfTheirOwn() throws {
        let tree: Tree = [
            "mqtt": [
                "topic": "w/${device:slug}", "retain": true, "will": ["topic": "w/${device:slug}/on", "payload": "0"],
                "birth": [
                    ["topic": "h/${device:slug}/config", "payload": "{}", "retain": true],
                    ["topic": "h/fixed", "payload": "{}", "retain": true],
                ],
            ], "record": ["lat": "$lat"],
        ]
        let rows = [
            ("van-7", "van-7", nil), ("Van 7/b", "Van_7_b", nil), ("Фура 1", "_____1", nil), ("Müller", "M_ller", nil),
            ("Фура", "_36793228", "____"), ("Лада", "_5d6aa3b0", "____"), ("-_", "_72cd9e25", "-_"),
            ("🚚", "_65a761ec", "_"),
        ]
        for (name, id, former) in rows {
            var settings = try Sample.settings(tree)
            settings.device = name
            let session = RequestRenderer(settings, in: Sample.context).connectRequest()?.broker?.session
            #expect(session?.births.first?.topic == "h/\(id)/config", "\(name)")
            #expect(session?.formerTopics == former.map { ["w/\($0)", "h/\($0)/config"] } ?? [], "\(name)")
        }
    }

    @Test func withoutBrokerThereIsNothingToConnect() throws {
        #expect(RequestRenderer(try Sample.settings(["record": "$lat"]), in: Sample.context).connectRequest() == nil)
    }

    static let mistakes: [(String, Tree)] = [
        ("mqtt.topic", ["mqtt": [:], "record": "$lat"]),
        ("mqtt.topic", ["mqtt": ["topic": "fleet/#"], "record": "$lat"]),
        ("mqtt.topic", ["mqtt": ["topic": "fleet/${agent_version}"], "record": "$lat"]),
        ("mqtt.topic", ["mqtt": ["topic": "fleet/${lat}", "records": 9], "record": "$lat"]),
        ("mqtt.topic", ["mqtt": ["topic": "fleet/${battery_pct}"], "record": "$lat"]),
        ("mqtt.qos", ["mqtt": ["topic": "t", "qos": 2], "record": "$lat"]),
        ("mqtt.rows", ["mqtt": ["topic": "t", "rows": 2], "record": "$lat"]),
        ("mqtt.will.payload", ["mqtt": ["topic": "t", "will": ["topic": "w"]], "record": "$lat"]),
        (
            "mqtt.will.topic",
            ["mqtt": ["topic": "t", "will": ["topic": "w/${lat}", "payload": "x"]], "record": "$lat"]
        ),
        ("mqtt.birth", ["mqtt": ["topic": "t", "birth": ["topic": "w", "payload": "x"]], "record": "$lat"]),
        ("url", ["mqtt": ["topic": "t"], "record": "$lat", "url": "${base_url}/x"]),
        ("encoding", ["mqtt": ["topic": "t"], "record": ["a": "$lat"], "encoding": "form"]),
        ("on.geofence.url", ["mqtt": ["topic": "t"], "record": "$lat", "on": ["geofence": ["url": "x"]]]),
        ("on.geofence.topic", ["record": "$lat", "on": ["geofence": ["topic": "x"]]]),
    ]

    @Test(arguments: mistakes)
    func aMistakeIsFoundBeforeAnythingIsSent(_ path: String, _ tree: Tree) {
        #expect(Sample.problems(tree).map(\.keyPath) == [path])
    }
}
