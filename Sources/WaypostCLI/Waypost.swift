import ArgumentParser
import Configuration
import Daemon
import WaypostCore

/// The one binary: the daemon and the tools that explain it.
package struct Waypost: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "Tracks a vehicle: reads a GPS receiver, keeps locations on disk, and uploads them.",
        discussion: """
            'waypost init' finds the receiver and writes the configuration. Check it with \
            'waypost check', see the result for a recorded log with 'waypost replay', then start \
            'waypost run' and query it with 'waypost status'.

            Completions: waypost --generate-completion-script bash, zsh or fish.
            """,
        version: AgentVersion.current,
        groupedSubcommands: groups)

    private static let groups = [
        CommandGroup(
            name: "Daily", subcommands: [StatusCommand.self, TopCommand.self, DoctorCommand.self, FlushCommand.self]),
        CommandGroup(
            name: "Set-up",
            subcommands: [
                InitCommand.self, CheckCommand.self, RunCommand.self, ReloadCommand.self, EndpointCommand.self,
                ProfileCommand.self,
            ]),
        CommandGroup(
            name: "Data",
            subcommands: [ReplayCommand.self, DecodeCommand.self, QueueCommand.self, QuarantineCommand.self]),
        CommandGroup(
            name: "Expert",
            subcommands: [
                PaceCommand.self, OdometerCommand.self, EngineCommand.self, SubscriberCommand.self,
                GeofencesCommand.self, RemoteCommand.self, VersionCommand.self,
            ]),
    ]

    package init() {}

    /// As `main()`, with what people try who do not know this program yet.
    package static func start() {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "-V" { return main(["--version"]) }
        if let word = arguments.first, let near = nearestCommand(word) {
            printError("waypost: there is no command '\(word)'; did you mean 'waypost \(near)'?")
            exit(withError: ExitCode.validationFailure)
        }
        main()
    }

    /// The command that a word is meant to be; nil = it is one, or like none.
    static func nearestCommand(_ word: String) -> String? {
        let names = groups.flatMap { $0.subcommands.compactMap { $0.configuration.commandName } }
        guard word.first != "-", word != "help", !names.contains(word) else { return nil }
        let begun = names.filter { $0.hasPrefix(word) }
        return begun.count == 1 ? begun[0] : nearest(word, in: names)
    }
}

struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "version", abstract: "Show the version.")

    func run() throws {
        printLine(AgentVersion.current)
        try finishOutput()
    }
}
