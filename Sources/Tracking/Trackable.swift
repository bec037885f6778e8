import Positioning

/// The thing whose locations are published. Two trackables are the same if their ids are.
public struct Trackable: Hashable, Sendable {
    public var id: String
    /// Where it is going; nil = nowhere known, it is never near.
    public var destination: Coordinate?
    public var constraints: ResolutionConstraints?

    public init(id: String, destination: Coordinate? = nil, constraints: ResolutionConstraints? = nil) {
        self.id = id
        self.destination = destination
        self.constraints = constraints
    }
}

/// What the default policy obeys for one trackable (Ably Asset Tracking `DefaultResolutionConstraints`).
public struct ResolutionConstraints: Hashable, Sendable {
    /// Resolutions by nearness to the destination and presence of a subscriber; nil = not told for that case.
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

    /// What counts as near: either part suffices.
    public struct Proximity: Hashable, Sendable {
        /// Metres to the destination, > 0.
        public var spatial: Double?
        /// Time to the destination in a straight line at the present speed, > 0.
        public var temporal: Duration?

        public init(spatial: Double? = nil, temporal: Duration? = nil) {
            self.spatial = spatial
            self.temporal = temporal
        }
    }

    /// Slows the published interval when the battery is low.
    public struct LowBattery: Hashable, Sendable {
        /// Percent, 0…100; low is strictly below.
        public var threshold: Double
        /// Factor on the interval, finite and ≥ 1.
        public var multiplier: Double

        public init(threshold: Double, multiplier: Double) {
            self.threshold = threshold
            self.multiplier = multiplier
        }
    }

    public var resolutions: ResolutionSet
    public var proximity: Proximity?
    public var lowBattery: LowBattery?

    public init(
        resolutions: ResolutionSet = ResolutionSet(), proximity: Proximity? = nil, lowBattery: LowBattery? = nil
    ) {
        self.resolutions = resolutions
        self.proximity = proximity
        self.lowBattery = lowBattery
    }
}
