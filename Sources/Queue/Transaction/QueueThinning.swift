import Delivery
import WaypostCore

/// Removes plain fixes between others until a tenth of what the limits leave is free, some with each commit.
struct QueueThinning {
    let queue: Transaction

    /// Rows that are thinned in one commit.
    private static let rowsMax = 4096
    /// New rows after which thinning goes on at the coarsest bound.
    private static let coarsestInterval: Int64 = 1000

    /// Rows that only optional endpoints wait for are made coarse, and removed, before a required one loses any.
    ///
    /// - Returns: rows that were removed.
    func thin(to limit: Int?) throws(OutboxError) -> Int {
        // The level falls again only when all that it made coarse has been removed, or errors would add up beyond it.
        if queue.ledger.retention.thinLevel > 0,
            queue.ledger.rows == 0 || queue.ledger.firstSeq > queue.ledger.retention.coarseThrough
        {
            try begin(at: 0)
        }
        guard let limit else { return 0 }
        if queue.ledger.rows > limit { queue.ledger.retention.isThinning = true }
        guard queue.ledger.retention.isThinning else { return 0 }
        try queue.findOldest()
        let optional = queue.ledger.removableThrough(isShort: true).flatMap { $0 >= queue.ledger.firstSeq ? $0 : nil }
        let through = optional ?? queue.ledger.lastSeq
        var removed = 0
        var read = 0
        while queue.ledger.rows > limit - limit / 10 {
            // The limit holds after each commit, so above it a whole pass may be needed; otherwise a part of one does.
            guard read < (queue.ledger.rows > limit ? 4 : 1) * Self.rowsMax else { return removed }
            if queue.ledger.retention.thinLevel == 0 { try begin(at: 1) }
            let level = queue.ledger.retention.thinLevel
            let coarsest = TrackThinning.isCoarsest(level: level, bound: queue.settings.bound)
            let from = queue.ledger.retention.thinnedThrough + 1
            if coarsest, through - from < Self.coarsestInterval { return removed }
            let rows = try RowDropping(queue: queue).rows(from: from, through: through, Self.rowsMax)
            read += max(1, rows.count)
            removed += try thin(rows, tolerance: TrackThinning.tolerance(level: level, bound: queue.settings.bound))
            guard let last = rows.last else {
                if coarsest {
                    queue.ledger.retention.thinnedThrough = through
                    return removed
                }
                // Also what came since this pass began is as coarse as it makes it.
                try begin(at: level + 1)
                continue
            }
            queue.ledger.retention.thinnedThrough = last.seq
            queue.ledger.retention.coarseThrough = max(queue.ledger.retention.coarseThrough, last.seq)
            try queue.database.store(.thinned, queue.ledger.retention.stored)
        }
        queue.ledger.retention.isThinning = false
        return removed
    }

    private func begin(at level: Int) throws(OutboxError) {
        if level == 0 {
            queue.ledger.retention.isThinning = false
            queue.ledger.retention.coarseThrough = 0
        }
        queue.ledger.retention.thinLevel = level
        queue.ledger.retention.thinnedThrough = 0
        try queue.database.store(.thinned, queue.ledger.retention.stored)
    }

    private func thin(_ rows: [RetentionWindow.Row], tolerance: Double) throws(OutboxError) -> Int {
        var tracks: [Int64?: [Int]] = [:]
        for index in rows.indices { tracks[rows[index].trackable, default: []].append(index) }
        var removed: [Int] = []
        for track in tracks.values {
            let points = track.map { index in
                TrackThinning.Point(
                    time: rows[index].time, coordinate: rows[index].coordinate,
                    isFixed: rows[index].isLasting || rows[index].inFlight)
            }
            removed += TrackThinning.superfluous(points, tolerance: tolerance).map { track[$0] }
        }
        try RowDropping(queue: queue).delete(removed.sorted().map { rows[$0] })
        return removed.count
    }
}
