import WaypostCore

/// A rule of the configuration: where all its conditions hold, its fields replace what the default policy picks.
///
/// nil in a condition = does not matter. A condition on something unknown does not hold.
public struct ResolutionRule: Hashable, Sendable {
    public var motion: Set<Motion>?
    /// How the asset travels, or that it is still.
    public var activity: Set<Activity.Kind>?
    /// Faster than this, m/s, by the speed smoothed over half a minute; holds until a tenth (at least 0.5 m/s) below.
    public var speedAbove: Double?
    /// Slower than this, m/s, likewise.
    public var speedBelow: Double?
    /// Percent of the battery, exclusive; holds until 2 % below.
    public var batteryAbove: Double?
    /// Percent of the battery, exclusive; holds until 2 % above.
    public var batteryBelow: Double?
    public var externalPower: Bool?
    /// Whether the trackable has subscribers.
    public var subscribers: Bool?
    /// Whether the trackable is near its destination.
    public var near: Bool?
    /// Id of a geofence that the asset is in.
    public var geofence: String?
    /// Days and hours, in the words of the configuration (`TimeWindow.hours`).
    public var hours: String?

    /// nil = as picked without the rule.
    public var priority: AccuracyPriority?
    /// Milliseconds, ≥ 0; nil = as picked without the rule.
    public var intervalMs: Int64?
    /// Metres, ≥ 0; nil = as picked without the rule.
    public var displacement: Double?

    /// The motion state as rules see it.
    public enum Motion: String, Sendable, Codable, CaseIterable {
        case moving
        /// Standing within a trip.
        case stopping
        /// Parked, or not seen yet.
        case stationary

        public init(_ motion: TrackerSnapshot.Motion) {
            switch motion {
            case .moving: self = .moving
            case .stopping: self = .stopping
            case .waiting, .settling, .stationary: self = .stationary
            }
        }
    }

    public init() {}

    func applied(to picked: Resolution) -> Resolution {
        Resolution(
            priority: priority ?? picked.priority, intervalMs: intervalMs ?? picked.intervalMs,
            displacement: displacement ?? picked.displacement)
    }
}

/// A value within limits, with hysteresis at each.
struct RangeCondition: Hashable, Sendable {
    /// Exclusive.
    var above: Double?
    var below: Double?
    /// How far the value must go back over a limit until the condition no longer holds.
    var marginAbove: Double
    var marginBelow: Double
    private(set) var holds: Bool

    /// nil without a limit.
    private init?(above: Double?, below: Double?, marginAbove: Double, marginBelow: Double) {
        guard above != nil || below != nil else { return nil }
        (self.above, self.below) = (above, below)
        (self.marginAbove, self.marginBelow) = (marginAbove, marginBelow)
        holds = false
    }

    static func speed(above: Double?, below: Double?) -> RangeCondition? {
        func margin(_ limit: Double?) -> Double { max((limit ?? 0) / 10, 0.5) }
        // Standing still is below every limit.
        return RangeCondition(
            above: above, below: below, marginAbove: min(margin(above), (above ?? 0) / 2), marginBelow: margin(below))
    }

    static func battery(above: Double?, below: Double?, hysteresis: Double) -> RangeCondition? {
        // Empty and full end each condition.
        RangeCondition(
            above: above, below: below, marginAbove: min(hysteresis, above ?? 0),
            marginBelow: min(hysteresis, 100 - (below ?? 0)))
    }

    /// - Returns: whether `holds` changed.
    mutating func observe(_ value: Double?) -> Bool {
        let before = holds
        holds = value.map { isWithin($0) } ?? false
        return holds != before
    }

    private func isWithin(_ value: Double) -> Bool {
        if let above, value <= (holds ? above - marginAbove : above) { return false }
        if let below, value >= (holds ? below + marginBelow : below) { return false }
        return true
    }
}
