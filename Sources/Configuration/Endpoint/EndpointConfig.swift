import Profiles
import Protocols
import WaypostCore

/// An endpoint with what its requests carry besides the rows.
package struct EndpointConfig: Hashable, Sendable {
    package var settings: EndpointSettings
    /// The profile with what it extends, as it was written: with what it suggests for `auth` and `sign`.
    package var profileTree = ProfileNode(.table([]))
    /// Where the secrets are that templates, `auth` and `sign` name. Values are read when they are needed.
    package var secrets: [String: Secret.Reference] = [:]
    package var auth: EndpointAuth?
    package var sign: EndpointSignature?
    package var tls: EndpointTLS?
    /// The default is `host`.
    package var signingClock = SigningClock.host
    /// A secret goes out with each request, or signs it.
    package var carriesSecret = false

    package init(settings: EndpointSettings) { self.settings = settings }

    /// What is added to the headers of the profile, with `***` for what is secret or differs from attempt to attempt.
    package var shownHeaders: [UplinkRequest.Header] {
        var shown: [UplinkRequest.Header] = []
        switch auth {
        case .bearer: shown.append(.init("Authorization", "Bearer ***"))
        case .basic: shown.append(.init("Authorization", "Basic ***"))
        case .header(let name, _): shown.append(.init(name, "***"))
        case .tokenCommand(_, let header), .oauth2(_, let header):
            if let header { shown.append(.init(header.name, header.shown)) }
        case nil: break
        }
        switch sign {
        case .standardWebhooks:
            shown += ["webhook-id", "webhook-timestamp", "webhook-signature"].map { .init($0, "***") }
        case .gitHub: shown.append(.init("X-Hub-Signature-256", "sha256=***"))
        case .aws: shown += ["X-Amz-Date", "Authorization"].map { .init($0, "***") }
        case nil: break
        }
        return shown
    }

    /// What this device proves itself with and where that is kept, for whoever has to check it: `user van7 and the password in
    /// /etc/waypost/mqtt.password`; nil = with nothing. Never the secret itself.
    package var identity: String? {
        func place(_ name: String) -> String { secrets[name]?.place ?? "the configuration" }
        let parts: [String]
        switch auth {
        case .bearer(let token): parts = ["the token in \(place(token))"]
        case .basic(let user, let password): parts = ["user \(user)", "the password in \(place(password))"]
        case .header(let name, let key): parts = ["the key in \(place(key)), sent as \(name)"]
        case .tokenCommand(let command, _): parts = ["the token that \(command.first ?? "the command") prints"]
        case .oauth2(let client, _):
            parts =
                ["client_id \(client.id)"]
                + [client.secret.map { "the client_secret in \(place($0))" }].compactMap(\.self)
                + [client.refreshToken.map { "the refresh_token in \(place($0))" }].compactMap(\.self)
        case nil:
            let named = secrets.sorted { $0.key < $1.key }.prefix(3).map { "\($0.key) in \($0.value.place)" }
            parts =
                named.isEmpty ? [tls?.certificate.map { "the certificate in \($0.place)" }].compactMap(\.self) : named
        }
        guard let last = parts.last else { return nil }
        return parts.count == 1 ? last : parts.dropLast().joined(separator: ", ") + " and " + last
    }

    /// Of what decides whom this device speaks to and as who: the address, the device, the profile, and where credentials and
    /// certificates are.
    package var digest: String {
        var hash = FNV1a()
        let places = secrets.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.words)" }
        let files = [tls?.authorities, tls?.certificate, tls?.key].map { $0?.words ?? "-" }
        let parts =
            [settings.fingerprint, settings.profile.rendering, identity ?? "-"] + places + files + (tls?.pins ?? [])
        for part in parts { for byte in part.utf8 + [0xFF] { hash.add(byte) } }
        return String(hash.value, radix: 16)
    }

    /// Templates may name `auth.token`.
    package var hasToken: Bool { auth?.givesToken ?? false }
}
