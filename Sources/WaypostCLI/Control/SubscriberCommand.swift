import ArgumentParser
import Daemon
import WaypostControl

struct SubscriberCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriber", abstract: "Add or remove a subscriber of a trackable of the running daemon.",
        discussion: """
            A subscriber may ask for a resolution; the finest of what all ask for is published. Its presence alone counts \
            where the constraints of the trackable have a value for with_subscriber. Subscribers are forgotten when the \
            daemon ends.
            """,
        subcommands: [Add.self, Remove.self])

    struct Target: ParsableArguments {
        @Argument(help: "A name for the subscriber.")
        var id: String

        @Option(help: "The trackable; optional if there is only one.")
        var trackable: String?
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add a subscriber, or change the resolution that it asks for.")

        @OptionGroup var target: Target
        @OptionGroup var resolution: ResolutionOptions
        @OptionGroup var daemon: DaemonOptions

        func validate() throws { _ = try resolution.resolution() }

        func run() throws {
            var request = SubscriberRequest()
            request.add = target.id
            request.trackable = target.trackable
            request.resolution = try resolution.resolution()
            try SubscriberCommand.show(daemon.send(request))
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Remove the subscriber of this name.")

        @OptionGroup var target: Target
        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            var request = SubscriberRequest()
            request.remove = target.id
            request.trackable = target.trackable
            try SubscriberCommand.show(daemon.send(request))
        }
    }

    private static func show(_ reply: SubscriberRequest.Reply) throws {
        printLine(reply.state.text)
        try finishOutput()
    }
}

extension TrackableStatus {
    /// `high, 1 s, 5 m; subscribers 2, near`
    var text: String {
        "\(resolution.text); subscribers \(subscribers)" + (near ? ", near" : "") + (batteryLow ? ", battery low" : "")
    }
}
