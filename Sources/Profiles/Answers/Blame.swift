import Protocols

/// How many rows of an attempt its failure may be about, as far as what went over the wire shows.
package enum Blame: Hashable, Sendable {
    /// None: the server had nothing of the request, or its answer was to something else.
    case noRow
    /// Any of them, and none that is known.
    case anyRow
    /// The same, but it is rather about who sends them. Such an answer does not come by chance, and a server may lock out whoever
    /// repeats the request often: two of them are reason enough to try another row.
    case rowOrSender
    /// The same, but it is rather about all requests, as with a wrong path. Such an answer does not come by chance either: who
    /// gives it to one row while others are accepted gives it to the next one for the same reason.
    case rowOrAddress
    /// Exactly one of them, and it is not known which: as with the only message that a broker left unanswered.
    case oneRow

    /// Failures in a row after which another row is tried; nil = as many as of a server that fails at random.
    package var failuresBeforeTrial: Int? { self == .rowOrSender || self == .oneRow ? 2 : nil }

    /// Where the next attempts are far between, several rows at fault in a row would hold up the others for hours.
    package func nextTrial(after failures: Int) -> Int { self == .rowOrAddress ? failures + 1 : failures * 2 }

    /// Failures after which a batch is taken apart while others are accepted.
    package var failuresBeforeDivision: Int { self == .oneRow ? 1 : 2 }
}

extension Verdict {
    /// What speaks against rows when an attempt has failed. Meaningless for what was accepted.
    package func blame(in outcome: UplinkOutcome) -> Blame {
        switch self {
        case .accepted, .partlyAccepted, .collision: .noRow
        case .retry(.transport(.moved), _): .noRow
        // This is about the topic.
        case .retry(.noSubscriber, _): .noRow
        // Of several messages none is known to be the cause.
        case .retry(.lost(_, let isAlone), _): isAlone ? .oneRow : .noRow
        case .retry(.transport(let failure), _):
            failure.mayFollowRequest && outcome.written != .nothing ? .anyRow : .noRow
        case .authStop: outcome.blameOfAnswer(.rowOrSender)
        case .goneStop, .misconfigured, .encodingRefused, .retry(.redirected, _), .retry(.conflict, _):
            outcome.blameOfAnswer(.rowOrAddress)
        case .retry, .split, .tooLarge: outcome.blameOfAnswer(.anyRow)
        }
    }
}

extension UplinkOutcome {
    /// An answer to the request as a whole may be about one of its rows; a broker's may be about the connection alone.
    fileprivate func blameOfAnswer(_ blame: Blame) -> Blame {
        guard written != .nothing else { return .noRow }
        if case .published(let reply) = result, reply.reasons.allSatisfy({ $0 == nil }) {
            return reply.unanswered == .oneAlone ? .oneRow : .noRow
        }
        return blame
    }
}

extension TransportFailure {
    /// The server may have had a part of the request before.
    package var mayFollowRequest: Bool {
        switch self {
        case .resolve, .connect, .unreachable, .tls, .clock, .credential: false
        case .moved, .timeout, .closedWithoutReply, .broken: true
        }
    }
}
