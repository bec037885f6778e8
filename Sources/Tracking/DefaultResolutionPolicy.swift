import Positioning

/// The default policy of Ably Asset Tracking: constraints by nearness and presence of subscribers, the finest of what is
/// asked, then slower on a low battery.
///
/// Source: ably-asset-tracking-android 1.7.0, `DefaultResolutionPolicyFactory.kt`.
public struct DefaultResolutionPolicy: ResolutionPolicy {
    public var defaultResolution: Resolution

    public init(defaultResolution: Resolution) { self.defaultResolution = defaultResolution }

    public func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
        guard let constraints = request.trackable.constraints else {
            // The default takes no part in a contest of requests, and the battery only acts through constraints.
            return Self.best(of: request.remoteRequests) ?? defaultResolution
        }
        let picked = pick(constraints.resolutions, near: request.near, hasSubscribers: request.hasSubscribers)
        let resolution = request.remoteRequests.reduce(picked) { $0.best(with: $1) }
        guard request.batteryLow, let multiplier = constraints.lowBattery?.multiplier else { return resolution }
        return Self.slowed(resolution, by: multiplier)
    }

    public func engineResolution(of networkResolutions: [Resolution]) -> Resolution {
        Self.best(of: networkResolutions) ?? defaultResolution
    }

    /// The subscriber flag is never crossed. Far falls back to near, near never to far.
    private func pick(
        _ set: ResolutionConstraints.ResolutionSet, near: Bool, hasSubscribers: Bool
    ) -> Resolution {
        let nearMember = hasSubscribers ? set.nearWithSubscriber : set.nearWithoutSubscriber
        let farMember = hasSubscribers ? set.farWithSubscriber : set.farWithoutSubscriber
        return (near ? nearMember : farMember ?? nearMember) ?? defaultResolution
    }

    private static func best(of resolutions: [Resolution]) -> Resolution? {
        guard let first = resolutions.first else { return nil }
        return resolutions.dropFirst().reduce(first) { $0.best(with: $1) }
    }

    /// 100 ms × 1.15 is 114.99… in binary: without the small addend the reference's integer would be missed by one.
    static func slowed(_ resolution: Resolution, by multiplier: Double) -> Resolution {
        let product = (Double(resolution.intervalMs) * multiplier + 1e-6).rounded(.down)
        var slowed = resolution
        slowed.intervalMs = product >= 0 ? Int64(exactly: min(product, 9e18)) ?? resolution.intervalMs : 0
        return slowed
    }
}
