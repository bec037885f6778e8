import ArgumentParser
import Daemon
import WaypostControl

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", abstract: "Let the running daemon read its configuration again.",
        discussion: """
            Returns when the new configuration is in effect, and names the keys that take effect only after a \
            restart. A configuration with a mistake changes nothing. Exit status: 0 done, 1 refused, 2 no daemon answers.
            """)

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let answer = try daemon.send(ReloadRequest(), timeoutSeconds: 30)
        let live = answer.live.joined(separator: ", ")
        printLine(live.isEmpty ? "nothing that takes effect now has changed" : "in effect now: \(live)")
        if !answer.restart.isEmpty {
            printLine("after a restart (sudo systemctl restart waypost): \(answer.restart.joined(separator: ", "))")
        }
        try finishOutput()
    }
}
