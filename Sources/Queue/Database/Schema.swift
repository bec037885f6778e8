import WaypostCore

/// The tables of the queue, and the steps from each version to the next.
enum Schema {
    /// `WAYP`: distinguishes a queue from any other SQLite file.
    static let applicationID: Int64 = 0x5741_5950

    /// The version of `tables`. Those before were never released, and are refused.
    static let firstVersion = 5

    /// Step n leads from version `firstVersion` + n to the next. All that are missing run in one transaction.
    static let migrations: [String] = []

    /// - Returns: the version to which these steps lead.
    static func version(after steps: [String] = migrations) -> Int { firstVersion + steps.count }

    /// Rows of `state`.
    enum Key: Int64, CaseIterable {
        /// 16 random bytes, made once.
        case uuid = 1
        /// The newest sequence number ever given, as of the last commit that did more than append.
        case mark
        /// Rows up to `mark`.
        case rows
        case tracker
        case file
        /// The highest generation of a batch of an endpoint that was forgotten; 0 before the first.
        case generation
        case channels
        case beacons
        /// See `Retention.stored`.
        case thinned = 32
        /// See `SalvagePlan.bytes`.
        case salvage

        var name: String { Self.names[self] ?? "" }
        /// Finds its value.
        var select: String { "SELECT value FROM state WHERE id = \(rawValue)" }

        /// Made once: what Swift makes of the name of a case costs more than the statement that stores it.
        private static let names = Dictionary(uniqueKeysWithValues: allCases.map { ($0, "\($0)") })
    }

    /// 256 KiB of log.
    static let checkpointPages: Int32 = 512

    /// A log that has grown is cut off to this size once it begins again.
    static let logBytesKept: Int64 = 1 << 20

    /// The small tables: a wrong byte in what they say would cost rows that are sound, or give them to another device. Each of their
    /// rows has a checksum of its other columns in `sum`.
    enum Summed: String, CaseIterable {
        case state, trackable, boot, reason, endpoint, batch, ahead

        /// Its name in SQL.
        var table: String { rawValue }

        /// All but `sum`.
        var columns: String {
            switch self {
            case .state: "id, name, value"
            case .trackable, .boot, .reason: "id, name"
            case .endpoint:
                """
                id, name, fingerprint, formed, unsettled, required, feed, state, reason, removed_at, regenerated_through, \
                generation, accepted, spare, wanted_fingerprint, bound_through
                """
            case .batch:
                """
                endpoint, first, last, rows, feed, origin, through, sent_ms, newest_seq, generation, picked, broken, route, \
                rendering
                """
            case .ahead: "endpoint, first, last"
            }
        }

        /// A row that is gone is damage. A name that is gone is known to be unknown.
        private var missesRows: Bool { ![.trackable, .boot, .reason].contains(self) }

        /// Of a row, in SQL.
        var sum: String { "waypost_sum(\(columns))" }

        /// Stores a row, with a parameter for each of `columns`.
        var insert: String {
            let parameters = columns.split(separator: ",").indices.map { "?\($0 + 1)" }.joined(separator: ", ")
            return
                "INSERT OR REPLACE INTO \(table) (\(columns), sum) VALUES (\(parameters), waypost_sum(\(parameters)))"
        }

        /// Changes columns of the row whose id is the first parameter; those after it are the new values, in the order of the columns here.
        func update(_ changed: [String]) -> String {
            var values: [String: String] = [:]
            for (place, column) in changed.enumerated() { values[column] = "?\(place + 2)" }
            let names = columns.split(separator: ",").map { String($0.drop { $0 == " " }) }
            let sum = "sum = waypost_sum(\(names.map { values[$0] ?? $0 }.joined(separator: ", ")))"
            let changes = changed.map { "\($0) = \(values[$0] ?? $0)" } + [sum]
            return "UPDATE \(table) SET \(changes.joined(separator: ", ")) WHERE id = ?1"
        }

        /// Of a damaged file, lets rows be found only if they are as they were written.
        func hideUnsoundRows(in connection: Connection) throws(OutboxError) {
            try connection.execute(
                "CREATE TEMP VIEW \(table) AS SELECT * FROM main.\(table) WHERE sum IS \(sum)")
        }

