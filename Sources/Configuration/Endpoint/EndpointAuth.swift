import WaypostCore

/// How we authenticate to an endpoint. Names are those of `EndpointConfig.secrets`.
package enum EndpointAuth: Hashable, Sendable {
    case bearer(token: String)
    case basic(user: String, password: String)
    /// A key in a header of its own.
    case header(name: String, key: String)
    /// A program that prints a token; the header is nil where the profile places the token by itself.
    case tokenCommand([String], header: HeaderTemplate?)
    case oauth2(OAuthClient, header: HeaderTemplate?)

    /// A token is fetched, and fetched again before it expires: templates may name `auth.token`.
    package var givesToken: Bool {
        switch self {
        case .bearer, .basic, .header: false
        case .tokenCommand, .oauth2: true
        }
    }
}

/// Who asks for tokens (RFC 6749): by client credentials, or with a refresh token.
package struct OAuthClient: Hashable, Sendable {
    package var tokenURL: String
    package var id: String
    /// Name of a secret; nil for a public client, which has a refresh token instead.
    package var secret: String?
    /// Name of a secret.
    package var refreshToken: String?
    package var scope: String?
}

/// How requests of an endpoint are signed. Names are those of `EndpointConfig.secrets`.
package enum EndpointSignature: Hashable, Sendable {
    case standardWebhooks(secrets: [String])
    case gitHub(secret: String)
    case aws(region: String, service: String, accessKey: String, secretKey: String, sessionToken: String?)
}

/// Whom an endpoint trusts, and its own certificate and key, by reference.
package struct EndpointTLS: Hashable, Sendable {
    package var authorities: Secret.Reference?
    package var certificate: Secret.Reference?
    package var key: Secret.Reference?
    package var pins: [String] = []
}

/// A header whose value is composed for each attempt, since secrets and tokens change.
package struct HeaderTemplate: Hashable, Sendable {
    package enum Part: Hashable, Sendable {
        case text(String)
        /// By name.
        case secret(String)
        case token
    }
    package var name: String
    package var parts: [Part]

    package init(_ name: String, parts: [Part]) {
        self.name = name
        self.parts = parts
    }

    /// nil when a secret or the token is not known.
    package func value(_ secrets: [String: String], token: String?) -> String? {
        var value = ""
        for part in parts {
            switch part {
            case .text(let text): value += text
            case .secret(let name):
                guard let secret = secrets[name] else { return nil }
                value += secret
            case .token:
                guard let token else { return nil }
                value += token
            }
        }
        return value
    }

    /// With `***` for everything secret.
    var shown: String {
        parts.map { if case .text(let text) = $0 { text } else { "***" } }.joined()
    }
}

extension HeaderTemplate {
    /// Marks both ends of the name of a secret while the rest of a text is composed. No text that is
    /// meant for people holds this noncharacter.
    static let mark: Character = "\u{10FFFF}"

    static func marked(_ reference: String) -> String { "\(mark)\(reference)\(mark)" }

    /// - Parameter marked: with the references between marks: `secret.NAME` or `auth.token`.
    init(_ name: String, marked: String) {
        self.name = name
        var isReference = false
        parts = []
        for piece in marked.split(separator: Self.mark, omittingEmptySubsequences: false) {
            if isReference {
                parts.append(piece == "auth.token" ? .token : .secret(String(piece.dropFirst("secret.".count))))
            } else if !piece.isEmpty {
                parts.append(.text(String(piece)))
            }
            isReference.toggle()
        }
    }
}
