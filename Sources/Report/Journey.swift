import Positioning
import Tracking

/// Trips, stops and gaps of a log. Times are Unix milliseconds; what the log ends within ends with the log.
struct Journey {
    struct Trip {
        var number: Int
        var start: Int64
        var end: Int64
        /// The log ended first.
        var isOpen: Bool
        var metres: Double
        /// Seconds.
        var idle: Double
        /// m/s; nil = unknown.
        var maxSpeed: Double?
        /// Published locations of this time.
        var kept = 0
        var departure: Decision
        var arrival: Decision?
    }

    struct Stop {
        var start: Int64
        var end: Int64
        var isOpen: Bool
        /// nil = hidden.
        var place: Coordinate?
        var why: Decision
    }

    struct Span {
        var start: Int64
        var end: Int64
    }

    struct Gap {
        var start: Int64
        var end: Int64
        var isOpen: Bool
        var reason: String
    }

    struct Crossing {
        var time: Int64
        var fence: String
        var action: String
    }

    var trips: [Trip] = []
    var stops: [Stop] = []
    /// Halts within trips.
    var halts: [Span] = []
    var gaps: [Gap] = []
    var crossings: [Crossing] = []

    /// Metres of all trips.
    var metres: Double { trips.reduce(0) { $0 + $1.metres } }

    /// Milliseconds of all trips.
    var moving: Int64 { trips.reduce(0) { $0 + $1.end - $1.start } }

    func isMoving(at time: Int64) -> Bool { trips.contains { $0.start <= time && time <= $0.end } }

    func isHalt(at time: Int64) -> Bool { halts.contains { $0.start <= time && time <= $0.end } }
}
