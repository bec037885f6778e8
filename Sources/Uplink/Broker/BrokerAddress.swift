/// Where a broker is: `mqtt://host[:port]`, `mqtts://…`, or MQTT over WebSocket as `ws://host[:port]/path` and `wss://…`.
package struct BrokerAddress: Hashable, Sendable {
    /// As libcurl takes it, whose transport is the same.
    package let connectURL: String
    /// Of the upgrade; nil = MQTT without WebSocket.
    package let webSocketTarget: String?

    private static let schemes: [String: (web: String, port: Int, isWebSocket: Bool)] = [
        "mqtt": ("http", 1883, false), "mqtts": ("https", 8883, false), "ws": ("http", 80, true),
        "wss": ("https", 443, true),
    ]

    /// nil for other URLs.
    package init?(_ url: String) {
        guard let separator = url.firstOccurrence(of: "://"),
            let scheme = Self.schemes[url[..<separator.lowerBound].lowercased()]
        else { return nil }
        let rest = url[separator.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(authority.count)
        let afterAddress = authority.lastIndex(of: "]").map { authority[$0...] } ?? authority
        let port = afterAddress.contains(":") ? "" : ":\(scheme.port)"
        connectURL = "\(scheme.web)://\(authority)\(port)"
        webSocketTarget = scheme.isWebSocket ? (path.isEmpty ? "/mqtt" : String(path)) : nil
    }
}
