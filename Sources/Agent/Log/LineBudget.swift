import Positioning

/// How many lines of one kind the log takes: a dozen at once, then one a minute. What is withheld is counted.
struct LineBudget {
    enum Verdict: Hashable {
        /// - Parameter withheld: how many were withheld since the last one.
        case write(withheld: Int)
        case withhold
    }

    private var lines = TokenBucket(burst: 12, refill: .seconds(60))
    private var withheld = 0

    mutating func spend(at now: EventTime) -> Verdict {
        guard lines.take(at: now) == nil else {
            withheld += 1
            return .withhold
        }
        defer { withheld = 0 }
        return .write(withheld: withheld)
    }
}
