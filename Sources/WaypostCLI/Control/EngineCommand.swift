import ArgumentParser
import Daemon
import WaypostControl

struct EngineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "engine", abstract: "Fix how often the receiver measures.",
        discussion: """
            With a constant engine the receiver is asked for one resolution, whatever is kept. It ends with 'clear' \
            and with the daemon; [resolution] constant_engine in the configuration applies to every start.
            """,
        subcommands: [Set.self, Clear.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: "Ask the receiver for this resolution from now on.")

        @OptionGroup var resolution: ResolutionOptions
        @OptionGroup var daemon: DaemonOptions

        func validate() throws {
            guard try resolution.resolution() != nil else {
                throw ValidationError("Name a resolution: --priority, --interval and --displacement.")
            }
        }

        func run() throws { try EngineCommand.show(daemon.send(EngineRequest(set: resolution.resolution()))) }
    }

    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear", abstract: "Ask the receiver for the finest of what is published again.")

        @OptionGroup var daemon: DaemonOptions

        func run() throws { try EngineCommand.show(daemon.send(EngineRequest(set: nil))) }
    }

    private static func show(_ reply: EngineReply) throws {
        printLine(reply.engine.text)
        try finishOutput()
    }
}

extension EngineStatus {
    /// `constant: high, 1 s, 5 m`
    var text: String { "\(mode): \(resolution.text)" }
}
