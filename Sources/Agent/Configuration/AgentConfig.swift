/// The whole configuration as the composition root hands it out: each part gets its own settings, nobody gets this.
public struct AgentConfig: Sendable {
    /// The name under which endpoints know this device, unless one names its own.
    public var device: String
    public var control: ControlConfig
    public var log: LogConfig

    /// Where and for whom the control socket is.
    public struct ControlConfig: Hashable, Sendable {
        /// The default is `control.sock` in `RUNTIME_DIRECTORY`, or in `/run/waypost`.
        public var socket: String
        /// Members of this group may give commands; nil = the group of the process.
        public var group: String?
    }

    /// What goes to the journal.
    public struct LogConfig: Hashable, Sendable {
        /// Levels in the order of what they let through.
        public enum Level: String, CaseIterable, Sendable {
            case error, warning, notice, info, debug, trace
        }
        public var level: Level
        /// Let coordinates through, at `debug` and below only. The default is false.
        public var positions: Bool
    }
}

/// A configuration that may be used, and what there is to say about it.
public struct LoadedConfiguration: Sendable {
    public var config: AgentConfig
    /// Doubtful, but no reason not to start.
    public var warnings: [ConfigurationProblem]
    /// Every key with its effective value and where that comes from; secrets masked.
    public var effective: EffectiveConfiguration
    /// The file and its drop-ins, in the order in which they were merged.
    public var files: [String]
}

extension AgentConfig {
    /// Reads the file and the drop-ins beside it (`waypost.d/*.toml`, in the order of their names, later ones win).
    ///
    /// Throws every problem at once.
    public static func load(
        path: String, environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        throw ConfigurationProblems([])
    }

    /// Judges texts that are already in memory; the later ones are laid over the earlier ones.
    public static func parse(
        _ files: [(name: String, bytes: [UInt8])], environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        throw ConfigurationProblems([])
    }
}
