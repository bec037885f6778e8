/// The tables of the queue and the way from each version to the next.
enum Schema {
    /// `WAYP`: distinguishes a queue from any other SQLite file.
    static let applicationID: Int64 = 0x5741_5950

    /// Step n leads from version n to n + 1; each runs in a transaction of its own.
    static let migrations = [version1, version2, version3, version4, version5]

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

    // Small integers keep a row at some 50 bytes. NULL is unknown. Only rare things (crossings, trips) have tables of
    // their own, so that an ordinary row does not pay a byte for each of their columns.
    private static let record = """
        trackable INTEGER, boot INTEGER, time_ms INTEGER NOT NULL, received_delta_ms INTEGER,
        lat_e7 INTEGER NOT NULL, lon_e7 INTEGER NOT NULL, altitude_cm INTEGER, altitude_hae_cm INTEGER,
        accuracy_dm INTEGER, speed_cms INTEGER, course_ddeg INTEGER, hdop_c INTEGER, satellites INTEGER,
        battery INTEGER, odometer_dm INTEGER NOT NULL, reason INTEGER, published INTEGER NOT NULL,
        event INTEGER NOT NULL, flags INTEGER NOT NULL
        """
    private static let crossing = "fence TEXT NOT NULL, name TEXT, action INTEGER NOT NULL, source INTEGER NOT NULL"
    private static let trip = """
        start_ms INTEGER NOT NULL, start_lat_e7 INTEGER NOT NULL, start_lon_e7 INTEGER NOT NULL,
        end_ms INTEGER NOT NULL, distance_dm INTEGER NOT NULL, idle_ms INTEGER NOT NULL, max_speed_cms INTEGER
        """

    private static let version1 = """
        CREATE TABLE state (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value);
        CREATE TABLE trackable (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE boot (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE reason (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE location (seq INTEGER PRIMARY KEY, \(record));
        CREATE TABLE geofence (seq INTEGER PRIMARY KEY, \(crossing));
        CREATE TABLE trip (seq INTEGER PRIMARY KEY, \(trip));
        CREATE TABLE endpoint (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL,
            acked INTEGER NOT NULL, unsettled INTEGER NOT NULL, required INTEGER NOT NULL, feed INTEGER NOT NULL,
            state TEXT NOT NULL, reason TEXT, removed_at INTEGER,
            regenerated_through INTEGER NOT NULL, generation INTEGER NOT NULL);
        CREATE TABLE cursor (
            endpoint INTEGER NOT NULL, trackable INTEGER NOT NULL, acked INTEGER NOT NULL,
            PRIMARY KEY (endpoint, trackable)) WITHOUT ROWID;
        CREATE TABLE batch (
            endpoint INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL,
            trackable INTEGER, feed INTEGER NOT NULL, sent_ms INTEGER, newest_seq INTEGER NOT NULL,
            generation INTEGER NOT NULL, rendering TEXT NOT NULL,
            PRIMARY KEY (endpoint, first)) WITHOUT ROWID;
        CREATE TABLE quarantine (
            id INTEGER PRIMARY KEY, endpoint INTEGER NOT NULL, seq INTEGER NOT NULL, \(record),
            fence TEXT, fence_name TEXT, fence_action INTEGER, fence_source INTEGER,
            why TEXT NOT NULL, status INTEGER, reply BLOB, attempts INTEGER NOT NULL);
        """

    /// 256 KiB of log.
    static let checkpointPages: Int32 = 512

    /// A log that has grown is cut off to this size once it begins again.
    static let logBytesKept: Int64 = 1 << 20

