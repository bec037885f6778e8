import WaypostCore

/// What a policy obeys for one trackable.
public enum ResolutionConstraints: Hashable, Sendable {
    /// For the default policy and the rules of the configuration.
    case `default`(DefaultResolutionConstraints)
    /// For a policy of the user's own, which says by `accepts(_:)` whether it can read them.
    case custom([String: ConstraintValue])
}

/// A value of custom constraints.
public enum ConstraintValue: Hashable, Sendable {
    case text(String)
    case number(Double)
    case flag(Bool)
}

/// What the default policy obeys for one trackable (Ably Asset Tracking `DefaultResolutionConstraints`).
public struct DefaultResolutionConstraints: Hashable, Sendable {
    /// Resolutions by nearness to the destination and presence of a subscriber; nil = unset for that case.
    public struct ResolutionSet: Hashable, Sendable {
        public var farWithoutSubscriber: Resolution?
        public var farWithSubscriber: Resolution?
        public var nearWithoutSubscriber: Resolution?
        public var nearWithSubscriber: Resolution?

        public init(
            farWithoutSubscriber: Resolution? = nil, farWithSubscriber: Resolution? = nil,
            nearWithoutSubscriber: Resolution? = nil, nearWithSubscriber: Resolution? = nil
        ) {
            self.farWithoutSubscriber = farWithoutSubscriber
            self.farWithSubscriber = farWithSubscriber
            self.nearWithoutSubscriber = nearWithoutSubscriber
            self.nearWithSubscriber = nearWithSubscriber
        }
    }

    public var resolutions: ResolutionSet
    /// What counts as near the destination; nil = never near.
    public var proximity: Proximity?
    /// What a low battery does; nil = nothing.
    public var lowBattery: LowBattery?

    public init(
        resolutions: ResolutionSet = ResolutionSet(), proximity: Proximity? = nil, lowBattery: LowBattery? = nil
    ) {
        self.resolutions = resolutions
        self.proximity = proximity
        self.lowBattery = lowBattery
    }
}

extension ResolutionConstraints {
    /// nil for custom ones.
    public var asDefault: DefaultResolutionConstraints? {
        if case .default(let constraints) = self { constraints } else { nil }
    }
}
