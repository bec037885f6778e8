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
        return ChannelSecret("/?" + all.map { "\($0)=\(Self.escaped($1))" }.joined(separator: "&"))
    }

    /// Without secrets.
    package var description: String {
        let shown = items.map { "\($0.name)=\(Self.escaped($0.value))" } + secretItems.map { "\($0.name)=…" }
        return "\(host)/?\(shown.joined(separator: "&"))"
    }

    /// RFC 3986, 2.3: what needs no escape anywhere.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                escaped += (digits.utf8.count < 2 ? "%0" : "%") + digits
            }
        }
        return escaped
    }
}
