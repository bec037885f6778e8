import Profiles
import WaypostCore

/// Whether an endpoint may form and send at all, whatever waits and whatever is due: what the link costs, and how a
/// fleet that starts at once is spread out.
package struct SendGate: Hashable, Sendable {
    package enum Opening: Hashable, Sendable {
        case open
        /// Shut until this instant, or until something happens (nil).
        case shut(until: EventTime?)
    }

    /// What to do while the link is metered.
    private let metered: EndpointSettings.Metered
    private var isMetered = false
    /// Number of the oldest unsent rows that may go over a metered link, because an event is among them.
    private var passing = 0
    private var startsAt: EventTime?

    package init(metered: EndpointSettings.Metered) { self.metered = metered }

    /// The link is metered, and what waits is not worth its price.
    package var isHeldByLink: Bool {
        isMetered && (metered == .hold || metered == .eventsOnly && passing == 0)
    }

    package func opening(at now: EventTime) -> Opening {
        if isHeldByLink { return .shut(until: nil) }
        if let startsAt, startsAt > now { return .shut(until: startsAt) }
        return .open
    }

    /// Rows of an earlier run wait, and this host has just started, perhaps with a hundred others.
    ///
    /// - Parameter share: 0 ≤ share < 1, of the device in its fleet (`FleetShare`).
    package mutating func startedWithBacklog(window: Duration, share: Double, at now: EventTime) {
        startsAt = now + FleetShare.part(share, of: window)
    }

    package mutating func linkChanged(isMetered: Bool) { self.isMetered = isMetered }

    /// An event was recorded, or an operator asks: all that waits now may go.
    /// - Parameter waiting: rows that were not accepted yet, those in flight included.
    package mutating func flushRequested(waiting: Int) {
        startsAt = nil
        sharedFlushRequested(waiting: waiting)
    }

    /// An event was recorded that a whole fleet may have at once: what waits now may go, but the wait after a start holds.
    package mutating func sharedFlushRequested(waiting: Int) { passing = max(passing, waiting) }

    /// The oldest rows were accepted, quarantined or given up.
    package mutating func settled(_ count: Int) { passing = max(0, passing - max(0, count)) }

    /// The true number of rows that were not accepted yet.
    package mutating func waitingCorrected(to count: Int) {
        passing = min(passing, max(0, count))
        invariant(passing >= 0, "\(passing) rows may pass")
    }
}
