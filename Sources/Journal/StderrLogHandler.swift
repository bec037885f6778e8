import Glibc
import Logging
import Synchronization
import WaypostCore

/// Writes log statements as lines to standard error: `<4>text key=value` for a supervisor or a file, plain text with
/// the time of day for a terminal.
package struct StderrLogHandler: LogHandler {
    package var logLevel: Logger.Level = .info
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?

    private let sink: StderrSink

    package init(sink: StderrSink) { self.sink = sink }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let fields = LogFields(metadata, metadataProvider?.get(), event.metadata, error: event.error)
        sink.write(event.level, event.message.description, fields)
    }
}

/// Standard error as a place for log lines. Never waits: a line that the reader does not take is dropped and counted.
package final class StderrSink: Sendable {
    /// How a line begins.
    package enum Form: Hashable, Sendable {
        /// `<N>`, the syslog severity that journald and other supervisors understand.
        case prefixed
        /// The time of day and the level in words.
        case terminal
    }

    /// A pipe that reports itself writable takes this many bytes without waiting (POSIX PIPE_BUF on Linux).
    private static let lineBytesMax = 4096

    private struct State {
        var dropped = 0
        var unreported = 0
        var lineIsOpen = false
    }

    package let form: Form
    private let fd: Int32
    private let timeOfDay: @Sendable () -> String
    private let state = Mutex(State())

    /// - Parameter timeOfDay: precedes a line on a terminal.
    package init(
        form: Form, descriptor: Int32 = STDERR_FILENO,
        timeOfDay: @escaping @Sendable () -> String = StderrSink.localTime
    ) {
        self.form = form
        fd = descriptor
        self.timeOfDay = timeOfDay
    }

    /// Lines lost since the start because the reader did not take them.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// `18:14:34` in the time zone of the host.
    package static func localTime() -> String {
        var now = time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        let digits = { (value: Int32) in value < 10 ? "0\(value)" : String(value) }
        return "\(digits(parts.tm_hour)):\(digits(parts.tm_min)):\(digits(parts.tm_sec))"
    }

    func write(_ level: Logger.Level, _ message: String, _ fields: LogFields) {
        var text = message
        // The text of a statement with a message id contains its fields already.
        if fields.messageID == nil { for (key, value) in fields.pairs { text += " \(key)=\(value)" } }
        let line = line(level, text)
        state.withLock { state in
            if state.unreported > 0 {
                let report = self.line(
                    .warning, "\(state.unreported) log lines were dropped because they were not read")
                if put(report, &state) { state.unreported = 0 }
            }
            if !put(line, &state) {
                state.dropped += 1
                state.unreported += 1
            }
        }
    }

    private func line(_ level: Logger.Level, _ text: String) -> [UInt8] {
        let start =
            switch form {
            case .prefixed: "<\(level.syslogPriority)>"
            case .terminal: "\(timeOfDay()) \(level.rawValue): "
            }
        return Array((start + text).visible(bytesMax: Self.lineBytesMax - 2).utf8) + [UInt8(ascii: "\n")]
    }

    /// True when the whole line was taken. A reader that took only a part gets the line end before the next line.
    private func put(_ line: [UInt8], _ state: inout State) -> Bool {
        var ready = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
        // POLLERR is a pipe whose reader is gone: writing to it would raise SIGPIPE.
        guard poll(&ready, 1, 0) == 1, ready.revents & Int16(POLLOUT | POLLERR | POLLNVAL) == POLLOUT else {
            return false
        }
        let bytes = state.lineIsOpen ? [UInt8(ascii: "\n")] + line : line
        // The journal's stream is a socket, which may report itself writable for fewer bytes than a line has.
        var sent = send(fd, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        if sent < 0, errno == ENOTSOCK { sent = Glibc.write(fd, bytes, bytes.count) }
        guard sent > 0 else { return false }
        state.lineIsOpen = sent < bytes.count
        return sent == bytes.count
    }
}
