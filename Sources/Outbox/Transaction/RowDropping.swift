import Delivery
import Positioning

/// Drops rows out of the middle of the queue, and leaves gap records in their place: see `RetentionWindow`.
struct RowDropping {
    let queue: Transaction

    /// Most rows that are read at a time, so that a commit stays short however many wait.
    static let windowRows = 8192

    /// - Parameter left: how many rows to remove; reduced by those removed.
    /// - Returns: rows whose content is lost. Some of them leave a gap record behind.
    func drop(
        _ kind: RetentionWindow.Kind, _ left: inout Int, newest: Bool = false, windows: Int = 3,
        where isCandidate: (RetentionWindow.Row) -> Bool = { _ in true }
    ) throws(OutboxError) -> Int {
        var lost = 0
        let endpoints = queue.ledger.endpoints
        // Only such a search is continued by the next commit.
        let isContinued = kind == .plain && !newest && windows > 1
        var from = newest ? Int64.max : kind == .plain ? queue.ledger.droppableFrom : 0
        for _ in 0..<windows where left > 0 {
            let count = min(Self.windowRows, max(256, 2 * left))
            var rows = try self.rows(newest ? "seq <= \(from) ORDER BY seq DESC" : "seq >= \(from) ORDER BY seq", count)
            if rows.isEmpty { break }
            let isLast = rows.count < count
            if newest {
                rows.reverse()
            } else {
                // Just before them there may be a gap record that grows.
                rows = try self.rows("seq < \(from) ORDER BY seq DESC", 8).reversed() + rows
            }
            if kind == .events { try readCrossings(of: &rows) }
            var window = RetentionWindow(rows) { seq in endpoints.contains { $0.mayHaveSent(seq: seq) } }
            window.drop(kind, &left, newest: newest, where: isCandidate)
            try apply(window)
            lost += window.lost
            from = newest ? rows[0].seq - 1 : rows[rows.count - 1].seq + 1
            // Once rows in flight are finished, the search starts from the beginning.
            if isContinued, let seen = window.seenThrough {
                queue.ledger.droppableFrom = max(queue.ledger.droppableFrom, seen)
            }
            if isLast {
                if isContinued, left > 0 { queue.ledger.droppableFrom = queue.ledger.lastSeq + 1 }
                break
            }
        }
        return lost
    }

    func rows(_ range: String, _ count: Int) throws(OutboxError) -> [RetentionWindow.Row] {
        let gap = queue.ledger.names.reasons[RetentionWindow.reason] ?? -1
        return try queue.database.connection.rows(
            """
            SELECT seq, trackable, time_ms, lat_e7, lon_e7, published, event, flags, reason, EXISTS (
                SELECT 1 FROM batch WHERE origin = 0 AND (seq = newest_seq
                    OR seq BETWEEN first AND last AND (published = 1 OR feed = 1))),
                received_delta_ms
            FROM location WHERE \(range) LIMIT \(count)
            """
        ) { row in
            let time = row.integer(2)
            let event = row.integer(6)
            return RetentionWindow.Row(
                seq: row.integer(0), trackable: row.optionalInteger(1), time: time,
                receivedMs: row.optionalInteger(10).map { $0 &+ time },
                coordinate: Coordinate(
                    latitudeE7: Int32(clamping: row.integer(3)), longitudeE7: Int32(clamping: row.integer(4))),
                published: row.integer(5) == 1, isLasting: event >= Record.firstLastingEvent,
                isGap: event == Record.number(of: .gap) && row.integer(8) == gap,
                hasDetails: Record.hasDetails(flags: row.integer(7)), inFlight: row.integer(9) == 1)
        }
    }

    private func readCrossings(of rows: inout [RetentionWindow.Row]) throws(OutboxError) {
        let select = try queue.database.connection.prepare("SELECT fence, action FROM geofence WHERE seq = ?")
        for index in rows.indices where rows[index].hasDetails {
            select.bind(1, rows[index].seq)
            if try select.step(), let fence = select.optionalText(0) {
                let action = Int(clamping: select.integer(1))
                if Record.actions.indices.contains(action), Record.actions[action] != .dwell {
                    rows[index].crossing = (fence, Record.actions[action] == .enter)
                }
            }
            select.reset()
        }
    }

    private func apply(_ window: RetentionWindow) throws(OutboxError) {
        try delete(window.removed)
        guard !window.gaps.isEmpty else { return }
        let reason = try queue.database.number(of: RetentionWindow.reason, in: &queue.ledger.names.reasons)
        let connection = queue.database.connection
        let update = try connection.prepare("UPDATE location SET event = ?2, reason = ?3, flags = ?4 WHERE seq = ?1")
        let flags = try connection.prepare("SELECT flags FROM location WHERE seq = ?")
        for row in window.gaps {
            queue.newest[row.seq] = nil
            flags.bind(1, row.seq)
            let old = try flags.step() ? flags.integer(0) : 0
            flags.reset()
            try update.run(row.seq, Record.number(of: .gap), reason, Record.withoutDetails(flags: old))
            try removeDetails(row)
        }
    }

    func delete(_ rows: some Sequence<RetentionWindow.Row>) throws(OutboxError) {
        let delete = try queue.database.connection.prepare("DELETE FROM location WHERE seq = ?")
        for row in rows {
            try delete.run(row.seq)
            queue.ledger.dropped(seq: row.seq, published: row.published)
            try removeDetails(row)
        }
    }

    private func removeDetails(_ row: RetentionWindow.Row) throws(OutboxError) {
        guard row.hasDetails else { return }
        for table in Record.detailTables {
            try queue.database.connection.execute("DELETE FROM \(table) WHERE seq = \(row.seq)")
        }
    }
}

extension Ledger.Endpoint {
    /// Whether a row that waits was perhaps sent before, in a batch that was dissolved: it must not come back as another.
    fileprivate func mayHaveSent(seq: Int64) -> Bool { formed < seq && seq <= regeneratedThrough }
}