        /// Whether all rows are there, as they were written.
        func isSound(in connection: Connection) throws(OutboxError) -> Bool {
            let wrong = try connection.integer("SELECT count(*) FROM main.\(table) WHERE sum IS NOT \(sum)")
            guard wrong == 0, missesRows else { return wrong == 0 }
            return try connection.text("PRAGMA main.quick_check(\(table))") == "ok"
        }
    }

    static var summed: [Summed] { Summed.allCases }

    /// Brings an open database to the newest version, or refuses it without having touched it.
    static func migrate(_ connection: Connection, steps: [String] = migrations) throws(OutboxError) {
        let found = Int(try connection.integer("PRAGMA user_version"))
        let application = try connection.integer("PRAGMA application_id")
        let known = version(after: steps)
        // Each step changes a table: with those of the first version, any other version is damage.
        if found != firstVersion, application == applicationID, try hasFirstTables(connection) {
            throw OutboxError(.corrupt, path: connection.path, message: "its header is damaged: schema \(found)")
        }
        // A version far from any is damage.
        let isOther = (1..<firstVersion).contains(found) || (known + 1..<1000).contains(found)
        if isOther, application == applicationID {
            throw OutboxError(.otherSchema(found: found, known: known), path: connection.path, message: "")
        }
        let isOurs = try application == applicationID ? true : isBlank(connection)
        guard isOurs else {
            let tables = "('segment', 'endpoint', 'batch', 'boot', 'state')"
            let known = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name IN \(tables)")
            throw OutboxError(
                known == 5 ? .corrupt : .foreign, path: connection.path,
                message: known == 5 ? "its header is damaged" : "a database, but not a queue of waypost")
        }
        // The file may be written, but its header has a format that this SQLite only reads. No queue has it.
        guard !connection.isReadOnly else {
            throw OutboxError(.corrupt, path: connection.path, message: "its header is damaged")
        }
        guard (0...known).contains(found) else {
            throw OutboxError(.corrupt, path: connection.path, message: "schema \(found)")
        }
        try configure(connection)
        guard found < known else { return }
        // All of them or none: no reader finds a half-migrated file.
        try connection.execute("BEGIN IMMEDIATE")
        do throws(OutboxError) {
            if found == 0 { try connection.execute(tables) }
            for step in steps.dropFirst(max(0, found - firstVersion)) { try connection.execute(step) }
            try connection.execute("PRAGMA application_id = \(applicationID)")
            try connection.execute("PRAGMA user_version = \(known)")
            try connection.execute("COMMIT")
        } catch {
            if connection.isInTransaction { try? connection.execute("ROLLBACK") }
            throw error
        }
    }

    /// Makes the tables of the newest version in an empty database.
    static func create(in connection: Connection) throws(OutboxError) {
        for statements in [tables] + migrations { try connection.execute(statements) }
    }

