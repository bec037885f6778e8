import Profiles
import WaypostCore

extension Database {
    /// A batch with its rows, as it goes out.
    ///
    /// - Parameters:
    ///   - rows: as recorded, oldest first.
    ///   - newest: the row that it carries as the newest one; nil = it is read.
    func batch(
        _ row: BatchRow, _ rows: [QueuedLocation], newest: QueuedLocation? = nil, of endpoint: Ledger.Endpoint,
        outbox: [UInt8], names: Record.Names
    ) throws(OutboxError) -> Batch {
        var rows = rows
        for index in rows.indices where row.broken.contains(rows[index].seq) {
            rows[index].location.reason = Quarantine.pairBroken
        }
        var newest = newest
        if newest == nil, let seq = row.newestSeq {
            newest = try self.rows(from: seq, through: seq, feed: .engine, limit: 1, names: names).first
        }
        return Batch(
            endpoint: row.route ?? endpoint.settings.name,
            id: row.id(outbox: String(hexOf: outbox.prefix(4)), endpoint: endpoint.settings.name), rows: rows,
            sentMs: row.sentMs, generation: row.generation, outbox: outbox, newest: newest)
    }

    /// The rows of a batch as recorded, oldest first.
    func rows(of batch: BatchRow, endpoint: Int64, names: Record.Names) throws(OutboxError) -> [QueuedLocation] {
        guard let picked = batch.picked else {
            return try rows(
                from: batch.first, through: batch.last, feed: batch.feed, limit: batch.rows, names: names)
        }
        switch batch.origin {
        case .queue:
            var rows: [QueuedLocation] = []
            for seq in picked {
                rows += try self.rows(from: seq, through: seq, feed: .engine, limit: 1, names: names)
            }
            return rows
        case .quarantine:
            return try quarantinedRows(picked, endpoint: endpoint, names: names)
        }
    }

    func write(_ batch: BatchRow, endpoint: Int64) throws(OutboxError) {
        try insertBatch.run(
            endpoint, batch.first, batch.last, batch.rows, batch.feed == .engine, batch.origin.rawValue, batch.through,
            batch.sentMs, batch.newestSeq, batch.generation,
            batch.picked.map { SequenceList.encode($0, from: batch.first) },
            batch.broken.isEmpty ? nil : SequenceList.encode(batch.broken, from: batch.first), batch.route,
            batch.rendering)
    }

    func rewriteBatches(of endpoint: Ledger.Endpoint) throws(OutboxError) {
        try connection.run("DELETE FROM batch WHERE endpoint = ?", endpoint.id)
        for batch in endpoint.batches { try write(batch, endpoint: endpoint.id) }
    }

    /// The batches of an endpoint in the order of the ledger.
    ///
    /// - Throws: `.corrupt` where one of them makes no sense.
    func batchRows(of endpoint: Int64) throws(OutboxError) -> [BatchRow] {
        let found = try connection.rows(
            """
            SELECT first, last, rows, feed, origin, through, sent_ms, newest_seq, generation, picked, broken, route,
            rendering FROM batch WHERE endpoint = ? ORDER BY origin, first LIMIT \(BatchRow.longest)
            """, [endpoint]
        ) { Self.batchRow($0) }
        let batches = found.compactMap { $0 }
        guard batches.count == found.count else {
            throw OutboxError(.corrupt, path: connection.path, message: "its batches make no sense")
        }
        return batches
    }

    private static func batchRow(_ row: Statement) -> BatchRow? {
        let first = row.integer(0)
        let last = row.integer(1)
        let rows = Int(clamping: row.integer(2))
        guard first > 0, first <= last, last <= Ledger.highestSeq, (1...BatchRow.longest).contains(rows) else {
            return nil
        }
        let picked = row.blob(9).map { SequenceList.decode($0, from: first, through: last) }
        if let picked, picked?.count != rows { return nil }
        let origin = BatchRow.Origin(rawValue: row.integer(4))
        guard let origin, origin == .queue || picked != nil else { return nil }
        return BatchRow(
            first: first, last: last, rows: rows, feed: row.integer(3) == 1 ? .engine : .network, origin: origin,
            picked: picked ?? nil,
            broken: row.blob(10).flatMap { SequenceList.decode($0, from: first, through: last) } ?? [],
            route: row.optionalText(11), sentMs: row.optionalInteger(6), newestSeq: row.optionalInteger(7),
            generation: max(1, Int(Int32(clamping: row.integer(8)))), rendering: row.text(12),
            through: Ledger.clamped(row.integer(5)))
    }

    /// The newest row of a feed that has a place, among the last few thousand; nil without any.
    func newestSeq(of feed: EndpointSettings.Feed, through last: Int64) throws(OutboxError) -> Int64? {
        let range = RowRange(last - 4096, last, isPublishedOnly: feed == .network)
        var newest: Int64?
        try rows.eachBackwards(range) { row in
            if row.isPlaced { newest = row.seq }
            return newest == nil
        }
        return newest
    }
}
