import WaypostCore

/// The default policy of Ably Asset Tracking: constraints by nearness and presence of subscribers, the finest of what is
/// asked, then slower on a low battery.
///
/// Source: ably-asset-tracking-android 1.7.0, `DefaultResolutionPolicyFactory.kt`.
public struct DefaultResolutionPolicy: ResolutionPolicy {
    /// Decides which trackables are watched, and who is asked for again when one comes near.
    public var proximity: ProximityMode
    /// What a low battery does to trackables without constraints; nil = nothing, as in the reference.
    public var withoutConstraints: LowBattery?
    /// The trackable that is active, in the mode `sticky`.
    private var active: String?

    public init(proximity: ProximityMode = .perTrackable, withoutConstraints: LowBattery? = nil) {
        self.proximity = proximity
        self.withoutConstraints = withoutConstraints
    }

    public func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
        guard let constraints = request.trackable.constraints?.asDefault else {
            // The default does not compete with requests.
            let resolution = Resolution.best(of: request.remoteRequests) ?? request.defaultResolution
            return slowed(resolution, for: request)
        }
        return complete(Self.picked(constraints, for: request), for: request)
    }

    /// The constraints of another policy would be silently ignored.
    public func accepts(_ constraints: ResolutionConstraints) -> Bool { constraints.asDefault != nil }

    /// What the constraints say; without them, or where they say nothing, the default.
    func picked(for request: TrackableResolutionRequest) -> Resolution {
        request.trackable.constraints?.asDefault.map { Self.picked($0, for: request) } ?? request.defaultResolution
    }

    /// The finest of what was picked and what subscribers ask for, then the battery.
    func complete(_ picked: Resolution, for request: TrackableResolutionRequest) -> Resolution {
        slowed(request.remoteRequests.reduce(picked) { $0.best(with: $1) }, for: request)
    }

    /// The subscriber flag is never crossed. Far falls back to near, near never to far.
    private static func picked(
        _ constraints: DefaultResolutionConstraints, for request: TrackableResolutionRequest
    ) -> Resolution {
        let set = constraints.resolutions
        let nearMember = request.hasSubscribers ? set.nearWithSubscriber : set.nearWithoutSubscriber
        let farMember = request.hasSubscribers ? set.farWithSubscriber : set.farWithoutSubscriber
        return (request.near ? nearMember : farMember ?? nearMember) ?? request.defaultResolution
    }

    /// Last of all, so that it slows what subscribers asked for too.
    private func slowed(_ resolution: Resolution, for request: TrackableResolutionRequest) -> Resolution {
        guard request.batteryLow,
            let battery = request.trackable.lowBattery(withoutConstraints: withoutConstraints)
        else { return resolution }
        return resolution.slowed(by: battery.multiplier)
    }

    public mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect] {
        let recompute = PolicyEffect.recompute(trackables: [trackable.id])
        guard proximity == .perTrackable, let threshold = trackable.constraints?.asDefault?.proximity else {
            return [recompute]
        }
        return [.watchProximity(trackable: trackable.id, threshold), recompute]
    }

    /// A new active trackable without a threshold leaves the one of the old in force, as the reference does.
    public mutating func activeTrackableChanged(_ trackable: Trackable?) -> [PolicyEffect] {
        guard proximity == .sticky else { return [] }
        defer { active = trackable?.id }
        guard let trackable else { return active.map { [.watchProximity(trackable: $0, nil)] } ?? [] }
        guard let threshold = trackable.constraints?.asDefault?.proximity else { return [] }
        return [.watchProximity(trackable: trackable.id, threshold)]
    }

    public mutating func proximityChanged(of trackable: Trackable, near: Bool) -> [PolicyEffect] {
        proximity == .sticky ? [.recomputeAll] : [.recompute(trackables: [trackable.id])]
    }

    // What the steps above do not look at.
    public mutating func motionChanged(_ motion: TrackerSnapshot.Motion) -> [PolicyEffect] { [] }
    public mutating func geofencesChanged(inside ids: Set<String>) -> [PolicyEffect] { [] }
    public mutating func hoursChanged(_ hours: String, open: Bool) -> [PolicyEffect] { [] }
}

extension Resolution {
    /// 100 ms × 1.15 is 114.99… in binary: without the small addend the reference's integer would be missed by one.
    func slowed(by multiplier: Double) -> Resolution {
        let product = (Double(intervalMs) * multiplier + 1e-6).rounded(.down)
        var slowed = self
        slowed.intervalMs = product >= 0 ? Int64(exactly: min(product, 9e18)) ?? intervalMs : 0
        return slowed
    }
}
