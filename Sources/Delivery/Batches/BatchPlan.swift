import WaypostCore

/// What happens to the oldest unsent rows.
package struct BatchPlan: Sendable {
    /// Why a row is not sent to this endpoint.
    package enum Settled: Hashable, Sendable {
        /// A value that the server needs is unknown (`require`).
        case unfit(String)
        /// Older than `max_age`.
        case expired
        /// A newer location replaces it (`delivery = "latest"`).
        case superseded
        /// The profile leaves events of this kind out.
        case skipped
        /// It breaks a limit of the profile: to quarantine, under the name of the rule.
        case refused(rule: String)
    }

    /// Indices into the rows, rising within a batch; each becomes a batch of its own, in this order.
    package var batches: [[Int]] = []
    package var settled: [(index: Int, why: Settled)] = []
    /// Number of the oldest rows that this plan covers; the others wait.
    package var consumed: Int = 0
}
