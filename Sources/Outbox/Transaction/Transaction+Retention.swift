import Delivery
import Positioning

/// Keeping within the limits: plain fixes and heartbeats go first, then events, never rows in flight.
extension Transaction {
    /// So many rows are looked at in one commit, so that it stays short whatever waits.
    private static let windowRows = 8192
    /// Ages are looked at again after this.
    private static let agesPause = Duration.seconds(60)
    /// Rows of a wrong time between old ones do not keep those behind them; more than this many end the search.
    private static let youngRowsMax = 64

    mutating func enforceLimits(_ commit: Commit) throws(OutboxError) -> DropCounts {
        var dropped = DropCounts()
        dropped.expired = try expire(commit.ages)
        let limit = try rowLimit()
        if settings.onFull == .thin { dropped.thinned = try thin(to: limit) }
        guard let limit, ledger.rows > limit else { return dropped }
        dropped += try makeRoom(min(ledger.rows - limit, Self.removalLimit + commit.rows.count))
        return dropped
    }

    /// Removes about this many rows for want of room: first what no required endpoint waits for.
    mutating func makeRoom(_ count: Int) throws(OutboxError) -> DropCounts {
        var dropped = DropCounts()
        let before = ledger.rows
        try removeOptional(count)
        var left = count - (before - ledger.rows)
        guard left > 0 else { return dropped }
        if settings.onFull == .dropNewest { dropped.newest = try drop(.plain, &left, newest: true) }
        dropped.oldest = try drop(.plain, &left)
        _ = try drop(.gaps, &left)
        dropped.events = try drop(.events, &left)
        dropped.events += try drop(.anything, &left)
        return dropped
    }

    /// How many rows the limits leave room for; nil = any number. Free pages inside the file count as available.
    private mutating func rowLimit() throws(OutboxError) -> Int? {
        let bytes = try database.usage()
        ledger.retention.lookAtSpace(
            of: settings.path, on: database.connection.medium, minFree: settings.minFree, fileBytes: bytes.file,
            freeBytes: bytes.file - bytes.live)
        var limit = ledger.retention.spaceLimit
        if let maxBytes = settings.maxBytes {
            limit = min(limit ?? .max, maxBytes - min(bytes.log, maxBytes / 4))
        }
        var rows = settings.maxRecords.map { max(0, $0) }
        if let limit, bytes.live > limit {
            let fitting = Double(ledger.rows) * Double(max(0, limit)) / Double(bytes.live)
            rows = min(rows ?? .max, Int(fitting))
        }
        return rows
    }
}

// Removing rows, and leaving a record of it.
extension Transaction {
    private mutating func expire(_ reference: AgeReference?) throws(OutboxError) -> Int {
        guard let reference, let maxAge = settings.maxAge else { return 0 }
        if let looked = ledger.retention.agesLookedAt, reference.now < looked + Self.agesPause { return 0 }
        ledger.retention.agesLookedAt = reference.now
        let ages = RowAges(reference, ledger.recorded)
        guard try mayHoldRows(olderThan: maxAge, ages) else { return 0 }
        // Whatever the clocks say, one look never takes more than half.
        var left = min(Self.removalLimit, ledger.rows / 2)
        var young = 0
        return try drop(.plain, &left, windows: 1) { row in
            guard young < Self.youngRowsMax else { return false }
            if ages.isOlder(seq: row.seq, time: row.time, receivedMs: row.receivedMs, than: maxAge) { return true }
            young += 1
            return false
        }
    }

    /// Whether rows may be too old: mostly not, and then none is worth a closer look. Of those that only dates tell, the
    /// first are asked, those in flight and as many as a search for old ones would pass.
    private func mayHoldRows(olderThan age: Duration, _ ages: RowAges) throws(OutboxError) -> Bool {
        if ages.isAnyOlder(from: max(ledger.droppableFrom, ledger.firstSeq), than: age) { return true }
        guard let dated = ages.dated(than: age), dated.through >= ledger.droppableFrom else { return false }
        let inFlight = ledger.endpoints.reduce(into: Int64(0)) { sum, endpoint in
            for batch in endpoint.batches { sum = min(sum + batch.last - batch.first + 2, Int64(Self.windowRows)) }
        }
        let first = """
            SELECT time_ms FROM location WHERE seq BETWEEN \(ledger.droppableFrom) AND \(dated.through) ORDER BY seq
            LIMIT \(Int64(Self.youngRowsMax) + inFlight)
            """
        return try database.connection.optionalInteger(
            "SELECT 1 FROM (\(first)) WHERE time_ms < \(dated.before) LIMIT 1")
            != nil
    }

