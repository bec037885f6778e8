import WaypostCore

/// Everything a policy may look at when it decides for one trackable.
public struct TrackableResolutionRequest: Hashable, Sendable {
    public var trackable: Trackable
    /// What applies where nothing else decides: of the configuration, or of the profile of the motion state.
    public var defaultResolution: Resolution
    /// Near the destination.
    public var near: Bool
    /// At least one subscriber is present, whether or not it asks for a resolution.
    public var hasSubscribers: Bool
    /// What subscribers ask for, in no order.
    public var remoteRequests: [Resolution]
    /// The battery is low for this trackable; false when the level is unknown.
    public var batteryLow: Bool
    public var circumstances: Circumstances

    public init(
        trackable: Trackable, defaultResolution: Resolution = .standard, near: Bool = false,
        hasSubscribers: Bool = false, remoteRequests: [Resolution] = [], batteryLow: Bool = false,
        circumstances: Circumstances = Circumstances()
    ) {
        self.trackable = trackable
        self.defaultResolution = defaultResolution
        self.near = near
        self.hasSubscribers = hasSubscribers
        self.remoteRequests = remoteRequests
        self.batteryLow = batteryLow
        self.circumstances = circumstances
    }
}

/// What a policy wants done after a change.
public enum PolicyEffect: Hashable, Sendable {
    /// Ask again for the network resolutions of these trackables (ids). Unknown ones are ignored.
    case recompute(trackables: [String])
    /// Ask again for all.
    case recomputeAll
    /// Call `proximityChanged` when this trackable comes near its destination or leaves it; nil = no more. A new threshold
    /// begins with far. In the mode `sticky` there is one threshold, which the last one replaces.
    case watchProximity(trackable: String, Proximity?)
}

/// Decides how often and how finely positions are published and measured.
///
/// Pure: it holds no clock and reads nothing, the same calls give the same answers. Each change is reported to it, and it returns
/// what is to be decided again; until then the last answers stay in force. Every method but `networkResolution(for:)`
/// has a default, with which all trackables are asked for again at each change (but for speed and activity) and nearness is watched as their default
/// constraints say. A policy is copied with the tracker, so it should be a value.
///
/// Put one into `Tracker.Settings.policy`. It stays in force when settings are reloaded.
public protocol ResolutionPolicy: Sendable {
    /// The network resolution of one trackable: what is selected and published.
    func networkResolution(for request: TrackableResolutionRequest) -> Resolution

    /// The engine resolution: what the receiver is asked for.
    /// - Parameters:
    ///   - networkResolutions: of all trackables; may be empty.
    ///   - default: applies without any.
    func engineResolution(of networkResolutions: [Resolution], default: Resolution) -> Resolution

    /// Whether these constraints mean something to the policy. Settings with others are refused.
    func accepts(_ constraints: ResolutionConstraints) -> Bool

    /// Also called for every trackable at the start, before anything else.
    mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect]
    mutating func trackableRemoved(_ trackable: Trackable) -> [PolicyEffect]
    /// The active one is the first of the settings, until it is removed; nil = that has happened.
    mutating func activeTrackableChanged(_ trackable: Trackable?) -> [PolicyEffect]
    mutating func subscriberAdded(_ member: String, to trackable: Trackable) -> [PolicyEffect]
    /// A present subscriber asks for another resolution, or for none any more.
    mutating func subscriberUpdated(_ member: String, of trackable: Trackable) -> [PolicyEffect]
    mutating func subscriberRemoved(_ member: String, from trackable: Trackable) -> [PolicyEffect]
    /// A watched trackable came near its destination, or left it.
    mutating func proximityChanged(of trackable: Trackable, near: Bool) -> [PolicyEffect]
    /// - Parameter percent: as in `Circumstances`.
    mutating func batteryChanged(percent: Double?) -> [PolicyEffect]
    mutating func externalPowerChanged(_ connected: Bool?) -> [PolicyEffect]
    mutating func motionChanged(_ motion: TrackerSnapshot.Motion) -> [PolicyEffect]
    /// The default does nothing: few policies look at it.
    /// - Parameter activity: as in `Circumstances`.
    mutating func activityChanged(_ activity: Activity.Kind?) -> [PolicyEffect]
    /// With each fix: the default does nothing.
    /// - Parameter speed: as in `Circumstances`.
    mutating func speedChanged(_ speed: Double?) -> [PolicyEffect]
    mutating func geofencesChanged(inside ids: Set<String>) -> [PolicyEffect]
    mutating func hoursChanged(_ hours: String, open: Bool) -> [PolicyEffect]
}

extension ResolutionPolicy {
    /// Field by field the most precise.
    public func engineResolution(of networkResolutions: [Resolution], default: Resolution) -> Resolution {
        Resolution.best(of: networkResolutions) ?? `default`
    }

    public func accepts(_ constraints: ResolutionConstraints) -> Bool { true }

    public mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect] {
        let recompute = PolicyEffect.recompute(trackables: [trackable.id])
        guard let proximity = trackable.constraints?.asDefault?.proximity else { return [recompute] }
        return [.watchProximity(trackable: trackable.id, proximity), recompute]
    }
    public mutating func trackableRemoved(_ trackable: Trackable) -> [PolicyEffect] { [] }
    public mutating func activeTrackableChanged(_ trackable: Trackable?) -> [PolicyEffect] { [] }
    public mutating func subscriberAdded(_ member: String, to trackable: Trackable) -> [PolicyEffect] {
        [.recompute(trackables: [trackable.id])]
    }
    public mutating func subscriberUpdated(_ member: String, of trackable: Trackable) -> [PolicyEffect] {
        [.recompute(trackables: [trackable.id])]
    }
    public mutating func subscriberRemoved(_ member: String, from trackable: Trackable) -> [PolicyEffect] {
        [.recompute(trackables: [trackable.id])]
    }
    public mutating func proximityChanged(of trackable: Trackable, near: Bool) -> [PolicyEffect] { [.recomputeAll] }
    public mutating func batteryChanged(percent: Double?) -> [PolicyEffect] { [.recomputeAll] }
    public mutating func externalPowerChanged(_ connected: Bool?) -> [PolicyEffect] { [.recomputeAll] }
    public mutating func motionChanged(_ motion: TrackerSnapshot.Motion) -> [PolicyEffect] { [.recomputeAll] }
    public mutating func activityChanged(_ activity: Activity.Kind?) -> [PolicyEffect] { [] }
    public mutating func speedChanged(_ speed: Double?) -> [PolicyEffect] { [] }
    public mutating func geofencesChanged(inside ids: Set<String>) -> [PolicyEffect] { [.recomputeAll] }
    public mutating func hoursChanged(_ hours: String, open: Bool) -> [PolicyEffect] { [.recomputeAll] }
}
