import Glibc

extension EndpointConfig {
    private enum AuthKind: String, CaseIterable {
        case none, bearer, basic, header
        case tokenCommand = "token_command"
        case oauth2

        var needed: [String] {
            switch self {
            case .none: []
            case .bearer: ["token"]
            case .basic: ["user", "password"]
            case .header: ["name", "key"]
            case .tokenCommand: ["command"]
            case .oauth2: ["token_url", "client_id"]
            }
        }

        var optional: [String] {
            switch self {
            case .none, .bearer, .basic, .header: []
            case .tokenCommand: ["header"]
            case .oauth2: ["header", "client_secret", "refresh_token", "scope"]
            }
        }
    }

    /// All keys of all kinds; which of them belong together is seen when the kind is known.
    private struct AuthKeys {
        var token: NamedSecret?
        var user: String?
        var password: NamedSecret?
        var name: String?
        var key: NamedSecret?
        var command: [String]?
        var header: HeaderTemplate?
        var tokenURL: String?
        var clientID: String?
        var clientSecret: NamedSecret?
        var refreshToken: NamedSecret?
        var scope: String?
    }

    /// `[endpoint.auth]`
    mutating func readAuth(_ table: TableReader, _ context: CredentialContext) {
        let kind = table.require("kind", as: .word(AuthKind.allCases.map { ($0.rawValue, $0) }))
        let keys = authKeys(table, context)
        guard let kind else { return }
        let allowed = kind.needed + kind.optional
        for key in kind.needed where !table.has(key) {
            table.report(key, "found nothing, expected it with kind = \"\(kind.rawValue)\"")
        }
        for key in AuthKind.allCases.flatMap({ $0.needed + $0.optional }) where table.has(key) && !allowed.contains(key)
        {
            let expected = allowed.isEmpty ? "nothing else" : allowed.joined(separator: " and ")
            table.report(key, "found with kind = \"\(kind.rawValue)\", expected \(expected)")
        }
        if kind == .oauth2, !table.has("client_secret"), !table.has("refresh_token") {
            table.report("client_secret", "found neither client_secret nor refresh_token, expected one of them or both")
        }
        for secret in [keys.token, keys.password, keys.key, keys.clientSecret, keys.refreshToken] {
            if let secret { secrets[secret.name] = secret.reference }
        }
        auth = Self.auth(kind, keys)
    }

    private func authKeys(_ table: TableReader, _ context: CredentialContext) -> AuthKeys {
        var keys = AuthKeys()
        let secret = context.secret
        table.read("token", into: &keys.token, as: secret)
        table.read(
            "user", into: &keys.user,
            as: context.text("a user name without a colon") { $0.contains(":") ? Mistake() : nil })
        table.read("password", into: &keys.password, as: secret)
        table.read(
            "name", into: &keys.name,
            as: context.text("the name of a header") { $0.utf8.allSatisfy(\.isTokenCharacter) ? nil : Mistake() })
        table.read("key", into: &keys.key, as: secret)
        table.read("command", into: &keys.command, as: .command)
        table.read("header", into: &keys.header, as: .tokenHeader(context.named))
        table.read("token_url", into: &keys.tokenURL, as: .tokenURL(allowsPlaintext: context.allowsPlaintext))
        table.read("client_id", into: &keys.clientID, as: context.text("the id of the client"))
        table.read("client_secret", into: &keys.clientSecret, as: secret)
        table.read("refresh_token", into: &keys.refreshToken, as: secret)
        table.read("scope", into: &keys.scope, as: context.text("scopes with a blank between them"))
        if !table.has("header") {
            keys.header = HeaderTemplate("Authorization", marked: "Bearer " + HeaderTemplate.marked("auth.token"))
        }
        if keys.header?.parts.isEmpty == true { keys.header = nil }
        return keys
    }

    private static func auth(_ kind: AuthKind, _ keys: AuthKeys) -> EndpointAuth? {
        switch kind {
        case .none: return nil
        case .bearer: return keys.token.map { .bearer(token: $0.name) }
        case .basic:
            guard let user = keys.user, let password = keys.password else { return nil }
            return .basic(user: user, password: password.name)
        case .header:
            guard let name = keys.name, let key = keys.key else { return nil }
            return .header(name: name, key: key.name)
        case .tokenCommand: return keys.command.map { .tokenCommand($0, header: keys.header) }
        case .oauth2:
            guard let url = keys.tokenURL, let id = keys.clientID else { return nil }
            return .oauth2(
                OAuthClient(
                    tokenURL: url, id: id, secret: keys.clientSecret?.name, refreshToken: keys.refreshToken?.name,
                    scope: keys.scope),
                header: keys.header)
        }
    }
}

extension ValueForm where Value == [String] {
    /// A program and its arguments. No shell reads it.
    fileprivate static var command: ValueForm {
        ValueForm(
            expected: "[\"/path/of/a/program\", \"argument\"]",
            read: { node, environment throws(Mistake) in
                var isFirst = true
                return try node.elements(1...64) { element throws(Mistake) in
                    guard let word = try? ValueForm<String>.text().read(element, environment) else { throw Mistake() }
                    if isFirst {
                        guard word.hasPrefix("/") else { throw Mistake(expected: "the absolute path of a program") }
                        guard access(word, X_OK) == 0 else {
                            throw Mistake(
                                found: "\(word): \(errorText(errno))", expected: "a program that can be run")
                        }
                    }
                    isFirst = false
                    return word
                }
            },
            render: \.asTOML)
    }
}

extension ValueForm where Value == HeaderTemplate {
    /// `"Authorization: Bearer ${auth.token}"`, or `"none"`.
    fileprivate static func tokenHeader(_ named: [String: EndpointConfig.NamedSecret]) -> ValueForm {
        let form = ValueForm<String>.header {
            $0 == "auth.token" ? .success(HeaderTemplate.marked($0)) : nil
        }
        let expected = "\"NAME: … ${auth.token} …\", or \"none\" where the profile places the token"
        return ValueForm(
            expected: expected,
            read: { node, environment throws(Mistake) in
                let text = try form.read(node, environment)
                if text == "none" { return HeaderTemplate("", marked: "") }
                let name = text.prefix { $0 != ":" }
                let template = HeaderTemplate(
                    String(name), marked: String(text.dropFirst(name.count + 1)).trimmingSpaces)
                guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter), template.parts.contains(.token) else {
                    throw Mistake()
                }
                return template
            },
            render: { $0.name.isEmpty ? "\"none\"" : "\($0.name): \($0.shown)".asTOML }, isSecret: true)
    }
}

extension ValueForm where Value == String {
    /// Where tokens are asked for. The client's secret goes there.
    fileprivate static func tokenURL(allowsPlaintext: Bool) -> ValueForm {
        .text("a URL such as \"https://login.example/oauth/token\"") { text in
            switch BaseURL.parse(text) {
            case .failure(let mistake): return mistake
            case .success(let url):
                if url.isEncrypted || url.isLoopback || allowsPlaintext { return nil }
                return Mistake(
                    found: "plain http to \(url.host) with a secret", expected: "https (or allow_plaintext = true)")
            }
        }
    }
}
