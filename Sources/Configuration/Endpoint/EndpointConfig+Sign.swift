import Network

extension EndpointConfig {
    private enum Scheme: String, CaseIterable {
        case none
        case standardWebhooks = "standard-webhooks"
        case gitHub = "github-hmac"
        case aws = "aws-sigv4"

        var needed: [String] {
            switch self {
            case .none: []
            case .standardWebhooks, .gitHub: ["secret"]
            case .aws: ["region", "service", "access_key", "secret_key"]
            }
        }

        var optional: [String] { self == .aws ? ["session_token"] : [] }
    }

    /// `[endpoint.sign]`
    mutating func readSign(_ table: TableReader, _ context: CredentialContext) {
        let scheme = table.require("scheme", as: .word(Scheme.allCases.map { ($0.rawValue, $0) }))
        let secret = ValueForm<NamedSecret>.secret(context.named)
        var list: [NamedSecret]?
        var region: String?
        var service: String?
        var accessKey: NamedSecret?
        var secretKey: NamedSecret?
        var sessionToken: NamedSecret?
        table.read("secret", into: &list, as: secret.oneOrMore)
        table.read("region", into: &region, as: context.text("a region such as \"eu-west-1\""))
        table.read("service", into: &service, as: context.text("a service such as \"geo\""))
        table.read("access_key", into: &accessKey, as: secret)
        table.read("secret_key", into: &secretKey, as: secret)
        table.read("session_token", into: &sessionToken, as: secret)
        guard let scheme else { return }
        let allowed = scheme.needed + scheme.optional
        for key in scheme.needed where !table.has(key) {
            table.report(key, "found nothing, expected it with scheme = \"\(scheme.rawValue)\"")
        }
        for key in ["secret", "region", "service", "access_key", "secret_key", "session_token"]
        where table.has(key) && !allowed.contains(key) {
            let expected = allowed.isEmpty ? "nothing else" : allowed.joined(separator: " and ")
            table.report(key, "found with scheme = \"\(scheme.rawValue)\", expected \(expected)")
        }
        let single: [NamedSecret?] = [accessKey, secretKey, sessionToken]
        for named in (list ?? []) + single.compactMap({ $0 }) { secrets[named.name] = named.reference }
        switch scheme {
        case .none: break
        case .standardWebhooks:
            guard let list else { return }
            for named in list where named.value.map({ StandardWebhooks.key($0) == nil }) ?? false {
                table.report(
                    "secret",
                    "found \(named.reference.words) with another content, expected whsec_ and the base64 of 24 to 64 bytes"
                )
            }
            sign = .standardWebhooks(secrets: list.map(\.name))
        case .gitHub:
            guard let list else { return }
            if list.count > 1 { table.report("secret", "found \(list.count) names, expected one") }
            sign = .gitHub(secret: list[0].name)
        case .aws:
            guard let region, let service, let accessKey, let secretKey else { return }
            if service == "s3" {
                table.report("service", "found \"s3\", which is signed in another way, expected \"geo\"")
            }
            if auth != nil { table.report("scheme", "found it together with auth, expected one Authorization header") }
            sign = .aws(
                region: region, service: service, accessKey: accessKey.name, secretKey: secretKey.name,
                sessionToken: sessionToken?.name)
        }
    }
}

extension Secret.Reference {
    /// As in messages.
    package var words: String {
        switch self {
        case .credential(let name): "credential:\(name)"
        case .file(let path): "file:\(path)"
        case .environment(let name): "env:\(name)"
        }
    }

    /// Where people look for it.
    package var place: String {
        switch self {
        case .credential(let name): "systemd's credential \(name) (LoadCredential=, read at the start)"
        case .file(let path): path
        case .environment(let name): "the environment variable \(name) (read at the start)"
        }
    }

    var asTOML: String { words.asTOML }
}

extension ValueForm {
    /// One value, or several in brackets.
    fileprivate var oneOrMore: ValueForm<[Value]> {
        let form = self
        return ValueForm<[Value]>(
            expected: form.expected,
            read: { node, environment throws(Mistake) in
                guard case .array = node.value else { return [try form.read(node, environment)] }
                return try node.elements(1...8) { element throws(Mistake) in try form.read(element, environment) }
            },
            render: { $0.count == 1 ? form.render($0[0]) : "[\($0.map(form.render).joined(separator: ", "))]" },
            isSecret: form.isSecret)
    }
}
