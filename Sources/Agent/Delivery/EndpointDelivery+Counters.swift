import Delivery

extension EndpointDelivery {
    /// Since the start of the program.
    struct Counters: Hashable, Sendable {
        var requests = 0
        /// Requests for a batch that was sent before in this run.
        var retries = 0
        /// Rows that were accepted.
        var accepted = 0
        /// Rows that the receiver says it has stored; nil where it does not tell.
        var stored: Int?
        var batchesAccepted = 0
        /// Batches sent again although an attempt before may have reached the receiver.
        var batchesRepeated = 0
        var failed: [String: Int] = [:]
        var bytesSent = 0
        var bytesReceived = 0
        var connections = 0
        var retryAfterHonoured = 0
        var quarantined = 0
        /// Newest rows sent ahead of their turn.
        var previewSent = 0

        mutating func count(_ outcome: UplinkOutcome, _ verdict: Verdict) {
            bytesSent += outcome.bytesSent
            bytesReceived += outcome.bytesReceived
            if outcome.newConnection { connections += 1 }
            if verdict.asked != nil { retryAfterHonoured += 1 }
        }
    }

    /// An operator wants the asset bound to this device by a request to the server.
    struct Binding {
        /// Takes what went wrong, in words for people; nil = bound.
        var done: (String?) -> Void
        /// A credential was renewed for it.
        var isRepeated = false
    }

    /// What is known of a batch in flight beside its rows.
    struct BatchHistory {
        var attempts = 0
        /// An attempt may have reached the receiver without its answer reaching us.
        var mayBeStored = false
        /// The last answer to it, for the quarantine.
        var answer: (reason: String, status: Int?, reply: [UInt8]) = ("", nil, [])
    }
}

extension TransportFailure {
    /// The receiver may have had the request before this happened.
    var mayFollowStoring: Bool {
        switch self {
        case .resolve, .connect, .tls, .clock: false
        case .timeout, .closedWithoutReply, .broken: true
        }
    }
}
