/// Keeps a lasting problem from filling the log: it is told when it begins, then every ten minutes with a count, and
/// when it ends.
///
/// One gate serves one problem. Time is an argument: nanoseconds on any clock that does not go back.
public struct RepeatGate: Hashable, Sendable {
    /// What to do with an occurrence.
    public enum Verdict: Hashable, Sendable {
        /// Log it: the problem is new.
        case first
        /// Log it together with the number of occurrences since the last line, this one included.
        case again(count: Int)
        /// Say nothing.
        case suppressed
    }

    /// What a problem that is over came to.
    public struct Summary: Hashable, Sendable {
        /// All occurrences.
        public var count: Int
        /// From the first occurrence to the end.
        public var nanoseconds: Int64
    }

    private struct Running: Hashable {
        var began: Int64
        var lastTold: Int64
        var count: Int
        var untold: Int
    }

    private let interval: Int64
    private var running: Running?

    /// - Parameter interval: nanoseconds between two lines about a problem that goes on. The default is ten minutes.
    public init(interval: Int64 = 600_000_000_000) { self.interval = interval }

    /// The problem has begun and not ended yet.
    public var isOpen: Bool { running != nil }

    public mutating func occurred(at now: Int64) -> Verdict {
        guard var problem = running else {
            running = Running(began: now, lastTold: now, count: 1, untold: 0)
            return .first
        }
        problem.count += 1
        problem.untold += 1
        defer { running = problem }
        guard now - problem.lastTold >= interval else { return .suppressed }
        let count = problem.untold
        problem.lastTold = now
        problem.untold = 0
        return .again(count: count)
    }

    /// nil when there was no problem; otherwise log its end.
    public mutating func ended(at now: Int64) -> Summary? {
        guard let problem = running else { return nil }
        running = nil
        return Summary(count: problem.count, nanoseconds: now - problem.began)
    }
}
