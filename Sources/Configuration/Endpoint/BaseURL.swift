import WaypostCore

/// Where an endpoint is: a scheme, a host, perhaps a port and a path.
package struct BaseURL: Equatable {
    package var isEncrypted: Bool
    /// MQTT, over WebSocket or without.
    var isBroker: Bool
    /// Without the brackets of an IPv6 address.
    package var host: String
    /// Without a trailing slash.
    var text: String

    /// `ws` or `wss`.
    var isWebSocket: Bool { isBroker && text.hasPrefix("ws") }

    static let expectation = "a URL such as \"https://fleet.example\""

    package static func parse(_ text: String) -> Result<BaseURL, Mistake> {
        guard let separator = text.firstOccurrence(of: "://") else {
            let hostLike = text.contains(".") || text.contains(":") || text.hasPrefix("localhost")
            let complete = "\(usualScheme(of: text))://\(text)"
            // What would be wrong again is no help.
            guard hostLike, case .success = parse(complete) else { return .failure(Mistake()) }
            return .failure(Mistake(suggestion: complete.asTOML))
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        let schemes = ["https", "http", "mqtts", "mqtt", "wss", "ws"]
        guard schemes.contains(scheme) else {
            let rest = text[separator.upperBound...]
            let meant = nearest(scheme, in: schemes).map { "\"\($0)://\(rest)\"" }
            return .failure(Mistake(suggestion: rest.contains("@") ? nil : meant))
        }
        var rest = text[separator.upperBound...]
        // First of all, because a message must not repeat a password.
        if rest.prefix(while: { $0 != "/" }).contains("@") {
            return .failure(
                Mistake(found: "a user name in the URL", expected: "a URL without one (see auth and secrets)"))
        }
        if rest.contains("?") {
            return .failure(
                Mistake(
                    found: "a query in the URL",
                    expected: "a URL that ends with its path: a key goes into auth, or into secrets and the url of a "
                        + "profile"))
        }
        if rest.contains("#") {
            return .failure(Mistake(found: "a fragment in the URL", expected: "a URL that ends with its path"))
        }
        let name = rest.prefix { $0 != "/" && $0 != ":" }
        if !name.utf8.allSatisfy({ $0 < 0x80 }) {
            let path = rest.dropFirst(name.count)
            let isPlain = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            return .failure(
                Mistake(
                    found: "a host with letters beyond ASCII", expected: "its form for the DNS (punycode)",
                    suggestion: isPlain ? Punycode.host(String(name)).map { "\"\(scheme)://\($0)\(path)\"" } : nil))
        }
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}".utf8.contains($0) }) else {
            return .failure(Mistake())
        }
        while rest.last == "/" { rest = rest.dropLast() }
        let authority = rest.prefix { $0 != "/" }
        guard let host = host(of: authority) else { return .failure(Mistake()) }
        return .success(
            BaseURL(
                isEncrypted: ["https", "mqtts", "wss"].contains(scheme), isBroker: !scheme.hasPrefix("http"),
                host: host,
                text: "\(scheme)://\(rest)"))
    }

    /// By the port on which a server usually listens itself, which is without TLS but for brokers.
    ///
    /// - Parameter text: an address without a scheme.
    private static func usualScheme(of text: String) -> String {
        let authority = text.prefix { $0 != "/" }
        guard let colon = authority.lastIndex(of: ":") else { return "https" }
        return switch authority[authority.index(after: colon)...] {
        case "1883": "mqtt"
        case "8883": "mqtts"
        // Traccar, InfluxDB, Home Assistant, OwnTracks Recorder, and what is tried out.
        case "5055", "8086", "8123", "8083", "8080", "3000", "80": "http"
        default: "https"
        }
    }

    /// A URL, or a value of TOML that is one, with `***` for what in its path is likely to be a secret: what follows a part such as
    /// `webhook`, and long parts of letters and digits. Any other text is as it was.
    package static func masked(_ text: String) -> String {
        let schemes = ["https://", "http://", "wss://", "ws://"]
        guard let start = text.firstOccurrence(of: "://")?.upperBound,
            schemes.contains(where: { text.hasPrefix($0) || text.hasPrefix("\"" + $0) })
        else { return text }
        let quote = text.hasPrefix("\"") && text.hasSuffix("\"") ? "\"" : ""
        let rest = text[start...].dropLast(quote.isEmpty ? 0 : 1)
        var before = ""
        let parts = rest.split(separator: "/", omittingEmptySubsequences: false).enumerated().map { index, part in
            defer { before = part.lowercased() }
            guard index > 0, !part.isEmpty else { return String(part) }
            let follows = ["webhook", "webhooks", "hook", "hooks"].contains(before)
            let isLong =
                part.utf8.count >= 20 && part.contains(where: \.isNumber) && part.contains(where: \.isLetter)
                && !part.contains("$")
            return follows || isLong ? "***" : String(part)
        }
        return text[..<start] + parts.joined(separator: "/") + quote
    }

    private static func host(of authority: Substring) -> String? {
        var host = authority
        var port: Substring?
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            let after = authority[authority.index(after: end)...]
            guard after.isEmpty || after.first == ":" else { return nil }
            if !after.isEmpty { port = after.dropFirst() }
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || ":.%".contains($0) }) else { return nil }
        } else {
            if let colon = authority.firstIndex(of: ":") {
                host = authority[..<colon]
                port = authority[authority.index(after: colon)...]
            }
            guard !host.isEmpty, host.allSatisfy({ $0.isLetter || $0.isNumber || ".-_".contains($0) }) else {
                return nil
            }
        }
        if let port { guard let number = Int(port), (1...65535).contains(number) else { return nil } }
        return String(host)
    }

    /// Requests to it do not leave the machine.
    var isLoopback: Bool {
        let name = host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") || name == "::1" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
