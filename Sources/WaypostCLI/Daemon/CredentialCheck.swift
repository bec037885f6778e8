import Configuration
import Glibc
import WaypostCore
import WaypostHost

/// Whether systemd passes the credentials that a configuration names: without one the daemon does not start.
struct CredentialCheck {
    private(set) var problems: [String] = []
    private(set) var warnings: [String] = []

    private static let properties = [
        "LoadCredential", "LoadCredentialEncrypted", "SetCredential", "SetCredentialEncrypted", "ImportCredential",
    ]

    /// - Parameter isOfUnit: the configuration is that of the unit waypost.
    init(_ config: AgentConfig, isOfUnit: Bool) {
        let named = Self.names(in: config)
        // In the unit itself the configuration was read with them.
        guard !named.isEmpty, ProcessEnvironment.variables["CREDENTIALS_DIRECTORY"] == nil else { return }
        guard isOfUnit, let unit = Self.unit() else {
            warnings = named.map {
                "credential \($0): whether systemd passes it cannot be known here: sudo waypost check"
            }
            return
        }
        let given = Self.given(by: unit)
        problems = named.filter { name in !given.contains { Self.matches(name, $0) } }.map {
            "systemd passes no credential \($0): sudo systemctl edit waypost, add [Service] LoadCredential=\($0):PATH"
        }
    }

    /// The files of the unit; nil where no manager runs, where it knows no such unit, or where they may not all be read.
    ///
    /// `systemctl show` prints credentials as [unprintable] up to systemd 252.
    private static func unit() -> String? {
        guard access("/run/systemd/system", F_OK) == 0 else { return nil }
        return ProgramOutput.read(["systemctl", "cat", "waypost.service"], seconds: 5)
    }

    /// The names in lines such as `LoadCredential=a:/path`. An empty one takes back those before it.
    static func given(by text: String) -> [String] {
        var given: [(property: String, name: String)] = []
        for line in text.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            let property = String(line[..<equals]).trimmingSpaces
            guard properties.contains(property) else { continue }
            let value = String(line[line.index(after: equals)...]).trimmingSpaces
            if value.isEmpty { given.removeAll { $0.property == property } }
            // ImportCredential= has several patterns in a line.
            let words = property == "ImportCredential" ? value.split(separator: " ").map(String.init) : [value]
            given += words.filter { !$0.isEmpty }.map { (property, String($0.prefix { $0 != ":" })) }
        }
        return given.map(\.name)
    }

    /// - Parameter given: of `ImportCredential=` a pattern.
    private static func matches(_ name: String, _ given: String) -> Bool {
        given.hasSuffix("*") ? name.hasPrefix(String(given.dropLast())) : name == given
    }

    private static func names(in config: AgentConfig) -> [String] {
        let endpoints = config.endpoints + config.channels.map(\.endpoint)
        let references = endpoints.flatMap { endpoint in
            endpoint.secrets.map(\.value)
                + [endpoint.tls?.authorities, endpoint.tls?.certificate, endpoint.tls?.key].compactMap(\.self)
        }
        var names: Set<String> = []
        for case .credential(let name) in references { names.insert(name) }
        return names.sorted()
    }
}
