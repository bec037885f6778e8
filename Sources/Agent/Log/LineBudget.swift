import Positioning

/// How many lines of one kind the log takes: a dozen at once, then one a minute. What is withheld is counted.
struct LineBudget {
    enum Verdict: Hashable {
        /// - Parameter untold: how many were withheld since the last one.
        case tell(untold: Int)
        case withhold
    }

    private var lines = TokenBucket(burst: 12, refill: .seconds(60))
    private var untold = 0

    mutating func spend(at now: EventTime) -> Verdict {
        guard lines.take(at: now) == nil else {
            untold += 1
            return .withhold
        }
        defer { untold = 0 }
        return .tell(untold: untold)
    }
}
