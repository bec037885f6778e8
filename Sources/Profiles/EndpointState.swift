/// Whether an endpoint is sent its rows. In every state they are recorded and kept.
package enum EndpointState: Hashable, Sendable {
    /// Sent to; between failures it may be backing off.
    case active
    /// Only a probe now and then, until one is accepted.
    case paused(reason: String)
    /// Nothing is sent until an operator resumes it or the configuration changes.
    case stopped(reason: String)
    /// Another device reports this asset; waits for an operator.
    case taken
    /// Its device, or the address of a server that had accepted something, changed while rows waited; waits for an operator, or for
    /// the old value.
    case rebind

    /// The word in `status` and on disk.
    package var word: String {
        switch self {
        case .active: "active"
        case .paused: "paused"
        case .stopped: "stopped"
        case .taken: "taken"
        case .rebind: "rebind"
        }
    }

    package var reason: String? {
        switch self {
        case .paused(let reason), .stopped(let reason): reason
        case .active, .taken, .rebind: nil
        }
    }

    /// nil for an unknown word.
    package init?(word: String, reason: String?) {
        switch word {
        case "active": self = .active
        case "paused": self = .paused(reason: reason ?? "")
        case "stopped": self = .stopped(reason: reason ?? "")
        case "taken": self = .taken
        case "rebind": self = .rebind
        default: return nil
        }
    }

    /// The reason of a pause: the server does not take this device for the one of the asset, and never has.
    package static let notBound = "not bound"
    /// The same of a broker: another client ended the connection, and the broker has never accepted anything of this one.
    package static let clientIDInUse = "client id in use"
    package static let auth = "auth"
    package static let gone = "gone"
    package static let redirected = "redirected"
    package static let everyRecordRefused = "records refused"
    package static let tooManyRejected = "too many rejected"

    /// A pause that ends when any row is accepted, not only the oldest.
    package var isPausedOverRows: Bool { reason == Self.everyRecordRefused || reason == Self.tooManyRejected }

    /// Whether it is paused over the very thing that a verdict says again.
    package func isPaused(over verdict: Verdict) -> Bool {
        guard case .paused(let reason) = self, let renewed = verdict.pauseReason else { return false }
        return reason == renewed || isPausedOverRows && renewed == Self.everyRecordRefused
            || reason == Self.clientIDInUse && verdict == .collision
    }
}
