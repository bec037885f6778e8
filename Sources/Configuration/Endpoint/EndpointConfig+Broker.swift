import Profiles
import WaypostCore

extension EndpointSettings {
    /// `publish_rate`, `keepalive`, `client_id` and `no_subscriber`: keys of endpoints whose profile is one of MQTT.
    ///
    /// - Parameter isWebSocket: the address is one of `ws` or `wss`, before which there is often a proxy: nginx ends what is silent
    ///   for 60 s.
    mutating func readBroker(
        _ table: TableReader, _ profile: ProfileSuggestions, isBroker: Bool, isWebSocket: Bool
    ) {
        if isWebSocket, isBroker { keepAlive = .seconds(50) }
        let usualKeepAlive = keepAlive
        table.read(
            "publish_rate", into: &publishRate,
            as: ValueForm<Int>.integer("a number of messages in a second", .between(1, 10_000)).orNone("engine"),
            suggested: profile, on: .reload)
        table.read(
            "keepalive", into: &keepAlive, as: .duration(.between(10, 65_535)), suggested: profile)
        table.read(
            "client_id", into: &clientID, as: .text("a client id, of the characters that the broker takes"))
        table.read(
            "no_subscriber", into: &noSubscriber, as: .word(NoSubscriber.allCases.map { ($0.rawValue, $0) }),
            suggested: profile, on: .reload)
        learnsKeepAlive = keepAlive == usualKeepAlive
        let standard = EndpointSettings(baseURL: "", device: "")
        let changed = [
            ("publish_rate", publishRate != standard.publishRate), ("keepalive", keepAlive != standard.keepAlive),
            ("client_id", clientID != nil), ("no_subscriber", noSubscriber != standard.noSubscriber),
        ]
        for (key, isChanged) in changed where isChanged && !isBroker {
            table.report(key, "found it with the profile \(profile.name.asTOML), expected it only with one of MQTT")
        }
    }
}

extension EndpointConfig {
    /// What the transport and the profile have to agree on.
    func checkTransport(_ table: TableReader, _ url: BaseURL, isBroker: Bool, _ profile: ProfileSuggestions) {
        if url.isBroker != isBroker {
            table.report(
                "base_url",
                "found \(url.text.prefix { $0 != ":" })://… with the profile \(profile.name.asTOML), expected "
                    + (isBroker ? "mqtts://…, or wss://… for MQTT over WebSocket" : "https://… (or a profile of MQTT)"))
        }
        guard isBroker else { return }
        if settings.backupFor != nil {
            table.report("backup_for", "found it with a broker, expected an endpoint of HTTP to stand in")
        }
        if sign != nil { table.report("sign", "found it with a broker, expected it only with HTTP") }
        if case .header = auth { table.report("auth.kind", "found \"header\" with a broker, expected \"basic\"") }
        if table.has("headers") { table.report("headers", "found it with a broker, expected it only with HTTP") }
        if table.has("compress"), settings.gzip {
            table.report("compress", "found \"gzip\" with a broker, expected it only with HTTP")
        }
        if settings.delivery == .all, settings.publishRate != nil {
            table.warn(
                "base_url",
                "is a broker: it confirms a message before it has stored it, so that what waits for a subscriber may be "
                    + "lost with it. See docs/engines.md; publish_rate = \"engine\" where one stores them")
        }
    }
}
