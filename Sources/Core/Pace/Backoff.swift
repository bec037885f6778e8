/// How long to wait after failures: exponential with jitter.
package struct Backoff: Hashable, Sendable {
    /// The shortest wait, also after the first failure. The default is 1 s.
    package var base: Duration
    /// The longest wait unless the server asks for more. The default is 5 min.
    package var cap: Duration
    /// The longest wait that a server may ask for. The default is 1 h.
    package var longestAsked: Duration

    package init(base: Duration = .seconds(1), cap: Duration = .seconds(300), longestAsked: Duration = .seconds(3600)) {
        self.base = base
        self.cap = cap
        self.longestAsked = longestAsked
    }

    /// `base + jitter · (ceiling − base)` with `ceiling = min(cap, max(base, spread / 4) · 2^failures)`, in whole nanoseconds.
    ///
    /// - Parameters:
    ///   - failures: consecutive failures so far, 1 or more; any number is fine.
    ///   - jitter: 0 ≤ jitter < 1, from the caller's random source; anything else is clamped.
    ///   - spread: the ceiling of the second failure, if it is more than by `base`.
    package func delay(failures: Int, jitter: Double, spread: Duration = .zero) -> Duration {
        let base = max(0, self.base.nanoseconds)
        let unit = Duration.nanoseconds(max(base, spread.nanoseconds / 4))
        let ceiling = unit.doubled(failures, atMost: max(.nanoseconds(base), cap)).nanoseconds
        let share = jitter > 0 ? min(jitter, 1) : 0
        return .nanoseconds(base + min(Int64((Double(ceiling - base) * share).rounded(.down)), ceiling - base))
    }

    /// The wait after a failure: the longer of the own delay and what the server asked for, within `base`…`longestAsked`.
    package func delay(failures: Int, jitter: Double, asked: Duration?, spread: Duration = .zero) -> Duration {
        let own = delay(failures: failures, jitter: jitter, spread: spread)
        invariant(own >= min(base, cap) || base < .zero, "a wait of \(own) below \(base)")
        invariant(own <= max(base, cap), "a wait of \(own) above \(cap)")
        guard let asked else { return own }
        return min(max(own, asked, base), max(longestAsked, own))
    }
}

extension Duration {
    /// Twice as long for each of `times`, at most `longest`: how waits grow from failure to failure.
    ///
    /// - Parameter times: any number; below 1 it is not doubled.
    package func doubled(_ times: Int, atMost longest: Duration) -> Duration {
        let factor = Int64(1) << Int64(max(0, min(times, 62)))
        let (grown, overflow) = max(0, nanoseconds).multipliedReportingOverflow(by: factor)
        return overflow ? longest : min(longest, .nanoseconds(grown))
    }
}
