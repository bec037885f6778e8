import WaypostCore

extension LocationSampler {
    public enum Rule: String, Sendable, Codable, CaseIterable {
        /// Interval or displacement reached.
        case either
        /// Interval and displacement reached.
        case both
        /// Interval reached, whatever the displacement.
        case interval
        /// Displacement reached, whatever the interval: nothing is kept while the asset stands.
        case displacement
        /// As few fixes as keep every other one within `bound` of where the kept ones put the asset at its time.
        /// Interval and displacement do not count.
        case trackError = "track-error"
        /// For slow links: 300 s, a much better accuracy, or a displacement that stands out of both accuracies.
        case significant
    }

    /// Metres: the displacement of the rule `significant` where none is chosen.
    public static let significantDisplacement = 500.0

    /// Why a rule is in force.
    public enum RuleReason: Hashable, Sendable {
        /// It was chosen, whatever is asked for.
        case chosen
        /// Nothing asks for a resolution: as few points as needed.
        case nothingAsks
        /// A setting asks for a resolution: its name.
        case asked(by: String)
        /// A subscriber is there, without whom nothing would ask.
        case subscriber
        /// A constant location engine was set, without which nothing would ask.
        case engine
        /// A boost is in force.
        case boost

        /// For people: why, or what.
        public var words: String {
            switch self {
            case .chosen: "as set"
            case .nothingAsks: "nothing asks for a resolution"
            case .asked(let setting): "a resolution is asked for by \(setting)"
            case .subscriber: "a subscriber watches"
            case .engine: "an engine resolution is set"
            case .boost: "a boost"
            }
        }
    }

    /// How the sampler chooses among the fixes that arrive. None of these settings changes how often the receiver
    /// measures: `ResolutionBoard.engine` follows the intervals of the resolutions alone, so a setting may only keep fewer
    /// or more of the fixes that come at that rate.
    public struct Settings: Hashable, Sendable {
        /// The default of a program of your own is `either`, as in Ably Asset Tracking: the interval is no cap on the rate of
        /// a fast asset. See `Tracker.Settings.keepFewest()`.
        public var rule = Rule.either
        /// Metres, rule `track-error`: the greatest distance of a believed fix from the straight line between the kept
        /// fixes before and after it, at its own time (synchronised Euclidean distance). The default is 5.
        public var bound = 5.0
        /// Rule `track-error`: the longest time by which a fix is kept later than it came. The default is 30 s; longer
        /// saves points, shorter shows them earlier.
        public var maxDelay = Duration.seconds(30)
        /// Degrees, 0…180: a turn by so much since the last record is kept, at 2 m/s or more. nil, the default, = off.
        public var angle: Double?
        /// Metres per second: a change by so much since the last record is kept. nil, the default, = off.
        public var speedChange: Double?
        /// The displacement grows by this factor for each 5 m/s, up to 500 m (Transistor's `elasticityMultiplier`). nil,
        /// the default, = off.
        public var elasticity: Double?
        /// Shortest time between two selected locations, whatever the displacement; changes of state, and what `bound`
        /// needs, are kept all the same. The default is zero: no cap.
        public var minGap = Duration.zero

        public init() {}
    }
}
