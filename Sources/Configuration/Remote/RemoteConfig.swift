import Delivery
import Positioning
import Remote
import Uplink

/// What a server may do with the settings of this device.
public struct RemoteConfig: Hashable, Sendable {
    /// What shows that the owner wrote a document.
    package enum Key: Hashable, Sendable {
        case secret(Secret.Reference)
        case publicKey([UInt8])
    }

    /// Name of the endpoint whose answers announce documents, and whose accepted batches confirm them.
    package var endpoint: String
    /// Documents are fetched from here.
    package var settingsURL: String
    /// What became of them is put here; nil = nowhere.
    package var reportedURL: String?
    package var policy: RemotePolicy
    package var ranges: [RemoteRange]
    /// nil = none: TLS alone shows whose documents they are.
    package var key: Key?
    /// How often a document is asked for that no answer has announced. The default is 6 h.
    package var poll = Duration.seconds(6 * 3600)

    /// - Parameters:
    ///   - endpoints: those of HTTP that have a cursor of their own.
    /// - Returns: nil when it is off.
    init?(reading table: TableReader, device: String, endpoints: [EndpointConfig]) {
        var endpoint: String?
        var settingsURL: String?
        policy = RemotePolicy(device: device)
        table.read("endpoint", into: &endpoint, as: .shortName, note: "the first endpoint")
        table.read("settings_url", into: &settingsURL, as: .webURL)
        table.read("reported_url", into: &reportedURL, as: .webURL)
        table.read("poll", into: &poll, as: .duration(.between(60, 30 * 86_400)))
        table.read("allow", into: &policy.allow, as: .names)
        key = Self.key(table)
        ranges = RemoteRange.all(table.table("range"), allow: policy.allow)
        self.endpoint = endpoint ?? endpoints.first?.settings.name ?? ""
        self.settingsURL = settingsURL ?? ""
        guard table.has("settings_url") else {
            if !table.changedKeys.isEmpty {
                table.report("settings_url", "found nothing, expected the URL of the document")
            }
            return nil
        }
        check(table, endpoints)
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
                "found \(endpoint.isEmpty ? "none" : endpoint.asTOML), expected an endpoint of HTTP that is no backup"
                    + (names.isEmpty ? "" : ": \(names)"))
        }
        if let url = try? BaseURL.parse(settingsURL).get(), !url.isEncrypted, !url.isLoopback, key == nil {
            table.report(
                "settings_url", "found plain http to \(url.host) without secret or public_key, expected https")
        }
        for name in policy.allow { checkAllowed(name, table) }
        if policy.allow.isEmpty { table.warn("allow", "found none: no document can change anything") }
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
