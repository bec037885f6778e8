import WaypostCore

/// What must survive a restart, stored in the transaction of the record that changed it.
///
/// No event time is in it: that means nothing in another run. Ring and evidence window are not kept, a few seconds
/// of fixes make them again.
public struct StoredState: Hashable, Sendable {
    /// Format of the stored bytes.
    public static let version = 6
    /// The oldest format that is read.
    static let versionMin = 3

    public struct Anchor: Hashable, Sendable {
        public var coordinate: Coordinate
        /// Metres; nil when the receiver reports none.
        public var accuracy: Double?
    }

    public struct LastFix: Hashable, Sendable {
        public var time: UTCTime
        public var coordinate: Coordinate
        public var accuracy: Double?
        public var altitudeMSL: Double?
        public var altitudeHAE: Double?
    }

    /// The trip so far.
    public struct Trip: Hashable, Sendable {
        /// Departure.
        public var start: UTCTime
        public var startCoordinate: Coordinate
        /// Metres on the odometer at departure.
        public var startOdometer: Double
        /// Seconds standing inside the trip.
        public var idle: Double
        /// Largest vector speed over 5 s, m/s; nil without speeds.
        public var maxSpeed: Double?
        /// It left its place without external power, which is not recorded yet.
        public var withoutPower = false
    }

    public struct Recorded: Hashable, Sendable {
        public var trackable: String
        /// Time of the last record.
        public var time: UTCTime
        /// What the sampler compares with: the last selected location.
        public var selectedTime: UTCTime
        public var selectedCoordinate: Coordinate
        /// Who is near a destination, and which; 0 = far.
        public var proximity = 0
    }

    /// The asset is inside of a geofence.
    public struct Stay: Hashable, Sendable {
        /// Id of the fence.
        public var fence: String
        /// Of the fence's shape: another one means that the fence was changed.
        public var revision: UInt32
        public var entered: UTCTime
        /// ENTER was recorded.
        public var isRecorded: Bool
        /// DWELL was recorded.
        public var dwelled: Bool
        /// Of the fence, for the EXIT of one that is gone.
        public var name: String?
        /// The same: by which the server knows the fence that it came from.
        public var serverID: String?
    }

    public var version = StoredState.version
    /// The announced state; a halt within a trip counts as moving.
    public var moving = false
    /// The first motion change was announced. False while the first place is still being settled.
    public var announced = false
    /// The parking place as recorded; nil before the first one, and in a trip that began without one.
    public var anchor: Anchor?
    /// Follows the slow drift of the receiver around the anchor.
    public var fenceCentre: Coordinate?
    /// Departure while moving, standstill while parked.
    public var since: UTCTime?
    /// Beginning of the halt within the trip; nil while rolling or parked.
    public var stopping: UTCTime?
    /// The last fix that was believed.
    public var lastFix: LastFix?
    /// Metres.
    public var odometer = 0.0
    /// How much of the odometer was not seen: straight lines across gaps within trips.
    public var gapMetres = 0.0
    public var trip: Trip?
    public var lastGap: UTCTime?
    public var power = PowerState()
    /// The battery is low, and that was recorded.
    public var lowBatteryRecorded = false
    /// The receiver sleeps until a trip begins by `pace`.
    public var released = false
    public var recorded: [Recorded] = []
    /// The set of fences that `stays` is about: within it, what is not among the stays is outside. 0 = nothing is known of
    /// other fences.
    public var fenceSet: UInt64 = 0
    public var stays: [Stay] = []
    /// Ids of what was entered where no place was known, as a region of beacons without sky.
    public var unplacedEntries: [String] = []

    public init() {}

    /// Written by this version, and no number in it that arithmetic could fail on. Otherwise a tracker starts afresh.
    public var isUsable: Bool {
        let times: [UTCTime] =
            [since, stopping, lastFix?.time, trip?.start, lastGap].compactMap { $0 } + recorded.map(\.time)
            + recorded.map(\.selectedTime) + stays.map(\.entered)
        let places: [Coordinate] =
            [anchor?.coordinate, fenceCentre, lastFix?.coordinate, trip?.startCoordinate].compactMap { $0 }
            + recorded.map(\.selectedCoordinate)
        return version == Self.version && odometer.isFinite && gapMetres.isFinite
            && times.allSatisfy(\.isPlausible) && places.allSatisfy(\.isOnEarth)
    }
}

extension UTCTime {
    /// Before the year 33658: arithmetic with it cannot overflow.
    var isPlausible: Bool { milliseconds.magnitude <= 1_000_000_000_000_000 }
}

extension Coordinate {
    var isOnEarth: Bool {
        (-900_000_000...900_000_000).contains(latitudeE7) && (-1_800_000_000...1_800_000_000).contains(longitudeE7)
    }
}
