import WaypostCore

/// How long to wait for the next attempt, of a connection and of a channel.
enum AttemptPause {
    /// While the connection is suspended.
    static let suspended = Duration.seconds(30)

    private static let base = 15.0
    private static let longestAfterRefusals = 900.0

    /// From 12…15 s after the first failure to 24…30 s from the fourth on.
    ///
    /// - Parameters:
    ///   - failures: in a row, 1 or more.
    ///   - jitter: 0 ≤ jitter < 1.
    static func after(failures: Int, jitter: Double) -> Duration {
        duration(base * min(Double(failures + 2) / 3, 2), jitter)
    }

    /// Until a refused credential is fetched again: from 12…15 s, doubled with each refusal, to 12…15 min.
    ///
    /// - Parameters:
    ///   - refusals: in a row, 1 or more.
    ///   - jitter: as of `after(failures:jitter:)`.
    static func after(refusals: Int, jitter: Double) -> Duration {
        let pause = Duration.seconds(base).doubled(refusals - 1, atMost: .seconds(longestAfterRefusals))
        return duration(Double(pause.nanoseconds) / 1e9, jitter)
    }

    private static func duration(_ seconds: Double, _ jitter: Double) -> Duration {
        .nanoseconds(Int64(seconds * (0.8 + 0.2 * max(0, min(jitter, 1))) * 1e9))
    }
}
