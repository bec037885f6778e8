import Profiles
import Protocols
import WaypostCore

/// How an attempt to send a batch has ended, for who judges by it whether the server is in reach.
struct BatchAttempt {
    /// Name of the endpoint over which it went.
    var way: String
    /// Of this endpoint in this run, from 1 in the order of their begin.
    var number: Int
    /// All of the batch, or a part of it.
    var wasAccepted: Bool
    /// The version of settings that the answer names; nil = none.
    var announced: Int64?
    /// What the answer orders, and who says so; nil = nothing.
    var command: String?
    var signature: String?

    init(_ batch: Batch, _ verdict: Verdict, _ outcome: UplinkOutcome, number: Int) {
        way = batch.endpoint
        self.number = number
        switch verdict {
        case .accepted, .partlyAccepted: wasAccepted = true
        default: wasAccepted = false
        }
        if case .reply(let reply) = outcome.result {
            announced = reply.header("waypost-settings").flatMap { Int64($0) }
            command = reply.header("waypost-command")
            signature = reply.header("waypost-signature")
        }
    }
}
