import Hash
import Protocols
import Remote
import WaypostCore

/// What a server may do with the settings of this device.
package struct RemoteConfig: Hashable, Sendable {
    /// What shows that the owner wrote a document.
    package enum Key: Hashable, Sendable {
        case secret(Secret.Reference)
        case publicKey([UInt8])
    }

    /// How documents and commands come.
    package enum Way: Hashable, Sendable {
        /// Documents are fetched, and commands come with the answers to batches.
        /// - Parameters:
        ///   - settings: nil = there are no documents.
        ///   - reported: what became of documents and commands is sent there; nil = nowhere.
        case http(settings: String?, reported: String?)
        /// - Parameter topic: what the topics of this device begin with.
        case mqtt(topic: String)
    }

    /// Name of the endpoint whose server or broker sends them, and whose accepted batches confirm documents.
    package var endpoint: String
    package var way: Way
    package var policy: RemotePolicy
    package var ranges: [RemoteRange]
    /// nil = none: TLS alone shows whose documents and commands they are.
    package var key: Key?
    /// How often a document is asked for that no answer has announced. The default is 6 h.
    package var poll = Duration.seconds(6 * 3600)

    /// Documents have to be asked for.
    package var isAsked: Bool { if case .http(settings: .some, _) = way { true } else { false } }

    /// - Parameters:
    ///   - endpoints: those that have a cursor of their own.
    /// - Returns: nil when it is off.
    init?(reading table: TableReader, device: String, endpoints: [EndpointConfig]) {
        var endpoint: String?
        var (settingsURL, reportedURL, topic): (String?, String?, String?)
        var commands: [RemoteCommand.Verb] = []
        policy = RemotePolicy(device: device)
        table.read("endpoint", into: &endpoint, as: .shortName, note: "the first endpoint")
        table.read("settings_url", into: &settingsURL, as: .webURL)
        table.read("reported_url", into: &reportedURL, as: .webURL)
        table.read("topic", into: &topic, as: .topic, note: "`waypost/` and the device")
        table.read("poll", into: &poll, as: .duration(.between(60, 30 * 86_400)))
        table.read("allow", into: &policy.allow, as: .names)
        table.read("commands", into: &commands, as: .verbs)
        policy.commands = Set(commands)
        key = Self.key(table)
        policy.isSigned = key != nil
        ranges = RemoteRange.all(table.table("range"), allow: policy.allow)
        let chosen = endpoint.map { name in endpoints.first { $0.settings.name == name } } ?? endpoints.first
        self.endpoint = endpoint ?? chosen?.settings.name ?? ""
        let isBroker = chosen?.settings.profile.isForBroker == true
        way =
            isBroker
            ? .mqtt(topic: topic ?? "waypost/\(MQTTTopic.level(device))")
            : .http(settings: settingsURL, reported: reportedURL)
        guard table.has("settings_url") || !policy.allow.isEmpty || !commands.isEmpty else {
            if !table.changedKeys.isEmpty {
                table.report("allow", "found neither allow nor commands, expected what a server may do")
            }
            return nil
        }
        check(table, endpoints)
        if let chosen { check(table, chosen, isBroker: isBroker, areURLsSet: settingsURL != nil || reportedURL != nil) }
        if !isBroker, topic != nil { table.report("topic", "found a topic, but the endpoint is not a broker") }
    }

    private func check(
        _ table: TableReader, _ endpoint: EndpointConfig, isBroker: Bool, areURLsSet: Bool
    ) {
        let name = endpoint.settings.name
        if isBroker, areURLsSet {
            table.report(
                ["settings_url", "reported_url"],
                "found a URL, but documents come from the broker of \(name.asTOML)")
        }
        if case .http(let settings, let reported) = way {
            if settings == nil, !policy.allow.isEmpty || reported != nil && policy.commands.isEmpty {
                table.report("settings_url", "found nothing, expected the URL of the document")
            }
            if let host = plainHost(settings) {
                table.report(
                    "settings_url", "found plain http to \(host) without secret or public_key, expected https")
            }
        }
        if case .http(_, let reported?) = way, let url = try? BaseURL.parse(reported).get(), !url.isEncrypted,
            !url.isLoopback
        {
            table.warn("reported_url", "found plain http to \(url.host): anybody on the way reads what is reported")
        }
        if isBroker || !policy.commands.isEmpty, plainHost(endpoint.settings.baseURL) != nil {
            table.report(
                "endpoint", "found \(name.asTOML), which has no TLS, without secret or public_key, expected one of them"
            )
        }
    }

    /// - Returns: the host, where neither TLS nor a signature shows who wrote what comes from it.
    private func plainHost(_ text: String?) -> String? {
        guard key == nil, let text, let url = try? BaseURL.parse(text).get(), !url.isEncrypted, !url.isLoopback
        else { return nil }
        return url.host
    }

    private static func key(_ table: TableReader) -> Key? {
        var secret: EndpointConfig.NamedSecret?
        var publicKey: [UInt8]?
        table.read("secret", into: &secret, as: .secret([:]))
        table.read("public_key", into: &publicKey, as: .publicKey)
        if secret != nil, publicKey != nil {
            table.report(["secret", "public_key"], "found secret and public_key, expected one of the two")
        }
        return secret.map { .secret($0.reference) } ?? publicKey.map(Key.publicKey)
    }

    private func check(_ table: TableReader, _ endpoints: [EndpointConfig]) {
        if !endpoints.contains(where: { $0.settings.name == endpoint }) {
            let names = endpoints.map(\.settings.name.asTOML).joined(separator: ", ")
            table.report(
                "endpoint",
                "found \(endpoint.isEmpty ? "none" : endpoint.asTOML), expected an endpoint that is no backup"
                    + (names.isEmpty ? "" : ": \(names)"))
        }
        for name in policy.allow { checkAllowed(name, table) }
        if policy.allow.isEmpty, policy.commands.isEmpty {
            table.warn("allow", "found none, and no commands: a server can do nothing")
        }
    }

    private func checkAllowed(_ name: String, _ table: TableReader) {
        if RemoteKey.isNeverAllowed(name) {
            table.report("allow", "found \(name.asTOML), which can never be changed from afar")
            return
        }
        let keys = table.knownKeys(under: name)
        if let alias = keys.first(where: { $0.aliasOf != nil && $0.path == name })?.aliasOf {
            table.report("allow", "found \(name.asTOML), expected the name of the key, \(alias)")
        } else if keys.isEmpty {
            table.report("allow", "found \(name.asTOML), expected a key or table of this file, such as \"sampling\"")
        } else if !keys.contains(where: { $0.effect == .reload }) {
            table.report("allow", "found \(name.asTOML), which takes effect at a restart only")
        }
    }
}

