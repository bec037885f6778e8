import Delivery

extension EndpointConfig {
    /// A secret that the file names, looked up.
    struct NamedSecret {
        var reference: Secret.Reference
        /// nil where it cannot be known outside of the unit.
        var value: String?
    }

    /// What the requests carry: `[endpoint.secrets]`, `auth`.
    mutating func readRequest(_ table: TableReader) {
        let secrets = Self.secrets(table.table("secrets"))
        secretNames = Set(secrets.keys)
        readAuth(table.table("auth"), secrets)
    }

    private static func secrets(_ table: TableReader) -> [String: NamedSecret] {
        var secrets: [String: NamedSecret] = [:]
        for entry in table.takeAll() {
            guard let secret = table.evaluate(entry, .secret([:])) else { continue }
            if case .environment = secret.reference {
                table.warn(
                    entry.key,
                    "found an environment variable, expected credential: or file:, which no other process "
                        + "of the user can read")
            }
            secrets[entry.key] = secret
            table.show(entry.key, secret.reference.asTOML, entry.keyPosition)
        }
        return secrets
    }

    private enum AuthKind: String, CaseIterable { case bearer, basic }

    private mutating func readAuth(_ table: TableReader, _ secrets: [String: NamedSecret]) {
        let kind = table.require("kind", as: .word(AuthKind.allCases.map { ($0.rawValue, $0) }))
        var token: NamedSecret?
        var user: String?
        var password: NamedSecret?
        table.read("token", into: &token, as: .secret(secrets))
        table.read("user", into: &user, as: .text("a user name without a colon") { $0.contains(":") ? Mistake() : nil })
        table.read("password", into: &password, as: .secret(secrets))
        table.refuse(["command", "header"])
        guard let kind else { return }
        carriesSecret = true
        let needed = kind == .bearer ? ["token"] : ["user", "password"]
        for key in needed where !table.has(key) {
            table.report(key, "found nothing, expected it with kind = \"\(kind.rawValue)\"")
        }
        for key in ["token", "user", "password"] where table.has(key) && !needed.contains(key) {
            table.report(key, "found with kind = \"\(kind.rawValue)\", expected \(needed.joined(separator: " and "))")
        }
        switch kind {
        case .bearer:
            addHeader("Authorization", token?.value.map { "Bearer \($0)" } ?? "", shown: "Bearer ***")
        case .basic:
            let pair = user.flatMap { user in password?.value.map { "\(user):\($0)" } }
            addHeader("Authorization", pair.map { "Basic \(base64(Array($0.utf8)))" } ?? "", shown: "Basic ***")
        }
    }

    mutating func addHeader(_ name: String, _ value: String, shown: String) {
        headers.append(.init(name, value))
        shownHeaders.append(.init(name, shown))
    }
}

extension Secret.Reference {
    fileprivate var asTOML: String {
        switch self {
        case .credential(let name): "credential:\(name)".asTOML
        case .file(let path): "file:\(path)".asTOML
        case .environment(let name): "env:\(name)".asTOML
        }
    }
}

extension ValueForm where Value == EndpointConfig.NamedSecret {
    /// A reference to a secret, or the name of one that the endpoint has.
    fileprivate static func secret(_ named: [String: Value]) -> ValueForm {
        ValueForm(
            expected: named.isEmpty ? Secret.expectation : "a name of [endpoint.secrets], or \(Secret.expectation)",
            read: { node, environment in
                guard case .string(let text) = node.value else { return .mistake(Mistake()) }
                if let secret = named[text] { return .value(secret) }
                guard let reference = Secret.reference(text) else {
                    // What looks like a slip of the pen in a name is shown as the right name alone.
                    return .mistake(Mistake(suggestion: nearest(text, in: named.keys.sorted())?.asTOML))
                }
                switch Secret.value(of: reference, environment) {
                case .success(let value): return .value(Value(reference: reference, value: value))
                case .failure(let mistake): return .mistake(mistake)
                }
            },
            render: { $0.reference.asTOML }, isSecret: true)
    }
}

/// RFC 4648 §4.
func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
        for index in 0..<4 {
            let used = index <= group.count
            text.append(used ? alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)] : UInt8(ascii: "="))
        }
    }
    return String(decoding: text, as: UTF8.self)
}
