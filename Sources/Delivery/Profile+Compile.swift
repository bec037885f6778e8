extension Profile {
    /// Makes a resolved profile ready for one endpoint, or tells everything that is wrong with it.
    ///
    /// - Parameters:
    ///   - tree: what `resolve` gave.
    ///   - constants: what the templates may name of the endpoint.
    public static func compile(
        _ name: String, tree: ProfileNode, constants: ProfileConstants
    ) -> Result<Profile, ProfileProblems> {
        .success(Profile(name: name))
    }
}

extension EndpointSettings {
    /// The request that binds the asset to this device (`bind`); nil when the profile has none.
    public func bindRequest(in context: RenderContext = RenderContext()) -> UplinkRequest? { nil }

    /// The value of a reference (`seq`, `accuracy:int`) for a row, as text on the wire; nil when it is nil or unknown.
    public func text(
        of reference: String, for row: QueuedLocation, outbox: [UInt8], in context: RenderContext = RenderContext()
    ) -> String? { nil }
}
