import Network
import Profiles
import Queue
import WaypostCore

/// What is in the quarantine of a queue. It changes nothing, and works beside a running daemon.
package struct QuarantineReport {
    private let reader: OutboxReader
    private let endpoint: String?
    /// Rows read at a time: while it reads, the daemon's log cannot be emptied.
    private static let page = 100

    /// - Parameter endpoint: whose rows; nil = of all endpoints.
    package init(path: String, endpoint: String?) throws(QueueReport.Failure) {
        self.endpoint = endpoint
        do throws(OutboxError) { reader = try OutboxReader(path: path) } catch { throw QueueReport.Failure(error) }
    }

    /// One row, without coordinates.
    struct Entry {
        fileprivate let record: QuarantinedLocation

        /// For people: id, endpoint, seq, time, why, and how often it was sent.
        var line: String {
            let refusal = record.refusal
            var line = "\(record.id)  \(record.endpoint)  seq \(record.row.seq)  \(record.row.date.iso8601)"
            line += "  \(refusal.reason)"
            if let status = refusal.status { line += ", status \(status)" }
            line += ", sent \(InWords.count(refusal.attempts, "time"))"
            if record.isRetried { line += ", to be sent again" }
            return line
        }

        /// The same for programs.
        var json: String {
            var writer = JSONWriter()
            writer.beginObject()
            writer.field("id", record.id)
            writer.field("endpoint", record.endpoint)
            writer.field("seq", record.row.seq)
            writer.field("time", record.row.date.iso8601)
            writer.field("reason", record.refusal.reason)
            writer.field("status", record.refusal.status)
            writer.field("attempts", record.refusal.attempts)
            writer.field("retried", record.isRetried)
            writer.endObject()
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }

    func list(_ take: (Entry) throws -> Void) throws { try each { try take(Entry(record: $0)) } }

    /// One JSON object a line: the record as `$location` of a profile, and why it is here.
    package func export(only ids: Set<Int64> = [], _ take: ([UInt8]) throws -> Void) throws {
        try each { record in
            guard ids.isEmpty || ids.contains(record.id) else { return }
            var writer = JSONWriter()
            writer.beginObject()
            writer.field("id", record.id)
            writer.field("endpoint", record.endpoint)
            writer.field("reason", record.refusal.reason)
            writer.field("status", record.refusal.status)
            writer.field("reply", String(decoding: record.refusal.reply, as: UTF8.self))
            writer.field("attempts", record.refusal.attempts)
            writer.field("asset_id", record.assetID)
            writer.key("record")
            writer.record(record.row, outbox: reader.uuid, in: RenderContext(identify: RecordID.make))
            writer.endObject()
            writer.newline()
            try take(writer.bytes)
        }
    }

    private func each(_ take: (QuarantinedLocation) throws -> Void) throws {
        var after: Int64 = 0
        while true {
            let records: [QuarantinedLocation]
            do throws(OutboxError) {
                records = try reader.quarantined(endpoint: endpoint, after: after, limit: Self.page)
            } catch {
                throw QueueReport.Failure(error)
            }
            for record in records { try take(record) }
            guard let last = records.last, records.count == Self.page else { return }
            after = last.id
        }
    }
}
