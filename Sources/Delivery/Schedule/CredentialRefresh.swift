import WaypostCore

/// The result of a search for another credential.
package enum CredentialRenewal: Sendable {
    /// One that has not been refused yet.
    case new
    /// None but what was refused.
    case none
    /// Its issuer could not be asked.
    case later
}

/// When to look for a new credential after one was refused.
struct CredentialRefresh: Sendable {
    enum Remedy {
        case refresh
        case wait(until: EventTime)
        case giveUp
    }

    private(set) var isWanted = false
    private var last = EventTime.min
    /// A request was accepted since.
    private var hasHelped = true
    /// What was refused last was a part of a request that was accepted otherwise.
    private(set) var followsAcceptance = false

    /// No more often than this.
    private static let interval = Duration.seconds(60)

    /// The earliest time of another search.
    var nextAllowed: EventTime { last + Self.interval }

    mutating func started(at now: EventTime) {
        isWanted = false
        last = now
        hasHelped = false
    }

    mutating func accepted() { hasHelped = true }

    /// - Parameter despiteAcceptance: the request was accepted, but some of its rows were refused for the credential.
    mutating func refused(despiteAcceptance: Bool = false, at now: EventTime) -> Remedy {
        followsAcceptance = despiteAcceptance
        if despiteAcceptance { hasHelped = false }
        if last == .min || now >= nextAllowed {
            isWanted = true
            return .refresh
        }
        return hasHelped ? .wait(until: nextAllowed) : .giveUp
    }
}
