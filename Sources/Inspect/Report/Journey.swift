import WaypostCore
import WaypostTracking

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
        var reason: RecordReason
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

    /// Whether it is parked, or in a halt within a trip.
    func isStanding(at time: Int64) -> Bool { !trips.covers(time) || isHalted(at: time) }

    /// Whether it is in a halt within a trip.
    func isHalted(at time: Int64) -> Bool { halts.covers(time) }

    /// Leaves out what lies outside of a span of time, and cuts off what reaches over its ends.
    mutating func clip(to span: ClosedRange<Int64>) {
        trips.clip(to: span)
        stops.clip(to: span)
        halts.clip(to: span)
        gaps.clip(to: span)
        crossings.removeAll { !span.contains($0.time) }
    }
}

/// From when to when, in Unix milliseconds.
private protocol TimeSpan {
    var start: Int64 { get set }
    var end: Int64 { get set }
}

extension Journey.Trip: TimeSpan {}
extension Journey.Stop: TimeSpan {}
extension Journey.Span: TimeSpan {}
extension Journey.Gap: TimeSpan {}

extension Array where Element: TimeSpan {
    /// Of spans in the order of time that do not overlap: whether one has this time, ends included.
    fileprivate func covers(_ time: Int64) -> Bool {
        let next = time == .max ? count : firstIndex(from: time + 1, by: \.start)
        return next > 0 && time <= self[next - 1].end
    }

    fileprivate mutating func clip(to span: ClosedRange<Int64>) {
        self = compactMap { element in
            guard element.start <= span.upperBound, element.end >= span.lowerBound else { return nil }
            var element = element
            element.start = Swift.max(element.start, span.lowerBound)
            element.end = Swift.min(element.end, span.upperBound)
            return element
        }
    }
}
