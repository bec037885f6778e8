import WaypostCore

/// Time between two fixes for rates.
enum Elapsed {
    /// Seconds by the receiver's clock while it agrees with the event time within 2 s, else by the event time: arrival
    /// over USB jitters, and the receiver's clock may step.
    @inline(__always)
    static func seconds(from a: (time: UTCTime, at: EventTime), to b: (time: UTCTime, at: EventTime)) -> Double {
        let event = max(0, b.at.seconds(since: a.at))
        let (difference, overflow) = b.time.milliseconds.subtractingReportingOverflow(a.time.milliseconds)
        let reported = Double(difference) / 1000
        return !overflow && reported > 0 && abs(reported - event) <= 2 ? reported : event
    }
}

/// A span in nanoseconds, converted once: `Duration` divides by 128-bit integers, too expensive for every fix.
struct Nanoseconds: Sendable {
    var count: Int64

    init(_ duration: Duration) { count = duration.nanoseconds }
    init(seconds: Double) { count = Int64(max(0, min(seconds, 9e9)) * 1e9) }

    static func + (lhs: EventTime, rhs: Nanoseconds) -> EventTime {
        let (sum, overflow) = lhs.nanoseconds.addingReportingOverflow(rhs.count)
        return EventTime(nanoseconds: overflow ? (rhs.count > 0 ? .max : .min) : sum)
    }
}
