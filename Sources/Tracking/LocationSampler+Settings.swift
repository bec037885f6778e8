import Positioning

extension LocationSampler {
    public enum Rule: String, Sendable, Codable, CaseIterable {
        /// Interval or displacement reached.
        case either
        /// Interval and displacement reached.
        case both
    }

    public struct Settings: Hashable, Sendable {
        /// The default is `either`, as in Ably Asset Tracking: the interval is no cap on the rate of a fast asset.
        public var rule = Rule.either
        /// Shortest time between two selected locations, whatever the displacement; changes of state are kept all the same.
        /// The default is zero: no cap.
        public var minGap = Duration.zero

        public init() {}
    }
}
