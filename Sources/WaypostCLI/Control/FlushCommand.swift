import ArgumentParser
import Daemon
import WaypostControl
import WaypostCore

struct FlushCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flush", abstract: "Write to disk and send now, without waiting for a window.",
        discussion: """
            Waits until each endpoint has sent what waited, or failed, for at most 30 s. A server's Retry-After and a \
            metered link are respected. Exit status: 0 everything was accepted, 1 something could not be sent, 2 no \
            daemon answers.
            """)

    @Flag(help: "Return when everything is on disk, and do not wait for the uploads.")
    var commit = false

    @Flag(help: "Record a panic event at the present position first.")
    var panic = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let answer = try daemon.send(
            FlushRequest(commit: commit, panic: panic), timeoutSeconds: ControlClient.longestSeconds)
        if answer.merged == true { printLine("panic: merged with the one before, less than a minute ago") }
        if commit {
            printLine("on disk, \(answer.waiting ?? 0) rows in the queue")
            return try finishOutput()
        }
        let endpoints = answer.endpoints ?? []
        if endpoints.isEmpty { printLine("no server is configured yet: sudo waypost init asks for one") }
        for endpoint in endpoints {
            printLine("\(endpoint.name): \(endpoint.words)")
        }
        try finishOutput()
        if endpoints.contains(where: { $0.waiting > 0 && $0.problem != nil }) { throw ExitCode(1) }
    }
}

extension FlushRequest.Reply.Endpoint {
    /// `12 accepted, 0 waiting`
    var words: String {
        let problem = problem.map { ": \($0)" } ?? ""
        guard accepted == 0 else { return "\(accepted) accepted, \(waiting) waiting\(problem)" }
        guard waiting == 0 else { return "nothing accepted, \(waiting) waiting\(problem)" }
        let age = contactAge.map { " \(InWords.span(seconds: $0)) ago" } ?? ""
        let contact =
            switch contact {
            case "accepted": "; last upload\(age)"
            case "reached": "; the server was reached\(age), and nothing was sent since the start"
            case "never": "; the server was not reached yet"
            default: ""
            }
        return "nothing accepted, since nothing waits\(contact)\(problem)"
    }
}
