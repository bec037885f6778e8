import Delivery
import WaypostCore

/// Keeps the queue within its limits: plain fixes and heartbeats go first, then events, never rows in flight.
struct LimitEnforcement {
    let queue: Transaction

    private static let agesInterval = Duration.seconds(60)
    /// Wrongly dated rows among old ones do not protect those after them; more than this many end the search.
    private static let youngRowsMax = 64

    func enforce(_ commit: Commit) throws(OutboxError) -> DropCounts {
        var dropped = DropCounts()
        dropped.expired = try expire(commit.ages)
        if dropped.expired > 0 { queue.ledger.retention.reached = .maxAge }
        let limit = try rowLimit()
        if queue.settings.onFull == .thin { dropped.thinned = try QueueThinning(queue: queue).thin(to: limit?.rows) }
        guard let limit, queue.ledger.rows > limit.rows else { return dropped }
        dropped += try makeRoom(min(queue.ledger.rows - limit.rows, RowRemoval.limit + commit.rows.count))
        queue.ledger.retention.reached = limit.of
        return dropped
    }

    /// Removes about this many rows for lack of room: first what no required endpoint waits for.
    func makeRoom(_ count: Int) throws(OutboxError) -> DropCounts {
        var dropped = DropCounts()
        let before = queue.ledger.rows
        try RowRemoval(queue: queue).removeOptional(count)
        var left = count - (before - queue.ledger.rows)
        guard left > 0 else { return dropped }
        let dropping = RowDropping(queue: queue)
        if queue.settings.onFull == .dropNewest { dropped.newest = try dropping.drop(.plain, &left, newest: true) }
        dropped.oldest = try dropping.drop(.plain, &left)
        _ = try dropping.drop(.gaps, &left)
        dropped.events = try dropping.drop(.events, &left)
        dropped.events += try dropping.drop(.anything, &left)
        return dropped
    }

    /// How many rows the limits leave room for, and which of them is the narrowest; nil = any number. Free pages inside the
    /// file count as available.
    private func rowLimit() throws(OutboxError) -> (rows: Int, of: QueueLimit)? {
        let settings = queue.settings
        let bytes = try queue.database.usage()
        queue.ledger.retention.checkSpace(
            of: settings.path, on: queue.database.connection.medium, minFree: settings.minFree, fileBytes: bytes.file,
            freeBytes: bytes.file - bytes.live)
        var limit = queue.ledger.retention.spaceLimit.map { (bytes: $0, of: QueueLimit.minFree) }
        if let maxBytes = settings.maxBytes {
            let own = maxBytes - min(bytes.log, maxBytes / 4)
            if own < limit?.bytes ?? .max { limit = (own, .maxBytes) }
        }
        var rows = settings.maxRecords.map { (rows: max(0, $0), of: QueueLimit.maxRecords) }
        if let limit, bytes.live > limit.bytes {
            let fitting = Int(Double(queue.ledger.rows) * Double(max(0, limit.bytes)) / Double(bytes.live))
            if fitting < rows?.rows ?? .max { rows = (fitting, limit.of) }
        }
        return rows
    }

    private func expire(_ reference: AgeReference?) throws(OutboxError) -> Int {
        guard let reference, let maxAge = queue.settings.maxAge else { return 0 }
        if let checked = queue.ledger.retention.agesCheckedAt, reference.now < checked + Self.agesInterval { return 0 }
        queue.ledger.retention.agesCheckedAt = reference.now
        let ages = RowAges(reference, queue.ledger.recorded)
        guard try mayHoldRows(olderThan: maxAge, ages) else { return 0 }
        // Whatever the clocks say, one check never removes more than half.
        var left = min(RowRemoval.limit, queue.ledger.rows / 2)
        var young = 0
        return try RowDropping(queue: queue).drop(.plain, &left, windows: 1) { row in
            guard young < Self.youngRowsMax else { return false }
            if ages.isOlder(seq: row.seq, time: row.time.milliseconds, receivedMs: row.receivedMs, than: maxAge) {
                return true
            }
            young += 1
            return false
        }
    }

    /// A cheap test whether any row may be too old. Of rows whose age only their date gives, it looks at the first:
    /// those in flight, and as many more as a search would pass over.
    private func mayHoldRows(olderThan age: Duration, _ ages: RowAges) throws(OutboxError) -> Bool {
        let from = queue.ledger.droppableFrom
        if ages.isAnyOlder(from: max(from, queue.ledger.firstSeq), than: age) { return true }
        guard let dated = ages.dated(than: age), dated.through >= from else { return false }
        let inFlight = queue.ledger.endpoints.reduce(into: Int64(0)) { sum, endpoint in
            for batch in endpoint.batches {
                sum = min(sum + batch.last - batch.first + 2, Int64(RowDropping.windowRows))
            }
        }
        let first = try queue.database.rows.rows(
            RowRange(from, dated.through), limit: Self.youngRowsMax + Int(inFlight))
        return first.contains { $0.time.milliseconds < dated.before }
    }
}
