import Profiles
import WaypostCore

/// Until an endpoint that is paused is tried again.
///
/// What is refused may stay so until a person does something, or be over in seconds, as while a server starts. So the waits are
/// those after failures at first, and grow to a quarter of an hour.
struct PauseDelay {
    /// Failures in a row, this one included.
    let failures: Int
    /// Equal answers in a row, this one included.
    let repeats: Int
    let backoff: Backoff
    /// Over which a fleet spreads its requests.
    let window: Duration

    static let longest = Duration.seconds(900)
    /// A captive portal goes with the link or with a click, which nothing here announces.
    private static let longestOfPortal = Duration.seconds(100)
    private static let portalTriesMax = 30
    /// "Gone" is believed once it has been said for most of a minute, and to more than one batch.
    private static let longestOfGone = Duration.seconds(10)
    private static let goneTriesMax = 6
    /// Servers lock out whoever repeats a wrong credential often.
    private static let shortestOfCredential = Duration.seconds(60)

    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source; anything else is clamped.
    func delay(_ reason: String, jitter: Double) -> Duration {
        switch reason {
        case EndpointState.auth:
            return Self.spread(Self.shortestOfCredential.doubled(repeats - 1, atMost: Self.longest), jitter)
        case EndpointState.redirected where repeats <= Self.portalTriesMax:
            return growing(to: Self.longestOfPortal, jitter)
        case EndpointState.gone where repeats <= Self.goneTriesMax: return growing(to: Self.longestOfGone, jitter)
        default: return growing(to: Self.longest, jitter)
        }
    }

    func growing(to longest: Duration, _ jitter: Double) -> Duration {
        var backoff = backoff
        backoff.cap = longest
        let spread = failures > 1 ? window : .zero
        guard backoff.delay(failures: failures, jitter: 1, spread: spread) < longest else {
            return Self.spread(longest, jitter)
        }
        return backoff.delay(failures: failures, jitter: jitter, spread: spread)
    }

    /// A tenth less to a tenth more.
    static func spread(_ duration: Duration, _ jitter: Double) -> Duration {
        let share = jitter > 0 ? min(jitter, 1) : 0
        return .nanoseconds(Int64(Double(duration.nanoseconds) * (0.9 + 0.2 * share)))
    }
}
