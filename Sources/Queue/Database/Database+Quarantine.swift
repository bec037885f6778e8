import Profiles
import WaypostCore

extension Database {
    static let columns = """
        seq, \(StoredRow.columns), fence, fence_name, fence_action, fence_source, \(Record.tripColumns), id, endpoint,
        why, status, reply, attempts, asset, retry, settings, \(Record.networkColumns)
        """

    func quarantineCount(of endpoint: Int64) throws(OutboxError) -> Ledger.QuarantineCount {
        let statement = try connection.prepare(
            """
            SELECT count(*), sum(size), sum(retry = \(Quarantine.Retry.wanted.rawValue)) FROM quarantine
            WHERE endpoint = ?
            """)
        statement.bind([endpoint])
        guard try statement.step() else { return .init() }
        func number(_ column: Int32) -> Int { Int(Ledger.clamped(statement.integer(column))) }
        return .init(records: number(0), bytes: number(1), retrying: number(2))
    }

    /// - Returns: bytes of the record of a row, and whether it is to be sent again; nil when there is none.
    func quarantined(_ seq: Int64, of endpoint: Int64) throws(OutboxError) -> (size: Int, isRetried: Bool)? {
        try connection.rows(
            "SELECT size, retry FROM quarantine WHERE endpoint = ? AND seq = ?", [endpoint, seq],
            read: Self.sizeAndRetry
        ).first
    }

    private static func sizeAndRetry(_ row: Statement) -> (size: Int, isRetried: Bool) {
        (Int(Ledger.clamped(row.integer(0))), row.integer(1) == Quarantine.Retry.wanted.rawValue)
    }

    /// - Returns: bytes of the record.
    func quarantine(
        _ row: StoredRow, _ location: Location, of endpoint: Ledger.Endpoint, _ refusal: Refusal, generation: Int
    ) throws(OutboxError) -> Int {
        let (fence, trip, network) = (location.geofence, location.trip, location.network)
        let texts = [fence?.id, fence?.name, location.settings]
        let size =
            Quarantine.recordSize + refusal.size + texts.reduce(0) { $0 + ($1?.unicodeScalars.count ?? 0) }
        let columns: [(String, (any SQLValue)?)] = [
            ("fence", fence?.id), ("fence_name", fence?.name),
            ("fence_action", fence.map { Record.number(of: $0.action) }), ("fence_source", fence.map(Record.origin)),
            ("start_ms", trip?.start.milliseconds), ("start_lat_e7", trip.map { Int64($0.startCoordinate.latitudeE7) }),
            ("start_lon_e7", trip.map { Int64($0.startCoordinate.longitudeE7) }), ("end_ms", trip?.end.milliseconds),
            ("distance_dm", trip.map { Scaled.odometer($0.distance) ?? 0 }),
            ("idle_ms", trip.map { Scaled.integer($0.idle, places: 3) ?? 0 }),
            ("max_speed_cms", Scaled.speed(trip?.maxSpeed)), ("settings", location.settings), ("ssid", network?.ssid),
            ("bssid", network?.bssid), ("ip", network?.ip), ("endpoint", endpoint.id), ("status", refusal.status),
            ("attempts", refusal.attempts), ("generation", generation), ("why", refusal.reason),
            ("reply", refusal.reply), ("asset", endpoint.assetID), ("size", size),
        ]
        let marks = String(repeating: ", ?", count: StoredRow.columnCount + columns.count)
        let insert = try quarantineInsert(
            """
            INSERT OR REPLACE INTO quarantine (seq, \(StoredRow.columns), \(columns.map(\.0).joined(separator: ", ")))
            VALUES (?\(marks))
            """)
        row.bind(to: insert, from: 1)
        for (place, column) in columns.enumerated() {
            let index = Int32(StoredRow.columnCount + 2 + place)
            if let value = column.1 { value.bind(to: insert, index) } else { insert.bind(index, nil) }
        }
        _ = try insert.step()
        insert.reset()
        return size
    }

    private func quarantineInsert(_ sql: @autoclosure () -> String) throws(OutboxError) -> Statement {
        if let insertQuarantine { return insertQuarantine }
        let insert = try connection.prepare(sql())
        insertQuarantine = insert
        return insert
    }

    /// Rows of the quarantine as recorded, in the order of these numbers; without those that are not there.
    func quarantinedRows(
        _ seqs: [Int64], endpoint: Int64, names: Record.Names
    ) throws(OutboxError) -> [QueuedLocation] {
        let statement = try connection.prepare(
            "SELECT \(Self.columns) FROM quarantine WHERE endpoint = \(endpoint) AND seq = ?")
        var rows: [QueuedLocation] = []
        for seq in seqs { rows += try statement.rows(seq) { Self.row($0, names: names) } }
        return rows
    }

