import Agent
import ArgumentParser
import ControlProtocol

struct Subscriber: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriber", abstract: "Tell the running daemon that somebody watches a trackable.",
        discussion: """
            A subscriber may ask for a resolution; the finest of what all ask for is published. Its presence alone counts \
            where the constraints of the trackable tell with_subscriber from without. Subscribers are forgotten when the \
            daemon ends.
            """,
        subcommands: [Add.self, Remove.self])

    struct Target: ParsableArguments {
        @Argument(help: "A name for the subscriber.")
        var id: String

        @Option(help: "The trackable; may be left out where there is one.")
        var trackable: String?
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Somebody watches, or asks for another resolution.")

        @OptionGroup var target: Target
        @OptionGroup var resolution: ResolutionOptions
        @OptionGroup var daemon: DaemonOptions

        func validate() throws { _ = try resolution.resolution() }

        func run() throws {
            try Subscriber.show(
                daemon.ask(
                    ResolutionRequestLine.addSubscriber(
                        target.id, of: target.trackable, asking: resolution.resolution())))
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Nobody of this name watches any more.")

        @OptionGroup var target: Target
        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            try Subscriber.show(
                daemon.ask(ResolutionRequestLine.removeSubscriber(target.id, of: target.trackable)))
        }
    }

    private static func show(_ reply: [UInt8]) throws {
        let answer: TrackableReply = try DaemonReply.read(reply)
        printLine(answer.text)
        try finishOutput()
    }
}

/// What is published of a trackable, and why.
struct TrackableReply: Decodable {
    var subscribers: Int
    var near: Bool
    var batteryLow: Bool
    var resolution: ResolutionReply

    enum CodingKeys: String, CodingKey {
        case subscribers, near
        case batteryLow = "battery_low"
    }

    /// `high, 1 s, 5 m; subscribers 2, near`
    var text: String {
        "\(resolution.text); subscribers \(subscribers)" + (near ? ", near" : "") + (batteryLow ? ", battery low" : "")
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        subscribers = try container.decode(Int.self, forKey: .subscribers)
        near = try container.decode(Bool.self, forKey: .near)
        batteryLow = try container.decode(Bool.self, forKey: .batteryLow)
        resolution = try ResolutionReply(from: decoder)
    }
}
