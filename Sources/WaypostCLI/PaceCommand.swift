import Agent
import ArgumentParser

struct Pace: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pace", abstract: "Force the motion state of the running daemon.",
        discussion: """
            moving begins a trip at once, stationary ends one; from there on the receiver's evidence decides again, so \
            that a vehicle that still rolls departs anew. auto takes back a state that waits for the first fix.
            """)

    enum State: String, ExpressibleByArgument, CaseIterable {
        case moving, stationary, auto
    }

    @Argument(help: "moving, stationary or auto.")
    var state: State

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let moving = state == .auto ? "" : ",\"moving\":\(state == .moving)"
        let answer: Answer = try DaemonReply.read(daemon.ask("{\"id\":1,\"do\":\"pace\"\(moving)}"))
        printLine(answer.motion)
        try finishOutput()
    }

    private struct Answer: Decodable {
        /// The motion state from now on.
        var motion: String
    }
}
