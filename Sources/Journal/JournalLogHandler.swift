import Logging
import Synchronization
import WaypostCore

/// Writes log statements to the journal as structured entries.
///
/// Metadata keys become fields `WAYPOST_KEY`; the key `message_id` (32 hexadecimal digits) becomes `MESSAGE_ID`.
package struct JournalLogHandler: LogHandler {
    package var logLevel: Logger.Level = .info
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?

    private let label: String
    private let identifier: String
    private let journal: JournalSocket

    /// - Parameters:
    ///   - label: the logger's label, stored as `WAYPOST_LOGGER`.
    ///   - identifier: `SYSLOG_IDENTIFIER`, what `journalctl -t` selects by.
    package init(label: String, identifier: String = "waypost", journal: JournalSocket) {
        self.label = label
        self.identifier = identifier
        self.journal = journal
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let fields = LogFields(metadata, metadataProvider?.get(), event.metadata, error: event.error)
        let message = event.message.description
        var record = JournalRecord()
        record.add("MESSAGE", message.visible(bytesMax: JournalRecord.messageBytesMax, keepingLineFeeds: true))
        record.add("PRIORITY", String(event.level.syslogPriority))
        record.add("SYSLOG_IDENTIFIER", identifier)
        if let messageID = fields.messageID { record.add("MESSAGE_ID", messageID) }
        record.add("CODE_FILE", event.file)
        record.add("CODE_LINE", String(event.line))
        record.add("WAYPOST_LOGGER", label)
        for (key, value) in fields.pairs.prefix(JournalRecord.fieldsMax) {
            record.add(
                JournalRecord.fieldName(key),
                value.visible(bytesMax: JournalRecord.valueBytesMax, keepingLineFeeds: true))
        }
        journal.send(record, orAsText: (event.level, message, fields))
    }
}

/// The connection to journald. Never waits: an entry that does not fit into its queue is dropped and counted, and the
/// count is reported with the next entry that goes through.
package final class JournalSocket: Sendable {
    /// Where journald listens.
    package static let standardPath = "/run/systemd/journal/socket"

    private struct State: ~Copyable {
        var socket: UnixDatagramSocket?
        var unreported = 0
        var dropped = 0
    }

    private let identifier: String
    private let fallback: StderrSink
    private let state: Mutex<State>

    /// - Parameters:
    ///   - path: journald's socket.
    ///   - identifier: `SYSLOG_IDENTIFIER` of the report about dropped entries.
    ///   - fallback: takes the text of an entry while no journald listens at `path`.
    package init(path: String = JournalSocket.standardPath, identifier: String = "waypost", fallback: StderrSink) {
        self.identifier = identifier
        self.fallback = fallback
        state = Mutex(State(socket: UnixAddress(path).map { UnixDatagramSocket(to: $0) }))
    }

    /// Entries lost since the start because journald's queue was full.
    package var dropped: Int { state.withLock { $0.dropped } }

    func send(_ record: JournalRecord, orAsText text: (level: Logger.Level, message: String, fields: LogFields)) {
        let delivered = state.withLock { state -> Bool in
            if state.unreported > 0, deliver(dropReport(state.unreported), &state) == nil { state.unreported = 0 }
            switch deliver(record, &state) {
            case nil: return true
            case .full:
                state.unreported += 1
                state.dropped += 1
                return true
            case .tooLarge, .absent, .other: return false
            }
        }
        if !delivered { fallback.write(text.level, text.message, text.fields) }
    }

    private func deliver(_ record: JournalRecord, _ state: inout State) -> UnixDatagramSocket.Failure? {
        switch state.socket {
        case .none: .absent
        case .some(let socket): socket.send(record.bytes)
        }
    }

    private func dropReport(_ count: Int) -> JournalRecord {
        var record = JournalRecord()
        record.add("MESSAGE", "\(count) log entries were dropped because the journal did not take them")
        record.add("PRIORITY", "4")
        record.add("SYSLOG_IDENTIFIER", identifier)
        record.add("WAYPOST_DROPPED", String(count))
        return record
    }
}
