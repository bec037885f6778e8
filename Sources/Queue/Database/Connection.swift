import CSQLite
import Glibc
import WaypostCore

/// One SQLite connection; its owner uses it from one thread at a time.
final class Connection {
    let path: String
    let medium: any QueueMedium
    let handle: OpaquePointer
    private let log = LogCount()
    /// What was committed through this connection, and those before it to the same file.
    private var mark = Committed()

    enum Access {
        case readWrite, readOnly
        /// Writes, and keeps all other programs out while it is open; `.locked` while another has the file open.
        case alone
        /// Reads a file that no other program has open, which the caller guarantees: neither lock nor index is written.
        case readOnlyAlone
    }

    private static let callsAreWrapped: Void = waypost_sqlite_wrap_calls()

    /// Has SQLite's system calls counted, once for the process.
    static func wrapCalls() { _ = callsAreWrapped }

    init(path: String, access: Access, medium: any QueueMedium = SystemMedium()) throws(OutboxError) {
        Self.wrapCalls()
        self.path = path
        self.medium = medium
        for suffix in ["", "-wal", "-journal", "-shm"] where medium.mark(path + suffix)?.isRegular == false {
            throw OutboxError(.cannotOpen, path: path, message: "\(path + suffix) is no regular file: remove it")
        }
        let writes = access == .readWrite || access == .alone
        if writes, medium.exists(path + "-journal"),
            waypost_sqlite_journal_names_file(medium.vfs, path + "-journal") != 0
        {
            throw OutboxError(
                .cannotOpen, path: path,
                message: "\(path)-journal names another file, which SQLite would delete: remove the journal")
        }
        let flags = writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        handle = try Self.open(
            medium.vfs == nil ? Self.withoutLinks(path) : path, flags | SQLITE_OPEN_NOFOLLOW,
            vfs: access == .readOnlyAlone ? medium.vfsWithoutLocks : medium.vfs, for: path)
        guard !writes || !isReadOnly else {
            throw OutboxError(.readOnly, path: path, message: "may only be read")
        }
        _ = waypost_sqlite_add_sum(handle)
        _ = waypost_sqlite_keep_wal(handle)
        _ = waypost_sqlite_distrust(handle)
        if writes { waypost_sqlite_grow_by(handle, Int32(Self.growth)) }
        // A reader finds damage sooner; the daemon does not check its own pages each time.
        if access == .readOnly { try execute("PRAGMA cell_size_check = ON") }
        if access == .alone || access == .readOnlyAlone {
            try execute("PRAGMA locking_mode = EXCLUSIVE")
            // Locks a file that has a log.
            if access == .alone { _ = try integer("PRAGMA user_version") }
        }
        // Writers are kept apart by the lock file; only the recovery of the log by a reader can be in the way.
        sqlite3_busy_timeout(handle, 2000)
    }

