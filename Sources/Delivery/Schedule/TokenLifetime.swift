import WaypostCore

/// When a short-lived token is used, and when a new one is fetched. It knows times, never the token.
package struct TokenLifetime: Hashable, Sendable {
    /// Shortest time from one fetch to the next, whatever happens.
    package static let pause = Duration.seconds(60)

    private var obtainedAt: EventTime?
    /// As the issuer gave it; nil = until the server refuses it.
    package private(set) var lifetime: Duration?
    private var startedAt: EventTime?

    package init() {}

    package mutating func fetchStarted(at now: EventTime) { startedAt = now }

    /// - Parameter lifetime: as the issuer gave it; nil when it did not.
    package mutating func fetched(lifetime: Duration?, at now: EventTime) {
        obtainedAt = now
        self.lifetime = lifetime
    }

    /// There is a token that may work. One that lives shorter than the pause is used until the next may be fetched.
    package func isUsable(at now: EventTime) -> Bool {
        guard let obtainedAt else { return false }
        guard let lifetime else { return true }
        return now < obtainedAt + max(lifetime, Self.pause)
    }

    /// nil when there is no token, or it is used until it is refused.
    package var expiresAt: EventTime? { lifetime.flatMap { lifetime in obtainedAt.map { $0 + lifetime } } }

    /// There is no token, or four fifths of its life are over.
    package func isDue(at now: EventTime) -> Bool {
        guard let obtainedAt else { return true }
        guard let lifetime else { return false }
        return now >= obtainedAt + lifetime / 5 * 4
    }

    /// An operator does not wait for the pause.
    package mutating func resumed() { startedAt = nil }

    package func mayFetch(at now: EventTime) -> Bool {
        startedAt.map { now >= $0 + Self.pause } ?? true
    }
}
