import ArgumentParser
import Glibc
import WaypostControl
import WaypostCore
import WaypostHost

struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Watch the running daemon, with the evidence of its decisions.",
        discussion: """
            Asks the daemon once a second, and waits for one that is away. Keys: q quits, p pauses, e shows every \
            endpoint with what to do (the arrow and page keys scroll), f flushes after a question. Where standard output is no terminal it prints one \
            picture and ends, with the exit status of 'waypost status'. NO_COLOR turns colours off, and only ASCII is \
            used unless LC_ALL, LC_CTYPE or LANG name UTF-8.
            """)

    /// Columns of a picture that is not for a terminal.
    private static let plainColumns = 100

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let environment = ProcessEnvironment.variables
        let isASCII = !Self.isUTF8(environment)
        guard isatty(STDOUT_FILENO) == 1, environment["TERM"] != "dumb" else { return try printOnce(isASCII: isASCII) }
        let isColoured = environment["NO_COLOR"].map(\.isEmpty) ?? true
        let socket = daemon.place().socket
        do {
            try FileOwner.acting(as: socket.author) {
                try TopView(daemon, at: socket.path, isASCII: isASCII, isColoured: isColoured).run()
            }
        } catch let error as SystemError {
            throw fail(error)
        }
    }

    /// By the rules of POSIX: the first of the three that is set decides.
    static func isUTF8(_ environment: [String: String]) -> Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let name = locale.lowercased()
        return name.contains("utf-8") || name.contains("utf8")
    }

    private func printOnce(isASCII: Bool) throws {
        let place = daemon.place()
        let status = try daemon.status(at: place).0
        var model = TopModel()
        // A daemon of an older version does not know the verb.
        let look: Look? = try? DaemonOptions.read(daemon.ask(LookRequest(), at: place))
        model.answered(status, look, at: 0)
        let now = TopView.now
        let page = TopPage(
            model: model, columns: Self.plainColumns, rows: nil, isASCII: isASCII, now: now, seconds: 0,
            offset: LocalTime.offset(at: now))
        for line in page.lines { print(line.trimmedText) }
        try finishOutput()
        if status.health != "ok" { throw ExitCode(1) }
    }
}