    /// Of a file that is known to be damaged: what can be read of its tables counts, and it may be shorter than it says. Where its
    /// log ends early, or it no longer says which tables it has, that is put back.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    convenience init(damaged path: String, isPatient: Bool, medium: any QueueMedium) throws(OutboxError) {
        try LogRepair.putBack(at: path, isPatient: isPatient, medium: medium)
        // With a connection of its own: SQLite does not expect the file to change under it.
        try SchemaPages.putBack(into: Connection(path: path, access: .readWrite, medium: medium), isPatient: isPatient)
        try self.init(path: path, access: .readWrite, medium: medium)
        _ = waypost_sqlite_read_what_is_left(handle)
        // The first statement finds what is wrong with the schema; later ones use what could be read of it, and would not
        // say that a read has failed.
        let failed = medium.failedReads.count
        _ = try? integer("SELECT count(*) FROM sqlite_schema")
        if isPatient, medium.failedReads.count != failed {
            throw OutboxError(failedRead: medium.failedReads, path: path)
        }
        try hideUnsoundRows(isPatient: isPatient)
    }

    /// See `Schema.Summed`.
    func hideUnsoundRows(isPatient: Bool) throws(OutboxError) {
        for table in Schema.summed {
            _ = try unlessDamaged(isPatient) { () throws(OutboxError) in try table.hideUnsoundRows(in: self) }
        }
    }

    /// The directory may be reached by symbolic links, which are the administrator's. The file must not be one: SQLite
    /// refuses it then, as it does a log or an index that is one.
    private static func withoutLinks(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), let directory = realpath(path.parentDirectory, nil) else {
            return path
        }
        defer { free(directory) }
        return String(cString: directory) + path[slash...]
    }

    deinit { sqlite3_close_v2(handle) }

    /// A database that lives in memory.
    ///
    /// - Parameter path: of the queue that it replaces, for errors.
    init(inMemoryFor path: String, medium: any QueueMedium) throws(OutboxError) {
        self.path = path
        self.medium = medium
        handle = try Self.open(":memory:", SQLITE_OPEN_READWRITE, vfs: nil, for: path)
        _ = waypost_sqlite_add_sum(handle)
    }

    private static func open(
        _ name: String, _ flags: Int32, vfs: String?, for path: String
    ) throws(OutboxError) -> OpaquePointer {
        wrapCalls()
        var handle: OpaquePointer?
        let failed = waypost_sqlite_failed_writes()
        let code = sqlite3_open_v2(name, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs)
        if code == SQLITE_OK, let handle { return handle }
        let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        sqlite3_close_v2(handle)
        throw OutboxError(code: code, path: path, message: message, sql: nil).explained(by: failed)
    }

    func execute(_ sql: String) throws(OutboxError) {
        let failed = failedCalls
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        if code != SQLITE_OK { throw error(code, sql: sql, since: failed) }
    }

    /// Prepared statements that nobody uses now, by their text; nil: none is kept.
    fileprivate var idle: [String: OpaquePointer]?

    /// What is asked for each endpoint is prepared once during this work, which is repeated with each commit while the disk
    /// refuses.
    func reusingStatements<Value>(_ work: () throws(OutboxError) -> Value) throws(OutboxError) -> Value {
        guard idle == nil else { return try work() }
        idle = [:]
        defer {
            idle?.values.forEach { sqlite3_finalize($0) }
            idle = nil
        }
        return try work()
    }

    func prepare(_ sql: String) throws(OutboxError) -> Statement {
        let statement = Statement(sql, connection: self)
        try statement.prepare()
        return statement
    }

    /// Every row that a statement finds with these parameters.
    func rows<Row>(
        _ sql: String, _ parameters: [(any SQLValue)?] = [], read: (Statement) -> Row
    ) throws(OutboxError) -> [Row] {
        let statement = try prepare(sql)
        statement.bind(parameters)
        var rows: [Row] = []
        while try statement.step() { rows.append(read(statement)) }
        return rows
    }

    /// Runs a statement with these parameters.
    func run(_ sql: String, _ parameters: (any SQLValue)?...) throws(OutboxError) {
        _ = try rows(sql, parameters) { _ in }
    }

    /// The first column of the first row; 0 when there is none or it is NULL.
    func integer(_ sql: String, _ parameters: Int64...) throws(OutboxError) -> Int64 {
        try first(sql, parameters) ?? 0
    }

    func optionalInteger(_ sql: String, _ parameters: Int64...) throws(OutboxError) -> Int64? {
        try first(sql, parameters)
    }

    private func first(_ sql: String, _ parameters: [Int64]) throws(OutboxError) -> Int64? {
        let statement = try prepare(sql)
        statement.bind(parameters)
        return try statement.step() ? statement.optionalInteger(0) : nil
    }

    /// The first column of the first row. The statement is run to its end, since it may fail only there: `journal_mode = WAL` gives
    /// its row before it writes.
    func text(_ sql: String) throws(OutboxError) -> String { try rows(sql) { $0.text(0) }.first ?? "" }

    /// Whether a file that was opened for writing turned out read-only.
    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Copies the log back into the database after a commit that makes it this many pages long; 0 = not.
    func checkpointsItself(after pages: Int32) {
        log.address.pointee.limit = pages
        waypost_sqlite_watch_log(handle, log.address)
    }

    /// Copies the log back into the database.
    ///
    /// - Parameter mode: `SQLITE_CHECKPOINT_…`.
    /// - Returns: whether another connection kept some of it from being done.
    func checkpoint(_ mode: Int32) throws(OutboxError) -> Bool {
        let failed = failedCalls
        let code = waypost_sqlite_checkpoint(handle, mode, log.address)
        if log.address.pointee.frames == 0 { mark.logEnd = nil }
        guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else {
            throw error(code, sql: "checkpoint", since: failed)
        }
        return code != SQLITE_OK
    }

    /// A transaction is committed.
    func committed() {
        let frames = Int(log.address.pointee.frames)
        if frames == 0 {
            mark.logEnd = nil
        } else if let known = mark.logEnd, known.frames < frames {
            mark.logEnd?.frames = frames
        } else {
            mark.logEnd = LogEnd(of: self, frames: frames)
        }
    }

    /// Has to be called before anything is written. From now on it is kept up to date.
    ///
    /// - Throws: `.corrupt` where something is missing that this process has committed.
    func mustHave(_ committed: Committed) throws(OutboxError) {
        try check(committed)
        mark = committed
    }

    private func check(_ committed: Committed) throws(OutboxError) {
        // A file that is gone is none that ends early.
        guard medium.size(path) > 0 else { return committed.forget() }
        // Opens the log.
        let version = Int(try integer("PRAGMA user_version"))
        try checkEnd(committed, version)
        // The log of another program's database is not ours to judge.
        let isOurs = try integer("PRAGMA application_id") == Schema.applicationID
        guard try isOurs ? true : Schema.isBlank(self) else { return }
        try cutLog(known: committed.earlierEnd)
    }

    private func checkEnd(_ committed: Committed, _ version: Int) throws(OutboxError) {
        let earlier = OutboxError(.corrupt, path: path, message: "it ends before the last commit")
        if let end = committed.logEnd {
            switch try end.isThere(in: self) {
            case true?: log.address.pointee.frames = Int32(clamping: end.frames)
            case false?: throw earlier
            case nil: committed.logEnd = nil
            }
        }
        guard committed.lastSeq > 0, version <= Schema.version() else { return }
        guard version == Schema.version() else { throw earlier }
        let last = try integer(
            """
            SELECT max(coalesce((SELECT value FROM state WHERE id = \(Schema.Key.mark.rawValue)), 0),
            coalesce((SELECT max(formed) FROM endpoint), 0), coalesce((SELECT max(last) FROM segment), 0))
            """)
        if last < committed.lastSeq { throw earlier }
    }

    /// Cuts off what follows the last commit in the log, before anything else is written there: a commit that was under way when the
    /// power went, or that the disk has refused. Several of them would look like damage.
    ///
    /// - Parameter known: how far an earlier process had written it.
    /// - Throws: `.corrupt` where commits follow that were flushed.
    func cutLog(known: LogEnd? = nil) throws(OutboxError) {
        func isLonger() throws(OutboxError) -> LogTail? {
            let tail = try LogFile(self).tail()
            if let problem = tail.problem(known: known) { throw OutboxError(.corrupt, path: path, message: problem) }
            return tail.isThere ? tail : nil
        }
        guard try isLonger() != nil else { return }
        // Another program may just be writing.
        try execute("BEGIN IMMEDIATE")
        defer { try? execute("ROLLBACK") }
        guard let tail = try isLonger() else { return }
        let failed = failedCalls
        let code = waypost_sqlite_cut_log(handle, tail.frames > 0 ? LogFile.size(ofFrames: tail.frames) : 0)
        if code != SQLITE_OK { throw error(code, sql: "cut off the log", since: failed) }
    }

    /// What is wrong with the log, in words; nil = nothing. What is found only once may be the work of a process that writes.
    func problemOfLog() throws(OutboxError) -> String? {
        let tail = try LogFile(self).tail()
        guard let problem = tail.problem() else { return nil }
        return try LogFile(self).tail() == tail ? problem : nil
    }

    /// Bytes by which the file grows at a time.
    static let growth: Int64 = 64 << 10

    /// Allocates this many bytes for the file on the medium, rounded up to `growth`.
    /// - Returns: whether there is; also true where the VFS knows no such request.
    func allocate(_ bytes: Int64) -> Bool {
        let code = waypost_sqlite_allocate(handle, bytes)
        return code == SQLITE_OK || code == SQLITE_NOTFOUND
    }

    /// Rows changed by the last statement.
    var changes: Int { Int(sqlite3_changes64(handle)) }

    /// Rows changed since the connection was opened.
    var totalChanges: Int64 { sqlite3_total_changes64(handle) }

    /// The bytes of a database in memory, as they would be in a file; empty where there is no memory for them.
    func serialized() -> [UInt8] {
        var size: Int64 = 0
        guard let bytes = sqlite3_serialize(handle, "main", &size, 0) else { return [] }
        defer { sqlite3_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(size)))
    }

    /// What has failed on this thread, below SQLite.
    fileprivate struct FailedCalls {
        var reads: Int
        var writes: waypost_failed_reads
    }

    fileprivate var failedCalls: FailedCalls {
        FailedCalls(reads: medium.failedReads.count, writes: waypost_sqlite_failed_writes())
    }

    /// - Parameter failed: `failedCalls` before what has failed.
    fileprivate func error(_ code: Int32, sql: String?, since failed: FailedCalls) -> OutboxError {
        let error = OutboxError(code: code, path: path, message: String(cString: sqlite3_errmsg(handle)), sql: sql)
        let reads = medium.failedReads
        // What could not be read says nothing about the file.
        guard reads.count != failed.reads, error.mayBeDamage else { return error.explained(by: failed.writes) }
        return OutboxError(failedRead: reads, path: path, code: code, sql: sql)
    }
}

