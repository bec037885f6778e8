import Agent
import ArgumentParser
import ControlProtocol
import EventLoop

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", abstract: "Let the running daemon read its configuration again.",
        discussion: """
            Returns when the new configuration is in effect, and names the keys that take effect only after a \
            restart. A configuration with a mistake changes nothing. Exit status: 0 done, 1 refused, 2 no daemon answers.
            """)

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let answer: ReloadRequest.Reply = try DaemonOptions.read(ask())
        let live = answer.live.joined(separator: ", ")
        printLine(live.isEmpty ? "nothing that takes effect now has changed" : "in effect now: \(live)")
        if !answer.restart.isEmpty { printLine("at the next start: \(answer.restart.joined(separator: ", "))") }
        try finishOutput()
    }

    /// A file with mistakes does not say where the daemon listens, which has to read it all the same.
    private func ask() throws -> [UInt8] {
        let timeout = 30
        let request = ReloadRequest()
        if daemon.socket != nil { return try daemon.ask(request, timeoutSeconds: timeout) }
        let (path, problems) = daemon.place()
        do throws(SystemError) {
            return try ControlClient(path: path, timeoutSeconds: timeout).ask(ControlFrame.line(request))
        } catch {
            if problems.isEmpty { throw fail("no daemon answers: \(error)", exitCode: 2) }
        }
        for problem in problems { printError("\(problem)") }
        throw fail("the configuration is refused, nothing has changed", exitCode: 1)
    }
}
