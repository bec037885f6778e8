/// How many rows of an attempt its failure may be about, as far as what went over the wire shows.
public enum Blame: Hashable, Sendable {
    /// None: the server had nothing of the request, or its answer is about who sends it and where to.
    case noRow
    /// Any of them, and none that is known.
    case anyRow
    /// Exactly one of them, and it is not known which: as with the only message that a broker left unanswered.
    case oneRow
}

extension Verdict {
    /// What speaks against rows when an attempt has failed. Meaningless for what was accepted.
    public func blame(in outcome: UplinkOutcome) -> Blame {
        switch self {
        case .accepted, .partlyAccepted, .authStop, .collision, .goneStop(410, _): .noRow
        case .retry(.redirected, _): .noRow
        case .retry(.transport(.moved), _): .noRow
        // This is about the topic.
        case .retry(.noSubscriber, _): .noRow
        // Of several messages none is known to be the cause.
        case .retry(.lost(_, let isAlone), _): isAlone ? .oneRow : .noRow
        case .retry(.transport(let failure), _):
            failure.mayFollowRequest && outcome.written != .nothing ? .anyRow : .noRow
        case .retry, .goneStop, .misconfigured, .encodingRefused, .split, .tooLarge: .anyRow
        }
    }
}

extension TransportFailure {
    /// The server may have had a part of the request before.
    public var mayFollowRequest: Bool {
        switch self {
        case .resolve, .connect, .unreachable, .tls, .clock, .credential: false
        case .moved, .timeout, .closedWithoutReply, .broken: true
        }
    }
}
