import Delivery
import Positioning

extension Database {
    static let columns = """
        seq, \(Record.columns), fence, fence_name, fence_action, fence_source, \(Record.tripColumns), id, endpoint,
        why, status, reply, attempts, asset, retry
        """

    func quarantineCount(of endpoint: Int64) throws(OutboxError) -> Ledger.QuarantineCount {
        let statement = try connection.prepare(
            """
            SELECT count(*), sum(size), sum(retry = \(Quarantine.Retry.wanted.rawValue)) FROM quarantine
            WHERE endpoint = \(endpoint)
            """)
        guard try statement.step() else { return .init() }
        func number(_ column: Int32) -> Int { Int(Ledger.clamped(statement.integer(column))) }
        return .init(records: number(0), bytes: number(1), retrying: number(2))
    }

    /// - Returns: what the record of a row takes, and whether it is to be sent again; nil when there is none.
    func quarantined(_ seq: Int64, of endpoint: Int64) throws(OutboxError) -> (size: Int, isRetried: Bool)? {
        let statement = try connection.prepare("SELECT size, retry FROM quarantine WHERE endpoint = ? AND seq = ?")
        statement.bind([endpoint, seq])
        guard try statement.step() else { return nil }
        let isRetried = statement.integer(1) == Int64(Quarantine.Retry.wanted.rawValue)
        return (Int(Ledger.clamped(statement.integer(0))), isRetried)
    }

    /// - Parameter seq: of a row of the queue.
    /// - Returns: what the record takes; nil when there is no such row.
    func quarantine(
        _ seq: Int64, of endpoint: Ledger.Endpoint, _ refusal: Refusal, generation: Int
    ) throws(OutboxError) -> Int? {
        let insert = try quarantineInsert()
        insert.bind([endpoint.id, refusal.status.map(Int64.init), Int64(refusal.attempts), Int64(generation), seq])
        insert.bind(6, text: refusal.reason)
        insert.bind(7, blob: refusal.reply)
        insert.bind(8, text: endpoint.assetID)
        insert.bind(9, Int64(Quarantine.recordSize + refusal.reason.utf8.count + refusal.reply.count))
        var size: Int?
        while try insert.step() { size = Int(Ledger.clamped(insert.integer(0))) }
        insert.reset()
        return size
    }

    private func quarantineInsert() throws(OutboxError) -> Statement {
        if let insertQuarantine { return insertQuarantine }
        let record = Record.columns.split(separator: ",").map { "l." + $0.drop { $0 == " " } }.joined(separator: ", ")
        let trip = Record.tripColumns.split(separator: ",").map { "t." + $0.drop { $0 == " " } }.joined(separator: ", ")
        let insert = try connection.prepare(
            """
            INSERT OR REPLACE INTO quarantine (seq, \(Record.columns), fence, fence_name, fence_action, fence_source,
                \(Record.tripColumns), endpoint, status, attempts, generation, why, reply, asset, size)
            SELECT l.seq, \(record), g.fence, g.name, g.action, g.source, \(trip), ?1, ?2, ?3, ?4, ?6, ?7, ?8,
                ?9 + coalesce(length(g.fence), 0) + coalesce(length(g.name), 0)
            FROM location l LEFT JOIN geofence g ON g.seq = l.seq LEFT JOIN trip t ON t.seq = l.seq WHERE l.seq = ?5
            RETURNING size
            """)
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
        for seq in seqs {
            statement.bind(1, seq)
            while try statement.step() { rows.append(Self.row(statement, names: names)) }
            statement.reset()
        }
        return rows
    }

    func quarantinedCount(of endpoint: Int64, seqs: [Int64]) throws(OutboxError) -> Int {
        let statement = try connection.prepare(
            "SELECT count(*) FROM quarantine WHERE endpoint = \(endpoint) AND seq = ?")
        var count = 0
        for seq in seqs {
            statement.bind(1, seq)
            if try statement.step() { count += Int(Ledger.clamped(statement.integer(0))) }
            statement.reset()
        }
        return count
    }

