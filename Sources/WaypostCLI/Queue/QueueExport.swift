import Delivery
import EventLoop
import JSON
import Outbox
import Positioning
import Replay
import Uplink

/// What waits in a queue, for other programs. It changes nothing, and works beside a running daemon.
struct QueueExport {
    enum Format: String, CaseIterable {
        /// Complete records.
        case jsonl
        /// As in `TrackFormat`.
        case gpx, geojson, csv, kml
    }

    /// Rows read at a time: while it reads, the daemon's log cannot be emptied.
    private static let page = 1000

    private let reader: OutboxReader

    init(path: String) throws(QueueReport.Failure) {
        do throws(OutboxError) { reader = try OutboxReader(path: path) } catch { throw QueueReport.Failure(error) }
    }

    /// - Parameter folder: for temporary files.
    /// - Throws: `QueueReport.Failure` when the queue cannot be read, `SystemError` when the output cannot be written.
    func write(_ format: Format, to descriptor: Int32, folder: String) throws {
        let output = OutputBuffer(descriptor: descriptor)
        guard let form = TrackFormat(rawValue: format.rawValue) else {
            return try pages(output: descriptor) { rows in try output.write(lines(rows)) }
        }
        let export = try TrackExport(form, to: output, namesTrackables: true, folder: folder)
        try pages(output: descriptor) { rows in
            for row in rows { try export.add(row.location) }
        }
        try export.end()
    }

    private func lines(_ rows: [QueuedLocation]) -> [UInt8] {
        var writer = JSONWriter()
        for row in rows {
            writer.record(row, outbox: reader.uuid, in: RenderContext(identify: RecordID.make))
            writer.newline()
        }
        // Names may be meant for the terminal; that JSON may escape them changes nothing for programs.
        return Array(String(decoding: writer.bytes, as: UTF8.self).visibleJSON.utf8)
    }

    private func pages(output: Int32, _ take: ([QueuedLocation]) throws -> Void) throws {
        let total = try read { (reader) throws(OutboxError) in try reader.rowCount() }
        let progress = ProgressLine(.rows, total: Int64(total), output: output)
        var after: Int64 = 0
        while true {
            let rows = try read { (reader) throws(OutboxError) in try reader.rows(after: after, limit: Self.page) }
            try take(rows)
            progress?.advanced(by: rows.count)
            guard let last = rows.last, rows.count == Self.page else { return }
            after = last.seq
        }
    }

    private func read<Value>(
        _ body: (OutboxReader) throws(OutboxError) -> Value
    ) throws(QueueReport.Failure) -> Value {
        do throws(OutboxError) { return try body(reader) } catch { throw QueueReport.Failure(error) }
    }
}