/// What a process has committed to a file, as far as it knows.
final class Committed {
    /// The last number of a row.
    var lastSeq: Int64 = 0
    /// How far the log reaches; nil: the database has everything, or that is not known.
    var logEnd: LogEnd?
    /// How far it reached when an earlier process gave the queue up.
    var earlierEnd: LogEnd?

    /// It is another file from now on.
    func forget() { (lastSeq, logEnd, earlierEnd) = (0, nil, nil) }
}

/// Has to be where it is as long as the connection is open.
private final class LogCount {
    let address = UnsafeMutablePointer<waypost_sqlite_log>.allocate(capacity: 1)

    init() { address.initialize(to: waypost_sqlite_log()) }

    deinit { address.deallocate() }
}

/// What a parameter of a statement can be; nil is NULL.
protocol SQLValue {
    func bind(to statement: Statement, _ index: Int32)
}

extension Int64: SQLValue {
    func bind(to statement: Statement, _ index: Int32) { statement.bind(index, self) }
}

extension Int: SQLValue {
    func bind(to statement: Statement, _ index: Int32) { statement.bind(index, Int64(self)) }
}

extension Bool: SQLValue {
    func bind(to statement: Statement, _ index: Int32) { statement.bind(index, self ? 1 : 0) }
}

extension String: SQLValue {
    func bind(to statement: Statement, _ index: Int32) { statement.bind(index, text: self) }
}

