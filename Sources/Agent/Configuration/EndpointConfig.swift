import Delivery

/// An endpoint with what its requests carry besides the rows.
public struct EndpointConfig: Hashable, Sendable {
    public var settings: EndpointSettings
    /// The profile with what it extends, as it was written: what it suggests for `auth` and `sign` stands there.
    public var profileTree = ProfileNode(.table([]))
    /// The names of its secrets, as templates name them.
    public var secretNames: Set<String> = []
    /// Names of secrets that are `${env:NAME}` of a header, each with its value.
    public var environmentSecrets: [String: String] = [:]
    /// `auth.token` exists: a command gets it.
    public var hasToken = false
    /// To be added to every request, secrets filled in, `Authorization` among them. Not for logs: see ``shownHeaders``.
    public var headers: [UplinkRequest.Header] = []
    /// The same with every secret masked.
    public var shownHeaders: [UplinkRequest.Header] = []
    /// A secret goes out with each request.
    public var carriesSecret = false

    public init(settings: EndpointSettings) { self.settings = settings }
}
