import WaypostCore

/// Lets endpoints share one wake-up of the radio, and one commit that forms their batches.
///
/// The rule: when one endpoint forms a batch, another whose window ends within half its length forms one too. Nothing is
/// ever delayed, and no window becomes shorter than half, so that there are at most twice as many requests; two
/// endpoints with the same window settle into one rhythm after the first turn. A batch that waits for its retry timer is
/// left alone.
package enum SendAlignment {
    /// - Parameters:
    ///   - windowEnds: of the other endpoint; nil when it waits for nothing.
    ///   - window: its length.
    package static func joins(windowEnds: EventTime?, window: Duration, at now: EventTime) -> Bool {
        guard let windowEnds, windowEnds > now else { return false }
        return windowEnds - .nanoseconds(max(0, window.nanoseconds) / 2) <= now
    }
    /// A commit is made now anyway: whether a batch is formed with it, before its window ends.
    ///
    /// - Parameters:
    ///   - windowEnds: of the batch, later than now.
    ///   - window: its length.
    ///   - other: when the batch of another endpoint goes out that is formed with this commit; nil = there is none.
    /// - Returns: when it is sent: with the other one where it may join that, or else at the end of its window, if that is
    ///   within a tenth of its length; nil = none is formed.
    static func sendsAt(
        windowEnds: EventTime, window: Duration, joining other: EventTime?, at now: EventTime
    ) -> EventTime? {
        // One that ends before the other is half over at least by now, one that ends later by then.
        if let other, joins(windowEnds: windowEnds, window: window, at: windowEnds <= other ? now : other) {
            return min(windowEnds, other)
        }
        return windowEnds - .nanoseconds(window.nanoseconds / 10) <= now ? windowEnds : nil
    }
}
