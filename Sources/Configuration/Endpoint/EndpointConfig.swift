import Delivery

/// An endpoint with what its requests carry besides the rows.
public struct EndpointConfig: Hashable, Sendable {
    public var settings: EndpointSettings
    /// The profile with what it extends, as it was written: with what it suggests for `auth` and `sign`.
    public var profileTree = ProfileNode(.table([]))
    /// Where the secrets are that templates, `auth` and `sign` name. Values are read when they are needed.
    package var secrets: [String: Secret.Reference] = [:]
    package var auth: EndpointAuth?
    package var sign: EndpointSignature?
    package var tls: EndpointTLS?
    /// The default is `host`.
    package var signingClock = SigningClock.host
    /// A secret goes out with each request, or signs it.
    public var carriesSecret = false

    public init(settings: EndpointSettings) { self.settings = settings }

    /// What is added to the headers of the profile, with `***` for what is secret or differs from attempt to attempt.
    public var shownHeaders: [UplinkRequest.Header] {
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

    /// Templates may name `auth.token`.
    public var hasToken: Bool { auth?.givesToken ?? false }
}
