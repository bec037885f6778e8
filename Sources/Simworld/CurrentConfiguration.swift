import Configuration
import Synchronization

/// The text that the daemon reads when it starts or reloads.
final class CurrentConfiguration: Sendable {
    static let variables = ["SIM_SECRET": "secret", "SIM_HOOK": "whsec_c2VjcmV0LW9mLTI0LWJ5dGVzLWFuZC1tb3Jl"]
    private let text: Mutex<String>
    /// What a text came to: it is read at each start and reload.
    private let known = Mutex<(text: String, configuration: LoadedConfiguration)?>(nil)

    init(_ text: String) { self.text = Mutex(text) }

    func set(_ text: String) { self.text.withLock { $0 = text } }

    func load() throws(ConfigurationProblems) -> LoadedConfiguration { try load(text.withLock { $0 }) }

    func load(_ text: String) throws(ConfigurationProblems) -> LoadedConfiguration {
        if let known = known.withLock({ $0 }), known.text == text { return known.configuration }
        let configuration = try AgentConfig.parse(
            [("waypost.toml", Array(text.utf8))],
            environment: ConfigurationEnvironment(
                variables: Self.variables, hostname: { "sim" }, machineID: { "0123456789abcdef" }))
        known.withLock { $0 = (text, configuration) }
        return configuration
    }
}
