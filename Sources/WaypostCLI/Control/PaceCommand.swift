import ArgumentParser
import Daemon
import WaypostControl

struct PaceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pace", abstract: "Force the motion state of the running daemon.",
        discussion: """
            moving starts a trip at once, stationary ends one; after that the receiver's evidence decides again, so \
            that a vehicle that still moves starts another trip. auto cancels a state that waits for the first fix.
            """)

    enum State: String, ExpressibleByArgument, CaseIterable {
        case moving, stationary, auto
    }

    @Argument(help: "moving, stationary or auto.")
    var state: State

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        printLine(try daemon.send(PaceRequest(moving: state == .auto ? nil : state == .moving)).motion)
        try finishOutput()
    }
}
