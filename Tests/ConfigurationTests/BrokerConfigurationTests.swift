import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostCore

@testable import Configuration

/// Endpoints whose server is a broker.
@Suite struct BrokerConfigurationTests {
    private func endpoint(_ lines: String) -> String {
        "[source]\nkind = \"file\"\npath = \"-\"\n[[endpoint]]\n\(lines)\n"
    }

    @Test func readsWhatABrokerNeeds() throws {
        let loaded = try loaded(
            endpoint(
                """
                base_url = "mqtts://broker.example:8883"
                profile = "waypost-mqtt"
                publish_rate = "engine"
                keepalive = "10m"
                client_id = "van-7"
                auth = { kind = "basic", user = "van", password = "env:BROKER_PASSWORD" }
                """), testEnvironment(["BROKER_PASSWORD": "p"]))
        let settings = try #require(loaded.config.endpoints.first).settings
        #expect(settings.publishRate == nil && settings.keepAlive == .seconds(600) && settings.clientID == "van-7")
        #expect(settings.profile.isForBroker && settings.baseURL == "mqtts://broker.example:8883")
    }

    /// Before a WebSocket there is often nginx, which ends what is silent for a minute.
    @Test func asksMoreOftenOverAWebSocket() throws {
        let rows: [(String, Int64, Bool)] = [
            ("mqtts://b.example", 300, true), ("wss://b.example/mqtt", 50, true),
            ("wss://b.example/mqtt\"\nkeepalive = \"2m", 120, false),
        ]
        for (url, seconds, learns) in rows {
            let lines = "profile = \"waypost-mqtt\"\nbase_url = \"\(url)\""
            let settings = try #require(try loaded(endpoint(lines), testEnvironment()).config.endpoints.first).settings
            #expect(settings.keepAlive == .seconds(seconds) && settings.learnsKeepAlive == learns, "\(url)")
        }
    }

    /// That a broker confirms before it stores is said by `check`, unless the operator says that this one stores.
    @Test func warnsOfAWeakConfirmation() throws {
        let lines = "base_url = \"mqtts://b.example\"\nprofile = \"waypost-mqtt\"\ndevice = \"van-7\""
        let warnings = try loaded(endpoint(lines), testEnvironment()).warnings.map(\.description)
        #expect(warnings.contains { $0.contains("confirms a message before it has stored it") }, "\(warnings)")
        #expect(try loaded(endpoint(lines + "\npublish_rate = \"engine\""), testEnvironment()).warnings.isEmpty)
        let latest = lines.replacing("waypost-mqtt", with: "home-assistant-mqtt")
        #expect(try loaded(endpoint(latest), testEnvironment()).warnings.isEmpty)
    }

    /// What is one broker, one session and one client id; each line is the endpoint `a`, `b` or `c`.
    @Test func sessionsOfOneBrokerHaveIDsOfTheirOwn() throws {
        func ids(_ endpoints: String...) throws -> (ids: [String?], conflicts: [String], warnings: [String]) {
            let text = zip(["a", "b", "c"], endpoints).map {
                "[[endpoint]]\nname = \"\($0)\"\ndevice = \"van\"\n\($1)\n"
            }
            let loaded = try loaded(
                "[source]\nkind = \"file\"\npath = \"-\"\n" + text.joined(), testEnvironment(["P": "p"]))
            let settings = loaded.config.endpoints.map(\.settings)
            return (
                settings.map(\.clientID), settings.compactMap(\.clientIDSharedWith),
                loaded.warnings.map(\.description).filter { $0.contains("client id") }
            )
        }
        func broker(_ profile: String, _ more: String = "", host: String = "b.example") -> String {
            "base_url = \"mqtts://\(host)\"\nprofile = \"\(profile)\"\npublish_rate = \"engine\"\n\(more)"
        }
        let (own, home) = ("waypost-mqtt", "home-assistant-mqtt")
        let mixed = try ids(broker(own), broker(home), broker(own))
        #expect(mixed.ids == ["waypost-van", "waypost-van-b", "waypost-van"] && mixed.warnings.isEmpty)
        let apart = try ids(broker(own), broker(home, host: "other.example"))
        #expect(apart.ids == ["waypost-van", "waypost-van"])
        let user = "auth = { kind = \"basic\", user = \"u\", password = \"env:P\" }"
        #expect(try ids(broker(own), broker(own, user)).ids == ["waypost-van", "waypost-van-b"])
        let equal = try ids(broker(own, "client_id = \"x\""), broker(own, "client_id = \"x\""))
        #expect(equal.conflicts.isEmpty && equal.warnings.isEmpty, "one connection")
        let clash = try ids(broker(own, "client_id = \"x\""), broker(home, "client_id = \"x\""))
        #expect(clash.ids == ["x", "x"] && clash.conflicts == ["a"] && clash.warnings.count == 1)
    }

