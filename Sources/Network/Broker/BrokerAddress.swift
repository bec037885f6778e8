/// Where a broker is: `mqtt://host[:port]`, `mqtts://…`, or MQTT over WebSocket as `ws://host[:port]/path` and `wss://…`.
package struct BrokerAddress: Hashable, Sendable {
    /// Host and port.
    package let authority: String
    package let isEncrypted: Bool
    /// Of the upgrade; nil = MQTT without WebSocket.
    package let webSocketTarget: String?

    private static let schemes: [String: (isEncrypted: Bool, port: Int, isWebSocket: Bool)] = [
        "mqtt": (false, 1883, false), "mqtts": (true, 8883, false), "ws": (false, 80, true), "wss": (true, 443, true),
    ]

    /// As libcurl takes it, whose transport is the same.
    package var connectURL: String { "\(isEncrypted ? "https" : "http")://\(authority)" }

    /// nil for other URLs.
    package init?(_ url: String) {
        guard let separator = url.firstOccurrence(of: "://"),
            let scheme = Self.schemes[url[..<separator.lowerBound].lowercased()]
        else { return nil }
        let rest = url[separator.upperBound...]
        let written = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(written.count)
        let afterAddress = written.lastIndex(of: "]").map { written[$0...] } ?? written
        authority = afterAddress.contains(":") ? String(written) : "\(written):\(scheme.port)"
        isEncrypted = scheme.isEncrypted
        webSocketTarget = scheme.isWebSocket ? (path.isEmpty ? "/mqtt" : String(path)) : nil
    }
}