    /// - Parameter left: rows that are to go; less those that went when it returns.
    /// - Returns: rows whose content is lost. Some of them leave a gap record behind.
    private mutating func drop(
        _ kind: RetentionWindow.Kind, _ left: inout Int, newest: Bool = false, windows: Int = 3,
        where isCandidate: (RetentionWindow.Row) -> Bool = { _ in true }
    ) throws(OutboxError) -> Int {
        var lost = 0
        let endpoints = ledger.endpoints
        let lookingForPlain = kind == .plain
        var from = newest ? Int64.max : lookingForPlain ? ledger.droppableFrom : 0
        for _ in 0..<windows where left > 0 {
            let count = min(Self.windowRows, max(256, 2 * left))
            var rows = try retentionRows(
                newest ? "seq <= \(from) ORDER BY seq DESC" : "seq >= \(from) ORDER BY seq", count)
            if rows.isEmpty { break }
            let isLast = rows.count < count
            if newest {
                rows.reverse()
            } else {
                // What stands just before may be a gap record that grows.
                rows = try retentionRows("seq < \(from) ORDER BY seq DESC", 8).reversed() + rows
            }
            if kind == .events { try readCrossings(of: &rows) }
            var window = RetentionWindow(rows) { seq in
                endpoints.contains { $0.mayHaveSent(seq: seq) }
            }
            window.drop(kind, &left, newest: newest, where: isCandidate)
            try apply(window)
            lost += window.lost
            from = newest ? rows[0].seq - 1 : rows[rows.count - 1].seq + 1
            // Rows in flight are looked at again once they are settled, which starts from the beginning.
            if !newest, lookingForPlain, windows > 1, let seen = window.seenThrough {
                ledger.droppableFrom = max(ledger.droppableFrom, seen)
            }
            if isLast {
                if !newest, lookingForPlain, windows > 1, left > 0 { ledger.droppableFrom = ledger.lastSeq + 1 }
                break
            }
        }
        return lost
    }

    private func retentionRows(
        _ range: String, _ count: Int
    ) throws(OutboxError) -> [RetentionWindow.Row] {
        let gap = ledger.names.reasons[RetentionWindow.reason] ?? -1
        let select = try database.connection.prepare(
            """
            SELECT seq, trackable, time_ms, lat_e7, lon_e7, published, event, flags, reason, EXISTS (
                SELECT 1 FROM batch WHERE origin = 0 AND (seq = newest_seq
                    OR seq BETWEEN first AND last AND (published = 1 OR feed = 1))),
                received_delta_ms
            FROM location WHERE \(range) LIMIT \(count)
            """)
        var rows: [RetentionWindow.Row] = []
        rows.reserveCapacity(min(count, 1024))
        while try select.step() {
            let time = select.integer(2)
            let event = select.integer(6)
            rows.append(
                RetentionWindow.Row(
                    seq: select.integer(0), trackable: select.optionalInteger(1), time: time,
                    receivedMs: select.optionalInteger(10).map { $0 &+ time },
                    coordinate: Coordinate(
                        latitudeE7: Int32(clamping: select.integer(3)),
                        longitudeE7: Int32(clamping: select.integer(4))),
                    published: select.integer(5) == 1, isLasting: event >= Record.firstLastingEvent,
                    isGap: event == Record.number(of: .gap) && select.integer(8) == gap,
                    hasDetails: Record.hasDetails(flags: select.integer(7)), inFlight: select.integer(9) == 1))
        }
        return rows
    }

    private func readCrossings(of rows: inout [RetentionWindow.Row]) throws(OutboxError) {
        let select = try database.connection.prepare("SELECT fence, action FROM geofence WHERE seq = ?")
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

    private mutating func apply(_ window: RetentionWindow) throws(OutboxError) {
        let connection = database.connection
        let delete = try connection.prepare("DELETE FROM location WHERE seq = ?")
        for row in window.removed {
            try delete.run(row.seq)
            ledger.dropped(seq: row.seq, published: row.published)
            try removeDetails(row)
        }
        guard !window.gaps.isEmpty else { return }
        let reason = try number(ofReason: RetentionWindow.reason)
        let update = try connection.prepare(
            "UPDATE location SET event = ?2, reason = ?3, flags = ?4 WHERE seq = ?1")
        let flags = try connection.prepare("SELECT flags FROM location WHERE seq = ?")
        for row in window.gaps {
            newest[row.seq] = nil
            flags.bind(1, row.seq)
            let old = try flags.step() ? flags.integer(0) : 0
            flags.reset()
            try update.run(row.seq, Record.number(of: .gap), reason, Record.withoutDetails(flags: old))
            try removeDetails(row)
        }
    }

    private func removeDetails(_ row: RetentionWindow.Row) throws(OutboxError) {
        guard row.hasDetails else { return }
        try database.connection.execute("DELETE FROM geofence WHERE seq = \(row.seq)")
        try database.connection.execute("DELETE FROM trip WHERE seq = \(row.seq)")
    }
}

// Thinning.
extension Transaction {
    /// Rows that are thinned in one commit.
    private static let thinRows = 4096
    /// At the coarsest bound it waits for so many new rows before it goes on.
    private static let thinInterval: Int64 = 1000

