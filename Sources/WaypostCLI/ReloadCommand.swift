import Agent
import ArgumentParser
import Configuration
import ControlProtocol
import EventLoop

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let the running daemon read its configuration anew.",
        discussion: """
            Returns when the new configuration is in force, and names the keys that take effect at the next start \
            alone. A configuration with a mistake changes nothing. Exit status: 0 done, 1 refused, 2 no daemon answers.
            """)

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let answer: Answer = try DaemonReply.read(ask(#"{"id":1,"do":"reload"}"#))
        let live = answer.live.joined(separator: ", ")
        printLine(live.isEmpty ? "nothing that takes effect now has changed" : "new: \(live)")
        if !answer.restart.isEmpty { printLine("at the next start: \(answer.restart.joined(separator: ", "))") }
        try finishOutput()
    }

    /// A file with mistakes does not tell where the daemon listens, which is to hear of them all the same.
    private func ask(_ request: String) throws -> [UInt8] {
        let patience = 30
        if daemon.socket != nil { return try daemon.ask(request, timeoutSeconds: patience) }
        let environment = ConfigurationFile.environment(requiresCredentials: false)
        var problems: [ConfigurationProblem] = []
        var path = AgentConfig.ControlConfig.standardSocket(environment)
        do throws(ConfigurationProblems) {
            path = try AgentConfig.load(path: daemon.config, environment: environment).config.control.socket
        } catch { problems = error.problems }
        do throws(SystemError) {
            return try ControlClient(path: path, timeoutSeconds: patience).ask(request)
        } catch {
            if problems.isEmpty { throw fail("no daemon answers: \(error)", exitCode: 2) }
        }
        for problem in problems { printError("\(problem)") }
        throw fail("the configuration is refused, nothing has changed", exitCode: 1)
    }

    private struct Answer: Decodable {
        /// Keys that are in force.
        var live: [String]
        /// Keys that are not yet.
        var restart: [String]
    }
}
