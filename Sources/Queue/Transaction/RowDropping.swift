import Profiles
import WaypostCore

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
            var rows = newest ? try newestRows(through: from, count) : try self.rows(from: from, count)
            if rows.isEmpty { break }
            let isLast = rows.count < count
            // Just before them there may be a gap record that grows.
            if !newest { rows = try newestRows(through: from - 1, 8) + rows }
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

    /// The oldest rows of a range, oldest first.
    func rows(from first: Int64, through last: Int64 = .max, _ count: Int) throws(OutboxError) -> [RetentionWindow.Row]
    {
        try windowRows(try queue.database.rows.rows(RowRange(first, last), limit: count))
    }

    /// The newest rows up to a number, oldest first.
    private func newestRows(through last: Int64, _ count: Int) throws(OutboxError) -> [RetentionWindow.Row] {
        try windowRows(try queue.database.rows.newest(RowRange(0, last), limit: count).reversed())
    }

    private func windowRows(_ rows: [StoredRow]) throws(OutboxError) -> [RetentionWindow.Row] {
        guard !rows.isEmpty else { return [] }
        // As the table has them: a handover writes them before the ledger has them.
        let batches = try queue.database.connection.rows(
            "SELECT first, last, newest_seq, feed FROM batch WHERE origin = \(BatchRow.Origin.queue.rawValue)"
        ) { (first: $0.integer(0), last: $0.integer(1), newest: $0.optionalInteger(2), isEngine: $0.integer(3) == 1) }
        let gap = queue.ledger.names.reasons[RetentionWindow.reason]
        return rows.map { row in
            RetentionWindow.Row(
                seq: row.seq, trackable: row[.trackable], time: row.time, receivedMs: row.receivedMs,
                coordinate: row.coordinate, published: row.isPublished, isLasting: row.isLasting,
                isGap: row.isGap(reason: gap), hasDetails: row.hasDetails,
                inFlight: batches.contains { batch in
                    row.seq == batch.newest
                        || batch.first <= row.seq && row.seq <= batch.last && (row.isPublished || batch.isEngine)
                })
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
        for row in window.gaps { queue.newest[row.seq] = nil }
        try change(window.gaps) { row in
            var gap = row
            gap.becomeGap(reason: reason)
            return .replacement(gap)
        }
    }

    /// - Parameter rows: in the order of their numbers.
    func delete(_ rows: [RetentionWindow.Row]) throws(OutboxError) {
        try change(rows) { _ in .removal }
        for row in rows { queue.ledger.dropped(seq: row.seq, published: row.published) }
    }

    /// Changes these rows, and removes what they have in tables of their own.
    private func change(_ rows: [RetentionWindow.Row], _ work: (StoredRow) -> RowChange) throws(OutboxError) {
        let seqs = Set(rows.map(\.seq))
        guard let first = seqs.min(), let last = seqs.max() else { return }
        try queue.database.rows.change(RowRange(first, last)) { seqs.contains($0.seq) ? work($0) : .none }
        try queue.database.removeDetails(of: rows.lazy.filter(\.hasDetails).map(\.seq))
    }
}

extension Ledger.Endpoint {
    /// Whether a row that waits was perhaps sent before, in a batch that was dissolved: it must not come back as another.
    fileprivate func mayHaveSent(seq: Int64) -> Bool { formed < seq && seq <= regeneratedThrough }
}