    /// Removes plain fixes between others until a tenth of what the limits leave is free, a stretch in each commit.
    ///
    /// Rows that only optional endpoints wait for are made coarse, and removed, before a required one loses any.
    private mutating func thin(to limit: Int?) throws(OutboxError) -> Int {
        // The level falls again only when all that it made coarse has left, or errors would add up beyond it.
        if ledger.retention.thinLevel > 0, ledger.rows == 0 || ledger.firstSeq > ledger.retention.coarseThrough {
            try beginThinning(at: 0)
        }
        guard let limit else { return 0 }
        if ledger.rows > limit { ledger.retention.isThinning = true }
        guard ledger.retention.isThinning else { return 0 }
        try findOldest()
        let optional = ledger.removableThrough(isShort: true).flatMap { $0 >= ledger.firstSeq ? $0 : nil }
        let through = optional ?? ledger.lastSeq
        var removed = 0
        var looked = 0
        while ledger.rows > limit - limit / 10 {
            // The limit holds after each commit, so above it a whole pass may be needed; otherwise a stretch does.
            guard looked < (ledger.rows > limit ? 4 : 1) * Self.thinRows else { return removed }
            if ledger.retention.thinLevel == 0 { try beginThinning(at: 1) }
            let level = ledger.retention.thinLevel
            let coarsest = TrackThinning.isCoarsest(level: level, bound: settings.bound)
            let from = ledger.retention.thinnedThrough + 1
            if coarsest, through - from < Self.thinInterval { return removed }
            let rows = try retentionRows("seq BETWEEN \(from) AND \(through) ORDER BY seq", Self.thinRows)
            looked += max(1, rows.count)
            removed += try thin(rows, tolerance: TrackThinning.tolerance(level: level, bound: settings.bound))
            guard let last = rows.last else {
                if coarsest {
                    ledger.retention.thinnedThrough = through
                    return removed
                }
                // Also what came since this pass began is as coarse as it makes it.
                try beginThinning(at: level + 1)
                continue
            }
            ledger.retention.thinnedThrough = last.seq
            ledger.retention.coarseThrough = max(ledger.retention.coarseThrough, last.seq)
            try database.store(.thinned, ledger.retention.stored)
        }
        ledger.retention.isThinning = false
        return removed
    }

    private mutating func beginThinning(at level: Int) throws(OutboxError) {
        if level == 0 {
            ledger.retention.isThinning = false
            ledger.retention.coarseThrough = 0
        }
        ledger.retention.thinLevel = level
        ledger.retention.thinnedThrough = 0
        try database.store(.thinned, ledger.retention.stored)
    }

    private mutating func thin(_ rows: [RetentionWindow.Row], tolerance: Double) throws(OutboxError) -> Int {
        var tracks: [Int64?: [Int]] = [:]
        for index in rows.indices { tracks[rows[index].trackable, default: []].append(index) }
        var removed: [Int] = []
        for track in tracks.values {
            let points = track.map { index in
                TrackThinning.Point(
                    time: Record.plausible(rows[index].time), coordinate: rows[index].coordinate,
                    isFixed: rows[index].isLasting || rows[index].inFlight)
            }
            removed += TrackThinning.superfluous(points, tolerance: tolerance).map { track[$0] }
        }
        let delete = try database.connection.prepare("DELETE FROM location WHERE seq = ?")
        for index in removed.sorted() {
            try delete.run(rows[index].seq)
            ledger.dropped(seq: rows[index].seq, published: rows[index].published)
        }
        return removed.count
    }
}

extension Ledger.Endpoint {
    /// Whether a row that waits was perhaps sent before, in a batch that was dissolved: it must not come back as another.
    func mayHaveSent(seq: Int64) -> Bool { formed < seq && seq <= regeneratedThrough }
}
