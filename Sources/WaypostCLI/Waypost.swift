import Agent
import ArgumentParser
import Configuration

/// The one binary: the daemon and the tools that explain it.
public struct Waypost: ParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "Tracks a vehicle: reads a GPS receiver, keeps locations on disk, and uploads them.",
        discussion: """
            Start with a configuration (an example is in /etc/waypost/waypost.toml), check it with \
            'waypost check', see the result for a recorded log with 'waypost replay', then start \
            'waypost run' and query it with 'waypost status'.
            """,
        version: AgentVersion.current,
        subcommands: [
            RunCommand.self, ReplayCommand.self, DecodeCommand.self, CheckCommand.self, ProfileCommand.self,
            QueueCommand.self, QuarantineCommand.self,
            EndpointCommand.self, FlushCommand.self, StatusCommand.self, DoctorCommand.self, TopCommand.self,
            ReloadCommand.self, RemoteCommand.self, PaceCommand.self, EngineCommand.self, SubscriberCommand.self,
            OdometerCommand.self, GeofencesCommand.self,
        ])

    public init() {}
}
