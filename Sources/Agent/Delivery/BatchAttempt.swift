import Delivery
import Positioning

/// How an attempt to send a batch has ended, for who judges by it whether the server is in reach.
struct BatchAttempt {
    /// Name of the endpoint over which it went.
    var way: String
    var startedAt: EventTime
    /// All of the batch, or a part of it.
    var wasAccepted: Bool
    /// The version of settings that the answer names; nil = none.
    var announced: Int64?

    init(_ batch: Batch, _ verdict: Verdict, _ outcome: UplinkOutcome, startedAt: EventTime) {
        way = batch.endpoint
        self.startedAt = startedAt
        switch verdict {
        case .accepted, .partlyAccepted: wasAccepted = true
        default: wasAccepted = false
        }
        if case .reply(let reply) = outcome.result {
            announced = reply.header("waypost-settings").flatMap { Int64($0) }
        }
    }
}
