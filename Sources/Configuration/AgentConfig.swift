import Delivery
import Logging
import Outbox
import Positioning
import Tracking

/// The whole configuration. The composition root gives each part its own settings.
public struct AgentConfig: Sendable {
    /// The name under which endpoints know this device, unless one names its own.
    public var device: String
    /// In what people read speeds.
    public var units = DisplayUnits.metric
    public var source: SourceConfig
    public var tracking: Tracker.Settings
    /// What decides the rule of `tracking`: see `decideRules`.
    package var rules = WrittenRules()
    /// Servers that list geofences, beside those of `tracking`.
    package var fenceSources: [FenceSourceConfig] = []
    /// When to track; without hours always.
    public var timetable: Timetable
    public var battery: BatteryConfig
    public var beacons: BeaconConfig
    /// Servers that list regions beside those of `beacons`; none where no beacon is looked for.
    package var beaconSources: [BeaconSourceConfig] = []
    public var context: ContextConfig
    public var outbox: OutboxConfig
    /// In the order of the file; none = record, and upload nothing.
    public var endpoints: [EndpointConfig]
    /// On which viewers watch; none = nobody can.
    public var channels: [ChannelConfig]
    /// Those of the file, and the built-in ones.
    package var profiles = ProfileLibrary()
    public var control: ControlConfig
    public var log: LogConfig
    public var metrics: MetricsConfig
    /// What servers may change from afar; nil = nothing.
    public var remote: RemoteConfig?

    /// Where and for whom the control socket is.
    public struct ControlConfig: Hashable, Sendable {
        /// The default is `control.sock` in `RUNTIME_DIRECTORY`, or in `/run/waypost`.
        public var socket: String
        /// Members of this group may give commands; nil = the group of the process.
        public var group: String?
    }

    /// What goes to the journal.
    public struct LogConfig: Hashable, Sendable {
        /// The default is `info`.
        public var level: Logger.Level = .info
        /// Let coordinates through, at `debug` and below only. The default is false.
        public var positions = false
    }
}

/// A valid configuration with its warnings.
public struct LoadedConfiguration: Sendable {
    public var config: AgentConfig
    /// Doubtful, but no reason not to start.
    public var warnings: [ConfigurationProblem]
    /// Every key with its effective value and where that comes from; secrets masked.
    public var effective: EffectiveConfiguration
    /// The file and its drop-ins, in the order in which they were merged.
    public var texts: [ConfigurationText]
    /// Files that these name and that are a part of it, such as a list of geofences; never secrets.
    public var included: [ConfigurationText]
    /// Why it is the last good configuration and not the one in the file; nil = it is the one in the file.
    public var refused: ConfigurationProblems?

    public var files: [String] { texts.map(\.path) }

    /// The same, and the files that these name.
    public var allFiles: [String] { files + included.map(\.path) }
}

/// A file as it was read.
public struct ConfigurationText: Hashable, Sendable {
    public var path: String
    public var bytes: [UInt8]
}
