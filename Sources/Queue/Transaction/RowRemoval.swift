import Profiles

/// Removes rows from the beginning of the queue.
struct RowRemoval {
    let queue: Transaction

    /// Most rows that are removed in one commit, which bounds what a commit writes to the log.
    static let limit = 5000

    /// Removes rows that are finished for every endpoint that keeps them.
    func removeDelivered() throws(OutboxError) {
        var budget = Self.limit
        // Again after each step: what was removed may have been all that held the next rows back.
        while budget > 0 {
            try queue.findOldest()
            guard let last = try removable(limit: budget) else { return }
            budget -= try remove(through: last)
        }
    }

    /// Removes the oldest rows that only optional endpoints and those that are no longer configured wait for, because room is
    /// needed.
    func removeOptional(_ count: Int) throws(OutboxError) {
        guard count > 0 else { return }
        try queue.findOldest()
        guard let last = try removable(limit: count, isShort: true) else { return }
        _ = try remove(through: last)
        queue.needsCounts = true
    }

    /// The last of the rows that may be removed; nil = none may.
    private func removable(limit: Int, isShort: Bool = false) throws(OutboxError) -> Int64? {
        let first = queue.ledger.firstSeq
        guard let last = queue.ledger.removableThrough(isShort: isShort), last >= first else { return nil }
        // Numbers leap at a boot, so their difference only bounds the number of rows.
        if last - first < limit { return last }
        return try queue.database.rows.seq(at: limit - 1, of: RowRange(first, last)) ?? last
    }

    /// Removes rows with the batches in flight of the endpoints that do not keep them.
    ///
    /// - Returns: how many rows were removed.
    private func remove(through last: Int64) throws(OutboxError) -> Int {
        for index in queue.ledger.endpoints.indices { try dissolve(through: last, of: index) }
        try skip(through: last)
        let removed = try queue.database.removeRows(through: last)
        queue.ledger.rows -= removed
        queue.ledger.firstSeq = last + 1
        queue.memory?.removed += removed
        return removed
    }

    /// Gives up batches that lose rows. None of their rows is sent again: it is not known what the server has of them.
    private func dissolve(through last: Int64, of index: Int) throws(OutboxError) {
        for batch in queue[index].batches where batch.origin == .queue && batch.first <= last {
            queue.dissolved.append(queue.id(of: batch, queue[index]))
            try queue.remove(batch, from: index)
            queue.ledger.droppableFrom = 0
            queue[index].count(unsent: Ledger.Endpoint.evicted, batch.rows)
        }
    }

    /// Subtracts removed rows from the counts of the endpoints that do not keep them and have not had them yet.
    private func skip(through last: Int64) throws(OutboxError) {
        for index in queue.ledger.endpoints.indices {
            let endpoint = queue[index]
            switch endpoint.oldest {
            case .none: continue
            case .row(let seq, _) where seq > last: continue
            case .row, .unknown: break
            }
            let start = max(endpoint.formed, queue.ledger.base)
            let rows = try queue.database.count(of: endpoint, after: start, through: last)
            queue[index].waiting -= rows
            queue[index].count(unsent: Ledger.Endpoint.evicted, rows)
            queue[index].oldest = .unknown
        }
    }
}
