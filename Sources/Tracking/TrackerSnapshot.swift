import WaypostCore

/// What `waypost status` shows of tracking.
public struct TrackerSnapshot: Hashable, Sendable {
    public enum ReceiverSleep: Hashable, Sendable {
        /// A probe is due then.
        case until(EventTime)
        /// Until a trip begins by `pace`.
        case released
    }

    /// The motion state in full; records know only moving (moving, stopping) and stationary (settling, stationary).
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
        /// Near its destination; in the mode `sticky` the same for all.
        public var near: Bool
        /// The battery counts as low for it.
        public var batteryLow: Bool
        public var lastRecorded: UTCTime?
    }

    public var motion: Motion
    /// How the asset travels; nil before enough was seen, and outside the hours.
    public var activity: Activity?
    /// Departure while moving, beginning of the halt while stopping, standstill while stationary; nil when unknown.
    public var since: UTCTime?
    /// The last fix that was believed: time and place.
    public var lastFixTime: UTCTime?
    public var lastCoordinate: Coordinate?
    public var lastAccuracy: Double?
    /// The position that records carry: held while standing.
    public var reportedCoordinate: Coordinate?
    /// Within the hours in which the asset is tracked.
    public var inHours: Bool
    /// The boost that lasts; nil = none.
    public var boost: Resolution?
    /// When it ends; nil before the first dated fix too.
    public var boostUntil: UTCTime?
    /// A silence longer than `gapAfter` is going on.
    public var inGap: Bool
    /// nil = the receiver is wanted.
    public var receiverSleep: ReceiverSleep?
    /// What the receiver is asked for.
    public var engine: Resolution
    /// By the constant location engine, not by what is published.
    public var isEngineConstant: Bool
    /// By which the fixes of a moving asset are kept, and why.
    public var rule: LocationSampler.Rule
    public var ruleReason: LocationSampler.RuleReason
    public var trackables: [TrackableResolution]
    /// Metres.
    public var odometer: Double
    public var gapMetres: Double
    public var power: PowerState
    /// The battery is below the level of the alarm.
    public var batteryLow: Bool
    /// Geofences that are watched.
    public var fences: Int
    /// Geofences that cannot be used.
    public var fencesRefused: Int
    /// Stays that were too many at once to be recorded.
    public var staysUnrecorded: Int
    /// Ids of the geofences that the asset is inside of, in order.
    public var inside: [String]
}
