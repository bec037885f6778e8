import Positioning

/// How long to wait for the next attempt, of a connection and of a channel.
enum AttemptPause {
    /// While the connection is suspended.
    static let suspended = Duration.seconds(30)

    private static let base = 15.0

    /// From 12…15 s after the first failure to 24…30 s from the fourth on.
    ///
    /// - Parameters:
    ///   - failures: in a row, 1 or more.
    ///   - jitter: 0 ≤ jitter < 1.
    static func after(failures: Int, jitter: Double) -> Duration {
        let growth = min(Double(failures + 2) / 3, 2)
        let share = 0.8 + 0.2 * max(0, min(jitter, 1))
        return .nanoseconds(Int64(base * growth * share * 1e9))
    }
}
