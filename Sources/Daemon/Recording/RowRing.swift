import Profiles
import Queue
import WaypostCore

/// Rows that wait for the next commit, oldest first, up to a bound: a disk may be busy with the last one for long.
struct RowRing {
    private(set) var rows: [NewRow] = []
    /// Rows that were given up for want of memory.
    private(set) var dropped = 0

    var count: Int { rows.count }
    var isEmpty: Bool { rows.isEmpty }

    mutating func append(_ row: consuming NewRow) { rows.append(row) }

    mutating func takeAll() -> [NewRow] {
        let taken = rows
        rows = []
        // As many are likely to come again, and an array that grows moves them.
        rows.reserveCapacity(min(taken.count, 1024))
        return taken
    }

    /// Rows that a commit did not store, ahead of those that came since.
    mutating func putBack(_ earlier: [NewRow]) { rows = earlier + rows }

    /// Drops rows beyond the bound as the queue would: plain fixes before events.
    mutating func limit(to count: Int, onFull: OutboxSettings.OnFull) {
        while rows.count > max(1, count) {
            func isPlain(_ row: NewRow) -> Bool { row.location.event.isPlain }
            let index = onFull == .dropNewest ? rows.lastIndex(where: isPlain) : rows.firstIndex(where: isPlain)
            rows.remove(at: index ?? 0)
            dropped += 1
        }
    }

    func count(for endpoint: EndpointSettings) -> Int {
        if endpoint.feed == .engine { return rows.count }
        // By index: a row that is iterated over is copied.
        var count = 0
        for index in rows.indices where rows[index].location.published { count += 1 }
        return count
    }
}
