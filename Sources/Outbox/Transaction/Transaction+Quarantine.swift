import Delivery
import Positioning

extension Transaction {
    /// Rows of a batch that were refused: to the quarantine, or back to it.
    mutating func quarantine(
        _ rows: [(row: QueuedLocation, refusal: Refusal)], from batch: BatchRow, of index: Int
    ) throws(OutboxError) {
        guard batch.origin == .quarantine else {
            return try quarantine(rows, of: index, generation: batch.generation)
        }
        for (row, refusal) in rows {
            try database.refuseAgain(row.seq, of: ledger.endpoints[index].id, refusal, generation: batch.generation)
        }
    }

    /// Rows of the queue that are not to be sent; a full quarantine gives up its oldest for them.
    ///
    /// - Parameter generation: under which they went out; 0 = never.
    mutating func quarantine(
        _ rows: [(row: QueuedLocation, refusal: Refusal)], of index: Int, generation: Int
    ) throws(OutboxError) {
        guard !rows.isEmpty else { return }
        let endpoint = ledger.endpoints[index]
        var count = endpoint.quarantine
        for (row, refusal) in rows {
            // Of a commit that was stored although it failed.
            if let former = try database.quarantined(row.seq, of: endpoint.id) {
                count.records -= 1
                count.bytes -= former.size
                if former.isRetried { count.retrying = max(0, count.retrying - 1) }
            }
            let size = try withRow(row) { (self) throws(OutboxError) -> Int? in
                let size = try self.database.quarantine(row.seq, of: endpoint, refusal, generation: generation)
                try self.database.pairQuarantined(row.seq, of: endpoint.id)
                return size
            }
            guard let size else { continue }
            count.records += 1
            count.bytes += size
        }
        while count.records > Quarantine.recordsMax || count.bytes > Quarantine.bytesMax {
            guard let (size, wasRetried) = try database.dropOldestQuarantined(of: endpoint.id) else { break }
            count.records -= 1
            count.bytes -= size
            if wasRetried { count.retrying = max(0, count.retrying - 1) }
            ledger.endpoints[index].count(unsent: "overflow")
        }
        ledger.endpoints[index].quarantine = count
    }

    /// Rows of a batch that is being formed whose ENTER is in quarantine.
    func brokenPairs(in batch: BatchRow, of index: Int) throws(OutboxError) -> [Int64] {
        let endpoint = ledger.endpoints[index]
        guard endpoint.quarantine.records > 0, batch.origin == .queue, memory == nil else { return [] }
        var broken: [Int64] = []
        for seq in try database.exits(from: batch.first, through: batch.last) {
            if let picked = batch.picked, !picked.contains(seq) { continue }
            if try database.pair(exit: seq, of: endpoint.id) { broken.append(seq) }
        }
        return broken
    }

    /// What is recorded while another device has the asset goes where its rule says.
    mutating func settleTaken() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            let endpoint = ledger.endpoints[index]
            guard endpoint.state == .taken, endpoint.removedAt == nil, endpoint.holdsRows else { continue }
            let batches = endpoint.batches.filter { $0.origin == .queue }.map { id(of: $0, endpoint) }
            switch endpoint.settings.onCollision {
            case .keep: continue
            case .clear: try dropUnsent(of: index, through: ledger.lastSeq)
            case .quarantine:
                guard memory == nil, fitsQuarantine(endpoint) else { continue }
                try quarantineUnsent(of: index, Refusal(reason: "collision"))
            }
            // Whoever sends them has to hear of it: nobody has ordered this.
            dissolved += batches
        }
    }

    func fitsQuarantine(_ endpoint: Ledger.Endpoint, refusalSize: Int = 0) -> Bool {
        let rows = endpoint.unsent
        return endpoint.quarantine.records + rows <= Quarantine.recordsMax
            && endpoint.quarantine.bytes + rows * (Quarantine.recordSize + refusalSize) <= Quarantine.bytesMax
    }

    mutating func quarantineUnsent(of index: Int, _ refusal: Refusal) throws(OutboxError) {
        for batch in ledger.endpoints[index].batches where batch.origin == .queue {
            let rows = try rows(of: batch, ledger.endpoints[index])
            try remove(batch, from: index)
            try quarantine(rows.map { ($0, refusal) }, of: index, generation: batch.generation)
        }
        let start = ledger.endpoints[index].formed
        let rows = try waitingRows(of: index, after: start, limit: Quarantine.recordsMax + 1)
        try quarantine(rows.map { ($0, refusal) }, of: index, generation: 0)
        passUnsent(of: index, through: ledger.lastSeq, waiting: 0)
    }

    /// - Returns: how many rows were given up.
    @discardableResult
    mutating func dropUnsent(of index: Int, through last: Int64) throws(OutboxError) -> Int {
        var dropped = 0
        for batch in ledger.endpoints[index].batches where batch.origin == .queue {
            dropped += batch.rows
            try remove(batch, from: index)
        }
        let endpoint = ledger.endpoints[index]
        let passed =
            last >= ledger.lastSeq
            ? endpoint.waiting
            : try database.count(of: endpoint, after: endpoint.formed, through: last)
        dropped += passed
        ledger.endpoints[index].count(unsent: "dropped", dropped)
        passUnsent(of: index, through: last, waiting: endpoint.waiting - passed)
        return dropped
    }

    private mutating func passUnsent(of index: Int, through last: Int64, waiting: Int) {
        ledger.endpoints[index].formed = max(ledger.endpoints[index].formed, last)
        ledger.endpoints[index].waiting = max(0, waiting)
        ledger.endpoints[index].oldest = .unknown
        ledger.droppableFrom = 0
        needsCounts = true
    }
}