extension ConfigurationKey {
    /// Dotted; nil for a key of an array of tables.
    var path: String? {
        guard !table.hasPrefix("[[") else { return nil }
        return "\(table.dropFirst().dropLast()).\(name)"
    }
}

extension ValueForm where Value == String {
    /// A place on a server of HTTP.
    fileprivate static var webURL: ValueForm {
        .text("a URL such as \"https://fleet.example/van-7/settings\"") { text in
            switch BaseURL.parse(text) {
            case .failure(let mistake): mistake
            case .success(let url): url.isBroker ? Mistake() : nil
            }
        }
    }
}

extension ValueForm where Value == String {
    fileprivate static var topic: ValueForm {
        .text("a topic without wildcards such as \"fleet/van-7\"") { text in
            MQTTTopic.problem(of: text) == nil && text.utf8.count <= 256 ? nil : Mistake()
        }
    }
}

extension ValueForm where Value == [RemoteCommand.Verb] {
    fileprivate static var verbs: ValueForm {
        let names = RemoteCommand.Verb.allCases.map { $0.rawValue.asTOML }.joined(separator: ", ")
        return ValueForm(
            expected: "an array of \(names)",
            read: { node, environment throws(Mistake) in
                try node.elements(0...16) { element throws(Mistake) in
                    guard case .string(let name) = element.value, let verb = RemoteCommand.Verb(rawValue: name) else {
                        throw Mistake()
                    }
                    return verb
                }
            },
            render: { $0.map(\.rawValue).asTOML })
    }
}

extension ValueForm where Value == [String] {
    fileprivate static var names: ValueForm {
        ValueForm(
            expected: "an array of keys and tables such as [\"sampling\", \"tracking.heartbeat\"]",
            read: { node, environment throws(Mistake) in
                try node.elements(0...256) { element throws(Mistake) in
                    guard case .string(let name) = element.value, RemoteKey.isWellFormed(name) else { throw Mistake() }
                    return name
                }
            },
            render: \.asTOML)
    }
}

extension ValueForm where Value == [UInt8] {
    fileprivate static var publicKey: ValueForm {
        ValueForm(
            expected: "the base64 of the 32 bytes of an Ed25519 public key",
            read: { node, environment throws(Mistake) in
                guard let key = Base64.decode(try node.text(environment)), key.count == 32 else { throw Mistake() }
                return key
            },
            render: { Base64.encode($0).asTOML })
    }
}
