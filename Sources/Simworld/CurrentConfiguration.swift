import Configuration
import Remote
import Synchronization

/// The text that the daemon reads when it starts or reloads.
final class CurrentConfiguration: Sendable {
    static let variables = ["SIM_SECRET": "secret", "SIM_HOOK": "whsec_c2VjcmV0LW9mLTI0LWJ5dGVzLWFuZC1tb3Jl"]
    private let text: Mutex<String>
    /// What a text came to: it is read at each start and reload.
    private let known = Mutex<(text: String, configuration: LoadedConfiguration)?>(nil)
    /// The same for settings from afar over it, which are laid at each of them too.
    private let overlays = Mutex<[Overlay: RemoteOverlay]>([:])

    private struct Overlay: Hashable {
        var settings: [RemoteSetting]
        var version: Int64
        var text: [UInt8]
    }

    init(_ text: String) { self.text = Mutex(text) }

    func set(_ text: String) { self.text.withLock { $0 = text } }

    func lay(_ settings: [RemoteSetting], _ version: Int64, over base: LoadedConfiguration) -> RemoteOverlay {
        let key = Overlay(settings: settings, version: version, text: base.texts.flatMap(\.bytes))
        if let known = overlays.withLock({ $0[key] }) { return known }
        let overlay = RemoteOverlay(
            settings, version: version, over: base,
            environment: ConfigurationEnvironment(
                variables: Self.variables, hostname: { "sim" }, machineID: { "0123456789abcdef" },
                requiresCredentials: false))
        overlays.withLock { $0[key] = overlay }
        return overlay
    }

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
