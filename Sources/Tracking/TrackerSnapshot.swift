import Positioning

/// What `waypost status` shows of tracking.
public struct TrackerSnapshot: Hashable, Sendable {
    /// The motion state in full; the wire knows only moving (moving, stopping) and stationary (settling, stationary).
    public enum Motion: String, Sendable, Codable, CaseIterable {
        /// No fix yet.
        case waiting
        /// Finding the first place.
        case settling
        case stationary
        case moving
        /// Standing within a trip.
        case stopping
    }

    public struct TrackableResolution: Hashable, Sendable {
        public var id: String
        /// As published: step by the policy, and the cap while parked.
        public var resolution: Resolution
        public var subscribers: Int
        public var lastRecorded: UTCTime?
    }

    public var motion: Motion
    /// Departure while moving, beginning of the halt while stopping, standstill while stationary; nil when unknown.
    public var since: UTCTime?
    /// The last fix that was believed: time and place.
    public var lastFixTime: UTCTime?
    public var lastCoordinate: Coordinate?
    public var lastAccuracy: Double?
    /// The position that records carry: held while standing.
    public var reportedCoordinate: Coordinate?
    /// A silence longer than `gapAfter` is going on.
    public var inGap: Bool
    public var engine: Resolution
    public var trackables: [TrackableResolution]
    /// Metres.
    public var odometer: Double
    public var gapMetres: Double
    public var power: PowerState
    /// Geofences that are watched.
    public var fences: Int
    /// Geofences that cannot be used.
    public var fencesRefused: Int
    /// Stays that were too many at once to be recorded.
    public var staysUntold: Int
    /// Ids of the geofences that the asset is inside of, in order.
    public var inside: [String]
}