    /// Names of one host; those of others are out of sight.
    @Test func namesThatBecomeOneTopicAreNamed() throws {
        func warnings(_ names: [String], profile: String = "home-assistant-mqtt", trackables: [String] = []) throws
            -> [String]
        {
            let own = "[profile.own]\nrecord = { lat = \"$lat\" }\nmqtt = { topic = \"fleet/${trackable:slug}\" }\n"
            let endpoints = names.enumerated().map { index, name in
                "[[endpoint]]\nname = \"e\(index)\"\nbase_url = \"mqtts://b.example\"\nprofile = \"\(profile)\"\n"
                    + "device = \"\(name)\"\npublish_rate = \"engine\"\n"
            }
            let ids = trackables.map { "[[trackable]]\nid = \"\($0)\"\n" }
            let text = "[source]\nkind = \"file\"\npath = \"-\"\n" + own + (endpoints + ids).joined()
            return try loaded(text, testEnvironment()).warnings.map(\.description)
        }
        let devices = try warnings(["Фура 1", "Лада 1", "van"])
        #expect(
            devices.count == 1 && devices[0].contains(#"as "Фура 1" of endpoint "e0" has: set device to"#), "\(devices)"
        )
        #expect(try warnings(["Фура", "Лада"]).isEmpty)
        #expect(try warnings(["van", "van"]).isEmpty, "one asset at two endpoints")
        let trackables = try warnings(["van"], profile: "own", trackables: ["van 7", "a", "van_7"])
        #expect(
            trackables.count == 1
                && trackables[0].contains(#"the trackables "van 7" and "van_7" have the same topic "#),
            "\(trackables)")
        #expect(try warnings(["van"], trackables: ["van 7", "van_7"]).isEmpty, "a topic without trackable")
    }

    static let mistakes = rows(
        #"""
        base_url = "https://b.example" ⏎ profile = "waypost-mqtt" → expected mqtts://…
        base_url = "mqtts://b.example" → expected https://… (or a profile of MQTT)
        base_url = "mqtt//b.example" ⏎ profile = "waypost-mqtt" → endpoint.base_url
        base_url = "mqqt://b.example" ⏎ profile = "waypost-mqtt" → did you mean "mqtt://b.example"?
        base_url = "https://b.example" ⏎ publish_rate = 20 → expected it only with one of MQTT
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ publish_rate = 0 → or "engine"
        base_url = "https://b.example" ⏎ no_subscriber = "accept" → expected it only with one of MQTT
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ no_subscriber = "no" → "hold" or "accept"
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ keepalive = "1s" → endpoint.keepalive
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ compress = "gzip" → only with HTTP
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ headers = { X-A = "b" } → only with HTTP
        base_url = "mqtts://b.example" ⏎ profile = "waypost-mqtt" ⏎ device = "van.7" → as a level of a topic
        base_url = "mqtt://b.example"
        profile = "waypost-mqtt"
        auth = { kind = "basic", user = "u", password = "env:P" }
        → found plain mqtt to b.example with a secret, expected mqtts
        base_url = "ws://b.example"
        profile = "waypost-mqtt"
        auth = { kind = "basic", user = "u", password = "env:P" }
        → found plain ws to b.example with a secret, expected wss
        base_url = "mqtts://b.example"
        profile = "waypost-mqtt"
        auth = { kind = "header", name = "X", key = "env:P" }
        → expected "basic"
        """#)

    @Test(arguments: mistakes) func aMistakeIsTold(_ lines: String, _ words: String) {
        let found = problems(endpoint(lines), testEnvironment(["P": "p"]))
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }
}
