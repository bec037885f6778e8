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
            guard let marked = table.evaluate(entry, .header(filled(secrets))) else { continue }
            let header = HeaderTemplate(entry.key, marked: marked)
            let usesSecret = header.parts.contains { if case .text = $0 { false } else { true } }
            if !usesSecret, isSensitive(name) {
                table.report(
                    entry.key,
                    "found a literal, expected a reference: \"${secret.NAME}\", with NAME in [endpoint.secrets]")
                continue
            }
            for case .secret(let name) in header.parts where name.hasPrefix("env:") {
                self.secrets[name] = .environment(String(name.dropFirst("env:".count)))
            }
            headers.append(header)
            table.show(entry.key, header.shown.asTOML, entry.keyPosition)
        }
    }

    /// Fills in what never changes, and marks what is secret.
    private func filled(_ secrets: [String: NamedSecret]) -> (String) -> Result<String, Mistake>? {
        { [settings] reference in
            switch reference {
            case "device": return .success(settings.device)
            case "base_url": return .success(settings.baseURL)
            case _ where reference.hasPrefix("secret."):
                let name = String(reference.dropFirst(7))
                if secrets[name] != nil { return .success(HeaderTemplate.marked(reference)) }
                return .failure(
                    Mistake(
                        found: "${\(reference)}".shortened, expected: "a name of [endpoint.secrets]",
                        suggestion: nearest(name, in: secrets.keys.sorted()).map { "${secret.\($0)}" }))
            case _ where reference.hasPrefix("env:"): return .success(HeaderTemplate.marked("secret.\(reference)"))
            default: return nil
            }
        }
    }

    /// Names under which secrets travel.
    private func isSensitive(_ name: String) -> Bool {
        ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key"]
            .contains { name.contains($0) }
    }

    /// RFC 9110 §5.6.2.
    func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension ValueForm where Value == String {
    static func header(_ further: @escaping (String) -> Result<String, Mistake>?) -> ValueForm {
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