    /// `formed` is the cursor as of `mark`; batches may be beyond it. `unsettled` are rows after the cursor.
    private static let version2 = """
        ALTER TABLE endpoint RENAME COLUMN acked TO formed;
        ALTER TABLE endpoint ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE endpoint ADD COLUMN spare INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE endpoint ADD COLUMN wanted_fingerprint TEXT;
        ALTER TABLE endpoint ADD COLUMN bound_through INTEGER;
        UPDATE endpoint SET accepted = formed > 0;
        ALTER TABLE batch RENAME TO old_batch;
        CREATE TABLE batch (
            endpoint INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL,
            feed INTEGER NOT NULL, origin INTEGER NOT NULL, through INTEGER NOT NULL, picked BLOB, broken BLOB,
            route TEXT, sent_ms INTEGER, newest_seq INTEGER, generation INTEGER NOT NULL, rendering TEXT NOT NULL,
            PRIMARY KEY (endpoint, first)) WITHOUT ROWID;
        INSERT INTO batch SELECT endpoint, first, last, rows, feed, 0, last, NULL, NULL, NULL, sent_ms, NULL, generation,
            rendering FROM old_batch;
        DROP TABLE old_batch;
        DROP TABLE cursor;
        CREATE TABLE ahead (
            endpoint INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            PRIMARY KEY (endpoint, first)) WITHOUT ROWID;
        DROP TABLE quarantine;
        CREATE TABLE quarantine (
            id INTEGER PRIMARY KEY AUTOINCREMENT, endpoint INTEGER NOT NULL, seq INTEGER NOT NULL, \(record),
            fence TEXT, fence_name TEXT, fence_action INTEGER, fence_source INTEGER,
            start_ms INTEGER, start_lat_e7 INTEGER, start_lon_e7 INTEGER, end_ms INTEGER, distance_dm INTEGER,
            idle_ms INTEGER, max_speed_cms INTEGER,
            why TEXT NOT NULL, status INTEGER, reply BLOB, attempts INTEGER NOT NULL, asset TEXT,
            generation INTEGER NOT NULL, retry INTEGER NOT NULL DEFAULT 0, partner INTEGER, size INTEGER NOT NULL,
            UNIQUE (endpoint, seq));
        """

    /// Rows may be without position and time, which older versions would take for a place in the Gulf of Guinea, and may
    /// have an activity, both in `flags`: what is stored already stays as it is.
    private static let version3 = """
        CREATE TABLE settings (seq INTEGER PRIMARY KEY, change TEXT NOT NULL);
        ALTER TABLE quarantine ADD COLUMN settings TEXT;
        CREATE TABLE network (seq INTEGER PRIMARY KEY, ssid TEXT, bssid TEXT, ip TEXT);
        ALTER TABLE quarantine ADD COLUMN ssid TEXT;
        ALTER TABLE quarantine ADD COLUMN bssid TEXT;
        ALTER TABLE quarantine ADD COLUMN ip TEXT;
        """

    /// New rows go into segments. What is in `location` drains from there, so that a long queue costs nothing at the start.
    private static let version4 = """
        CREATE TABLE segment (
            last INTEGER PRIMARY KEY, first INTEGER NOT NULL, rows INTEGER NOT NULL, published INTEGER NOT NULL,
            data BLOB NOT NULL);
        """

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

        /// A file of an earlier version has no checksums.
        func isOfEarlierVersion(in connection: Connection) throws(OutboxError) -> Bool {
            let columns = try connection.rows("SELECT name FROM pragma_table_info('\(table)', 'main')") { $0.text(0) }
            return !columns.isEmpty && !columns.contains("sum")
        }