extension [UInt8]: SQLValue {
    func bind(to statement: Statement, _ index: Int32) { statement.bind(index, blob: self) }
}

/// A statement. Columns and parameters keep SQLite's numbering: columns from 0, parameters from 1.
///
/// It is prepared by its first use: many a database, such as one that is only read, is closed before most of its
/// statements have run.
final class Statement {
    private let sql: String
    /// A statement must not outlive its connection.
    private let connection: Connection
    /// Read for each column of each row, and never while it is being changed.
    @exclusivity(unchecked) private var prepared: OpaquePointer?
    /// Why it could not be prepared; the next step throws it.
    private var failure: OutboxError?

    init(_ sql: String, connection: Connection) {
        self.sql = sql
        self.connection = connection
    }

    deinit {
        guard let prepared, connection.idle != nil, connection.idle?[sql] == nil else {
            return _ = sqlite3_finalize(prepared)
        }
        sqlite3_reset(prepared)
        sqlite3_clear_bindings(prepared)
        connection.idle?[sql] = prepared
    }

    /// nil: it cannot be prepared. SQLite takes that for a misuse, which does nothing.
    private var handle: OpaquePointer? {
        if prepared == nil { prepared = connection.idle?.removeValue(forKey: sql) }
        if prepared == nil, failure == nil {
            let failed = connection.failedCalls
            let code = sqlite3_prepare_v3(
                connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
            if code != SQLITE_OK { failure = connection.error(code, sql: sql, since: failed) }
        }
        return prepared
    }

    func prepare() throws(OutboxError) {
        _ = handle
        guard let failure else { return }
        self.failure = nil
        throw failure
    }

    /// true = there is a row to read.
    func step() throws(OutboxError) -> Bool {
        try prepare()
        let failed = connection.failedCalls
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let error = connection.error(code, sql: sql, since: failed)
            sqlite3_reset(prepared)
            throw error
        }
    }

    /// Runs it with these parameters to its end and makes it ready for the next run.
    func run(_ parameters: (any SQLValue)?...) throws(OutboxError) {
        bind(parameters)
        while try step() {}
        reset()
    }

    /// Runs it with these parameters, reads every row, and makes it ready for the next run.
    func rows<Row>(
        _ parameters: (any SQLValue)?..., read: (Statement) -> Row
    ) throws(OutboxError) -> [Row] {
        bind(parameters)
        var rows: [Row] = []
        while try step() { rows.append(read(self)) }
        reset()
        return rows
    }

    fileprivate func bind(_ parameters: [(any SQLValue)?]) {
        for (index, value) in zip(Int32(1)..., parameters) {
            if let value { value.bind(to: self, index) } else { bind(index, nil) }
        }
    }

