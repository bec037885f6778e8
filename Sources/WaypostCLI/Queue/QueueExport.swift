import Inspect
import Network
import Profiles
import Queue
import WaypostCore
import WaypostHost

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
        // A damaged queue may not know.
        let total = (try? reader.rowCount()) ?? 0
        let progress = ProgressLine(.rows, total: Int64(total), output: output)
        var place = QueuePlace()
        while !place.isLast {
            let rows = try read { (reader) throws(OutboxError) in try reader.next(&place, limit: Self.page) }
            try take(rows)
            progress?.advanced(by: rows.count)
        }
    }

    /// What is left out; nil = nothing.
    var damage: QueueReport.Failure? { QueueReport.Failure(missingFrom: reader) }

    private func read<Value>(
        _ body: (OutboxReader) throws(OutboxError) -> Value
    ) throws(QueueReport.Failure) -> Value {
        do throws(OutboxError) { return try body(reader) } catch { throw QueueReport.Failure(error) }
    }
}
