import ArgumentParser

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let the running daemon read its configuration anew.",
        discussion: """
            Returns when the new configuration is in force, and names the keys that take effect at the next start \
            alone. A configuration with a mistake changes nothing. Exit status: 0 done, 1 refused, 2 no daemon answers.
            """)

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let reply: [UInt8]
        do {
            reply = try daemon.ask(#"{"id":1,"do":"reload"}"#, timeoutSeconds: 30)
        } catch let code as ExitCode where code.rawValue == 78 {
            // Without --socket the file tells where the daemon listens. What is wrong with it has been said.
            throw fail("the configuration is refused, nothing has changed", exitCode: 1)
        }
        let answer: Answer = try DaemonReply.read(reply)
        let live = answer.live.joined(separator: ", ")
        print(live.isEmpty ? "nothing that takes effect now has changed" : "new: \(live)")
        if !answer.restart.isEmpty { print("at the next start: \(answer.restart.joined(separator: ", "))") }
        try finishOutput()
    }

    private struct Answer: Decodable {
        /// Keys that are in force.
        var live: [String]
        /// Keys that are not yet.
        var restart: [String]
    }
}