    // Small integers keep a row of the quarantine at some 50 bytes. NULL is unknown. Only rare things (crossings, trips) have tables
    // of their own.
    /// Those of the first version.
    static let tables = """
        CREATE TABLE state (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value, sum INTEGER);
        CREATE TABLE trackable (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE boot (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE reason (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE geofence (
            seq INTEGER PRIMARY KEY, fence TEXT NOT NULL, name TEXT, action INTEGER NOT NULL, source INTEGER NOT NULL);
        CREATE TABLE trip (
            seq INTEGER PRIMARY KEY, start_ms INTEGER NOT NULL, start_lat_e7 INTEGER NOT NULL,
            start_lon_e7 INTEGER NOT NULL, end_ms INTEGER NOT NULL, distance_dm INTEGER NOT NULL,
            idle_ms INTEGER NOT NULL, max_speed_cms INTEGER);
        CREATE TABLE endpoint (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL, formed INTEGER NOT NULL,
            unsettled INTEGER NOT NULL, required INTEGER NOT NULL, feed INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT,
            removed_at INTEGER, regenerated_through INTEGER NOT NULL, generation INTEGER NOT NULL,
            accepted INTEGER NOT NULL DEFAULT 0, spare INTEGER NOT NULL DEFAULT 0, wanted_fingerprint TEXT,
            bound_through INTEGER, sum INTEGER);
        CREATE TABLE batch (
            endpoint INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL,
            feed INTEGER NOT NULL, origin INTEGER NOT NULL, through INTEGER NOT NULL, picked BLOB, broken BLOB,
            route TEXT, sent_ms INTEGER, newest_seq INTEGER, generation INTEGER NOT NULL, rendering TEXT NOT NULL,
            sum INTEGER, PRIMARY KEY (endpoint, first)) WITHOUT ROWID;
        CREATE TABLE ahead (
            endpoint INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, sum INTEGER,
            PRIMARY KEY (endpoint, first)) WITHOUT ROWID;
        CREATE TABLE quarantine (
            id INTEGER PRIMARY KEY AUTOINCREMENT, endpoint INTEGER NOT NULL, seq INTEGER NOT NULL,
            trackable INTEGER, boot INTEGER, time_ms INTEGER NOT NULL, received_delta_ms INTEGER,
            lat_e7 INTEGER NOT NULL, lon_e7 INTEGER NOT NULL, altitude_cm INTEGER, altitude_hae_cm INTEGER,
            accuracy_dm INTEGER, speed_cms INTEGER, course_ddeg INTEGER, hdop_c INTEGER, satellites INTEGER,
            battery INTEGER, odometer_dm INTEGER NOT NULL, reason INTEGER, published INTEGER NOT NULL,
            event INTEGER NOT NULL, flags INTEGER NOT NULL,
            fence TEXT, fence_name TEXT, fence_action INTEGER, fence_source INTEGER,
            start_ms INTEGER, start_lat_e7 INTEGER, start_lon_e7 INTEGER, end_ms INTEGER, distance_dm INTEGER,
            idle_ms INTEGER, max_speed_cms INTEGER,
            why TEXT NOT NULL, status INTEGER, reply BLOB, attempts INTEGER NOT NULL, asset TEXT,
            generation INTEGER NOT NULL, retry INTEGER NOT NULL DEFAULT 0, partner INTEGER, size INTEGER NOT NULL,
            settings TEXT, ssid TEXT, bssid TEXT, ip TEXT, UNIQUE (endpoint, seq));
        CREATE TABLE settings (seq INTEGER PRIMARY KEY, change TEXT NOT NULL);
        CREATE TABLE network (seq INTEGER PRIMARY KEY, ssid TEXT, bssid TEXT, ip TEXT);
        CREATE TABLE segment (
            last INTEGER PRIMARY KEY, first INTEGER NOT NULL, rows INTEGER NOT NULL, published INTEGER NOT NULL,
            data BLOB NOT NULL);
        """

    /// FNV-1a over the tables of the first version, with their roots. Those of another version of SQLite may differ.
    static let sumOfFirstTables: UInt64 = 0x662A_F1D0_D63E_47B6

    static func hasFirstTables(_ connection: Connection) throws(OutboxError) -> Bool {
        try sumOfTables(connection) == sumOfFirstTables
    }

    static func sumOfTables(_ connection: Connection) throws(OutboxError) -> UInt64 {
        var sum = FNV1a()
        let rows = try connection.prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema")
        while try rows.step() {
            for column in 0..<5 as Range<Int32> {
                rows.withBytes(column) { for byte in $0 { sum.add(byte) } }
                sum.add(0xFF as UInt8)
            }
        }
        return sum.value
    }

    /// Whether a file has every table of the version that it says it has: with every column, and in a place of its own.
    ///
    /// A byte of the schema that is wrong need not be an error: rows of a table whose key has another type are not found. Tables
    /// that SQLite cannot read, because the header names another format for instance, are not complete.
    static func isComplete(
        _ file: Connection, steps: [String] = migrations
    ) throws(OutboxError) -> Bool {
        let version = try file.integer("PRAGMA user_version")
        let isFirst = try unlessDamaged(true) { () throws(OutboxError) in try hasFirstTables(file) }
        if isFirst == true { return version == firstVersion }
        if version == 0 { return try isBlank(file) }
        guard (firstVersion...Self.version(after: steps)).contains(Int(version)) else { return false }
        let new = try Connection(inMemoryFor: file.path, medium: file.medium)
        for statements in [tables] + steps.prefix(Int(version) - firstVersion) { try new.execute(statements) }
        func columns(of connection: Connection) throws(OutboxError) -> [String] {
            try connection.rows(
                """
                SELECT tables.name || '.' || columns.name || ' ' || columns.type || columns."notnull" || columns.pk
                FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'
                """
            ) { $0.text(0) }
        }
        // A statement that fails here too is a mistake of ours, which says nothing about the file.
        let wanted = try Set(columns(of: new))
        let isComplete = try unlessDamaged(true) { () throws(OutboxError) in
            let roots = try file.rows("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0") { $0.integer(0) }
            guard Set(roots).count == roots.count, try wanted.isSubset(of: columns(of: file)) else { return false }
            // Where the roots are is not known.
            return try file.text("PRAGMA quick_check(1)") == "ok"
        }
        return isComplete ?? false
    }