    /// Rows that are to be sent again, oldest first, with the highest generation under which they went out.
    func retries(
        of endpoint: Int64, limit: Int, names: Record.Names
    ) throws(OutboxError) -> (rows: [QueuedLocation], generation: Int) {
        let statement = try connection.prepare(
            """
            SELECT \(Self.columns), generation FROM quarantine
            WHERE endpoint = \(endpoint) AND retry = \(Quarantine.Retry.wanted.rawValue) ORDER BY seq LIMIT \(limit)
            """)
        var rows: [QueuedLocation] = []
        var generation = 0
        while try statement.step() {
            rows.append(Self.row(statement, names: names))
            generation = max(generation, Int(Int32(clamping: statement.integer(39))))
        }
        return (rows, generation)
    }

    /// A record as it is taken over by another queue.
    struct Quarantined {
        var endpoint: Int64
        var row: QueuedLocation
        var refusal: Refusal
        var generation: Int
    }

    /// All records, the oldest first, with the endpoints that they are of.
    func quarantinedRecords(names: Record.Names) throws(OutboxError) -> [Quarantined] {
        let statement = try connection.prepare("SELECT \(Self.columns), generation FROM quarantine ORDER BY id")
        var records: [Quarantined] = []
        while try statement.step() {
            records.append(
                Quarantined(
                    endpoint: statement.integer(32), row: Self.row(statement, names: names),
                    refusal: Self.refusal(statement), generation: Int(Int32(clamping: statement.integer(39)))))
        }
        return records
    }

    static func refusal(_ statement: Statement) -> Refusal {
        Refusal(
            reason: statement.text(33), status: statement.optionalInteger(34).map { Int(clamping: $0) },
            reply: statement.blob(35) ?? [], attempts: Int(Ledger.clamped(statement.integer(36))))
    }

    static func row(_ statement: Statement, names: Record.Names) -> QueuedLocation {
        var (row, hasGeofence, hasTrip) = Record.location(statement, names: names)
        if hasGeofence { row.location.geofence = Record.crossing(statement, from: 20) }
        if hasTrip { row.location.trip = Record.trip(statement, from: 24) }
        return row
    }

    /// No record is in a batch that is not there.
    func checkRetries(of endpoint: inout Ledger.Endpoint) throws(OutboxError) {
        let inFlight = endpoint.batches.filter { $0.origin == .quarantine }.reduce(0) { $0 + $1.rows }
        let marked = try connection.optionalInteger(
            """
            SELECT count(*) FROM quarantine
            WHERE endpoint = \(endpoint.id) AND retry = \(Quarantine.Retry.inFlight.rawValue)
            """)
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
    func want(_ seqs: [Int64], of endpoint: Int64, after generation: Int) throws(OutboxError) {
        let update = try connection.prepare(
            """
            UPDATE quarantine SET retry = \(Quarantine.Retry.wanted.rawValue), generation = max(generation, ?3)
            WHERE endpoint = ?1 AND seq = ?2
            """)
        for seq in seqs { try update.run(endpoint, seq, Int64(generation)) }
    }

    /// A record that went out again and did not get home.
    func refuseAgain(
        _ seq: Int64, of endpoint: Int64, _ refusal: Refusal, generation: Int
    ) throws(OutboxError) {
        let update = try connection.prepare(
            """
            UPDATE quarantine SET why = ?3, status = ?4, reply = ?5, attempts = min(attempts, 1 << 30) + ?6,
            generation = ?7, retry = \(Quarantine.Retry.none.rawValue),
            size = ?8 + coalesce(length(fence), 0) + coalesce(length(fence_name), 0)
            WHERE endpoint = ?1 AND seq = ?2
            """)
        update.bind(1, endpoint)
        update.bind(2, seq)
        update.bind(3, text: refusal.reason)
        update.bind(4, refusal.status.map(Int64.init))
        update.bind(5, blob: refusal.reply)
        update.bind(6, Int64(min(max(refusal.status == nil ? 0 : 1, refusal.attempts), 1 << 30)))
        update.bind(7, Int64(generation))
        update.bind(8, Int64(Quarantine.recordSize + refusal.reason.utf8.count + refusal.reply.count))
        _ = try update.step()
    }

    func unquarantine(_ seqs: [Int64], of endpoint: Int64) throws(OutboxError) {
        let delete = try connection.prepare("DELETE FROM quarantine WHERE endpoint = ? AND seq = ?")
        for seq in seqs { try delete.run(endpoint, seq) }
    }

    /// Deletes the oldest record that is in no batch; nil when there is none.
    func dropOldestQuarantined(of endpoint: Int64) throws(OutboxError) -> (size: Int, wasRetried: Bool)? {
        let delete = try connection.prepare(
            """
            DELETE FROM quarantine WHERE id = (SELECT min(id) FROM quarantine
                WHERE endpoint = \(endpoint) AND retry <> \(Quarantine.Retry.inFlight.rawValue))
            RETURNING size, retry
            """)
        var dropped: (Int, Bool)?
        while try delete.step() {
            dropped = (Int(Ledger.clamped(delete.integer(0))), delete.integer(1) == Quarantine.Retry.wanted.rawValue)
        }
        return dropped
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
            statement.bind([endpoint, id])
            while try statement.step() { seqs.append(statement.integer(0)) }
            statement.reset()
        }
        return seqs
    }

