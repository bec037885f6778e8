/// When a connection that is kept open is opened again after it was lost.
///
/// A server that restarts closes the connections of a whole fleet: they come back within a spread that it can accept. A
/// link of this host that comes back concerns one device, which connects at once.
package struct ReconnectDelay: Hashable, Sendable {
    /// In which the devices of a fleet connect that do so for the same reason.
    package static let spread = Duration.seconds(60)

    private let spread: Duration
    private let backoff: Backoff
    /// The longest wait before the first attempt that follows.
    private var first: Duration
    private var failures = 0

    /// - Parameters:
    ///   - spread: over which the devices of a fleet come back after the server has closed their connections: a minute, or
    ///     20 s where people watch.
    ///   - backoff: its base is that of attempts on a link that has just come back.
    package init(spread: Duration = spread, backoff: Backoff = Backoff()) {
        self.spread = spread
        self.backoff = backoff
        first = backoff.base
    }

    /// The connection works.
    package mutating func connected() {
        failures = 0
        first = spread
    }

    /// The link of this host came back, or its address changed: the caller connects at once.
    package mutating func linkChanged() {
        failures = 0
        first = backoff.base
    }

    /// The connection was closed while the route stands, or an attempt has failed.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source; anything else is clamped.
    /// - Returns: how long to wait, above 0 and at most `min(cap, first · 2^failures)`.
    package mutating func lost(jitter: Double) -> Duration {
        // Any share of it is exact enough as a Double, and fits.
        let cap = Duration.nanoseconds(min(max(1, backoff.cap.nanoseconds), 1 << 62))
        let ceiling = max(.nanoseconds(1), first).doubled(failures, atMost: cap)
        failures = min(failures + 1, 62)
        let share = jitter > 0 ? min(jitter, 1) : 0
        return .nanoseconds(max(1, Int64(Double(ceiling.nanoseconds) * (1 - share))))
    }
}
