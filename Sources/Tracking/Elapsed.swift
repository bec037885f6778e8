import Positioning

/// Time between two fixes for rates.
enum Elapsed {
    /// Seconds by the receiver's clock while it agrees with the event time within 2 s, else by the event time: arrival
    /// over USB jitters, and the receiver's clock may step.
    @inline(__always)
    static func seconds(from a: (time: UTCTime, at: EventTime), to b: (time: UTCTime, at: EventTime)) -> Double {
        let event = max(0, b.at.seconds(since: a.at))
        let (difference, overflow) = b.time.milliseconds.subtractingReportingOverflow(a.time.milliseconds)
        let told = Double(difference) / 1000
        return !overflow && told > 0 && abs(told - event) <= 2 ? told : event
    }
}
