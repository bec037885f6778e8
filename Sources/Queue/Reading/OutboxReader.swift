import CSQLite
import Profiles

/// Reads a queue without changing it, beside a running daemon or without one.
///
/// Each call is one short transaction, because a reader that stays open would let the daemon's log grow.
package final class OutboxReader {
    /// 16 bytes; empty when nothing was ever stored.
    package let uuid: [UInt8]
    /// First 8 hex digits of the queue's uuid; empty when nothing was ever stored.
    package var name: String { String(hexOf: uuid.prefix(4)) }
    /// nil: the file was made, but the first transaction never ended. That is an empty queue.
    private let database: Database?
    /// Rows that were asked for may be missing, because the file is damaged where they are.
    package private(set) var hasPassedDamage = false
    /// Rows that were asked for may be missing, because the medium could not read them.
    package private(set) var hasFailedReads = false

    /// Opening the file makes a daemon that has the queue to itself let others in.
    package init(path: String) throws(OutboxError) {
        var attempts = 5
        while true {
            do throws(OutboxError) {
                (database, uuid) = try Self.open(path)
                return
            } catch {
                attempts -= 1
                guard error.cause == .locked(pid: nil), attempts > 0 else { throw error }
            }
        }
    }

    private static func open(_ path: String) throws(OutboxError) -> (Database?, [UInt8]) {
        let medium = SystemMedium()
        // A link or a pipe is named by the connection, which opens neither.
        let isOther = medium.mark(path)?.isRegular == false
        guard isOther || !medium.hasLogAlone(path) || !medium.exists(path) else {
            throw OutboxError(
                .corrupt, path: path,
                message: "lost, and its log is not: leave the log where it is, and start the daemon, which reads it")
        }
        let connection = try Connection(path: path, access: .readOnly)
        return try judging(connection) { () throws(OutboxError) in
            if try isBlank(connection) {
                // The commit that made the tables may be behind the end of the log.
                guard let problem = try connection.problemOfLog() else { return (nil, []) }
                throw OutboxError(.corrupt, path: path, message: problem)
            }
            let database = try Database(reading: connection)
            return (database, try database.blob(.uuid) ?? [])
        }
    }

    /// - Throws: `.corrupt` where a statement fails because the tables are not those of a queue.
    private static func judging<Value>(
        _ connection: Connection, _ work: () throws(OutboxError) -> Value
    ) throws(OutboxError) -> Value {
        do throws(OutboxError) { return try work() } catch {
            var error = error
            guard error.isOfSchema else { throw error }
            if try !Schema.isComplete(connection) { error.cause = .corrupt }
            throw error
        }
    }

    /// A rollback journal is left only by a power cut or kill while a new file was being given its log; from then on there
    /// is none. A reader cannot roll it back, and need not.
    private static func isBlank(_ connection: Connection) throws(OutboxError) -> Bool {
        do throws(OutboxError) {
            return try Schema.isBlank(connection)
        } catch  where error.code == SQLITE_READONLY | (3 << 8) {
            return true
        }
    }

    /// What waits for each endpoint that the daemon knew at its last start, configured or removed.
    package func depths() throws(OutboxError) -> [EndpointDepth] {
        try snapshot([]) { (database) throws(OutboxError) in
            var ledger = Ledger()
            ledger.endpoints = try database.endpointRows(mark: try database.mark())
            for index in ledger.endpoints.indices {
                ledger.endpoints[index].oldest = try database.oldestRow(of: ledger.endpoints[index])
                ledger.endpoints[index].removedAt = nil
            }
            return ledger.depths(outbox: String(hexOf: try (database.blob(.uuid) ?? []).prefix(4)))
        }
    }

    /// Rows in the queue, for any endpoint.
    package func rowCount() throws(OutboxError) -> Int {
        try snapshot(0) { (database) throws(OutboxError) in try database.rowCount(mark: try database.mark()) }
    }

    /// The first rows of the queue, oldest first. Of a damaged one, what can be read.
    package func oldest(_ count: Int) throws(OutboxError) -> [QueuedLocation] {
        var found: [QueuedLocation] = []
        var place = QueuePlace()
        while found.count < count, !place.isLast { found += try next(&place, limit: count - found.count) }
        return found
    }

    /// The rows after a place in the queue, oldest first. Of a damaged queue, what can be read: fewer than the limit do not
    /// mean that there are no more.
    package func next(_ place: inout QueuePlace, limit: Int) throws(OutboxError) -> [QueuedLocation] {
        guard limit > 0 else { return [] }
        var readable = place.readable
        let rows = try snapshot([]) { (database) throws(OutboxError) in
            try readable.read(limit, of: database, database.readableNames(isPatient: false))
        }
        if database == nil { readable.finish() }
        place.readable = readable
        guard readable.isFinished else { return rows }
        // Commits behind the end of the log are not there for SQLite.
        let problem: String? = try snapshot(nil) { (database) throws(OutboxError) in
            try database.connection.problemOfLog()
        }
        if problem != nil { hasPassedDamage = true }
        // What could not be read is not known to be damaged.
        if readable.hasFailedReads { hasFailedReads = true } else if readable.hasPassedDamage { hasPassedDamage = true }
        return rows
    }

    /// The last rows of the queue, oldest first. Of a damaged one, what can be read.
    package func newest(_ count: Int) throws(OutboxError) -> [QueuedLocation] {
        do throws(OutboxError) {
            return try snapshot([]) { (database) throws(OutboxError) in try database.newest(count) }
        } catch {
            guard error.cause == .corrupt else { throw error }
        }
        hasPassedDamage = true
        var last: [QueuedLocation] = []
        var place = QueuePlace()
        while !place.isLast { last = Array((last + (try next(&place, limit: 1000))).suffix(max(0, count))) }
        return last
    }

    /// Checks every page and every count, which takes seconds for a large queue.
    ///
    /// - Parameter quick: not whether indices agree with their tables.
    /// - Returns: what is wrong, in words for people; empty = nothing.
    package func verify(quick: Bool = false) throws(OutboxError) -> [String] {
        let medium = SystemMedium()
        let failed = medium.failedReads
        let problems = try problems(quick: quick)
        // The check calls damaged what it could not read.
        guard problems.isEmpty || medium.failedReads == failed else {
            throw OutboxError(failedRead: medium.failedReads, path: database?.connection.path ?? "")
        }
        return problems
    }

    private func problems(quick: Bool) throws(OutboxError) -> [String] {
        try snapshot([]) { (database) throws(OutboxError) in
            var problems: [String] = []
            let check = try database.connection.prepare("PRAGMA \(quick ? "quick" : "integrity")_check(20)")
            do throws(OutboxError) {
                while try check.step() {
                    // The first of its rows has many lines, under a heading.
                    let lines = check.text(0).split(separator: "\n").filter { $0 != "ok" && !$0.hasPrefix("***") }
                    problems += lines.map(String.init)
                }
            } catch {
                // What it has found says more.
                if problems.isEmpty { throw error }
            }
            if let problem = try database.connection.problemOfLog() { problems.append(problem) }
            if problems.isEmpty, try !Schema.isComplete(database.connection) { problems = ["its tables are damaged"] }
            if problems.isEmpty { problems = try database.damagedTables() }
            if problems.isEmpty { problems = try database.rows.problems() }
            // Counting in a damaged file would only find the same again.
            guard problems.isEmpty else { return problems }
            func compare(_ what: String, _ stored: Int64, _ found: Int64) {
                if stored != found { problems.append("\(what): \(stored) counted, \(found) found") }
            }
            func count(_ sql: String) throws(OutboxError) -> Int64 { try database.connection.integer(sql) }
            let mark = try database.mark()
            compare("rows", Int64(try database.rowCount(mark: mark)), Int64(try database.rows.count(RowRange(0, .max))))
            for endpoint in try database.endpointRows(mark: mark) {
                let found = try database.count(of: endpoint, after: endpoint.formed)
                compare("rows for \(endpoint.settings.name)", Int64(endpoint.waiting), Int64(found))
            }
            let broken = try database.connection.rows(
                "SELECT first, last, rows FROM batch WHERE origin = \(BatchRow.Origin.queue.rawValue)"
            ) { (RowRange($0.integer(0), $0.integer(1)), $0.integer(2)) }
            .count { (range, rows) throws(OutboxError) in Int64(try database.rows.count(range)) < rows }
            if broken > 0 { problems.append("\(broken) batches in flight miss rows") }
            problems += try database.strayDetails()
            return problems
        }
    }

    func snapshot<Value>(
        _ blank: Value, _ read: (Database) throws(OutboxError) -> Value
    ) throws(OutboxError) -> Value {
        guard let database else { return blank }
        return try Self.judging(database.connection) { () throws(OutboxError) in try database.snapshot(read) }
    }
}

