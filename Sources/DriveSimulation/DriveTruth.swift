import Positioning

/// Where the vehicle really was: what a decision about the noisy log is scored against.
public struct DriveTruth: Sendable {
    public struct Sample: Hashable, Sendable {
        /// Milliseconds since the start of the drive.
        public var elapsed: Int
        /// Metres from the origin.
        public var place: PlanePoint
        /// Metres per second, east and north.
        public var velocity: PlanePoint
        /// Metres driven since the start, forward and backward alike.
        public var distance: Double
        public var sky: Sky
        /// False from departure to standstill, halts included.
        public var isParked: Bool
        /// How it travels, in halts too; still while parked.
        public var activity: Activity.Kind

        /// m/s.
        public var speed: Double { velocity.length }
    }

    public struct Trip: Hashable, Sendable {
        /// Milliseconds since the start of the drive at which the wheels began to turn.
        public var departure: Int
        /// Milliseconds since the start of the drive at which they stood again.
        public var standstill: Int
        public var metres: Double
        /// Metres of it without sky or power.
        public var blindMetres: Double
        /// The sky at departure; anything but clear is a blind start.
        public var skyAtDeparture: Sky
    }

    public struct Stop: Hashable, Sendable {
        /// Milliseconds since the start of the drive; nil = parked already when the log begins.
        public var standstill: Int?
        /// nil = still parked when the log ends.
        public var departure: Int?
        public var place: PlanePoint
    }

    public var origin: Coordinate
    /// One per measurement instant, ascending.
    public var samples: [Sample] = []
    public var trips: [Trip] = []
    public var stops: [Stop] = []
    /// Milliseconds.
    public var duration = 0
}