    func quarantinedCount(of endpoint: Int64, seqs: [Int64]) throws(OutboxError) -> Int {
        let statement = try connection.prepare(
            "SELECT count(*) FROM quarantine WHERE endpoint = \(endpoint) AND seq = ?")
        var count = 0
        for seq in seqs { count += try statement.rows(seq) { Int(Ledger.clamped($0.integer(0))) }.reduce(0, +) }
        return count
    }

    /// Rows that are to be sent again, oldest first, with the highest generation under which they went out.
    func retries(
        of endpoint: Int64, limit: Int, names: Record.Names
    ) throws(OutboxError) -> (rows: [QueuedLocation], generation: Int) {
        let records = try quarantinedRecords(
            "WHERE endpoint = \(endpoint) AND retry = \(Quarantine.Retry.wanted.rawValue) ORDER BY seq LIMIT \(limit)",
            names: names)
        return (records.map(\.row), records.reduce(0) { max($0, $1.generation) })
    }

    /// A record as it moves to another queue.
    struct Quarantined {
        var endpoint: Int64
        var row: QueuedLocation
        var refusal: Refusal
        var generation: Int
    }

    /// All records, the oldest first, with the endpoints that they are of; or those that a condition selects.
    func quarantinedRecords(
        _ selection: String = "ORDER BY id", names: Record.Names
    ) throws(OutboxError) -> [Quarantined] {
        try connection.rows("SELECT \(Self.columns), generation FROM quarantine \(selection)") { row in
            Quarantined(
                endpoint: row.integer(32), row: Self.row(row, names: names), refusal: Self.refusal(row),
                generation: Int(Int32(clamping: row.integer(43))))
        }
    }

    static func refusal(_ statement: Statement) -> Refusal {
        Refusal(
            reason: statement.text(33), status: statement.optionalInteger(34).map { Int(clamping: $0) },
            reply: statement.blob(35) ?? [], attempts: Int(Ledger.clamped(statement.integer(36))))
    }

    static func row(_ statement: Statement, names: Record.Names) -> QueuedLocation {
        let stored = StoredRow(statement)
        var row = stored.location(names: names)
        let details = stored.details
        if details.hasGeofence { row.location.geofence = Record.crossing(statement, from: 20) }
        if details.hasTrip { row.location.trip = Record.trip(statement, from: 24) }
        if details.hasSettings { row.location.settings = statement.optionalText(39) }
        if details.hasNetwork { row.location.network = Record.network(statement, from: 40) }
        return row
    }

    /// No record is in a batch that is not there.
    func checkRetries(of endpoint: inout Ledger.Endpoint) throws(OutboxError) {
        let inFlight = endpoint.batches.filter { $0.origin == .quarantine }.reduce(0) { $0 + $1.rows }
        let marked = try connection.optionalInteger(
            """
            SELECT count(*) FROM quarantine
            WHERE endpoint = ? AND retry = \(Quarantine.Retry.inFlight.rawValue)
            """, endpoint.id)
        guard marked != Int64(inFlight) else { return }
        let inBatches = endpoint.batches.filter { $0.origin == .quarantine }.flatMap { $0.picked ?? [] }
        try connection.execute(
            """
            UPDATE quarantine SET retry = \(Quarantine.Retry.wanted.rawValue)
            WHERE endpoint = \(endpoint.id) AND retry = \(Quarantine.Retry.inFlight.rawValue)
            """)
        for seq in inBatches { try setRetry(.inFlight, seq: seq, of: endpoint.id) }
        endpoint.quarantine = try quarantineCount(of: endpoint.id)
    }

    func setRetry(_ retry: Quarantine.Retry, seq: Int64, of endpoint: Int64) throws(OutboxError) {
        try connection.execute(
            "UPDATE quarantine SET retry = \(retry.rawValue) WHERE endpoint = \(endpoint) AND seq = \(seq)")
    }

    /// Records of a batch that is given up are to be sent again, under another id.
    func markForRetry(_ seqs: [Int64], of endpoint: Int64, after generation: Int) throws(OutboxError) {
        let update = try connection.prepare(
            """
            UPDATE quarantine SET retry = \(Quarantine.Retry.wanted.rawValue), generation = max(generation, ?3)
            WHERE endpoint = ?1 AND seq = ?2
            """)
        for seq in seqs { try update.run(endpoint, seq, Int64(generation)) }
    }

    /// A record that went out again and was refused again.
    func refuseAgain(
        _ seq: Int64, of endpoint: Int64, _ refusal: Refusal, generation: Int
    ) throws(OutboxError) {
        let update = try connection.prepare(
            """
            UPDATE quarantine SET why = ?3, status = ?4, reply = ?5, attempts = min(attempts, 1 << 30) + ?6,
            generation = ?7, retry = \(Quarantine.Retry.none.rawValue),
            size = ?8 + coalesce(length(fence), 0) + coalesce(length(fence_name), 0)
                + coalesce(length(settings), 0)
            WHERE endpoint = ?1 AND seq = ?2
            """)
        try update.run(
            endpoint, seq, refusal.reason, refusal.status, refusal.reply,
            min(max(refusal.status == nil ? 0 : 1, refusal.attempts), 1 << 30), generation,
            Quarantine.recordSize + refusal.size)
    }

