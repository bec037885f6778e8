import Delivery

extension Transaction {
    /// So many rows at most are removed in one commit, which bounds what a commit writes to the log.
    static let removalLimit = 5000

    /// Removes rows that all have who keep them.
    mutating func removeDelivered() throws(OutboxError) {
        var budget = Self.removalLimit
        // Again after each step: what left may have been all that held the next rows back.
        while budget > 0 {
            try findOldest()
            guard let removable = ledger.removableThrough(), removable >= ledger.firstSeq else { return }
            budget -= try remove(through: try lastToRemove(through: removable, limit: budget))
        }
    }

    /// Removes the oldest rows that only optional endpoints and those that are no longer configured wait for, because room is
    /// needed.
    mutating func removeOptional(_ count: Int) throws(OutboxError) {
        guard count > 0 else { return }
        try findOldest()
        guard let removable = ledger.removableThrough(isShort: true), removable >= ledger.firstSeq else { return }
        let last = try lastToRemove(through: removable, limit: count)
        _ = try remove(through: last)
        needsCounts = true
    }

    /// Batches that lose rows are no more. None of their rows is sent again: it is not known what the server has of them.
    private mutating func dissolve(through last: Int64, of index: Int) throws(OutboxError) {
        for batch in ledger.endpoints[index].batches where batch.origin == .queue && batch.first <= last {
            dissolved.append(id(of: batch, ledger.endpoints[index]))
            try remove(batch, from: index)
            ledger.droppableFrom = 0
            ledger.endpoints[index].count(unsent: Ledger.Endpoint.evicted, batch.rows)
        }
    }

    /// Removes them with the batches in flight of those who do not keep them.
    ///
    /// - Returns: how many rows were removed.
    private mutating func remove(through last: Int64) throws(OutboxError) -> Int {
        for index in ledger.endpoints.indices { try dissolve(through: last, of: index) }
        try skip(through: last)
        try database.deleteThrough.run(last)
        let removed = database.connection.changes
        ledger.rows -= removed
        try database.deleteGeofencesThrough.run(last)
        try database.deleteTripsThrough.run(last)
        ledger.firstSeq = last + 1
        memory?.removed += removed
        return removed
    }

    /// The last of so many rows, or the last number where there are not more.
    private func lastToRemove(through last: Int64, limit: Int) throws(OutboxError) -> Int64 {
        // Numbers leap at a boot, so their difference only bounds the number of rows.
        if last - ledger.firstSeq < limit { return last }
        return try database.connection.optionalInteger(
            """
            SELECT seq FROM location WHERE seq BETWEEN \(ledger.firstSeq) AND \(last)
            ORDER BY seq LIMIT 1 OFFSET \(limit - 1)
            """) ?? last
    }

    /// Takes rows that leave out of the counts of those who do not keep them and have not had them yet.
    private mutating func skip(through last: Int64) throws(OutboxError) {
        for index in ledger.endpoints.indices {
            let endpoint = ledger.endpoints[index]
            switch endpoint.oldest {
            case .none: continue
            case .row(let seq, _) where seq > last: continue
            case .row, .unknown: break
            }
            let rows = try database.count(of: endpoint, after: max(endpoint.formed, ledger.base), through: last)
            ledger.endpoints[index].waiting -= rows
            ledger.endpoints[index].count(unsent: Ledger.Endpoint.evicted, rows)
            ledger.endpoints[index].oldest = .unknown
        }
    }

    mutating func findOldest() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            guard case .unknown = ledger.endpoints[index].oldest else { continue }
            ledger.endpoints[index].oldest = try database.oldestRow(of: ledger.endpoints[index])
        }
    }
}
