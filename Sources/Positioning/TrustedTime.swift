/// The newest time of the receiver that is believed: what ages are measured against, since the wall clock may be wrong.
///
/// A receiver that has just started, or whose week has rolled over, may tell any time. It is believed once its time has
/// gone evenly with the event time for a minute, and it only ever advances.
public struct TrustedTime: Sendable {
    /// So long it must have gone evenly.
    private static let patience = 60.0
    /// Milliseconds that time and event time may differ by from one fix to the next: latency of a line, a busy machine.
    private static let tolerance: Int64 = 2000

    private var began: EventTime?
    private var last: (time: UTCTime, at: EventTime)?
    /// nil until the receiver was believed for the first time.
    public private(set) var newest: UTCTime?

    public init() {}

    public mutating func fixReceived(time: UTCTime, at: EventTime) {
        defer { last = (time, at) }
        guard let began, let last, isEven(from: last, to: (time, at)) else { return began = at }
        guard at.seconds(since: began) >= Self.patience else { return }
        newest = newest.map { max($0, time) } ?? time
    }

    private func isEven(from last: (time: UTCTime, at: EventTime), to next: (time: UTCTime, at: EventTime)) -> Bool {
        let elapsed = next.at.duration(since: last.at).milliseconds
        let (difference, overflow) = next.time.milliseconds(since: last.time).subtractingReportingOverflow(elapsed)
        return !overflow && elapsed >= 0 && difference.magnitude <= Self.tolerance.magnitude
    }
}
