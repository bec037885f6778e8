import Delivery
import Positioning

extension Transaction {
    /// Removes the oldest rows above the limits: plain fixes and heartbeats first, then events, never rows in flight.
    mutating func enforceLimits() throws(OutboxError) -> DropCounts {
        var excess = settings.maxRecords.map { ledger.rows - max(0, $0) } ?? 0
        if let limit = settings.maxBytes { excess = max(excess, try rowsAbove(bytes: limit)) }
        guard excess > 0 else { return DropCounts() }
        var dropped = DropCounts()
        dropped.oldest = try drop(excess, "seq >= \(ledger.droppableFrom) AND event < \(Record.firstLastingEvent)")
        if dropped.oldest < excess {
            ledger.droppableFrom = ledger.lastSeq + 1
            dropped.events = try drop(excess - dropped.oldest, "event >= \(Record.firstLastingEvent)")
        }
        return dropped
    }

    /// About how many rows make up what is above the limit; free pages inside the file count as available.
    private func rowsAbove(bytes limit: Int64) throws(OutboxError) -> Int {
        let live = try database.liveBytes()
        guard live > limit, ledger.rows > 0 else { return 0 }
        return Int((Double(ledger.rows) * Double(live - limit) / Double(live)).rounded(.up))
    }

    private mutating func drop(_ count: Int, _ condition: String) throws(OutboxError) -> Int {
        let delete = try database.connection.prepare(
            """
            DELETE FROM location WHERE seq IN (
                SELECT seq FROM location WHERE \(condition) AND NOT EXISTS (
                    SELECT 1 FROM batch WHERE origin = 0 AND (seq = newest_seq
                        OR seq BETWEEN first AND last AND (published = 1 OR feed = 1)))
                ORDER BY seq LIMIT \(count))
            RETURNING seq, published, flags
            """)
        var dropped = 0
        var withDetails: [Int64] = []
        while try delete.step() {
            let seq = delete.integer(0) ?? 0
            ledger.dropped(seq: seq, published: delete.integer(1) == 1)
            ledger.droppableFrom = max(ledger.droppableFrom, seq)
            if Record.hasDetails(flags: delete.integer(2) ?? 0) { withDetails.append(seq) }
            dropped += 1
        }
        for seq in withDetails {
            try database.connection.execute("DELETE FROM geofence WHERE seq = \(seq)")
            try database.connection.execute("DELETE FROM trip WHERE seq = \(seq)")
        }
        return dropped
    }
}