    func unquarantine(_ seqs: [Int64], of endpoint: Int64) throws(OutboxError) {
        let delete = try connection.prepare("DELETE FROM quarantine WHERE endpoint = ? AND seq = ?")
        for seq in seqs { try delete.run(endpoint, seq) }
    }

    /// Deletes the oldest record that is in no batch; nil when there is none.
    func dropOldestQuarantined(of endpoint: Int64) throws(OutboxError) -> (size: Int, isRetried: Bool)? {
        try connection.rows(
            """
            DELETE FROM quarantine WHERE id = (SELECT min(id) FROM quarantine
                WHERE endpoint = \(endpoint) AND retry <> \(Quarantine.Retry.inFlight.rawValue))
            RETURNING size, retry
            """, read: Self.sizeAndRetry
        ).last
    }

    /// - Parameters:
    ///   - ids: empty = all.
    ///   - retry: nil = the records are deleted.
    /// - Returns: the rows that were concerned; those in a batch are not.
    func changeQuarantined(
        of endpoint: Int64, ids: [Int64], to retry: Quarantine.Retry?
    ) throws(OutboxError) -> [Int64] {
        let change = retry.map { "UPDATE quarantine SET retry = \($0.rawValue)" } ?? "DELETE FROM quarantine"
        let untouched = retry ?? .inFlight
        let statement = try connection.prepare(
            """
            \(change) WHERE endpoint = ?1 AND (?2 IS NULL OR id = ?2)
            AND retry NOT IN (\(untouched.rawValue), \(Quarantine.Retry.inFlight.rawValue)) RETURNING seq
            """)
        var seqs: [Int64] = []
        for id in ids.isEmpty ? [nil] : ids.map(Optional.some) {
            seqs += try statement.rows(endpoint, id) { $0.integer(0) }
        }
        return seqs
    }

    /// The numbers of its rows that the queue does not hold any more.
    func quarantinedAlone(of endpoint: Int64, in range: ClosedRange<Int64>) throws(OutboxError) -> [Int64] {
        let quarantined = try connection.rows(
            """
            SELECT seq FROM quarantine WHERE endpoint = ? AND seq BETWEEN ? AND ?
            """, [endpoint, range.lowerBound, range.upperBound]
        ) { $0.integer(0) }
        var alone: [Int64] = []
        for seq in quarantined where try rows.count(RowRange(seq, seq)) == 0 { alone.append(seq) }
        return alone
    }

    func highestGeneration(inQuarantineOf endpoint: Int64) throws(OutboxError) -> Int {
        let highest = try connection.integer("SELECT max(generation) FROM quarantine WHERE endpoint = \(endpoint)")
        return Int(Int32(clamping: highest))
    }
}

/// ENTER and EXIT belong together: a server that did not get the ENTER should know why it gets the EXIT.
extension Database {
    /// Rows of the queue that leave a geofence.
    func exits(from first: Int64, through last: Int64) throws(OutboxError) -> [Int64] {
        try connection.rows(
            "SELECT seq FROM geofence WHERE seq BETWEEN \(first) AND \(last) AND action = \(Record.number(of: .exit))"
        ) { $0.integer(0) }
    }

    /// - Parameter seq: of a row of the queue that leaves a geofence.
    /// - Returns: whether the ENTER that belongs to this EXIT is in quarantine; no other EXIT is paired with it any more.
    func pair(exit seq: Int64, of endpoint: Int64) throws(OutboxError) -> Bool {
        let fence = try connection.rows("SELECT fence FROM geofence WHERE seq = ?", [seq]) { $0.text(0) }.first
        guard let fence, let row = try rows.rows(RowRange(seq, seq), limit: 1).first else { return false }
        return try pair(exit: row, of: fence, endpoint)
    }

    private func pair(exit row: StoredRow, of fence: String, _ endpoint: Int64) throws(OutboxError) -> Bool {
        try connection.run(
            """
            UPDATE quarantine SET partner = ?1 WHERE id = (
                SELECT id FROM quarantine
                WHERE endpoint = ?2 AND partner IS NULL AND seq < ?1
                AND fence_action = \(Record.number(of: .enter)) AND fence = ?3 AND trackable IS ?4
                ORDER BY seq DESC LIMIT 1)
            """, row.seq, endpoint, fence, row[.trackable])
        return connection.changes > 0
    }

    /// An EXIT that goes to quarantine as well leaves no pair to be broken.
    func pairQuarantined(_ row: StoredRow, _ location: Location, of endpoint: Int64) throws(OutboxError) {
        guard let crossing = location.geofence, crossing.action == .exit else { return }
        _ = try pair(exit: row, of: crossing.id, endpoint)
    }
}
