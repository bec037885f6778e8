/// How often something may happen: a number of times at once, then once in each span.
package struct TokenBucket: Hashable, Sendable {
    private let burst: Int
    private let refill: Duration
    /// When the bucket is full again; nil = nothing was taken yet.
    private var isFullAt: EventTime?

    /// - Parameters:
    ///   - burst: at least 1.
    ///   - refill: time until one that was taken is available again.
    package init(burst: Int, refill: Duration) {
        self.burst = burst
        self.refill = refill
    }

    /// - Returns: nil where it may happen now, which is counted; else how long it takes until it may.
    package mutating func take(at now: EventTime) -> Duration? {
        let full = max(isFullAt ?? now, now)
        let wait = full.duration(since: now) - refill * (burst - 1)
        invariant(burst >= 1 && refill > .zero, "\(burst) at once and one in \(refill)")
        guard wait <= .zero else { return wait }
        isFullAt = full + refill
        return nil
    }
}
