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
        // The new file may name another socket, or have a mistake that is the daemon's to tell: --socket helps there.
        let answer: Answer = try DaemonReply.read(daemon.ask(#"{"id":1,"do":"reload"}"#, timeoutSeconds: 30))
        print(answer.live.isEmpty ? "nothing that takes effect now has changed" : "new: \(answer.live.joined(separator: ", "))")
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
