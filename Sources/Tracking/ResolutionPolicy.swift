import Positioning

/// Everything a policy may look at when it decides for one trackable.
public struct TrackableResolutionRequest: Hashable, Sendable {
    public var trackable: Trackable
    /// Near the destination.
    public var near: Bool
    /// At least one subscriber is present, whether or not it asks for a resolution.
    public var hasSubscribers: Bool
    /// What subscribers ask for.
    public var remoteRequests: [Resolution]
    /// The battery is low for this trackable; false when the level is unknown.
    public var batteryLow: Bool

    public init(
        trackable: Trackable, near: Bool = false, hasSubscribers: Bool = false, remoteRequests: [Resolution] = [],
        batteryLow: Bool = false
    ) {
        self.trackable = trackable
        self.near = near
        self.hasSubscribers = hasSubscribers
        self.remoteRequests = remoteRequests
        self.batteryLow = batteryLow
    }
}

/// Decides how often and how finely positions are published and measured. Pure: the same request, the same answer.
public protocol ResolutionPolicy: Sendable {
    /// The network resolution of one trackable: what is selected and published.
    func networkResolution(for request: TrackableResolutionRequest) -> Resolution

    /// The engine resolution: what the receiver is asked for, from the network resolutions of all trackables.
    func engineResolution(of networkResolutions: [Resolution]) -> Resolution
}
