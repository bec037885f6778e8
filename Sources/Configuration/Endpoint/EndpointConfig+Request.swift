import Profiles
import WaypostCore

extension EndpointConfig {
    /// A secret that the file names, looked up.
    struct NamedSecret {
        /// In `[endpoint.secrets]`, or the reference itself.
        var name: String
        var reference: Secret.Reference
        /// nil where it cannot be known outside of the unit.
        var value: String?
    }

    /// What the requests carry: `secrets`, `auth`, `sign`, `tls`.
    ///
    /// - Parameters:
    ///   - allowsPlaintext: secrets may go over plain http to another machine.
    ///   - vars: `[endpoint.vars]`, which what a profile suggests for `auth` and `sign` may name.
    mutating func readRequest(_ table: TableReader, allowsPlaintext: Bool, vars: [String: String] = [:]) {
        let context = readSecrets(table, allowsPlaintext: allowsPlaintext, vars: vars, owner: "endpoint")
        if let auth = suggestion("auth", table, context) { readAuth(auth, context) }
        if let sign = suggestion("sign", table, context) { readSign(sign, context) }
        readTLS(table.table("tls", .reloadOfCredentials))
        if sign != nil {
            if settings.gzip, table.has("compress") {
                table.report("compress", "found it together with sign, expected \"none\": the plain body is signed")
            }
            settings.gzip = false
        }
        carriesSecret = !secrets.isEmpty || auth != nil
    }

    /// The same for what only asks, without a body to sign: `secrets`, `auth`, `tls`.
    ///
    /// - Parameter owner: dotted path of the table, for messages.
    mutating func readCredentials(
        _ table: TableReader, allowsPlaintext: Bool, vars: [String: String], owner: String
    ) {
        let context = readSecrets(table, allowsPlaintext: allowsPlaintext, vars: vars, owner: owner)
        readAuth(table.table("auth", .reloadOfCredentials), context)
        readTLS(table.table("tls", .reloadOfCredentials))
        carriesSecret = !secrets.isEmpty || auth != nil
    }

    private mutating func readSecrets(
        _ table: TableReader, allowsPlaintext: Bool, vars: [String: String], owner: String
    ) -> CredentialContext {
        let own = table.table("secrets", .reloadOfCredentials)
        let written = own.takeAll()
        let named = Self.secrets(written, own)
        for secret in named.values { secrets[secret.name] = secret.reference }
        return CredentialContext(
            named: named, unreadable: Set(written.map(\.key)).subtracting(named.keys), vars: vars,
            allowsPlaintext: allowsPlaintext, owner: owner)
    }

    private static func secrets(_ written: [TOMLEntry], _ table: TableReader) -> [String: NamedSecret] {
        var secrets: [String: NamedSecret] = [:]
        for entry in written {
            guard var secret = table.evaluate(entry, .secret([:])) else { continue }
            if case .environment = secret.reference {
                table.warn(
                    entry.key,
                    "found an environment variable, expected credential: or file:, which no other process "
                        + "of the user can read")
            }
            secret.name = entry.key
            secrets[entry.key] = secret
            table.show(entry.key, secret.reference.asTOML, entry.keyPosition)
        }
        return secrets
    }

    /// The endpoint's own table, else the profile's; nil where the profile's cannot be used.
    private func suggestion(_ key: String, _ table: TableReader, _ context: CredentialContext) -> TableReader? {
        guard case .table(let members) = profileTree.value, let node = members.first(where: { $0.name == key })?.node,
            case .table(let suggested) = node.value, !table.has(key)
        else { return table.table(key, .reloadOfCredentials) }
        let words = ["token", "password", "key", "secret", "access_key", "secret_key", "client_secret"]
        let missing = suggested.compactMap { member -> String? in
            guard words.contains(member.name), case .string(let name) = member.node.value,
                context.named[name] == nil, Secret.reference(name) == nil
            else { return nil }
            return name
        }
        for name in missing where !context.unreadable.contains(name) {
            table.report(
                "secrets",
                "found none named \(name), which the profile needs: add secrets = { \(name) = \"file:/etc/waypost/\(name)\" } "
                    + "(or \(key) = { \(key == "auth" ? "kind" : "scheme") = \"none\" })")
        }
        return missing.isEmpty
            ? table.table(key, .reloadOfCredentials, orElse: node.asTable(table.position)) : nil
    }
}

/// What `auth` and `sign` may refer to.
struct CredentialContext {
    var named: [String: EndpointConfig.NamedSecret]
    /// Names of those that were reported because they cannot be read.
    var unreadable: Set<String>
    var vars: [String: String]
    var allowsPlaintext: Bool
    /// Dotted path of the table that has `secrets` and `vars`, for messages.
    var owner = "endpoint"

    var secret: ValueForm<EndpointConfig.NamedSecret> { .secret(named, owner: owner) }

    /// A text that may name `${vars.x}`.
    func text(_ expected: String, _ mistake: @escaping (String) -> Mistake? = { _ in nil }) -> ValueForm<String> {
        let form = ValueForm<String>.header { [vars, owner] reference in
            guard reference.hasPrefix("vars.") else { return nil }
            if let value = vars[String(reference.dropFirst(5))] { return .success(value) }
            return .failure(Mistake(found: "${\(reference)}".shortened, expected: "a name of [\(owner).vars]"))
        }
        var checked = form.checked { $0.isEmpty ? Mistake(found: "an empty text") : mistake($0) }
        checked.expected = expected
        checked.isSecret = false
        return checked
    }
}

extension ProfileNode {
    fileprivate func asTable(_ place: SourcePosition) -> TOMLTable? {
        if case .table(let table) = asTOMLNode(place).value { table } else { nil }
    }
}

extension ValueForm where Value == EndpointConfig.NamedSecret {
    /// A reference to a secret, or the name of one that the endpoint has.
    static func secret(_ named: [String: Value], owner: String = "endpoint") -> ValueForm {
        ValueForm(
            expected: named.isEmpty ? Secret.expectation : "a name of [\(owner).secrets], or \(Secret.expectation)",
            read: { node, environment throws(Mistake) in
                guard case .string(let text) = node.value else { throw Mistake() }
                if let secret = named[text] { return secret }
                guard let reference = Secret.reference(text) else {
                    // The text itself may be the secret: only the similar name is shown.
                    throw Mistake(suggestion: nearest(text, in: named.keys.sorted())?.asTOML)
                }
                let value = try Secret.value(of: reference, environment).get()
                return Value(name: text, reference: reference, value: value)
            },
            render: { $0.reference.asTOML }, isSecret: true)
    }
}
