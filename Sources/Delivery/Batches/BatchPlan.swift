import Positioning

/// What becomes of the oldest unsent rows: which go out together, and which never do.
public struct BatchPlan: Sendable {
    /// Why a row is settled without being sent to this endpoint.
    public enum Settled: Hashable, Sendable {
        /// A name that the receiver needs is unknown (`require`).
        case unfit(String)
        /// Older than `max_age`.
        case expired
        /// A newer location stands for it (`delivery = "latest"`).
        case superseded
        /// The profile leaves events of this kind out.
        case skipped
        /// It breaks a limit of the profile: to quarantine, under the name of the rule.
        case refused(rule: String)
    }

    /// Indices into the rows, rising within a batch; each becomes a batch of its own, in this order.
    public var batches: [[Int]]
    public var settled: [(index: Int, why: Settled)]
    /// So many of the oldest rows are dealt with; the others wait.
    public var consumed: Int

    public init(batches: [[Int]] = [], settled: [(index: Int, why: Settled)] = [], consumed: Int = 0) {
        self.batches = batches
        self.settled = settled
        self.consumed = consumed
    }
}
