import WaypostCore

/// When the epochs of a log are due if it is played back by its own times.
struct PlaybackPace {
    private let factor: Double
    private var origin: (log: EventTime, boot: EventTime)?

    /// nil unless the factor is finite and above 0.
    init?(factor: Double) {
        guard factor.isFinite, factor > 0 else { return nil }
        self.factor = factor
    }

    /// - Parameter log: event time of an epoch; zero = the log has had no date yet, so it is due at once.
    mutating func due(_ log: EventTime, at now: EventTime) -> EventTime {
        guard log != .zero else { return now }
        guard let origin else {
            origin = (log, now)
            return now
        }
        let elapsed = Double(log.nanoseconds - origin.log.nanoseconds) / factor
        return origin.boot + .nanoseconds(Int64(exactly: elapsed.rounded()) ?? .max)
    }

    /// Nothing was delivered during a pause of this length.
    mutating func paused(for pause: Duration) {
        if let origin { self.origin = (origin.log, origin.boot + pause) }
    }
}
