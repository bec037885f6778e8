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

extension EndpointSettings {
    /// How many rows at most a plan looks at for so many rows in a batch: rows of several trackables may alternate.
    public func planningDepth(limit: Int) -> Int { limit }

    /// Decides about the oldest unsent rows. The same rows always give the same plan.
    ///
    /// - Parameters:
    ///   - rows: oldest first, at most `planningDepth(limit:)`.
    ///   - limit: most rows of a batch; the profile's own limits hold as well.
    ///   - isEnd: no row waits behind these.
    ///   - receiverMs: newest trusted time of the receiver, Unix milliseconds; nil = unknown, and nothing expires.
    public func plan(_ rows: [QueuedLocation], limit: Int, isEnd: Bool, receiverMs: Int64?) -> BatchPlan {
        let count = min(rows.count, max(1, limit))
        return BatchPlan(batches: count > 0 ? [Array(0..<count)] : [], consumed: count)
    }
}
