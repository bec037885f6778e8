import WaypostCore

/// A broker passes what it takes to nobody: how long until the oldest row is tried again.
struct SubscriberWait: Sendable {
    private static let shortest = Duration.seconds(10)
    private static let longest = Duration.seconds(600)

    private var misses = 0

    /// Only one row is tried, since all would only be published again.
    var isOn: Bool { misses > 0 }

    /// - Parameter jitter: 0 ≤ jitter < 1.
    /// - Returns: how long to wait: 10 s, and twice as long each time up to 10 min, and up to a tenth longer below that.
    mutating func missed(jitter: Double) -> Duration {
        let wait = Self.shortest.doubled(misses, atMost: Self.longest).nanoseconds
        misses = min(misses + 1, 1_000_000)
        return min(Self.longest, .nanoseconds(wait + Int64(Double(wait / 10) * min(max(jitter, 0), 1))))
    }

    mutating func end() { misses = 0 }
}

extension SubscriberWait {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(misses >= 0, "\(misses) messages without a subscriber")
    }
}
