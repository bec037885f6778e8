import WaypostCore

/// When a server is contacted before anything is sent to it, so that a person sees soon after the start whether it can be
/// reached.
///
/// A contact settles no row and decides nothing about rows. What batches show counts as well: once the server has answered
/// to one, there is nothing left to find out.
package struct FirstContact: Sendable {
    /// How far it has come with the server.
    package enum Progress: String, Hashable, Sendable {
        case never
        /// A connection was made, or the server has answered.
        case reached
        /// The server has accepted a location since the start.
        case accepted
    }

    /// How an attempt has ended.
    package enum Ending: Hashable, Sendable {
        case reached
        /// - Parameter isUnreached: nothing of it has come to the server.
        case failed(isUnreached: Bool)
    }

    /// In one boot a server is contacted no more often.
    package static let pause = Duration.seconds(3600)
    /// What is sent so soon shows the same.
    static let waitForBatch = Duration.seconds(60)
    /// Without a route to the server an attempt waits for one so long.
    package static let waitForRoute = Duration.seconds(60)
    private static let longestUnreached = Duration.seconds(900)

    /// When an attempt that may have cost the server something was last begun; nil = never in this boot.
    package private(set) var triedAt: EventTime?
    package private(set) var reachedAt: EventTime?
    private var acceptedAt: EventTime?
    /// No attempt before; nil = the daemon has not started.
    private var notBefore: EventTime?
    private var isUnderWay = false
    /// In a row, of which nothing has come to the server.
    private var unreached = 0

    /// - Parameters:
    ///   - triedAt: the last attempt of an earlier process of this boot; nil = there was none.
    ///   - reachedAt: when that process has reached the server; nil = it has not.
    package init(triedAt: EventTime? = nil, reachedAt: EventTime? = nil) {
        (self.triedAt, self.reachedAt) = (triedAt, reachedAt)
    }

    package var progress: Progress { acceptedAt != nil ? .accepted : reachedAt != nil ? .reached : .never }

    /// Of the last acceptance, or else of the last time that the server was reached; nil = never.
    package var since: EventTime? { acceptedAt ?? reachedAt }

    /// When the next attempt is due; nil = none is.
    package var dueAt: EventTime? {
        guard let notBefore, !isUnderWay, since == nil else { return nil }
        return max(notBefore, triedAt.map { $0 + Self.pause } ?? notBefore)
    }

    /// - Parameter delay: the part of this device in the spread of its fleet.
    package mutating func started(after delay: Duration, at now: EventTime) { notBefore = now + delay }

    /// No attempt is made any more.
    package mutating func stopped() { notBefore = nil }

    package mutating func began(at now: EventTime) {
        isUnderWay = true
        triedAt = now
    }

    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    package mutating func ended(_ ending: Ending, _ backoff: Backoff, jitter: Double, at now: EventTime) {
        isUnderWay = false
        switch ending {
        case .reached: reachedAt = now
        case .failed(let isUnreached):
            guard isUnreached else { return unreached = 0 }
            // That costs the server nothing, and the network may be there soon.
            triedAt = nil
            unreached = min(unreached + 1, 62)
            var backoff = backoff
            backoff.cap = Self.longestUnreached
            notBefore = now + backoff.delay(failures: unreached, jitter: jitter)
        }
    }

    /// A connection was made otherwise, or a batch was answered.
    package mutating func heard(isAcceptance: Bool, at now: EventTime) {
        reachedAt = now
        if isAcceptance { acceptedAt = now }
    }

    /// What kept an attempt from the server may be gone.
    package mutating func linkChanged(_ backoff: Backoff, at now: EventTime) {
        guard unreached > 0, let notBefore else { return }
        unreached = 0
        self.notBefore = min(notBefore, now + backoff.base)
    }

    /// An attempt waits while one with rows is under way or comes soon, which shows more.
    ///
    /// - Parameter next: of the schedule of the endpoint.
    /// - Returns: when it is worth another look.
    package static func postponed(for next: DeliverySchedule.Step, at now: EventTime) -> EventTime? {
        guard case .wait(let until) = next else { return now + waitForBatch }
        guard let until, until <= now + waitForBatch else { return nil }
        return max(until, now) + waitForBatch
    }
}
