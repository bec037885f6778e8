import CLinux
import Configuration
import Glibc
import WaypostCore
import WaypostHost

/// Runs a program that prints a token, without blocking the loop.
///
/// It runs without a shell, in a process group of its own, with only `PATH` and `CREDENTIALS_DIRECTORY`. It ends when
/// the process itself exits, even if a child keeps the pipe open.
final class TokenCommand {
    /// Longest time that it may take.
    static let limit = Duration.seconds(10)
    /// Its output must be shorter than this, the capacity of a pipe: a program that blocks on a full pipe has printed
    /// too much, even if nothing was read in time.
    static let outputMax = 64 * 1024
    /// How often to check where the kernel does not report the end of the process.
    private static let pollInterval = Duration.milliseconds(100)

    private let command: [String]
    private let environment: [String]
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var running: Running?
    /// It did not even start; reported from the loop.
    private var failure: (() -> Void)?

    private struct Running {
        var process: pid_t
        /// It was reaped: the number may be that of another process by now.
        var isReaped = false
        var output: Int32
        /// A pidfd; -1 where there is none.
        var pidfd: Int32
        var until: EventTime
        var printed: [UInt8] = []
        /// Why it was killed; nil = it was not.
        var breach: String?
        var done: (Result<[UInt8], TokenReply.Problem>) -> Void
    }

    init(_ command: [String], environment: [String: String], loop: EventLoop) {
        self.command = command
        self.environment = ["PATH", "CREDENTIALS_DIRECTORY"].compactMap { name in
            environment[name].map { "\(name)=\($0)" }
        }
        self.loop = loop
        alarm = loop.alarm { [unowned self] now in check(at: now) }
    }

    deinit {
        alarm?.deadline = nil
        guard let running else { return }
        kill(-running.process, SIGKILL)
        kill(running.process, SIGKILL)
        waitpid(running.process, nil, 0)
        release(running)
    }

    /// - Parameter done: called once, never from inside `run`, with what it printed.
    func run(at now: EventTime, _ done: @escaping (Result<[UInt8], TokenReply.Problem>) -> Void) {
        var ends: [Int32] = [-1, -1]
        guard waypost_pipe(&ends) == 0 else { return failLater("no pipe: \(errorText(errno))", done) }
        let (process, code) = spawn(output: ends[1])
        close(ends[1])
        guard code == 0 else {
            close(ends[0])
            return failLater("\(command[0]) does not start: \(errorText(code))", done)
        }
        let pidfd = waypost_pidfd(process)
        running = Running(process: process, output: ends[0], pidfd: pidfd, until: now + Self.limit, done: done)
        // A descriptor that cannot be watched leaves the polling by the alarm.
        try? loop.watch(ends[0]) { [unowned self] _, now in check(at: now) }
        if pidfd >= 0 {
            _ = fcntl(pidfd, F_SETFD, FD_CLOEXEC)
            do { try loop.watch(pidfd) { [unowned self] _, now in check(at: now) } } catch { closePidfd() }
        }
        arm(at: now)
    }

    private func failLater(_ message: String, _ done: @escaping (Result<[UInt8], TokenReply.Problem>) -> Void) {
        failure = { done(.failure(.init(message: message))) }
        alarm?.deadline = .zero
    }

    private func spawn(output: Int32) -> (pid_t, Int32) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        // The error messages of a program may contain secrets.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        // The loop blocks signals and ignores some; the program starts with the defaults.
        var usual = sigset_t()
        sigfillset(&usual)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, command[0], &actions, &attributes, &arguments, &variables)
        return (process, code)
    }

    /// Something was printed, the process ended, or it is time to check.
    private func check(at now: EventTime) {
        if let failure {
            self.failure = nil
            return failure()
        }
        guard running != nil else { return }
        readOutput()
        guard let running else { return }
        var status: Int32 = 0
        let ended = waitpid(running.process, &status, WNOHANG)
        if ended == running.process || (ended < 0 && errno == ECHILD) {
            self.running?.isReaped = true
            // Output may have come between the last read and the exit.
            readOutput()
            return finish(status: ended < 0 ? -1 : status)
        }
        if running.breach == nil, now >= running.until { stop("did not end within 10 s") }
        arm(at: now)
    }

    private func readOutput() {
        guard var current = running, current.output >= 0 else { return }
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = read(current.output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count == 0 || (count < 0 && errno != EAGAIN) {
                loop.forget(current.output)
                close(current.output)
                current.output = -1
            }
            guard count > 0 else { break }
            current.printed += chunk[..<count]
            if current.printed.count >= Self.outputMax {
                current.printed = []
                running = current
                return stop("printed 64 KiB or more")
            }
        }
        running = current
    }

    private func stop(_ breach: String) {
        guard let running else { return }
        // Kills its children too; the group may not exist yet.
        if !running.isReaped, kill(-running.process, SIGKILL) != 0 { kill(running.process, SIGKILL) }
        if running.output >= 0 {
            loop.forget(running.output)
            close(running.output)
        }
        self.running?.output = -1
        self.running?.breach = breach
    }

    private func finish(status: Int32) {
        guard let ended = running else { return }
        running = nil
        alarm?.deadline = nil
        release(ended)
        if let breach = ended.breach { return ended.done(.failure(.init(message: breach))) }
        let signal = status & 0x7F
        let code = status >> 8 & 0xFF
        if status == 0 { return ended.done(.success(ended.printed)) }
        ended.done(
            .failure(.init(message: signal != 0 ? "was ended by signal \(signal)" : "failed with exit status \(code)")))
    }

    private func arm(at now: EventTime) {
        guard let running else { return }
        let isWatched = running.pidfd >= 0 && running.breach == nil
        alarm?.deadline = isWatched ? running.until : now + Self.pollInterval
    }

    private func closePidfd() {
        if let pidfd = running?.pidfd, pidfd >= 0 { close(pidfd) }
        running?.pidfd = -1
    }

    private func release(_ ended: Running) {
        for descriptor in [ended.output, ended.pidfd] where descriptor >= 0 {
            loop.forget(descriptor)
            close(descriptor)
        }
    }
}
