import Positioning

/// Lets endpoints share one wake-up of the radio, and one commit that forms their batches.
///
/// The rule: when one endpoint forms a batch, another whose window ends within half its length forms one too. Nothing is
/// ever delayed, and no window becomes shorter than half, so that there are at most twice as many requests; two
/// endpoints with the same window settle into one rhythm after the first turn. A batch that waits for its retry timer is
/// left alone.
public enum SendAlignment {
    /// - Parameters:
    ///   - windowEnds: of the other endpoint; nil when it waits for nothing.
    ///   - window: its length.
    public static func joins(windowEnds: EventTime?, window: Duration, at now: EventTime) -> Bool {
        guard let windowEnds, windowEnds > now else { return false }
        return windowEnds - .nanoseconds(max(0, window.nanoseconds) / 2) <= now
    }
}