    func bind(_ parameters: [Int64?]) {
        for (index, value) in zip(Int32(1)..., parameters) { bind(index, value) }
    }

    /// Ends a run that was not stepped to its end. The parameters stay.
    func reset() { sqlite3_reset(prepared) }

    func bind(_ index: Int32, _ value: Int64?) {
        if let value { sqlite3_bind_int64(handle, index, value) } else { sqlite3_bind_null(handle, index) }
    }

    fileprivate func bind(_ index: Int32, text: String) {
        var text = text
        text.withUTF8 { buffer in
            // A nil address would bind NULL instead of an empty text.
            guard let address = buffer.baseAddress else { return }
            address.withMemoryRebound(to: CChar.self, capacity: buffer.count) {
                _ = waypost_sqlite_bind_text(handle, index, $0, Int32(buffer.count))
            }
        }
    }

    fileprivate func bind(_ index: Int32, blob: [UInt8]) {
        guard !blob.isEmpty else { return _ = sqlite3_bind_zeroblob(handle, index, 0) }
        blob.withUnsafeBytes { _ = waypost_sqlite_bind_blob(handle, index, $0.baseAddress, Int32($0.count)) }
    }

    var columnCount: Int32 { sqlite3_column_count(handle) }

    /// Binds the value of a column of another statement's row.
    func bind(_ index: Int32, valueOf column: Int32, in row: Statement) {
        sqlite3_bind_value(handle, index, sqlite3_column_value(row.handle, column))
    }

    /// Nothing stored is near its ends; a number from a damaged file must not overflow later arithmetic.
    static let range: ClosedRange<Int64> = -(1 << 60)...1 << 60

    /// NULL reads as 0.
    func integer(_ column: Int32) -> Int64 {
        max(Self.range.lowerBound, min(Self.range.upperBound, sqlite3_column_int64(handle, column)))
    }

    func optionalInteger(_ column: Int32) -> Int64? {
        let value = integer(column)
        return value == 0 && sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : value
    }

    /// NULL reads as an empty text.
    func text(_ column: Int32) -> String { optionalText(column) ?? "" }

    func optionalText(_ column: Int32) -> String? {
        guard let text = sqlite3_column_text(handle, column) else { return nil }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    func blob(_ column: Int32) -> [UInt8]? {
        guard sqlite3_column_type(handle, column) != SQLITE_NULL else { return nil }
        guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
        let count = Int(sqlite3_column_bytes(handle, column))
        return Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Lends the bytes of a column until the next step; none for NULL.
    func withBytes<Value>(_ column: Int32, _ work: (UnsafeRawBufferPointer) -> Value) -> Value {
        let bytes = sqlite3_column_blob(handle, column)
        return work(
            UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : Int(sqlite3_column_bytes(handle, column))))
    }
}

extension OutboxError {
    init(code: Int32, path: String, message: String, sql: String?) {
        let cause: Cause =
            switch code & 0xFF {
            case SQLITE_FULL: .full
            case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .readOnly
            case SQLITE_IOERR: .io
            // A length that is too great for SQLite is none that a queue has written.
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_TOOBIG: .corrupt
            case SQLITE_BUSY, SQLITE_LOCKED: .locked(pid: nil)
            case SQLITE_CANTOPEN: .cannotOpen
            default: .refused
            }
        self.init(cause, path: path, code: code, message: message, sql: sql)
    }

    /// A read has failed below SQLite, whatever SQLite made of it.
    init(failedRead reads: FailedReads, path: String, code: Int32 = 0, sql: String? = nil) {
        self.init(.io, path: path, code: code, message: "read: \(String(cString: strerror(reads.reason)))", sql: sql)
    }

    /// SQLite calls it an error of the medium where there is no room for a file beside the queue, such as the index of its log.
    ///
    /// - Parameter failed: the writes that had failed before.
    fileprivate func explained(by failed: waypost_failed_reads) -> OutboxError {
        let writes = waypost_sqlite_failed_writes()
        guard cause == .io || cause == .cannotOpen, writes.count != failed.count,
            writes.reason == ENOSPC || writes.reason == EDQUOT
        else { return self }
        var error = self
        error.cause = .full
        error.message = "write: \(String(cString: strerror(writes.reason)))"
        return error
    }

    /// No read has failed, and the file may be damaged: if it is, the same work fails in the same way once more, on what is
    /// read from the medium again.
    var mayBeDamage: Bool { cause == .corrupt || isOfSchema }

    /// A statement names what the schema does not have, or is wrong.
    var isOfSchema: Bool { cause == .refused && code & 0xFF == SQLITE_ERROR }
}
