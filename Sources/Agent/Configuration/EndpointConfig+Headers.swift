import Delivery

extension EndpointConfig {
    /// Headers that are the uplink's or the encoder's own.
    private static let reservedHeaders: Set<String> = [
        "connection", "content-encoding", "content-length", "content-type", "expect", "host", "idempotency-key",
        "transfer-encoding", "user-agent",
    ]

    /// `[endpoint.headers]`: further headers of each request.
    mutating func readHeaders(_ table: TableReader, _ secrets: [String: NamedSecret]) {
        for entry in table.takeAll() {
            let name = entry.key.lowercased()
            guard !name.isEmpty, name.utf8.allSatisfy(isTokenByte) else {
                table.report(
                    entry.key, "found a name that no header can have, expected letters, digits and -",
                    at: entry.keyPosition)
                continue
            }
            if Self.reservedHeaders.contains(name) || headers.contains(where: { $0.name.lowercased() == name }) {
                table.report(
                    entry.key, "found a header that waypost sets itself, expected another one", at: entry.keyPosition)
                continue
            }
            var usesSecret = false
            let settings = settings
            func fill(masked: Bool) -> ValueForm<String> {
                .header { reference in
                    switch reference {
                    case "device": return .success(settings.device)
                    case "base_url": return .success(settings.baseURL)
                    case _ where reference.hasPrefix("secret."):
                        usesSecret = true
                        let name = String(reference.dropFirst(7))
                        if let secret = secrets[name] { return .success(masked ? "***" : secret.value ?? "") }
                        return .failure(
                            Mistake(
                                found: "${\(reference)}".shortened, expected: "a name of [endpoint.secrets]",
                                suggestion: nearest(name, in: secrets.keys.sorted()).map { "${secret.\($0)}" }))
                    case _ where reference.hasPrefix("env:"):
                        usesSecret = true
                        return masked ? .success("***") : nil
                    default: return nil
                    }
                }
            }
            guard let value = table.evaluate(entry, fill(masked: false)),
                let shown = table.evaluate(entry, fill(masked: true))
            else { continue }
            if !usesSecret, isSensitive(name) {
                table.report(
                    entry.key,
                    "found a literal, expected a reference: \"${secret.NAME}\", with NAME in [endpoint.secrets]")
                continue
            }
            if usesSecret { carriesSecret = true }
            addHeader(entry.key, value, shown: shown)
            table.show(entry.key, shown.asTOML, entry.keyPosition)
        }
    }

    /// Names under which secrets travel.
    private func isSensitive(_ name: String) -> Bool {
        ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key"]
            .contains { name.contains($0) }
    }

    /// RFC 9110 §5.6.2.
    private func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension ValueForm where Value == String {
    fileprivate static func header(_ further: @escaping (String) -> Result<String, Mistake>?) -> ValueForm {
        ValueForm(
            expected: "a text in quotes",
            read: { node, environment in
                guard case .string(let raw) = node.value else { return .mistake(Mistake()) }
                switch substituted(raw, environment, further: further) {
                case .failure(let mistake): return .mistake(mistake)
                case .success(let text):
                    if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                        return .mistake(Mistake(found: "a text with control characters"))
                    }
                    return .value(text)
                }
            },
            render: \.asTOML, isSecret: true)
    }
}
