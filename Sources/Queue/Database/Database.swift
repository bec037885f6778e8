import CSQLite
import Profiles
import WaypostCore

/// An open queue with its statements.
final class Database {
    let connection: Connection
    /// For a database in memory: the older rows on disk; nil = there are none.
    let below: RowsOnDisk?

    private let begin, beginReading, commit, rollback: Statement
    /// Its rows, without those of a disk below it.
    let rows: SegmentTable
    private let insertGeofence, insertTrip, insertNetwork: Statement
    private let deleteDetailsThrough: [Statement]
    private let setState: Statement
    let setEndpoint, setCount: Statement
    let insertBatch, deleteBatch: Statement
    private let geofence, trip, network: Statement
    private let pageCount, freeCount: Statement
    /// Prepared by the first row that goes there.
    var insertQuarantine: Statement?
    private let pageSize: Int64
    private var reserved: Int64
    /// Bytes of the pages that transactions have stored; 0 = none yet.
    private(set) var storedBytes: Int64 = 0
    /// Of the one under way.
    private var countedBytes: Int64 = 0

    /// Makes the file when there is none and brings it to the newest schema.
    ///
    /// - Parameter committed: what it has to hold; if it does not, nothing is written.
    convenience init(
        path: String, migrations: [String] = Schema.migrations, access: Connection.Access = .readWrite,
        committed: Committed = Committed(), medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        // Made by hand before SQLite does, because positions are private: 0600 whatever the umask.
        let reason = medium.create(path)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "open") }
        let connection = try Connection(path: path, access: access, medium: medium)
        try connection.mustHave(committed)
        try Schema.migrate(connection, steps: migrations)
        // To be found before anything relies on the file.
        try Schema.demandSound(connection, steps: migrations)
        try self.init(connection, preparesAll: true)
    }

    /// An empty queue in memory.
    ///
    /// - Parameter path: of the queue that it replaces.
    convenience init(inMemoryFor path: String, above below: RowsOnDisk) throws(OutboxError) {
        let connection = try Connection(inMemoryFor: path, medium: below.medium)
        try Schema.create(in: connection)
        try self.init(connection, above: below)
    }

    convenience init(reading connection: Connection) throws(OutboxError) {
        try Schema.check(connection)
        try self.init(connection)
    }

    /// Does not check what the file claims to be.
    convenience init(damaged connection: Connection) throws(OutboxError) { try self.init(connection) }

    private init(
        _ connection: Connection, above below: RowsOnDisk? = nil, preparesAll: Bool = false
    ) throws(OutboxError) {
        self.connection = connection
        self.below = below
        func statement(_ sql: String) throws(OutboxError) -> Statement {
            preparesAll ? try connection.prepare(sql) : Statement(sql, connection: connection)
        }
        pageCount = try statement("PRAGMA page_count")
        freeCount = try statement("PRAGMA freelist_count")
        let pageSize = try? connection.optionalInteger("PRAGMA page_size")
        self.pageSize = pageSize ?? Int64(DatabaseFile.pageSize)
        reserved = connection.medium.size(connection.path)
        begin = try statement("BEGIN IMMEDIATE")
        beginReading = try statement("BEGIN")
        commit = try statement("COMMIT")
        rollback = try statement("ROLLBACK")
        rows = try SegmentTable(connection, statement)
        // These tables have no checksums: what a wrong number has put in the place of a new row must not keep that out.
        insertGeofence = try statement("INSERT OR REPLACE INTO geofence VALUES (?, ?, ?, ?, ?)")
        insertNetwork = try statement("INSERT OR REPLACE INTO network VALUES (?, ?, ?, ?)")
        insertTrip = try statement("INSERT OR REPLACE INTO trip VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        var deletes: [Statement] = []
        for table in Record.detailTables { deletes.append(try statement("DELETE FROM \(table) WHERE seq <= ?")) }
        deleteDetailsThrough = deletes
        setState = try statement(Schema.Summed.state.insert)
        let endpoint = Schema.Summed.endpoint
        setEndpoint = try statement(
            endpoint.update([
                "state", "reason", "regenerated_through", "generation", "accepted", "fingerprint", "wanted_fingerprint",
                "bound_through",
            ]))
        setCount = try statement(endpoint.update(["formed", "unsettled"]))
        insertBatch = try statement(Schema.Summed.batch.insert)
        deleteBatch = try statement("DELETE FROM batch WHERE endpoint = ? AND first = ?")
        geofence = try statement("SELECT \(Record.crossingColumns) FROM geofence WHERE seq = ?")
        trip = try statement("SELECT \(Record.tripColumns) FROM trip WHERE seq = ?")
        network = try statement("SELECT \(Record.networkColumns) FROM network WHERE seq = ?")
    }

    /// Copies the log back into the database; what comes next is written from its beginning, so that nothing rests on
    /// pages of the log that only seem to be written. While another process reads from the log, the log continues.
    func restartLog() throws(OutboxError) { _ = try connection.checkpoint(SQLITE_CHECKPOINT_RESTART) }

    /// The oldest row of a feed within a range; `.unknown` where it is on a disk that cannot be read.
    func oldestRow(
        from first: Int64, through last: Int64, feed: EndpointSettings.Feed
    ) throws(OutboxError) -> Ledger.Oldest {
        if let below, first <= below.last {
            let found = below.read { (database) throws(OutboxError) in
                try database.oldestRow(from: first, through: min(last, below.last), feed: feed)
            }
            switch found {
            case nil, .unknown: return .unknown
            case .row(let seq, let time): return .row(seq: seq, time: time)
            case .some(.none): break
            }
        }
        let range = RowRange(first, last, isPublishedOnly: feed == .network)
        guard let row = try rows.rows(range, limit: 1).first else { return .none }
        return .row(seq: row.seq, time: row.time)
    }

    /// Rows of a feed within a range, oldest first.
    ///
    /// - Throws: also where some of them are on a disk that cannot be read.
    func rows(
        from first: Int64, through last: Int64, feed: EndpointSettings.Feed, limit: Int, names: Record.Names
    ) throws(OutboxError) -> [QueuedLocation] {
        var found: [QueuedLocation] = []
        if let below, first <= below.last {
            found = try below.rows(from: first, through: last, feed: feed, limit: limit)
            guard found.count < limit, last > below.last else { return found }
        }
        let range = RowRange(max(first, (below?.last ?? -1) + 1), last, isPublishedOnly: feed == .network)
        let rows = try rows.rows(range, limit: limit - found.count)
        found.reserveCapacity(found.count + rows.count)
        // By index: a row that is iterated over is copied.
        for index in rows.indices { found.append(try location(of: rows[index], names: names)) }
        return found
    }

    /// With what it has in tables of its own.
    func location(of stored: StoredRow, names: Record.Names) throws(OutboxError) -> QueuedLocation {
        var row = stored.location(names: names)
        let details = stored.details
        if details.hasGeofence {
            row.location.geofence = try geofence.rows(row.seq) { Record.crossing($0, from: 0) }.first
        }
        if details.hasTrip { row.location.trip = try trip.rows(row.seq) { Record.trip($0, from: 0) }.first }
        if details.hasSettings { row.location.settings = try settings(of: row.seq) }
        if details.hasNetwork {
            row.location.network = try network.rows(row.seq) { Record.network($0, from: 0) }.first
        }
        return row
    }

    private func settings(of seq: Int64) throws(OutboxError) -> String? {
        try connection.rows("SELECT change FROM settings WHERE seq = ?", [seq]) { $0.text(0) }.first
    }

    func store(_ key: Schema.Key, _ value: any SQLValue) throws(OutboxError) {
        try setState.run(key.rawValue, key.name, value)
    }

    /// Stores what a row has in tables of its own.
    func insertDetails(of location: Location, seq: Int64) throws(OutboxError) {
        if let crossing = location.geofence {
            try insertGeofence.run(
                seq, crossing.id, crossing.name, Record.number(of: crossing.action), Record.origin(of: crossing))
        }
        if let trip = location.trip {
            try insertTrip.run(
                seq, trip.start.milliseconds, Int64(trip.startCoordinate.latitudeE7),
                Int64(trip.startCoordinate.longitudeE7), trip.end.milliseconds, Scaled.odometer(trip.distance) ?? 0,
                Scaled.integer(trip.idle, places: 3) ?? 0, Scaled.speed(trip.maxSpeed))
        }
        if let network = location.network {
            try insertNetwork.run(seq, network.ssid, network.bssid, network.ip)
        }
        if let change = location.settings {
            try connection.prepare("INSERT OR REPLACE INTO settings VALUES (?, ?)").run(seq, change)
        }
    }

    /// - Returns: how many rows were removed.
    func removeRows(through seq: Int64) throws(OutboxError) -> Int {
        for delete in deleteDetailsThrough { try delete.run(seq) }
        return try rows.removeThrough(seq)
    }

    /// Removes what rows have in tables of their own.
    func removeDetails(of seqs: some Sequence<Int64>) throws(OutboxError) {
        for seq in seqs {
            for table in Record.detailTables { try connection.execute("DELETE FROM \(table) WHERE seq = \(seq)") }
        }
    }

    /// Runs work in a transaction: all of it is stored, or nothing.
    func transaction<Value>(_ work: () throws(OutboxError) -> Value) throws(OutboxError) -> Value {
        try begin.run()
        do throws(OutboxError) {
            let value = try work()
            try commit.run()
            connection.committed()
            storedBytes = max(storedBytes, countedBytes)
            return value
        } catch {
            countedBytes = 0
            if connection.isInTransaction { try? rollback.run() }
            throw error
        }
    }

    /// Reads the queue as of one commit.
    func snapshot<Value>(_ read: (Database) throws(OutboxError) -> Value) throws(OutboxError) -> Value {
        try beginReading.run()
        defer { try? rollback.run() }
        return try read(self)
    }

    /// Allocates all pages on the medium before they go into the log. What is in the log can then be copied back however full
    /// the disk becomes, and the log starts again: commits that add no page go on.
    func reserve() throws(OutboxError) {
        guard below == nil, try pageCount.step() else { return }
        let bytes = pageCount.integer(0) * pageSize
        pageCount.reset()
        countedBytes = bytes
        guard bytes > reserved else { return }
        guard connection.allocate(bytes) else {
            throw OutboxError(.full, path: connection.path, message: "no room for its next pages")
        }
        reserved = (bytes + Connection.growth - 1) / Connection.growth * Connection.growth
    }

    /// Bytes of all pages, of the pages in use, and of the log.
    func usage() throws(OutboxError) -> (file: Int64, live: Int64, log: Int64) {
        defer {
            pageCount.reset()
            freeCount.reset()
        }
        guard try pageCount.step(), try freeCount.step() else { return (0, 0, 0) }
        let pages = pageCount.integer(0)
        // What a damaged header says is free may be more than there is.
        let free = max(0, min(pages, freeCount.integer(0)))
        let log = connection.medium.size(connection.path + "-wal")
        return (pages * pageSize, (pages - free) * pageSize, log)
    }
}
