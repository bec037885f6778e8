import Profiles

/// Moves unsendable rows from the queue to the quarantine of their endpoint, or drops them.
struct QuarantineIntake {
    let queue: Transaction

    typealias Refused = (row: QueuedLocation, refusal: Refusal)

    /// Rows of a batch that were refused: to the quarantine, or back to it.
    func add(_ rows: [Refused], from batch: BatchRow, of index: Int) throws(OutboxError) {
        guard batch.origin == .quarantine else { return try add(rows, of: index, generation: batch.generation) }
        for (row, refusal) in rows {
            try queue.database.refuseAgain(row.seq, of: queue[index].id, refusal, generation: batch.generation)
        }
    }

    /// Rows of the queue; a full quarantine gives up its oldest for them.
    ///
    /// - Parameter generation: under which they went out; 0 = never.
    func add(_ rows: [Refused], of index: Int, generation: Int) throws(OutboxError) {
        guard !rows.isEmpty else { return }
        let database = queue.database
        let endpoint = queue[index]
        var count = endpoint.quarantine
        for (row, refusal) in rows {
            // Of a commit that was stored although it failed.
            if let former = try database.quarantined(row.seq, of: endpoint.id) { count.remove(former) }
            let stored = try stored(row)
            count.records += 1
            count.bytes += try database.quarantine(stored, row.location, of: endpoint, refusal, generation: generation)
            try database.pairQuarantined(stored, row.location, of: endpoint.id)
        }
        while count.records > Quarantine.recordsMax || count.bytes > Quarantine.bytesMax {
            guard let oldest = try database.dropOldestQuarantined(of: endpoint.id) else { break }
            count.remove(oldest)
            queue[index].count(unsent: "overflow")
        }
        queue[index].quarantine = count
    }

    /// As it was recorded: a batch may say otherwise why it has the row. One that is not in this database, because it is on
    /// disk or was removed, as the batch has it.
    private func stored(_ row: QueuedLocation) throws(OutboxError) -> StoredRow {
        if let stored = try queue.database.rows.rows(RowRange(row.seq, row.seq), limit: 1).first { return stored }
        let appending = RowAppending(queue: queue)
        return try appending.numbered(
            NewRow(row.location, receivedMs: row.receivedMs), seq: row.seq,
            boot: try appending.number(ofBoot: row.bootID))
    }

    /// Applies the rule of each endpoint to what is recorded while another device has the asset.
    func applyCollisionRules() throws(OutboxError) {
        for index in queue.ledger.endpoints.indices {
            let endpoint = queue[index]
            guard endpoint.state == .taken, endpoint.removedAt == nil, endpoint.holdsRows else { continue }
            let batches = endpoint.batches.filter { $0.origin == .queue }.map { queue.id(of: $0, endpoint) }
            switch endpoint.settings.onCollision {
            case .keep: continue
            case .clear: try dropUnsent(of: index, through: queue.ledger.lastSeq)
            case .quarantine:
                guard queue.memory == nil, endpoint.fitsQuarantine() else { continue }
                try addUnsent(of: index, Refusal(reason: "collision"))
            }
            // No one ordered this, so the reply has to say it to the sender.
            queue.dissolved += batches
        }
    }

    func addUnsent(of index: Int, _ refusal: Refusal) throws(OutboxError) {
        for batch in queue[index].batches where batch.origin == .queue {
            let rows = try queue.rows(of: batch, queue[index])
            try queue.remove(batch, from: index)
            try add(rows.map { ($0, refusal) }, of: index, generation: batch.generation)
        }
        let rows = try queue.database.waitingRows(
            of: queue[index], after: queue[index].formed, limit: Quarantine.recordsMax + 1, names: queue.ledger.names)
        try add(rows.map { ($0, refusal) }, of: index, generation: 0)
        passUnsent(of: index, through: queue.ledger.lastSeq, waiting: 0)
    }

    /// - Returns: how many rows were given up.
    @discardableResult
    func dropUnsent(of index: Int, through last: Int64) throws(OutboxError) -> Int {
        var dropped = 0
        for batch in queue[index].batches where batch.origin == .queue {
            dropped += batch.rows
            try queue.remove(batch, from: index)
        }
        let endpoint = queue[index]
        let passed =
            last >= queue.ledger.lastSeq
            ? endpoint.waiting
            : try queue.database.count(of: endpoint, after: endpoint.formed, through: last)
        dropped += passed
        queue[index].count(unsent: "dropped", dropped)
        passUnsent(of: index, through: last, waiting: endpoint.waiting - passed)
        return dropped
    }

    private func passUnsent(of index: Int, through last: Int64, waiting: Int) {
        queue[index].formed = max(queue[index].formed, last)
        queue[index].waiting = max(0, waiting)
        queue[index].oldest = .unknown
        queue.rowsBecameFree()
    }
}

extension Ledger.QuarantineCount {
    fileprivate mutating func remove(_ record: (size: Int, isRetried: Bool)) {
        records -= 1
        bytes -= record.size
        if record.isRetried { retrying = max(0, retrying - 1) }
    }
}

extension Ledger.Endpoint {
    /// Whether all its unsent rows have room in its quarantine.
    func fitsQuarantine(refusalSize: Int = 0) -> Bool {
        quarantine.records + unsent <= Quarantine.recordsMax
            && quarantine.bytes + unsent * (Quarantine.recordSize + refusalSize) <= Quarantine.bytesMax
    }
}
