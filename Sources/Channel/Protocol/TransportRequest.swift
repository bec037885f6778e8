import Profiles

/// The connection that the owner is to open: a WebSocket to a host, with a query.
package struct TransportRequest: Hashable, Sendable, CustomStringConvertible {
    package struct Item: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package struct SecretItem: Hashable, Sendable {
        package var name: String
        package var value: ChannelSecret
    }

    package let host: String
    package let items: [Item]
    /// Credentials, and the key by which a connection is resumed: whoever has that takes it over.
    package let secretItems: [SecretItem]

    /// - Parameter resuming: nil = a new connection.
    init(
        _ settings: ChannelClient.Settings, host: String, credential: ChannelCredential, resuming key: ChannelSecret?
    ) {
        self.host = host
        var items: [Item] = [
            Item(name: "v", value: "5"), Item(name: "format", value: "json"), Item(name: "heartbeats", value: "true"),
            Item(name: "clientId", value: settings.clientID),
        ]
        if settings.remainPresent > .zero {
            items.append(Item(name: "remainPresentFor", value: String(settings.remainPresent.milliseconds)))
        }
        self.items = items
        let shown: SecretItem =
            switch credential {
            case .key(let key): SecretItem(name: "key", value: key)
            case .token(let token): SecretItem(name: "accessToken", value: token)
            }
        secretItems = [shown] + (key.map { [SecretItem(name: "resume", value: $0)] } ?? [])
    }

    /// Path and query, with its secrets: for the request, and for nothing that people read.
    package var target: ChannelSecret {
        let all = items.map { ($0.name, $0.value) } + secretItems.map { ($0.name, $0.value.revealed) }
        return ChannelSecret("/?" + all.map { "\($0)=\(String(percentEncoding: $1.utf8))" }.joined(separator: "&"))
    }

    /// Without secrets.
    package var description: String {
        let shown =
            items.map { "\($0.name)=\(String(percentEncoding: $0.value.utf8))" } + secretItems.map { "\($0.name)=…" }
        return "\(host)/?\(shown.joined(separator: "&"))"
    }
}
