import WaypostCore

/// Where the vehicle really was: what a decision about the noisy log is scored against.
package struct DriveTruth: Sendable {
    package struct Sample: Hashable, Sendable {
        /// Milliseconds since the start of the drive.
        package var elapsed: Int
        /// Metres from the origin.
        package var place: PlanePoint
        /// Metres per second, east and north.
        package var velocity: PlanePoint
        /// Metres driven since the start, forward and backward alike.
        package var distance: Double
        package var sky: Sky
        /// False from departure to standstill, halts included.
        package var isParked: Bool
        /// How it travels, in halts too; still while parked.
        package var activity: Activity.Kind

        /// m/s.
        package var speed: Double { velocity.length }
    }

    package struct Trip: Hashable, Sendable {
        /// Milliseconds since the start of the drive at which the wheels began to turn.
        package var departure: Int
        /// Milliseconds since the start of the drive at which they stood again.
        package var standstill: Int
        package var metres: Double
        /// Metres of it without sky or power.
        package var blindMetres: Double
        /// The sky at departure; anything but clear is a blind start.
        package var skyAtDeparture: Sky
    }

    package struct Stop: Hashable, Sendable {
        /// Milliseconds since the start of the drive; nil = parked already when the log begins.
        package var standstill: Int?
        /// nil = still parked when the log ends.
        package var departure: Int?
        package var place: PlanePoint
    }

    package var origin: Coordinate
    /// One per measurement instant, ascending.
    package var samples: [Sample] = []
    package var trips: [Trip] = []
    package var stops: [Stop] = []
    /// Milliseconds.
    package var duration = 0
}
