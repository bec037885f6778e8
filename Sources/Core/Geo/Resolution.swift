/// How much power and accuracy a resolution asks for (Ably Asset Tracking `Accuracy`).
public enum AccuracyPriority: Int, Sendable, Codable, Comparable, CaseIterable {
    case minimum = 1
    case low
    case balanced
    case high
    case maximum

    public static func < (lhs: AccuracyPriority, rhs: AccuracyPriority) -> Bool { lhs.rawValue < rhs.rawValue }

    /// The lower-case word of the configuration file; upper-case on the wire.
    public var word: String {
        switch self {
        case .minimum: "minimum"
        case .low: "low"
        case .balanced: "balanced"
        case .high: "high"
        case .maximum: "maximum"
        }
    }

    public init?(word: String) {
        guard let match = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = match
    }
}

/// How often and how finely positions are wanted.
public struct Resolution: Hashable, Sendable, Codable {
    public var priority: AccuracyPriority
    /// Milliseconds between two positions, ≥ 0; 0 = every fix.
    public var intervalMs: Int64
    /// Metres, ≥ 0; 0 = every fix.
    public var displacement: Double

    public init(priority: AccuracyPriority, intervalMs: Int64, displacement: Double) {
        self.priority = priority
        self.intervalMs = intervalMs
        self.displacement = displacement
    }

    /// The default of waypost: balanced, 3 s, 10 m.
    public static let standard = Resolution(priority: .balanced, intervalMs: 3000, displacement: 10)

    /// Field by field the more precise of the two; the result may equal neither.
    public func best(with other: Resolution) -> Resolution {
        Resolution(
            priority: max(priority, other.priority), intervalMs: min(intervalMs, other.intervalMs),
            displacement: min(displacement, other.displacement))
    }

    /// Field by field the most precise of all; nil of none. The order never matters.
    public static func best(of resolutions: some Sequence<Resolution>) -> Resolution? {
        var best: Resolution?
        for resolution in resolutions { best = best.map { $0.best(with: resolution) } ?? resolution }
        return best
    }
}