        /// Of a damaged file, lets rows be found only if they are as they were written.
        func hideUnsoundRows(in connection: Connection) throws(OutboxError) {
            guard try !isOfEarlierVersion(in: connection) else { return }
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

    private static var version5: String {
        summed.map { "ALTER TABLE \($0.table) ADD COLUMN sum INTEGER; UPDATE \($0.table) SET sum = \($0.sum);" }
            .joined(separator: "\n")
    }

    /// Brings an open database to the newest version, or refuses it without having touched it.
    static func migrate(_ connection: Connection, steps: [String] = migrations) throws(OutboxError) {
        let found = Int(try connection.integer("PRAGMA user_version"))
        let application = try connection.integer("PRAGMA application_id")
        // Each step changes a table: with those of the newest version, any other version is damage.
        if found != migrations.count, application == applicationID, try hasNewestTables(connection) {
            throw OutboxError(.corrupt, path: connection.path, message: "its header is damaged: schema \(found)")
        }
        // A version far from any is damage.
        if found > steps.count, found < 1000, application == applicationID {
            throw OutboxError(.newerSchema(found: found, known: steps.count), path: connection.path, message: "")
        }
        let isOurs = try application == applicationID ? true : isBlank(connection)
        guard isOurs else {
            let tables = "('location', 'endpoint', 'batch', 'boot', 'state')"
            let known = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name IN \(tables)")
            throw OutboxError(
                known == 5 ? .corrupt : .foreign, path: connection.path,
                message: known == 5 ? "its header is damaged" : "a database, but not a queue of waypost")
        }
        // The file may be written, but its header has a format that this SQLite only reads. No queue has it.
        guard !connection.isReadOnly else {
            throw OutboxError(.corrupt, path: connection.path, message: "its header is damaged")
        }
        guard found >= 0, found <= steps.count else {
            throw OutboxError(.corrupt, path: connection.path, message: "schema \(found)")
        }
        try configure(connection)
        guard found < steps.count else { return }
        // All of them or none: no reader finds a half-migrated file.
        try connection.execute("BEGIN IMMEDIATE")
        do throws(OutboxError) {
            for step in found == 0 ? fromBlank(to: steps) : steps[found...] { try connection.execute(step) }
            try connection.execute("PRAGMA application_id = \(applicationID)")
            try connection.execute("PRAGMA user_version = \(steps.count)")
            try connection.execute("COMMIT")
        } catch {
            if connection.isInTransaction { try? connection.execute("ROLLBACK") }
            throw error
        }
    }

    /// Makes the tables of the newest version in an empty database.
    static func create(in connection: Connection) throws(OutboxError) { try connection.execute(newest) }

    /// Statements that make the tables to which steps lead.
    private static func fromBlank(to steps: [String]) -> ArraySlice<String> {
        steps.starts(with: migrations) ? [newest] + steps[migrations.count...] : steps[...]
    }

    /// What all steps lead to. SQLite parses all tables again after each change of one, which costs more than all else of a first start.
    static let newest = """
        CREATE TABLE state (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value, sum INTEGER);
        CREATE TABLE trackable (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE boot (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE reason (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
        CREATE TABLE location (seq INTEGER PRIMARY KEY, \(record));
        CREATE TABLE geofence (seq INTEGER PRIMARY KEY, \(crossing));
        CREATE TABLE trip (seq INTEGER PRIMARY KEY, \(trip));
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
            id INTEGER PRIMARY KEY AUTOINCREMENT, endpoint INTEGER NOT NULL, seq INTEGER NOT NULL, \(record),
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

    /// FNV-1a over the tables with their roots, as `newest` makes them and as the steps do. Those of another version of SQLite may
    /// differ.
    private static let newestTables: [UInt64] = [0x6ED4_E613_690D_8E6D, 0x13D3_8DD7_1B95_A90D]

    static func hasNewestTables(_ connection: Connection) throws(OutboxError) -> Bool {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ byte: UInt8) { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let rows = try connection.prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema")
        while try rows.step() {
            for column in 0..<5 as Range<Int32> {
                rows.withBytes(column) { for byte in $0 { add(byte) } }
                add(0xFF)
            }
        }
        return newestTables.contains(sum)
    }

    /// Whether a file has every table of the version that it says it has: with every column, and in a place of its own.
    ///
    /// A byte of the schema that is wrong need not be an error: rows of a table whose key has another type are not found. Tables
    /// that SQLite cannot read, because the header names another format for instance, are not complete.
    static func isComplete(
        _ file: Connection, steps: [String] = migrations
    ) throws(OutboxError) -> Bool {
        let version = try file.integer("PRAGMA user_version")
        let isNewest = try unlessDamaged(true) { () throws(OutboxError) in try hasNewestTables(file) }
        if isNewest == true { return version == migrations.count }
        guard (0...Int64(steps.count)).contains(version) else { return false }
        let new = try Connection(inMemoryFor: file.path, medium: file.medium)
        for step in steps.prefix(Int(version)) { try new.execute(step) }
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
        if found > migrations.count {
            throw OutboxError(.newerSchema(found: found, known: migrations.count), path: connection.path, message: "")
        }
        if found < migrations.count {
            throw OutboxError(.olderSchema(found: found, known: migrations.count), path: connection.path, message: "")
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
