import Profiles
import WaypostCore

/// Stores rows under the next numbers, and counts them for the endpoints that want them.
struct RowAppending {
    let queue: Transaction

    /// From this many names of boots on, those that no row refers to are removed.
    private static let bootNames = 64

    /// Whether rows that are not published are stored: others are left out.
    var keepsUnpublished: Bool {
        queue.ledger.endpoints.contains { $0.removedAt == nil && !$0.isSpare && $0.settings.feed == .engine }
    }

    /// - Parameter boot: of the system when the rows were recorded.
    func append(_ rows: [NewRow], boot: String?) throws(OutboxError) {
        // By index, here and below: a row that is iterated over is copied.
        let keepsAll = keepsUnpublished
        let kept = rows.indices.filter { keepsAll || rows[$0].location.published }
        guard !kept.isEmpty else { return }
        if let memory = queue.memory, !memory.isBlind { queue.processRun.gives(kept.count) }
        queue.ledger.lastSeq = min(Ledger.seqMax, queue.ledger.lastSeq + queue.processRun.leap)
        queue.processRun.leap = 0
        let boot = try number(ofBoot: boot)
        let before = queue.ledger.lastSeq
        var stored: [StoredRow] = []
        stored.reserveCapacity(kept.count)
        var areFinished = false
        for index in kept {
            let seq = queue.ledger.lastSeq + 1
            stored.append(try storedRow(rows[index], seq: seq, boot: boot))
            if queue.ledger.rows == 0 { queue.ledger.firstSeq = seq }
            for name in rows[index].finishedFor {
                noteFinished(seq, for: name)
                areFinished = true
            }
            queue.ledger.recorded.append(
                seq, at: rows[index].recordedAt, first: queue.ledger.removedThrough + 1)
            queue.ledger.appended(
                seq: seq, published: rows[index].location.published, time: Record.plausible(rows[index].date))
        }
        try queue.database.rows.append(stored)
        if areFinished { try writeAhead(from: before + 1) }
    }

    /// A row under this number; what it has in other tables is stored.
    @inline(__always)  // A row that is passed on is copied, as much as it is.
    func storedRow(_ row: NewRow, seq: Int64, boot: Int64?) throws(OutboxError) -> StoredRow {
        try queue.database.insertDetails(of: row.location, seq: seq)
        return try numbered(row, seq: seq, boot: boot)
    }

    /// A row under this number, with numbers for its names.
    @inline(__always)
    func numbered(_ row: NewRow, seq: Int64, boot: Int64?) throws(OutboxError) -> StoredRow {
        let trackable = try queue.database.number(of: row.location.trackable, in: &queue.ledger.names.trackables)
        let reason = try queue.database.number(of: row.location.reason, in: &queue.ledger.names.reasons)
        return StoredRow(row, seq: seq, trackable: trackable, boot: boot, reason: reason)
    }

    func number(ofBoot name: String?) throws(OutboxError) -> Int64? {
        if let name, queue.ledger.names.boots[name] == nil, queue.memory == nil,
            queue.ledger.names.boots.count >= Self.bootNames, queue.ledger.rows <= Ledger.countInterval
        {
            queue.ledger.names.boots = try queue.database.pruneBoots()
        }
        return try queue.database.number(of: name, in: &queue.ledger.names.boots)
    }

    private func noteFinished(_ seq: Int64, for name: String) {
        guard let index = queue.ledger.index(of: name) else { return }
        let owner = queue[index].settings.backupFor.map { queue.ledger.index(of: $0) } ?? index
        if let owner { queue[owner].ahead.append(seq) }
    }

    private func writeAhead(from seq: Int64) throws(OutboxError) {
        for endpoint in queue.ledger.endpoints {
            try queue.database.writeAhead(
                endpoint.ahead.ranges.reversed().prefix { $0.upperBound >= seq }, of: endpoint.id)
        }
    }
}
