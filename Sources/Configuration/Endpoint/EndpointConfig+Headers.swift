import Profiles

/// A header that the endpoint itself has, as a template.
struct OwnHeader {
    var entry: TOMLEntry
    var references: ProfileReferences
}

extension EndpointConfig {
    /// Headers that are the uplink's or the encoder's own.
    private static let reservedHeaders: Set<String> = [
        "connection", "content-encoding", "content-length", "content-type", "expect", "host", "idempotency-key",
        "transfer-encoding", "user-agent",
    ]

    /// `[endpoint.headers]`: laid over those of the profile.
    mutating func readHeaders(_ table: TableReader, hasAuth: Bool) -> [OwnHeader] {
        var own: [OwnHeader] = []
        for entry in table.takeAll() {
            let name = entry.key.lowercased()
            guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else {
                table.report(
                    entry.key, "found a name that no header can have, expected letters, digits and -",
                    at: entry.keyPosition)
                continue
            }
            if Self.reservedHeaders.contains(name) || (name == "authorization" && hasAuth)
                || own.contains(where: { $0.entry.key.lowercased() == name })
            {
                table.report(
                    entry.key, "found a header that waypost sets itself, expected another one", at: entry.keyPosition)
                continue
            }
            var variables: [String: String] = [:]
            guard let template = table.evaluate(entry, Self.headerTemplate({ variables[$0] = $1 })) else { continue }
            for (alias, name) in variables { secrets[alias] = .environment(name) }
            let references = ProfileReferences(template)
            if !references.carriesSecret, isSensitive(name) {
                table.report(
                    entry.key,
                    "found a literal, expected a reference: \"${secret.NAME}\", with NAME in [endpoint.secrets]")
                continue
            }
            // A header written by hand replaces what the profile would put there.
            if name == "authorization" { profileTree = profileTree.leavingOut("auth") }
            var laid = entry
            laid.node.value = .string(template)
            profileTree = profileTree.settingHeader(laid)
            own.append(OwnHeader(entry: laid, references: references))
            table.show(entry.key, ProfileNode(entry.node).inlineTOML, entry.keyPosition)
        }
        return own
    }

    /// Names that the templates of a profile do not have: the host's are put in, the environment's become secrets.
    ///
    /// - Parameter found: gets the name as a secret and the name of each variable.
    private static func headerTemplate(_ found: @escaping (String, String) -> Void) -> ValueForm<String> {
        ValueForm(
            expected: "a text in quotes",
            read: { node, environment throws(Mistake) in
                guard case .string(let raw) = node.value else { throw Mistake() }
                return try ValueForm.withoutControlCharacters(try expanded(raw, environment, found))
            },
            render: \.asTOML, isSecret: true)
    }

    private static func expanded(
        _ raw: String, _ environment: ConfigurationEnvironment, _ found: (String, String) -> Void
    ) throws(Mistake) -> String {
        var text = ""
        var rest = Substring(raw)
        while let dollar = rest.firstIndex(of: "$") {
            text += rest[..<dollar]
            rest = rest[dollar...]
            if rest.hasPrefix("$$") {
                text += "$$"
                rest = rest.dropFirst(2)
                continue
            }
            guard rest.hasPrefix("${"), let end = rest.firstIndex(of: "}") else {
                text += "$"
                rest = rest.dropFirst()
                continue
            }
            let name = rest[rest.index(rest.startIndex, offsetBy: 2)..<end]
            let reference = rest[...end]
            rest = rest[rest.index(after: end)...]
            guard name.hasPrefix("env:") || name == "hostname" || name == "machine_id" else {
                text += reference
                continue
            }
            let value = try substituted(String(reference), environment).get()
            if name.hasPrefix("env:") {
                // Under this name it is among the secrets.
                let alias = "env_\(name.dropFirst(4))"
                found(alias, String(name.dropFirst(4)))
                text += "${secret.\(alias)}"
            } else {
                text += value.asTemplate
            }
        }
        return text + rest
    }

    /// Which of the endpoint's own headers a mistake is in.
    static func headerName(at place: SourcePosition?, in own: [OwnHeader]) -> String? {
        guard let place else { return nil }
        return own.first { $0.entry.node.position == place || $0.entry.keyPosition == place }?.entry.key
    }
}

/// Names under which secrets travel.
func isSensitive(_ header: String) -> Bool {
    ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key"]
        .contains { header.lowercased().contains($0) }
}

extension String {
    /// As a template that gives this text.
    fileprivate var asTemplate: String {
        String(flatMap { $0 == "$" ? "$$" : $0 == "[" ? "$[" : String($0) })
    }
}

extension ProfileNode {
    fileprivate func settingHeader(_ entry: TOMLEntry) -> ProfileNode {
        guard case .table(var members) = value else { return self }
        var headers: [Member] = []
        let index = members.firstIndex { $0.name == "headers" }
        if let index, case .table(let written) = members[index].node.value { headers = written }
        let header = Member(entry.key, ProfileNode(entry.node), at: entry.keyPosition)
        if let same = headers.firstIndex(where: { $0.name.lowercased() == entry.key.lowercased() }) {
            headers[same] = header
        } else {
            headers.append(header)
        }
        let node = ProfileNode(.table(headers), at: index.flatMap { members[$0].node.position })
        if let index { members[index].node = node } else { members.append(Member("headers", node)) }
        return ProfileNode(.table(members), at: position)
    }
}

extension ValueForm where Value == String {
    /// A text with references of its own beside those of every text.
    static func header(_ further: @escaping (String) -> Result<String, Mistake>?) -> ValueForm {
        ValueForm(
            expected: "a text in quotes",
            read: { node, environment throws(Mistake) in
                guard case .string(let raw) = node.value else { throw Mistake() }
                return try withoutControlCharacters(try substituted(raw, environment, further: further).get())
            },
            render: \.asTOML, isSecret: true)
    }
}
