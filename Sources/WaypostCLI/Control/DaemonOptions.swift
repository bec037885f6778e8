import ArgumentParser
import Configuration
import Daemon
import Glibc
import WaypostControl
import WaypostHost

/// Which running daemon a command speaks to.
struct DaemonOptions: ParsableArguments {
    @Option(help: "The configuration that names the control socket.", completion: .file(extensions: ["toml"]))
    var config = ConfigurationFile.standardPath

    @Option(help: "The control socket itself, instead of the one in the configuration.", completion: .file())
    var socket: String?

    /// The socket to ask at, and what is wrong with the configuration that names it. With a mistake in that, the daemon runs
    /// on what it read before: the socket is that of the last good one as far as this user may read it, else the one in the
    /// file all the same.
    func place() -> (socket: NamedPath, problems: [ConfigurationProblem]) {
        if let socket { return (NamedPath(path: socket), []) }
        do throws(ConfigurationProblems) {
            let (loaded, author) = try ConfigurationFile.ofDaemon(config)
            return (NamedPath(path: loaded.config.control.socket, author: author), loaded.refused?.byWeight ?? [])
        } catch {
            let environment = ConfigurationFile.environmentOfDaemon
            let socket = AgentConfig.ControlConfig.socket(in: config, environment: environment)
            return (NamedPath(path: socket), error.byWeight)
        }
    }

    /// - Throws: `ExitCode` 2 when no daemon answers, 77 when this user may not ask it, 1 when it refuses, after the reason was printed.
    func send<Request: ControlRequest>(_ request: Request, timeoutSeconds: Int = 5) throws -> Request.Reply {
        try Self.read(ask(request, timeoutSeconds: timeoutSeconds))
    }

    /// - Returns: the reply as it came.
    func ask(_ request: some ControlRequest, timeoutSeconds: Int = 5) throws -> [UInt8] {
        try ask(request, at: place(), timeoutSeconds: timeoutSeconds)
    }

    func ask(
        _ request: some ControlRequest, at place: (socket: NamedPath, problems: [ConfigurationProblem]),
        timeoutSeconds: Int = 5
    ) throws -> [UInt8] {
        let client = ControlClient(path: place.socket.path, timeoutSeconds: timeoutSeconds)
        do {
            return try FileOwner.acting(as: place.socket.author) { try client.ask(ControlFrame.line(request)) }
        } catch let error as SystemError {
            try passIfPermitted(error)
            for problem in place.problems { printError("\(problem)") }
            printError("waypost: no daemon answers: \(error)")
            throw ExitCode(2)
        }
    }

    /// - Returns: nil where no daemon runs.
    /// - Throws: `ExitCode`, after what is wrong was printed.
    func sendIfRunning<Request: ControlRequest>(_ request: Request) throws -> Request.Reply? {
        let socket = place().socket
        do {
            let client = ControlClient(path: socket.path, timeoutSeconds: ControlClient.longestSeconds)
            return try Self.read(FileOwner.acting(as: socket.author) { try client.ask(ControlFrame.line(request)) })
        } catch let error as SystemError {
            try passIfPermitted(error)
            if error.code == ENOENT || error.code == ECONNREFUSED { return nil }
            printError("waypost: the daemon does not answer: \(error)")
            throw ExitCode(2)
        }
    }

    /// Sends a request that concerns the queue: to the daemon, or without one to the queue itself.
    /// - Throws: `ExitCode`, after what is wrong and what to do was printed.
    func order<Request: ControlRequest>(_ request: Request) throws -> Request.Reply {
        let socket = place().socket
        let line = ControlFrame.line(request)
        do {
            let client = ControlClient(path: socket.path, timeoutSeconds: ControlClient.longestSeconds)
            return try Self.read(FileOwner.acting(as: socket.author) { try client.ask(line) })
        } catch let error as SystemError {
            try passIfPermitted(error)
            guard error.code == ENOENT || error.code == ECONNREFUSED else {
                printError("waypost: the daemon does not answer: \(error)")
                throw ExitCode(2)
            }
        }
        let config = try ConfigurationFile.load(config).config
        do {
            return try Self.read(
                NamedPath(path: config.outbox.settings.path).acting {
                    try OfflineOrders.answer(line, config: config, environment: ProcessEnvironment.variables)
                })
        } catch let error as SystemError {
            throw fail(error)
        } catch let error as QueueReport.Failure {
            throw fail(
                "no daemon answers at \(socket.path), and the queue cannot be used without it: \(error) (where a daemon runs, "
                    + "name its socket with --socket; else be the user it runs as, or root)", exitCode: error.exitCode)
        }
    }

    /// - Throws: `ExitCode` 77, after the one line that helps was printed.
    private func passIfPermitted(_ error: SystemError) throws {
        if let denial = denial(error) { throw fail(denial, exitCode: Denial.exitStatus) }
    }

    /// Why this user gets no answer; nil = for another reason than missing rights. Root acts as another user, who lacks them.
    ///
    /// Where the configuration may not be read either, its socket may be anywhere.
    func denial(_ error: SystemError) -> String? {
        guard geteuid() != 0 else { return nil }
        return switch error.code {
        case EACCES: Denial.words(for: place().socket.path)
        case ENOENT, ECONNREFUSED: socket == nil && Denial.forbidsReading(config) ? Denial.words(for: config) : nil
        default: nil
        }
    }

    static func read<Reply: ControlMessage>(_ line: [UInt8]) throws -> Reply {
        do throws(ControlError) { return try ControlFrame.read(line) } catch {
            if error.code == "bad-reply" { throw fail(error.message, exitCode: 76) }  // EX_PROTOCOL
            throw fail(error.message + (error.hint.map { " (\($0))" } ?? ""), exitCode: 1)
        }
    }
}
