/// A time that two agree on: the receiver, whose time has run evenly, and the host, whose clock is synchronised.
///
/// A receiver that has just started, whose week has rolled over or that hears a false signal may claim any date, for as
/// long as it likes; a host may have been set by a wrong server. So neither is believed alone.
public struct TrustedTime: Sendable {
    /// The receiver must have run evenly for as long as this.
    private static let evenLeast = Duration.seconds(60)
    /// Milliseconds that time and event time may differ by from one fix to the next: latency of a line, a busy machine.
    private static let tolerance: UInt64 = 2000
    /// Milliseconds that receiver and host may differ by.
    private static let agreement = UInt64(UTCTime.millisecondsPerDay)

    /// Since when the receiver has run evenly.
    private var began: EventTime?
    private var last: (time: UTCTime, at: EventTime)?

    public init() {}

    /// - Parameter at: boot clock.
    public mutating func fixReceived(time: UTCTime, at: EventTime) {
        if let last, !isEven(from: last, to: (time, at)) { began = nil }
        if began == nil { began = at }
        last = (time, at)
    }

    private func isEven(from last: (time: UTCTime, at: EventTime), to next: (time: UTCTime, at: EventTime)) -> Bool {
        let elapsed = next.at.duration(since: last.at).milliseconds
        let (difference, overflow) = next.time.milliseconds(since: last.time).subtractingReportingOverflow(elapsed)
        return !overflow && elapsed >= 0 && difference.magnitude <= Self.tolerance
    }

    /// - Parameters:
    ///   - now: boot clock.
    ///   - hostMs: the synchronised clock of the host, Unix milliseconds; nil = it is not synchronised.
    /// - Returns: from the earlier of both, which makes nothing older than it is, to the later, which brings nothing back that has
    ///   expired; nil while they do not agree.
    public func time(at now: EventTime, hostMs: Int64?) -> ClosedRange<UTCTime>? {
        guard let hostMs, let began, let last, last.at.duration(since: began) >= Self.evenLeast else { return nil }
        let receiver = last.time + now.duration(since: last.at)
        let (difference, overflow) = hostMs.subtractingReportingOverflow(receiver.milliseconds)
        guard !overflow, difference.magnitude <= Self.agreement else { return nil }
        let host = UTCTime(milliseconds: hostMs)
        return min(receiver, host)...max(receiver, host)
    }
}
