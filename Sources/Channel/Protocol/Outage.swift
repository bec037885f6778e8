import WaypostCore

/// The time without a connection, and when the next attempt is.
struct Outage: Sendable {
    /// When the last connection was lost, or the first attempt began; nil = there is one, or none is wanted.
    private var since: EventTime?
    /// It has lasted longer than the service keeps our place.
    private(set) var isLong = false
    /// Attempts in a row.
    private var failures = 0

    /// When it becomes long; nil = it is, or there is none.
    func becomesLong(after lifetime: Duration) -> EventTime? { isLong ? nil : since.map { $0 + lifetime } }

    /// - Parameter isFirst: what failed before does not count.
    mutating func began(isFirst: Bool, at now: EventTime) {
        since = since ?? now
        if isFirst { failures = 0 }
    }

    mutating func becameLong() { isLong = true }

    /// The failures count until a connection has proved to be stable.
    mutating func ended() {
        since = nil
        isLong = false
    }

    /// - Returns: how long to wait for the next attempt.
    mutating func attemptFailed(jitter: Double) -> Duration {
        failures += 1
        return isLong ? AttemptPause.suspended : AttemptPause.after(failures: failures, jitter: jitter)
    }
}
