import Agent
import ArgumentParser
import Configuration

/// The one binary: the daemon and the tools that explain it.
public struct Waypost: ParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "Tracks a vehicle or a thing: GPS receiver in, locations out, none lost.",
        discussion: """
            Start with a configuration (an example lies in /etc/waypost/waypost.toml), judge it with \
            'waypost check', see what a recorded log would give with 'waypost replay', then let \
            'waypost run' work and ask it with 'waypost status'.
            """,
        version: AgentVersion.current,
        subcommands: [
            RunCommand.self, ReplayCommand.self, DecodeCommand.self, CheckCommand.self, ProfileCommand.self,
            QueueCommand.self, QuarantineCommand.self,
            EndpointCommand.self, FlushCommand.self, StatusCommand.self, ReloadCommand.self, PaceCommand.self,
            EngineCommand.self, SubscriberCommand.self, OdometerCommand.self,
        ])

    public init() {}
}
