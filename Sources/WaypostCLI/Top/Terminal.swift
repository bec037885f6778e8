import CLinux
import Glibc
import WaypostCore
import WaypostHost

/// The terminal while a view has all of it: keys come one by one, and the screen before is given back at the end.
///
/// However the process ends, save by SIGKILL, the terminal is as it was: signals come as events, and a crash restores it too.
final class Terminal {
    enum Key: Equatable {
        case character(Unicode.Scalar)
        case up, down, pageUp, pageDown
    }

    enum Event {
        case key(Key)
        case resized
        /// The user wants the shell back for a while; `suspend()` returns when the view goes on.
        case suspended
        /// A signal asked the program to end, or the terminal has gone.
        case ended
    }

    // The alternate screen without a cursor, and without wrapping: a character may be wider than we think.
    private static let enter = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J"
    private static let leave = "\u{1b}[0m\u{1b}[?2026l\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l"

    private let signals: Int32
    private let hasKeys: Bool
    private var settings = termios()
    private var isOurs = false

    /// - Throws: when standard output is not a terminal, or signals cannot be awaited.
    init() throws(SystemError) {
        guard isatty(STDOUT_FILENO) == 1 else { throw SystemError("standard output") }
        let awaited = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT]
        signals = waypost_signalfd_of(awaited, Int32(awaited.count))
        guard signals >= 0 else { throw SystemError("signalfd") }
        hasKeys = tcgetattr(STDIN_FILENO, &settings) == 0
        if hasKeys {
            waypost_terminal_guard(STDIN_FILENO, &settings, STDOUT_FILENO, Self.leave)
        } else {
            waypost_terminal_guard(STDIN_FILENO, nil, STDOUT_FILENO, Self.leave)
        }
        takeOver()
    }

    deinit {
        giveBack()
        close(signals)
    }

    /// Columns and rows; 80 × 24 where the terminal does not know.
    var size: (columns: Int, rows: Int) {
        var (columns, rows): (Int32, Int32) = (0, 0)
        guard waypost_terminal_size(STDOUT_FILENO, &columns, &rows) == 0, columns > 0, rows > 0 else { return (80, 24) }
        return (Int(columns), Int(rows))
    }

    /// Of standard output; 80 for a file or a program.
    static var columns: Int {
        var (columns, rows): (Int32, Int32) = (0, 0)
        return waypost_terminal_size(STDOUT_FILENO, &columns, &rows) == 0 && columns > 0 ? Int(columns) : 80
    }

    private func takeOver() {
        guard !isOurs else { return }
        isOurs = true
        if hasKeys {
            var ours = settings
            ours.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &ours)
        }
        write(Self.enter)
    }

    func giveBack() {
        guard isOurs else { return }
        isOurs = false
        write(Self.leave)
        if hasKeys { tcsetattr(STDIN_FILENO, TCSANOW, &settings) }
    }

    /// Stops the process, as the signal would have done by itself, and returns when it goes on.
    func suspend() {
        giveBack()
        kill(getpid(), SIGSTOP)
        takeOver()
    }

    /// A whole picture in one write, each line cleared to its end: nothing flickers, over a slow line either.
    /// - Parameter lines: with their columns. A line that fills the screen is not cleared: the cursor stands on its last character.
    func show(_ lines: [(text: String, columns: Int)]) {
        let width = size.columns
        // A terminal that the user has stopped (Ctrl-S) must not stop us: the next picture will do.
        var output = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&output, 1, 0) == 1, output.revents & Int16(POLLOUT) != 0 else { return }
        let body = lines.map { $0.text + ($0.columns < width ? "\u{1b}[K" : "") }.joined(separator: "\r\n")
        write("\u{1b}[?2026h\u{1b}[H\(body)\u{1b}[J\u{1b}[?2026l")
    }

    private func write(_ text: String) {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 || (count < 0 && errno == EINTR) else { return }
            written += max(0, count)
        }
    }

    /// Waits for keys, signals, and what else is ready to read.
    /// - Parameters:
    ///   - others: descriptors; negative ones are ignored.
    ///   - milliseconds: how long at most.
    /// - Returns: what happened, and which of the others are ready.
    func wait(_ others: [Int32], milliseconds: Int32) -> (events: [Event], ready: [Bool]) {
        let input = Int16(POLLIN)
        var watched = [
            pollfd(fd: signals, events: input, revents: 0),
            pollfd(fd: hasKeys ? STDIN_FILENO : -1, events: input, revents: 0),
        ]
        watched += others.map { pollfd(fd: $0, events: input, revents: 0) }
        guard poll(&watched, nfds_t(watched.count), milliseconds) > 0 else { return ([], others.map { _ in false }) }
        var events: [Event] = []
        if watched[0].revents != 0 { events += signalled() }
        if watched[1].revents != 0 { events += keys() }
        return (events, watched[2...].map { $0.revents != 0 })
    }

    private func signalled() -> [Event] {
        var events: [Event] = []
        while true {
            switch waypost_signalfd_read(signals) {
            case 0: return events
            case SIGWINCH: events.append(.resized)
            case SIGTSTP: events.append(.suspended)
            // Stopped by a signal that nobody can await, the shell may have changed everything.
            case SIGCONT:
                isOurs = false
                takeOver()
                events.append(.resized)
            default: events.append(.ended)
            }
        }
    }

    private func keys() -> [Event] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        guard count > 0 else { return errno == EINTR && count < 0 ? [] : [.ended] }
        return Self.keys(of: bytes[..<count]).map { .key($0) }
    }

    /// Arrows and their like come as sequences, all bytes of one at once; those that mean nothing here are dropped. Over a slow line,
    /// or with a key held down, several keys come together.
    static func keys(of bytes: ArraySlice<UInt8>) -> [Key] {
        var (rest, keys) = (bytes, [Key]())
        while let first = rest.popFirst() {
            guard first == 0x1B, let second = rest.first, second == UInt8(ascii: "[") || second == UInt8(ascii: "O")
            else {
                keys.append(.character(Unicode.Scalar(first)))
                continue
            }
            // Parameters, and one byte that ends it (ECMA-48, 5.4).
            let parameters = rest.dropFirst().prefix { (0x20...0x3F).contains($0) }
            let sequence = rest.prefix(1 + parameters.count + 1)
            rest = rest[sequence.endIndex...]
            switch String(decoding: sequence, as: UTF8.self) {
            case "[A", "OA": keys.append(.up)
            case "[B", "OB": keys.append(.down)
            case "[5~": keys.append(.pageUp)
            case "[6~": keys.append(.pageDown)
            default: break
            }
        }
        return keys
    }
}