/// How far the rows of a queue have been read.
package struct QueuePlace: Sendable {
    fileprivate var readable = ReadableRows(from: 0, isPatient: false)

    package init() {}

    /// No rows follow.
    package var isLast: Bool { readable.isFinished }
}

extension Database {
    /// Tables with rows that belong to no location, in words for people. Goes through rows and tables side by side.
    fileprivate func strayDetails() throws(OutboxError) -> [String] {
        var problems: [String] = []
        for table in Record.detailTables {
            let select = try connection.prepare("SELECT seq FROM \(table) ORDER BY seq DESC")
            var next = try select.step() ? select.integer(0) : nil
            var stray = 0
            func pass(to seq: Int64) throws(OutboxError) {
                while let found = next, found >= seq {
                    if found > seq { stray += 1 }
                    next = try select.step() ? select.integer(0) : nil
                }
            }
            var failure: OutboxError?
            try rows.eachBackwards(RowRange(0, .max)) { row in
                do throws(OutboxError) { try pass(to: row.seq) } catch { failure = error }
                return failure == nil && next != nil
            }
            if let failure { throw failure }
            try pass(to: -1)
            if stray > 0 { problems.append("\(stray) rows of \(table) belong to no location") }
        }
        return problems
    }

    /// The last rows, oldest first.
    func newest(_ count: Int) throws(OutboxError) -> [QueuedLocation] {
        var first: Int64?
        var left = max(0, count)
        guard left > 0 else { return [] }
        try rows.eachBackwards(RowRange(0, .max)) { row in
            first = row.seq
            left -= 1
            return left > 0
        }
        guard let first else { return [] }
        return try rows(from: first, through: .max, feed: .engine, limit: count, names: names())
    }
}
