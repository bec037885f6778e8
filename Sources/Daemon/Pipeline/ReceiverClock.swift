import WaypostCore
import WaypostHost

/// The date and time that the receiver gives, and whether the host's clock agrees with them.
final class ReceiverClock {
    /// The newest time, and when it came.
    private var newest: (time: UTCTime, at: EventTime)?
    private var trusted = TrustedTime()

    func received(_ time: UTCTime, at now: EventTime) {
        newest = (time, now)
        trusted.fixReceived(time: time, at: now)
    }

    /// nil before the receiver gave a date.
    func time(at now: EventTime) -> UTCTime? { newest.map { $0.time + now.duration(since: $0.at) } }

    /// More than a line of a receiver is late.
    private static let agreement: Int64 = 60_000

    /// The host's time, unless the receiver says another minute: for what is valid for seconds, also where no sky is in sight.
    /// - Parameter hostMs: as below.
    func uncontradictedTime(at now: EventTime, hostMs: Int64?) -> UTCTime? {
        guard let hostMs else { return nil }
        let host = UTCTime(milliseconds: hostMs)
        guard let receiver = time(at: now) else { return host }
        return abs(host.milliseconds(since: receiver)) <= Self.agreement ? host : nil
    }

    /// See `TrustedTime`. The age of rows of earlier processes is measured against the earlier end.
    /// - Parameter hostMs: the host's wall clock in Unix milliseconds; nil while it is not synchronised.
    func trustedTime(at now: EventTime, hostMs: Int64?) -> ClosedRange<UTCTime>? {
        trusted.time(at: now, hostMs: hostMs)
    }
}
