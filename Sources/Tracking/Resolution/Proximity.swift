import WaypostCore

/// What counts as near a destination: either part suffices (Ably Asset Tracking `DefaultProximity`).
public struct Proximity: Hashable, Sendable {
    /// Metres to the destination, > 0.
    public var spatial: Double?
    /// Time to the destination in a straight line at the present speed, > 0: a lower bound of the time on roads, so that
    /// near comes early.
    public var temporal: Duration?

    public init(spatial: Double? = nil, temporal: Duration? = nil) {
        self.spatial = spatial
        self.temporal = temporal
    }

    /// The reference's test: strict, without hysteresis.
    ///
    /// Source: ably-asset-tracking-android 1.7.0, `ThresholdChecker.kt`.
    /// - Parameters:
    ///   - distance: metres to the destination; nil = no destination.
    ///   - remaining: seconds to the destination, at most 0 when it should have been reached; nil = unknown.
    public func isReached(distance: Double?, remaining: Double?) -> Bool {
        if let spatial, let distance, distance < spatial { return true }
        if let temporal, let remaining, remaining < temporal.inSeconds { return true }
        return false
    }
}

/// Who is near, and for how long.
public enum ProximityMode: String, Sendable, Codable, CaseIterable {
    /// Each trackable by its own destination, and until it leaves again.
    case perTrackable = "per-trackable"
    /// As Ably Asset Tracking: one flag for all trackables, set when the active one comes near, cleared only when that is
    /// removed.
    case sticky
}

/// Near or far of one trackable, with hysteresis so that one position that swings around a limit does not flap.
public struct NearFlag: Hashable, Sendable {
    /// Closer than `spatial`, and not yet a tenth (at least 5 m) beyond it again.
    public internal(set) var spatial = false
    /// Closer in time than `temporal`, and not yet a tenth (at least 5 s) beyond it again.
    public internal(set) var temporal = false

    public init() {}
    public var isNear: Bool { spatial || temporal }

    /// Metres and seconds beyond a limit that at least count as having left.
    private static let marginMin = 5.0

    /// - Parameters:
    ///   - distance: metres to the destination; nil = no destination, never near.
    ///   - remaining: seconds to the destination; nil = unknown: the temporal part holds.
    public mutating func observe(_ threshold: Proximity, distance: Double?, remaining: Double?) {
        guard let distance else {
            self = NearFlag()
            return
        }
        spatial = threshold.spatial.map { Self.isWithin(distance, limit: $0, was: spatial) } ?? false
        guard let limit = threshold.temporal?.inSeconds else { return temporal = false }
        if let remaining { temporal = Self.isWithin(remaining, limit: limit, was: temporal) }
    }

    private static func isWithin(_ value: Double, limit: Double, was: Bool) -> Bool {
        value < (was ? limit + max(limit / 10, marginMin) : limit)
    }
}