    /// The numbers of its rows that the queue does not hold any more.
    func quarantinedAlone(of endpoint: Int64, in range: ClosedRange<Int64>) throws(OutboxError) -> [Int64] {
        let select = try connection.prepare(
            """
            SELECT seq FROM quarantine WHERE endpoint = ? AND seq BETWEEN ? AND ?
            AND NOT EXISTS (SELECT 1 FROM location WHERE location.seq = quarantine.seq)
            """)
        select.bind([endpoint, range.lowerBound, range.upperBound])
        var seqs: [Int64] = []
        while try select.step() { seqs.append(select.integer(0)) }
        return seqs
    }

    func highestGeneration(inQuarantineOf endpoint: Int64) throws(OutboxError) -> Int {
        let highest = try connection.integer("SELECT max(generation) FROM quarantine WHERE endpoint = \(endpoint)")
        return Int(Int32(clamping: highest))
    }
}

/// ENTER and EXIT belong together: a receiver that has not got the one should know why it gets the other.
extension Database {
    /// Rows of the queue that leave a geofence.
    func exits(from first: Int64, through last: Int64) throws(OutboxError) -> [Int64] {
        let statement = try connection.prepare(
            """
            SELECT seq FROM geofence WHERE seq BETWEEN \(first) AND \(last) AND action = \(Record.number(of: .exit))
            """)
        var seqs: [Int64] = []
        while try statement.step() { seqs.append(statement.integer(0)) }
        return seqs
    }

    /// - Returns: whether the ENTER that belongs to this EXIT is in quarantine; no other EXIT gets it any more.
    func pair(exit seq: Int64, of endpoint: Int64) throws(OutboxError) -> Bool {
        try connection.execute(
            """
            UPDATE quarantine SET partner = \(seq) WHERE id = (
                SELECT id FROM quarantine
                WHERE endpoint = \(endpoint) AND partner IS NULL AND seq < \(seq)
                AND fence_action = \(Record.number(of: .enter))
                AND fence = (SELECT fence FROM geofence WHERE seq = \(seq))
                AND trackable IS (SELECT trackable FROM location WHERE seq = \(seq))
                ORDER BY seq DESC LIMIT 1)
            """)
        return connection.changes > 0
    }

    /// An EXIT that goes to quarantine as well leaves no pair to be broken.
    func pairQuarantined(_ seq: Int64, of endpoint: Int64) throws(OutboxError) {
        if try !exits(from: seq, through: seq).isEmpty { _ = try pair(exit: seq, of: endpoint) }
    }
}
