import ArgumentParser
import Daemon
import WaypostControl

struct OdometerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "odometer", abstract: "Set the odometer of the running daemon.", subcommands: [Set.self])

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: "Set the odometer, for example to that of the vehicle.",
            discussion: """
                The length of a trip in progress does not change. waypost status shows the odometer. Exit status: 0 set and \
                stored, 1 set and not stored, since the disk refuses, or too many changes by request, 2 no daemon answers.
                """)

        @Argument(help: "Metres, 0 or more.")
        var metres: Double

        @OptionGroup var daemon: DaemonOptions

        func validate() throws {
            guard metres.isFinite, metres >= 0, metres <= 1e11 else {
                throw ValidationError("METRES is a number from 0 to 1e11.")
            }
        }

        func run() throws {
            let reply = try daemon.send(
                OdometerRequest(metres: metres), timeoutSeconds: ControlClient.longestSeconds)
            printLine("odometer \(reply.odometer) m")
            try finishOutput()
        }
    }
}
