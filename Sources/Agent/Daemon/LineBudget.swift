import Positioning

/// How many lines of one kind the log takes: a dozen at once, then one a minute. What is withheld is counted.
struct LineBudget {
    enum Verdict: Hashable {
        /// - Parameter untold: how many were withheld since the last one.
        case tell(untold: Int)
        case withhold
    }

    private static let linesMax = 12
    private static let refill = Duration.seconds(60)

    private var left = LineBudget.linesMax
    private var refilledAt: EventTime?
    private var untold = 0

    mutating func spend(at now: EventTime) -> Verdict {
        let since = refilledAt ?? now
        let earned = max(0, now.duration(since: since).nanoseconds / Self.refill.nanoseconds)
        if left + Int(clamping: earned) >= Self.linesMax {
            left = Self.linesMax
            refilledAt = now
        } else {
            left += Int(earned)
            refilledAt = since + .nanoseconds(earned * Self.refill.nanoseconds)
        }
        guard left > 0 else {
            untold += 1
            return .withhold
        }
        left -= 1
        defer { untold = 0 }
        return .tell(untold: untold)
    }
}
