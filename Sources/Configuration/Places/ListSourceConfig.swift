import Profiles
import WaypostCore

/// A list that is fetched from a server again and again, such as geofences.
package struct ListSourceConfig: Hashable, Sendable {
    /// Secrets, `auth` and `tls`, as those of an endpoint, whose name none can have; it has no rows in the queue.
    package var endpoint: EndpointConfig
    /// What it lists: `geofences`.
    package var kind: String
    package var name: String
    /// Whole, with its query.
    package var url: String
    /// Between two fetches. The default is 6 h.
    package var every = Duration.seconds(6 * 3600)

    /// For messages: `geofences venue`.
    package var label: String { "\(kind) \(name)" }

    /// As it is written, and with the values of `vars`.
    private struct Address: Equatable {
        var written: String
        var url: String
    }

    init(reading table: TableReader, kind: String, device: String) {
        let varTable = table.table("vars")
        let written = varTable.takeAll()
        var vars: [String: String] = [:]
        let form = ValueForm<String>.text()
        for entry in written { vars[entry.key] = varTable.evaluate(entry, form) }

        self.kind = kind
        name = table.require("name", as: .shortName) ?? ""
        let address = table.require("url", as: Self.address(vars, of: table))
        url = address?.url ?? ""
        table.read("every", into: &every, as: .duration(.between(60, 30 * 86_400)))
        var allowsPlaintext = false
        table.read("allow_plaintext", into: &allowsPlaintext, as: .flag)
        endpoint = EndpointConfig(
            settings: EndpointSettings(name: "\(kind).\(name)", baseURL: url, device: device))
        for entry in written {
            guard let value = vars[entry.key] else { continue }
            varTable.show(entry.key, form.render(value), entry.keyPosition)
        }
        endpoint.readCredentials(table, allowsPlaintext: allowsPlaintext, vars: vars, owner: table.path)
        guard let address else { return }
        // A user name may name one as well.
        for entry in written where !address.written.contains("${vars.\(entry.key)}") && !table.has("auth") {
            varTable.warn(entry.key, "has no effect: url has no ${vars.\(entry.key)}")
        }
        checkTransport(table, allowsPlaintext)
    }

    private func checkTransport(_ table: TableReader, _ allowsPlaintext: Bool) {
        guard let server = try? Self.server(of: url).get(), !server.isEncrypted, !server.isLoopback else { return }
        let plain = "found plain http to \(server.host)"
        if endpoint.carriesSecret, !allowsPlaintext {
            table.report("url", "\(plain) with a secret, expected https (or allow_plaintext = true)")
        } else if !endpoint.carriesSecret {
            table.warn("url", "\(plain), expected https: anyone on the way can read and change the list")
        }
    }

    private static func address(_ vars: [String: String], of table: TableReader) -> ValueForm<Address> {
        ValueForm(
            expected: "a URL such as \"https://api.example/fences\"",
            read: { node, environment throws(Mistake) in
                guard case .string(let raw) = node.value else { throw Mistake() }
                let text = try substituted(raw, environment) { reference in
                    guard reference.hasPrefix("vars.") else { return nil }
                    // A value cannot lead elsewhere on the server.
                    if let value = vars[String(reference.dropFirst(5))] {
                        return .success(String(percentEncoding: value.utf8))
                    }
                    return .failure(
                        Mistake(found: "${\(reference)}".shortened, expected: "a name of [\(table.path).vars]"))
                }.get()
                let url = try server(of: text).get()
                if url.isBroker { throw Mistake() }
                return Address(written: raw, url: text)
            },
            render: { $0.written.asTOML })
    }

    /// The URL without its query, which an endpoint's cannot have.
    private static func server(of url: String) -> Result<BaseURL, Mistake> {
        guard let mark = url.firstIndex(of: "?") else { return BaseURL.parse(url) }
        let query = url[url.index(after: mark)...]
        guard query.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}#".utf8.contains($0) }) else {
            return .failure(Mistake())
        }
        return BaseURL.parse(String(url[..<mark]))
    }
}
