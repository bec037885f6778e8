import Glibc
import Logging

/// Where the log goes, found out once at start.
package enum LogDestination: Sendable {
    /// Standard error is connected to the journal: structured entries go to it directly.
    case journal(JournalSocket)
    /// Standard error: lines with a severity prefix, or text for a terminal.
    case standardError(StderrSink)

    /// - Parameters:
    ///   - environment: `JOURNAL_STREAM` (`device:inode` of the descriptor that the service manager connected to the
    ///     journal) decides, so that a redirected standard error is respected.
    ///   - descriptor: standard error.
    ///   - journalPath: journald's socket.
    package static func detect(
        environment: [String: String], descriptor: Int32 = STDERR_FILENO,
        journalPath: String = JournalSocket.standardPath
    ) -> LogDestination {
        var terminal = termios()
        if tcgetattr(descriptor, &terminal) == 0 {
            return .standardError(StderrSink(form: .terminal, descriptor: descriptor))
        }
        let sink = StderrSink(form: .prefixed, descriptor: descriptor)
        var status = stat()
        guard let stream = environment["JOURNAL_STREAM"], fstat(descriptor, &status) == 0,
            stream == "\(status.st_dev):\(status.st_ino)"
        else { return .standardError(sink) }
        return .journal(JournalSocket(path: journalPath, fallback: sink))
    }

    /// The handler for a logger; the argument of `LoggingSystem.bootstrap`.
    package func makeHandler(label: String) -> any LogHandler {
        switch self {
        case .journal(let journal): JournalLogHandler(label: label, journal: journal)
        case .standardError(let sink): StderrLogHandler(sink: sink)
        }
    }

    /// `journal`, `stderr` or `terminal`, for `status`.
    package var name: String {
        switch self {
        case .journal: "journal"
        case .standardError(let sink): sink.form == .terminal ? "terminal" : "stderr"
        }
    }
}
