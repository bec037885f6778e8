import Profiles
import WaypostCore

/// A live channel, on which viewers watch trackables and ask for resolutions.
package struct ChannelConfig: Hashable, Sendable {
    /// Name, address, secrets, `auth` and `tls`, as those of an endpoint; it has no rows in the queue.
    package var endpoint: EndpointConfig
    /// Who publishes.
    package var clientID: String
    /// The address is the usual one of the service, which has others for when that does not answer.
    package var isUsualService: Bool
    /// Viewers are told the resolution in force. The default is true.
    package var sendsResolution = true
    /// Viewers are shown what the receiver says besides. The default is false.
    package var sendsRaw = false
    /// How long viewers see the trackables as present after the connection was lost. The default is 60 s.
    package var remainPresent = Duration.seconds(60)

    private static let usualURL = "wss://main.realtime.ably.net"

    /// `[[channel]]`
    static func all(_ tables: [TableReader], device: String) -> [ChannelConfig] {
        var channels: [ChannelConfig] = []
        for table in tables {
            let channel = ChannelConfig(reading: table, device: device)
            if channels.contains(where: { $0.endpoint.settings.name == channel.endpoint.settings.name }) {
                table.report("name", "found the name of another channel, expected one of its own")
            }
            // One that is not written only says which keys there are.
            if table.isWritten { channels.append(channel) }
        }
        return channels
    }

    private init(reading table: TableReader, device: String) {
        var name = "channel"
        table.read("name", into: &name, as: .shortName)
        var url = Self.usualURL
        table.read(
            "url", into: &url,
            as: .text("a URL such as \"wss://realtime.example\"") { text in
                switch BaseURL.parse(text) {
                case .failure(let mistake): mistake
                case .success(let url): url.text.hasPrefix("ws") ? nil : Mistake()
                }
            })
        isUsualService = url == Self.usualURL
        clientID = device
        table.read("client_id", into: &clientID, as: .name, note: "as [device]")
        table.read("send_resolution", into: &sendsResolution, as: .flag)
        table.read("raw_locations", into: &sendsRaw, as: .flag)
        table.read("remain_present", into: &remainPresent, as: .duration(.between(0, 3600)))
        var allowsPlaintext = false
        table.read("allow_plaintext", into: &allowsPlaintext, as: .flag)
        let parsed = try? BaseURL.parse(url).get()
        endpoint = EndpointConfig(
            settings: EndpointSettings(name: name, baseURL: parsed?.text ?? url, device: device))
        endpoint.readAuth(
            table.table("auth", .reloadOfCredentials),
            CredentialContext(named: [:], unreadable: [], vars: [:], allowsPlaintext: allowsPlaintext))
        endpoint.readTLS(table.table("tls", .reloadOfCredentials))
        check(table, parsed, allowsPlaintext)
    }

    private func check(_ table: TableReader, _ url: BaseURL?, _ allowsPlaintext: Bool) {
        guard table.isWritten else { return }
        switch endpoint.auth {
        case .basic, .bearer, .tokenCommand, .oauth2: break
        case .header: table.report("auth", "found kind = \"header\", expected \"basic\" with a key, or a token")
        // What is wrong with it was reported.
        case nil where table.has("auth"): break
        case nil: table.report("auth", "found nothing, expected kind = \"basic\" with a key, or a token")
        }
        guard let url, !url.isEncrypted, !url.isLoopback, !allowsPlaintext else { return }
        table.report("url", "found plain ws to \(url.host) with a secret, expected wss (or allow_plaintext = true)")
    }
}
