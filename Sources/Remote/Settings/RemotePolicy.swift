/// What a server may do with this device: as the file says, never as a document says.
package struct RemotePolicy: Hashable, Sendable {
    /// As servers know this device.
    package var device: String
    /// Dotted names of keys and tables that a document may set. The default is none.
    package var allow: [String]
    /// Commands that are carried out. The default is none.
    package var commands: Set<RemoteCommand.Verb>
    /// Commands come signed with a key that other devices may share: each has to name its device.
    package var isSigned: Bool

    package init(
        device: String, allow: [String] = [], commands: Set<RemoteCommand.Verb> = [], isSigned: Bool = false
    ) {
        self.device = device
        self.allow = allow
        self.commands = commands
        self.isSigned = isSigned
    }

    package func allows(_ key: String) -> Bool {
        !RemoteKey.isNeverAllowed(key) && allow.contains { RemoteKey.covers($0, key) }
    }

    /// The keys of a document that it must not set.
    package func forbidden(in settings: [RemoteSetting]) -> [RemoteProblem] {
        settings.filter { !allows($0.key) }.map { RemoteProblem($0.key, "not allowed") }
    }
}
