/// An instant on the monotonic clock that all timers run on: nanoseconds since an arbitrary origin.
///
/// Live it is the boot clock (it counts suspend); with a file source and in replay tracking uses the log's own time.
/// It never goes back within one run and means nothing in another run.
public struct EventTime: Hashable, Comparable, Sendable, Codable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static let zero = EventTime(nanoseconds: 0)

    public static func < (lhs: EventTime, rhs: EventTime) -> Bool { lhs.nanoseconds < rhs.nanoseconds }

    /// Saturates instead of overflowing, so that an absurd duration is merely "never".
    public static func + (lhs: EventTime, rhs: Duration) -> EventTime {
        lhs.advanced(byNanoseconds: rhs.nanoseconds)
    }

    /// Saturates as `+` does.
    public func advanced(byNanoseconds more: Int64) -> EventTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
        return EventTime(nanoseconds: overflow ? (more > 0 ? .max : .min) : sum)
    }

    public static func - (lhs: EventTime, rhs: Duration) -> EventTime { lhs + (.zero - rhs) }

    /// Seconds from `earlier` to this instant, negative when it is later. Saturates as `+` does.
    public func seconds(since earlier: EventTime) -> Double {
        Double(nanoseconds(since: earlier)) / 1e9
    }

    /// Saturates as `+` does.
    public func duration(since earlier: EventTime) -> Duration { .nanoseconds(nanoseconds(since: earlier)) }

    private func nanoseconds(since earlier: EventTime) -> Int64 {
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
        return overflow ? (nanoseconds > 0 ? .max : .min) : difference
    }
}

extension Duration {
    /// Whole nanoseconds, saturating at the ends of `Int64` (292 years).
    public var nanoseconds: Int64 {
        let whole = attoseconds / 1_000_000_000
        return Int64(exactly: whole) ?? (whole > 0 ? .max : .min)
    }

    /// Whole milliseconds, truncated toward zero.
    public var milliseconds: Int64 { nanoseconds / 1_000_000 }

    public var inSeconds: Double { Double(nanoseconds) / 1e9 }
}
