import Delivery
import Positioning

/// Why an attempt cannot be made now: a credential is missing, or a clock that a signature needs is wrong.
struct CredentialProblem: Error, Hashable {
    /// For people; never the secret.
    var message: String
    /// true = waits for the clock, false = for whoever looks after the credential.
    var isClock = false
}

/// What the requests of one endpoint need beside rows: secrets, the token of a command, signatures.
final class EndpointCredentials {
    private let config: EndpointConfig

    init(_ config: EndpointConfig) {
        self.config = config
    }

    /// Calls back at once, or when the token command has ended, with what the templates need.
    func obtain(at now: EventTime, _ done: @escaping (Result<RequestSecrets, CredentialProblem>) -> Void) {
        done(.success(RequestSecrets()))
    }

    /// After a 401 or its kin: reads files anew, runs the token command.
    ///
    /// - Parameter done: whether there is something new to try.
    func refresh(at now: EventTime, _ done: @escaping (Bool) -> Void) {
        done(false)
    }

    /// Adds what differs between attempts: `Authorization`, signature and its time, TLS.
    func complete(_ request: inout UplinkRequest, batchID: String, at now: EventTime) throws(CredentialProblem) {
        request.headers += config.headers
    }
}
