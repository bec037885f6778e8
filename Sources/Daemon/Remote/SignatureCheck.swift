import Configuration
import Network

/// Whether the owner of this device wrote what came from a server.
struct SignatureCheck {
    /// What a signature is for. It covers this line and then the message, so that a signature of something else, for which the
    /// same key may be used, is none of a document, and that of a document none of a command.
    enum Purpose: String {
        case settings = "waypost-settings-v1\n"
        case command = "waypost-command-v1\n"
    }

    private let key: RemoteConfig.Key?
    private let environment: [String: String]

    /// - Parameters:
    ///   - key: nil = no signature is asked for.
    ///   - environment: of the process, for a secret in it.
    init(_ key: RemoteConfig.Key?, environment: [String: String]) {
        self.key = key
        self.environment = environment
    }

    /// - Returns: why it is not believed, for people; nil = it is.
    func problem(of bytes: [UInt8], for purpose: Purpose, _ signature: String?) -> String? {
        guard let key else { return nil }
        guard let key = messageKey(key) else { return "the secret of its signature cannot be read" }
        guard let signature else { return "it is not signed" }
        return key.verifies(Array(purpose.rawValue.utf8) + bytes, signature: signature) ? nil : "its signature is wrong"
    }

    /// Read each time: a secret in a file may have been replaced.
    private func messageKey(_ key: RemoteConfig.Key) -> MessageKey? {
        switch key {
        case .publicKey(let key): return .publicKey(key)
        case .secret(let reference):
            let environment = ConfigurationEnvironment(
                variables: environment, hostname: { nil }, machineID: { nil })
            guard case .success(let value?) = Secret.value(of: reference, environment) else { return nil }
            return .secret(Array(value.utf8))
        }
    }
}