    /// - Throws: `.corrupt` where tables or header are not those of a queue, although SQLite can use them.
    static func demandSound(_ connection: Connection, steps: [String]) throws(OutboxError) {
        func demand(_ isSound: Bool, _ part: String) throws(OutboxError) {
            if !isSound { throw OutboxError(.corrupt, path: connection.path, message: "its \(part) damaged") }
        }
        try demand(isComplete(connection, steps: steps), "tables are")
        // SQLite would write into pages that are in use.
        try demand(connection.integer("PRAGMA auto_vacuum") == 0, "header is")
        try demand(countsAllPages(connection), "number of pages is")
    }

    /// No page follows the last one that the header counts: SQLite would write new ones over those. Pages are never given back, so
    /// that the rest of the file is empty.
    private static func countsAllPages(_ connection: Connection) throws(OutboxError) -> Bool {
        let count = try connection.integer("PRAGMA page_count")
        let isEmpty = withUnsafeTemporaryAllocation(byteCount: DatabaseFile.pageSize, alignment: 8) { page in
            page.initializeMemory(as: UInt8.self, repeating: 0)
            return !DatabaseFile(connection).read(count, into: page) || page.allSatisfy { $0 == 0 }
        }
        // Another program may have made the file smaller.
        return try isEmpty ? true : connection.text("PRAGMA quick_check(1)") == "ok"
    }

    /// A database in which nothing was ever stored: its first transaction never ended.
    static func isBlank(_ connection: Connection) throws(OutboxError) -> Bool {
        guard try connection.integer("PRAGMA user_version") == 0 else { return false }
        return try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
    }

    /// Whether a file that is only read has the schema that this version knows.
    static func check(_ connection: Connection) throws(OutboxError) {
        let found = Int(try connection.integer("PRAGMA user_version"))
        guard try connection.integer("PRAGMA application_id") == applicationID else {
            throw OutboxError(.foreign, path: connection.path, message: "not a queue of waypost")
        }
        let known = version()
        if found != known {
            throw OutboxError(.otherSchema(found: found, known: known), path: connection.path, message: "")
        }
    }

    /// What keeps commits durable and cheap, read back where SQLite may silently do otherwise.
    private static func configure(_ connection: Connection) throws(OutboxError) {
        // A commit writes whole pages. With ten rows per commit a loop device saw 0.44 kB per row with pages of 512 bytes,
        // 0.57 kB with 1024 and 1.0 kB with 4096.
        try connection.execute("PRAGMA page_size = \(DatabaseFile.pageSize)")
        let mode = try connection.text("PRAGMA journal_mode = WAL")
        try connection.execute("PRAGMA synchronous = FULL")
        let synchronous = try connection.integer("PRAGMA synchronous")
        guard mode == "wal", synchronous == 2 else {
            throw OutboxError(
                .cannotOpen, path: connection.path,
                message: "journal mode \(mode), synchronous \(synchronous), but WAL and FULL are needed")
        }
        // A log that is reused costs one flush per commit, one that grows costs two: so it stays small and is kept.
        connection.checkpointsItself(after: checkpointPages)
        try connection.execute("PRAGMA journal_size_limit = \(logBytesKept)")
        // Deleted rows are not overwritten: that would rewrite every page on its way out.
        try connection.execute("PRAGMA secure_delete = OFF")
        try connection.execute("PRAGMA cache_size = -200")
    }
}
