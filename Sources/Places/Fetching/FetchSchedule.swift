import WaypostCore

/// When a list is fetched from its server: at the start, at regular times, when asked for, and again after a failure.
///
/// One request at a time. It knows times, never the list.
package struct FetchSchedule: Sendable {
    /// The share of the period by which fetches are spread to either side, so that a fleet does not ask at the same time.
    private static let jitterShare = 0.1
    /// Just after the boot of the host a whole fleet may be starting.
    private static let startSpread = Duration.seconds(30)
    /// The shortest wait after a failure.
    private static let failurePause = Duration.seconds(30)
    /// The longest, unless the server asks for more.
    private static let failureMax = Duration.seconds(3600)
    private static let askedMax = Duration.seconds(86_400)
    /// At a start, before a list is fetched whose reading did not end: it may have been the end of the process.
    private static let unfinishedPause = Duration.seconds(900)

    /// Between two fetches while all is well.
    private let every: Duration
    /// When the next request is due; nil while one is under way, and before the start.
    package private(set) var nextDeadline: EventTime?
    /// No request goes out before this: the server asked for a pause.
    private var earliest = EventTime.zero
    private var failedAt = EventTime.zero
    /// In a row.
    package private(set) var failures = 0
    package private(set) var isFetching = false
    /// Asked for while a request was under way, whose answer may be older than the wish.
    private var isWantedAgain = false
    /// When the server last gave the list, or confirmed it, in this run; nil = not yet.
    package private(set) var confirmedAt: EventTime?

    package init(every: Duration) { self.every = every }

    /// - Parameters:
    ///   - sinceBoot: the host has just started.
    ///   - isUnfinished: the process before this one ended while it read the list.
    ///   - jitter: 0 ≤ jitter < 1, from the caller's random source, as below.
    package mutating func started(sinceBoot: Bool, isUnfinished: Bool = false, at now: EventTime, jitter: Double) {
        let spread = sinceBoot ? Self.startSpread * jitter : .zero
        nextDeadline = now + (isUnfinished ? Self.unfinishedPause : .zero) + spread
    }

    /// The list is wanted now: by a command, or the configuration was read again.
    /// - Returns: until when the server's wish for a pause delays it; nil = it does not.
    @discardableResult
    package mutating func requested(at now: EventTime) -> EventTime? {
        guard !isFetching else {
            isWantedAgain = true
            return nil
        }
        nextDeadline = max(now, earliest)
        return earliest > now ? earliest : nil
    }

    /// There is another route: what failed is tried again, once the shortest pause is over.
    package mutating func linkChanged(at now: EventTime) {
        guard failures > 0, let next = nextDeadline else { return }
        nextDeadline = min(next, max(now, earliest, failedAt + Self.failurePause))
    }

    package mutating func fetchStarted() {
        isFetching = true
        isWantedAgain = false
        nextDeadline = nil
    }

    /// The server gave the list, or said that it is the same.
    package mutating func fetched(at now: EventTime, jitter: Double) {
        failures = 0
        confirmedAt = now
        earliest = now
        finish(next: now + every * (1 - Self.jitterShare + 2 * Self.jitterShare * jitter), at: now)
    }

    /// - Parameter asked: how long the server asks to wait; nil = it does not.
    package mutating func failed(asked: Duration?, at now: EventTime, jitter: Double) {
        failures = min(failures + 1, 1_000_000)
        let backoff = Backoff(
            base: Self.failurePause, cap: max(Self.failurePause, min(every, Self.failureMax)),
            longestAsked: Self.askedMax)
        failedAt = now
        earliest = now + min(asked ?? .zero, Self.askedMax)
        finish(next: now + backoff.delay(failures: failures, jitter: jitter, asked: asked), at: now)
    }

    private mutating func finish(next: EventTime, at now: EventTime) {
        invariant(isFetching, "a fetch ends that has not begun")
        invariant(next >= now, "the next fetch is in the past")
        isFetching = false
        nextDeadline = isWantedAgain ? max(now, earliest) : next
        isWantedAgain = false
    }
}
