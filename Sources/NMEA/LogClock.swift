import WaypostCore

/// The event time of the epochs of a log: the receiver's own time, made monotonic.
///
/// A dated fix sets the clock forward to its UTC. Void and dateless epochs move it on by the median interval of the
/// dated fixes before. A fix that is not later than the clock holds it. After ten held dated fixes in a row that rise
/// among themselves the receiver's clock was set back: the clock makes up for the time in which they came, and from
/// there on runs at an offset to UTC. A leap of more than a day is a break between two recordings, not time that was
/// lived through: it counts as one day, so that a log put together from two years does not give two years of heartbeats.
public struct LogClock: Hashable, Sendable, Codable {
    /// Held fixes after which a clock set back is believed; short repeats in real logs have 3–4.
    public static let heldFixesToRebase = 10

    /// The most that one fix moves the clock on.
    public static let leapMax = Duration.seconds(86_400)

    private static let leapMaxNanoseconds = leapMax.nanoseconds

    /// The event time of the last epoch; nil before the first dated fix.
    public private(set) var now: EventTime?
    /// Event time minus fix time in nanoseconds; 0 until a clock set back is followed or a break is crossed.
    private var shift: Int64 = 0
    private var intervals = RecentIntervals()
    private var newestFix: UTCTime?
    private var heldFixes = 0
    private var firstHeld: UTCTime?

    public init() {}

    /// Continues after `resume` of another run: event times follow the UTC reached there.
    public init(resume: ResumePoint) {
        guard let time = resume.time else { return }
        now = Self.eventTime(time, shift: 0)
        newestFix = time
    }

    /// Event time of the next epoch of the log, never before that of the one before. Zero before the first dated fix.
    public mutating func time(of epoch: Epoch) -> EventTime {
        if case .fix(let fix) = epoch, let time = fix.time {
            fixReceived(time)
        } else if let now {
            self.now = now + .milliseconds(intervals.median ?? 1000)
        }
        return now ?? .zero
    }

    /// The event time at which the receiver's clock shows this, as far as is known by now.
    package func time(of utc: UTCTime) -> EventTime { Self.eventTime(utc, shift: shift) }

    /// What the receiver's clock shows then.
    package func utc(at time: EventTime) -> UTCTime {
        UTCTime(milliseconds: time.advanced(byNanoseconds: 0 &- shift).nanoseconds / 1_000_000)
    }

    private mutating func fixReceived(_ time: UTCTime) {
        let previous = newestFix
        newestFix = time
        let reached = Self.eventTime(time, shift: shift)
        guard let now, reached <= now else {
            advance(to: reached)
            heldFixes = 0
            if let previous {
                let (interval, overflow) = time.milliseconds.subtractingReportingOverflow(previous.milliseconds)
                if !overflow { intervals.add(interval) }
            }
            return
        }
        let rises = previous.map { time > $0 } ?? false
        heldFixes = heldFixes > 0 && rises ? heldFixes + 1 : 1
        if heldFixes == 1 { firstHeld = time }
        if heldFixes >= Self.heldFixesToRebase, let firstHeld {
            let held = Self.eventTime(time, shift: 0).duration(since: Self.eventTime(firstHeld, shift: 0))
            let reached = now + min(held, Self.leapMax) + .milliseconds(intervals.median ?? 1000)
            let (offset, overflow) = reached.nanoseconds.subtractingReportingOverflow(
                Self.eventTime(time, shift: 0).nanoseconds)
            if !overflow {
                self.now = reached
                shift = offset
            }
            heldFixes = 0
        }
    }

    private mutating func advance(to reached: EventTime) {
        guard let now else { return self.now = reached }
        let leap = now.advanced(byNanoseconds: Self.leapMaxNanoseconds)
        guard reached > leap else { return self.now = reached }
        shift -= reached.duration(since: leap).nanoseconds
        self.now = leap
    }

    /// Times beyond ±146 years of 1970 count as those limits, so that no sum overflows.
    private static func eventTime(_ time: UTCTime, shift: Int64) -> EventTime {
        let limit = Int64.max / 2 / 1_000_000
        let milliseconds = max(-limit, min(limit, time.milliseconds))
        return EventTime(nanoseconds: milliseconds * 1_000_000).advanced(byNanoseconds: shift)
    }
}
