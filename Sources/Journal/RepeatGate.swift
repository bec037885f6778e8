/// Keeps a problem that lasts, or that comes and goes, from filling the log: it is logged when it begins, then every ten minutes
/// with a count, and when it ends. One that comes back is logged after pauses that grow from ten seconds to ten minutes; it is
/// new again once it has stayed away for ten minutes.
///
/// One gate serves one problem. Time is an argument: nanoseconds on any clock that does not go back.
package struct RepeatGate: Hashable, Sendable {
    /// What to do with an occurrence.
    package enum Verdict: Hashable, Sendable {
        /// Log it: the problem is new.
        case first
        /// Log it together with the number of occurrences since the last line, this one included.
        case again(count: Int)
        /// Log nothing.
        case suppressed

        /// To be appended to a line; empty where nothing was left out.
        package var words: String {
            if case .again(let count) = self, count > 1 { "; \(count) times since the last message" } else { "" }
        }
    }

    private let interval: Int64
    /// Whether the problem under way was logged; nil = there is none.
    private var isLogged: Bool?
    /// The last line about a beginning or a repetition; nil = the problem is new.
    private var lastLogged: Int64?
    private var lastEnded: Int64 = 0
    private var unlogged = 0
    /// From the last line to the one about the next occurrence.
    private var pause: Int64 = 0

    /// - Parameter interval: nanoseconds between two lines about a problem that goes on. The default is ten minutes.
    package init(interval: Int64 = 600_000_000_000) { self.interval = interval }

    /// - Parameter isNews: it is to be logged in any case.
    package mutating func occurred(at now: Int64, isNews: Bool = false) -> Verdict {
        if isLogged == nil, lastLogged != nil, now - lastEnded >= interval {
            lastLogged = nil
            pause = 0
        }
        let wasLogged = isLogged ?? false
        isLogged = wasLogged
        unlogged += 1
        let rest = wasLogged ? interval : pause
        guard isNews || lastLogged.map({ now - $0 >= rest }) ?? true else { return .suppressed }
        let isFirst = unlogged == 1 && lastLogged == nil
        if !wasLogged { pause = min(max(2 * pause, interval / 60), interval) }
        isLogged = true
        lastLogged = now
        defer { unlogged = 0 }
        return isFirst ? .first : .again(count: unlogged)
    }

    /// - Returns: whether its end is to be logged: there was a problem, and it was logged.
    package mutating func ended(at now: Int64) -> Bool {
        guard let wasLogged = isLogged else { return false }
        isLogged = nil
        lastEnded = now
        if wasLogged { unlogged = 0 }
        return wasLogged
    }
}
