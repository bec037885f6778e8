import Profiles
import Protocols

/// What was sent to one endpoint since the start of the program.
struct EndpointCounters: Hashable, Sendable {
    var requests = 0
    /// Requests for a batch that was sent before in this run.
    var retries = 0
    /// Rows that were accepted.
    var accepted = 0
    /// Rows that the server says it has stored; nil where it does not say.
    var stored: Int?
    var batchesAccepted = 0
    /// Batches sent again although an attempt before may have reached the server.
    var batchesRepeated = 0
    var failed: [String: Int] = [:]
    var bytesSent = 0
    var bytesReceived = 0
    var connections = 0
    var retryAfterHonoured = 0
    var quarantined = 0
    /// Newest rows sent ahead of their turn, and requests with newest positions from memory.
    var previewSent = 0

    /// - Parameter verdict: nil = nothing was sent but what makes a connection.
    mutating func count(_ outcome: UplinkOutcome, _ verdict: Verdict?) {
        bytesSent += outcome.bytesSent
        bytesReceived += outcome.bytesReceived
        if outcome.newConnection { connections += 1 }
        if verdict?.asked != nil { retryAfterHonoured += 1 }
    }
}
