import WaypostCore

/// The pause before the next attempt: doubles from a first to a longest one.
struct RetryDelay {
    private let first: Duration
    private let longest: Duration
    private var failures = 0

    init(from first: Duration, to longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// - Parameter spread: 0…1, by which up to a fifth is taken off, so that clients that lost the same server do not
    ///   come back together. Never below the first pause.
    mutating func next(spread: Double = 0) -> Duration {
        let pause = first.doubled(failures, atMost: longest)
        failures = min(failures + 1, 62)
        let share = spread.isFinite ? min(1, max(0, spread)) : 0
        return max(first, pause - .nanoseconds(Int64(Double(pause.nanoseconds) * 0.2 * share)))
    }

    mutating func reset() { failures = 0 }
}
