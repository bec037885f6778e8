import Positioning

/// What becomes of the oldest unsent rows: which go out together, and which never do.
public struct BatchPlan: Hashable, Sendable {
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

    public static func == (a: BatchPlan, b: BatchPlan) -> Bool {
        a.batches == b.batches && a.consumed == b.consumed
            && a.settled.elementsEqual(b.settled) { $0.index == $1.index && $0.why == $1.why }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(batches)
        hasher.combine(consumed)
    }
}
