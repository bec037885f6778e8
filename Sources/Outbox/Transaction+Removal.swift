import Delivery

extension Transaction {
    /// So many rows at most are removed in one commit, which bounds what a commit writes to the log.
    static let removalLimit = 5000

    mutating func removeDelivered() throws(OutboxError) {
        var budget = Self.removalLimit
        // Again after each step: what left may have been all that held the next rows back.
        while budget > 0 {
            try findOldest()
            guard let removable = ledger.removableThrough(), removable >= ledger.firstSeq else { return }
            let last = try lastToRemove(through: removable, limit: budget)
            try skip(through: last)
            try database.deleteThrough.run(last)
            let removed = database.connection.changes
            budget -= removed
            ledger.rows -= removed
            try database.deleteGeofencesThrough.run(last)
            try database.deleteTripsThrough.run(last)
            ledger.firstSeq = last + 1
        }
    }

    /// The last of so many rows, or the last number where there are not more.
    private func lastToRemove(through last: Int64, limit: Int) throws(OutboxError) -> Int64 {
        // Numbers leap at a boot, so their difference only bounds the number of rows.
        if last - ledger.firstSeq < limit { return last }
        return try database.connection.integer(
            """
            SELECT seq FROM location WHERE seq BETWEEN \(ledger.firstSeq) AND \(last)
            ORDER BY seq LIMIT 1 OFFSET \(limit - 1)
            """) ?? last
    }

    /// Takes rows that leave out of the counts of those who do not hold them back and have not had them yet.
    private mutating func skip(through last: Int64) throws(OutboxError) {
        for index in ledger.endpoints.indices {
            guard case .row(let seq, _) = ledger.endpoints[index].oldest, seq <= last else { continue }
            let endpoint = ledger.endpoints[index]
            ledger.endpoints[index].waiting -= try database.count(of: endpoint, after: endpoint.formed, through: last)
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
