/// Keeps a problem that lasts, or that comes and goes, from filling the log: it is told when it begins, then every ten minutes
/// with a count, and when it ends. One that comes back is told after pauses that grow from ten seconds to ten minutes; it is
/// new again once it has stayed away for ten minutes.
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

        /// To be put behind the text of a line; empty where nothing was left unsaid.
        public var words: String {
            if case .again(let count) = self, count > 1 { "; \(count) times since the last line" } else { "" }
        }
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
        var count = 0
        var isTold = false
    }

    private let interval: Int64
    private var running: Running?
    /// The last line about a beginning or a repetition; nil = the problem is new.
    private var lastTold: Int64?
    private var lastEnded: Int64 = 0
    private var untold = 0
    /// From the last line to that about the next beginning.
    private var pause: Int64 = 0

    /// - Parameter interval: nanoseconds between two lines about a problem that goes on. The default is ten minutes.
    public init(interval: Int64 = 600_000_000_000) { self.interval = interval }

    /// The problem has begun and not ended yet.
    public var isOpen: Bool { running != nil }

    /// - Parameter isNews: it is to be told in any case.
    public mutating func occurred(at now: Int64, isNews: Bool = false) -> Verdict {
        if running == nil, lastTold != nil, now - lastEnded >= interval {
            lastTold = nil
            pause = 0
        }
        var problem = running ?? Running(began: now)
        problem.count += 1
        untold += 1
        defer { running = problem }
        let rest = problem.isTold ? interval : pause
        guard isNews || lastTold.map({ now - $0 >= rest }) ?? true else { return .suppressed }
        let isFirst = untold == 1 && lastTold == nil
        if !problem.isTold { pause = min(max(2 * pause, interval / 60), interval) }
        problem.isTold = true
        lastTold = now
        defer { untold = 0 }
        return isFirst ? .first : .again(count: untold)
    }

    /// nil when there was no problem, or none that was told; otherwise log its end.
    public mutating func ended(at now: Int64) -> Summary? {
        guard let problem = running else { return nil }
        running = nil
        lastEnded = now
        guard problem.isTold else { return nil }
        untold = 0
        return Summary(count: problem.count, nanoseconds: now - problem.began)
    }
}
