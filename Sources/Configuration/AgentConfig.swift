import Logging
import Queue
import WaypostCore
import WaypostTracking

/// The whole configuration. The composition root gives each part its own settings.
package struct AgentConfig: Sendable {
    /// The name under which endpoints know this device, unless one names its own.
    package var device: String
    /// In what people read speeds.
    package var units = DisplayUnits.metric
    package var source: SourceConfig
    package var tracking: Tracker.Settings
    /// What decides the rule of `tracking`: see `decideRules`.
    package var rules = WrittenRules()
    /// Servers that list geofences, beside those of `tracking`.
    package var fenceSources: [FenceSourceConfig] = []
    /// When to track; without hours always.
    package var timetable: Timetable
    package var battery: BatteryConfig
    package var beacons: BeaconConfig
    /// Servers that list regions beside those of `beacons`; none where no beacon is looked for.
    package var beaconSources: [BeaconSourceConfig] = []
    package var context: ContextConfig
    package var outbox: OutboxConfig
    /// In the order of the file; none = record, and upload nothing.
    package var endpoints: [EndpointConfig]
    /// On which viewers watch; none = nobody can.
    package var channels: [ChannelConfig]
    /// Those of the file, and the built-in ones.
    package var profiles = ProfileLibrary()
    package var control: ControlConfig
    package var log: LogConfig
    package var metrics: MetricsConfig
    /// What servers may change from afar; nil = nothing.
    package var remote: RemoteConfig?

    /// Where and for whom the control socket is.
    package struct ControlConfig: Hashable, Sendable {
        /// The default is `control.sock` in `RUNTIME_DIRECTORY`, or in `/run/waypost`.
        package var socket: String
        /// Members of this group may give commands; nil = the group of the process.
        package var group: String?
    }

    /// What goes to the journal.
    package struct LogConfig: Hashable, Sendable {
        /// The default is `info`.
        package var level: Logger.Level = .info
        /// Let coordinates through, at `debug` and below only. The default is false.
        package var positions = false
    }
}

/// A valid configuration with its warnings.
package struct LoadedConfiguration: Sendable {
    package var config: AgentConfig
    /// Doubtful, but no reason not to start.
    package var warnings: [ConfigurationProblem]
    /// Every key with its effective value and where that comes from; secrets masked.
    package var effective: EffectiveConfiguration
    /// The file and its drop-ins, in the order in which they were merged.
    package var texts: [ConfigurationText]
    /// Files that these name and that are a part of it, such as a list of geofences; never secrets.
    package var included: [ConfigurationText]
    /// Why it is the last good configuration and not the one in the file; nil = it is the one in the file.
    package var refused: ConfigurationProblems?

    package var files: [String] { texts.map(\.path) }

    /// The same, and the files that these name.
    package var allFiles: [String] { files + included.map(\.path) }
}

/// A file as it was read.
package struct ConfigurationText: Hashable, Sendable {
    package var path: String
    package var bytes: [UInt8]
}
