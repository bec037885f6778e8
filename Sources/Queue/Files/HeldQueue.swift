import CSQLite
import WaypostCore

/// What another program has done to the files of a queue while it is in use.
struct FileDifference: OptionSet {
    let rawValue: Int

    /// The name of the database leads to another file, or to none.
    static let databaseMoved = FileDifference(rawValue: 1)
    static let databaseWritten = FileDifference(rawValue: 2)
    static let logMoved = FileDifference(rawValue: 4)
    static let logWritten = FileDifference(rawValue: 8)

    /// `… was removed or replaced`, for people.
    func words(_ path: String) -> String {
        func of(_ path: String, _ moved: FileDifference, _ written: FileDifference) -> String? {
            if contains(moved) { return "\(path) was removed or replaced" }
            return contains(written) ? "\(path) was overwritten" : nil
        }
        return [of(path, .databaseMoved, .databaseWritten), of("\(path)-wal", .logMoved, .logWritten)]
            .compactMap { $0 }.joined(separator: " and ") + " by another program while in use"
    }
}

/// The files of a queue, held open for as long as the queue is: their rows do not go with their names.
///
/// A name may lead to another file at any time, because somebody removes it, or puts a backup in its place. SQLite notices
/// neither: it goes on writing to the file that it has open, which is gone with the process.
final class HeldQueue {
    private struct Part {
        let file: any HeldFile
        /// As of the last commit.
        var mark: FileMark
    }

    private let files: QueueFiles
    private var database: Part?
    private var log: Part?
    /// A connection is open, and no other program writes: sizes and times change with what this process does alone.
    var isWatched = false
    /// What was found and is not put right yet.
    private var pending: FileDifference = []
    /// Differences in nothing but the time, so far. A file system may change times by itself.
    private var timeAlarms = 0
    private static let timeAlarmsMax = 3
    /// The database was written as one file, and was not opened since.
    private var isWithoutLog = false
    /// The names of the files are in place, but not known to be durable.
    private var isUnflushed = false
    /// Copies of other files that lay at the path, whose rows are to be brought back.
    var others: [Int64] = []
    /// The content was read through a connection that another program may have spoiled: it has to be checked.
    var isUnchecked = false
    private var found = Replacement()
    /// Words before and after those about the rows that were written again.
    private var wordsOfReplacement: (before: String, after: String)?
    /// What was written again was damaged, and became this copy; and rows that had been given up before.
    private(set) var spoiled: (copy: Int64, lostBefore: Int64)?

    private var path: String { files.path }
    private var logPath: String { files.path + "-wal" }
    private var medium: any QueueMedium { files.medium }

    init(_ files: QueueFiles) { self.files = files }

    /// Locks the database at the path, if there is one, before it is opened.
    func claim() throws(OutboxError) {
        isWatched = false
        pending = []
        if database != nil, isInPlace { return }
        (database, log) = (nil, nil)
        guard medium.exists(path) else { return }
        database = try held(path)
        note(medium.mark(path), medium.mark(logPath))
    }

    private func held(_ path: String) throws(OutboxError) -> Part {
        let file = try medium.hold(path)
        guard file.lock() else { throw OutboxError(.locked(pid: nil), path: path, message: "") }
        guard let mark = file.mark else { throw OutboxError(.io, path: path, message: "its size cannot be read") }
        return Part(file: file, mark: mark)
    }

    /// A connection to the path was opened.
    func opened(_ connection: Connection, isWatched: Bool) throws(OutboxError) {
        if database == nil || isSetAside { database = try held(path) }
        guard isInPlace, !connection.hasMoved else {
            throw OutboxError(.io, path: path, message: "\(path) was replaced while it was opened")
        }
        if !Self.isInPlace(log, medium.mark(logPath)) { log = nil }
        self.isWatched = isWatched
        isWithoutLog = false
        note(medium.mark(path), medium.mark(logPath))
    }

    /// The file that is held was damaged, and has become a copy.
    private var isSetAside: Bool {
        !isInPlace && files.copies().contains { Self.isInPlace(database, medium.mark(files.copy($0))) }
    }

    /// The name of the database leads to the file that is held, or none is held.
    var isInPlace: Bool { Self.isInPlace(database, medium.mark(path)) }

    private static func isInPlace(_ part: Part?, _ there: FileMark?) -> Bool {
        guard let part else { return true }
        return there?.isSameFile(as: part.mark) ?? false
    }

    /// What has happened to the files since this process last wrote to them.
    ///
    /// Where a closed queue has no log any more, or another one, that is no fault if the database has changed: another program may
    /// have been the last to close it, and has copied the log into the database.
    /// - Parameter isOpen: a connection has the files open.
    func difference(isOpen: Bool) -> FileDifference {
        // Setting it aside may have failed half-way: whatever opens the queue goes on from the copy.
        if !isOpen, isSetAside { (database, log, isWithoutLog, pending) = (nil, nil, false, []) }
        pending.subtract([.databaseMoved, .logMoved])
        if let database { pending.formUnion(compare(database, path, .databaseMoved, .databaseWritten)) }
        if isOpen, let log { pending.formUnion(compare(log, logPath, .logMoved, .logWritten)) }
        if isOpen, log == nil, !medium.exists(logPath) { pending.formUnion([.logMoved, .logWritten]) }
        if !isOpen, hasOtherLog, medium.mark(path) == database?.mark { pending.insert(.logMoved) }
        return pending
    }

    private var hasOtherLog: Bool {
        log == nil ? isWithoutLog && medium.size(logPath) > 0 : !Self.isInPlace(log, medium.mark(logPath))
    }

    private func compare(
        _ part: Part, _ path: String, _ moved: FileDifference, _ written: FileDifference
    ) -> FileDifference {
        let there = medium.mark(path)
        let isMoved = !Self.isInPlace(part, there)
        guard isWatched, let now = isMoved ? part.file.mark : there else { return isMoved ? moved : [] }
        let isWritten =
            now.size != part.mark.size || (now.modified != part.mark.modified && timeAlarms < Self.timeAlarmsMax)
        return isMoved ? isWritten ? [moved, written] : moved : isWritten ? written : []
    }

    /// The queue has a smaller last number than the process before this one had committed.
    func foundOlder(than lastSeq: Int64, through last: Int64) {
        found.count += 1
        wordsOfReplacement = nil
        found.words =
            "\(path) ends with location \(last), and waypost had stored \(lastSeq) before it was stopped: an older copy was put in "
            + "its place, or the medium has lost what it had confirmed; locations between the two are not in it, and those that "
            + "were sent since are sent again"
    }

    /// There was no queue, and the process before this one had left one.
    func foundNone(after lastSeq: Int64) {
        found.count += 1
        wordsOfReplacement = nil
        found.words =
            "\(path) was removed while waypost was stopped, with all that was queued up to location \(lastSeq); put it back while "
            + "waypost is stopped, if that was not meant"
    }

    /// This process has written to the files, or tried to.
    ///
    /// - Parameter storedBytes: of the pages that are stored. SQLite cuts the database off no further: room that was given to a
    ///   transaction goes when that is rolled back.
    /// - Returns: whether they are in place. Otherwise nothing that was written counts before they are put back.
    @discardableResult
    func settle(storedBytes: Int64) -> Bool {
        let (main, wal) = (medium.mark(path), medium.mark(logPath))
        if !Self.isInPlace(database, main) { pending.insert(.databaseMoved) }
        if !Self.isInPlace(log, wal) { pending.insert(.logMoved) }
        if log == nil, wal == nil { pending.formUnion([.logMoved, .logWritten]) }
        // The log it cuts off down to this size only.
        if isWatched, let database, let main, main.size < min(database.mark.size, storedBytes) {
            pending.insert(.databaseWritten)
        }
        if isWatched, let log, let wal, wal.size < min(log.mark.size, Schema.logBytesKept) {
            pending.insert(.logWritten)
        }
        if pending.isEmpty { note(main, wal) }
        return pending.isEmpty
    }

    /// This process may have changed the database, or its times, without a connection.
    func noteDatabase() {
        if let mark = medium.mark(path), Self.isInPlace(database, mark) { database?.mark = mark }
    }

    /// This process has tried to open the queue: SQLite may have begun or removed the log meanwhile.
    func openingFailed() {
        noteDatabase()
        let mark = medium.mark(logPath)
        guard !Self.isInPlace(log, mark) else { return }
        log = nil
        note(nil, mark)
    }

    /// The log was cut off by this process.
    func noteLog() {
        if let mark = medium.mark(logPath), Self.isInPlace(log, mark) { log?.mark = mark }
    }

    /// The files are not as they should be, and were not put back yet.
    var isDisplaced: Bool { !pending.isEmpty }

    private func note(_ main: FileMark?, _ wal: FileMark?) {
        if let main { database?.mark = main }
        guard let wal else { return }
        if log != nil {
            log?.mark = wal
        } else if let file = try? medium.hold(logPath) {
            log = Part(file: file, mark: wal)
        }
    }

    /// Gives up the files, once no connection to them is open.
    func close() {
        database = nil
        log = nil
        pending = []
    }
}

// Putting them back.
extension HeldQueue {
    /// Makes what was put back durable, where that failed before.
    func flush() throws(OutboxError) {
        guard isUnflushed else { return }
        try files.flushNames()
        isUnflushed = false
    }

    /// Puts the files under their names again; the connections to the former ones have to be closed then.
    ///
    /// What lies at the path is set aside before. `.corrupt`: the content cannot be read.
    /// - Parameter connection: to the files that are held, if one is open.
    func putBack(_ difference: FileDifference, from connection: Connection?) throws(OutboxError) {
        // No file is taken from another daemon. A link, a pipe or a device is none's, and only its name goes.
        var other: Part?
        if difference.contains(.databaseMoved), let there = medium.mark(path), there.isRegular || there.isDirectory {
            other = try held(path)
        }
        defer { withExtendedLifetime(other) {} }
        if !difference.isDisjoint(with: [.databaseWritten, .logWritten]), hasOnlyOtherTimes { timeAlarms += 1 }
        var copy: Int64?
        isWithoutLog = difference != .logMoved || log == nil
        if difference == .logMoved {
            try files.replaceLog(by: log?.file.copy)
        } else {
            try writePart(difference, from: connection)
            try files.finishPart()
            // All that is in these is in the new file.
            if difference.isDisjoint(with: [.logMoved, .logWritten]) { medium.remove(logPath) }
            if difference.isDisjoint(with: [.databaseMoved, .databaseWritten]) { medium.remove(path) }
            copy = try files.finishReplacing()
            database = try held(path)
        }
        log = nil
        note(medium.mark(path), medium.mark(logPath))
        pending = []
        isWatched = false
        isUnflushed = true
        if let copy { others.append(copy) }
        found.count += 1
        let kept = copy.map { files.copy($0) }.map { copy in
            "; \(copy) is what lay there" + (medium.mark(copy)?.isRegular == true ? ", and its rows are added" : "")
        }
        wordsOfReplacement = (
            "\(difference.words(path)); it was written again", "\(kept ?? ""); let nothing change it while waypost runs"
        )
        spoiled = nil
        try flush()
    }

    /// What was written again turned out to be damaged, and was set aside.
    ///
    /// - Parameter lostBefore: rows that had been given up before.
    func became(copy: Int64, lostBefore: Int64) { spoiled = (copy, lostBefore) }

    /// - Parameter rest: of the copy `spoiled`; nil = there is none.
    func report(_ rest: Salvaging.Rest?) -> Replacement {
        guard let (before, after) = wordsOfReplacement else { return found }
        var report = found
        report.words = before + (isUnchecked ? "" : rest?.words ?? Salvaging.Rest.nothing.words) + after
        return report
    }

    private var hasOnlyOtherTimes: Bool {
        [database, log].allSatisfy { part in part.map { $0.file.mark?.size == $0.mark.size } ?? true }
    }

    /// Writes the content as one file.
    private func writePart(_ difference: FileDifference, from connection: Connection?) throws(OutboxError) {
        files.removePart()
        let isWritten = !difference.isDisjoint(with: [.databaseWritten, .logWritten])
        if isWritten, let connection {
            // What it has in memory, and in the file that was not written to, is all that is left.
            isUnchecked = true
            if let log { waypost_sqlite_pad_log(connection.handle, log.mark.size) }
            do throws(OutboxError) { return try connection.copy(to: files.part) } catch {
                // The file at the path is not the one that is damaged.
                guard error.cause == .corrupt, difference.contains(.databaseMoved) else { throw error }
                return try copyParts([(database, "")])
            }
        }
        try copyParts([(database, ""), (log, "-wal")])
        try mergePart()
        for suffix in ["-wal", "-shm"] { medium.remove(files.part + suffix) }
    }

    private func copyParts(_ parts: [(Part?, String)]) throws(OutboxError) {
        for (part, suffix) in parts {
            let reason = part?.file.copy(to: files.part + suffix) ?? 0
            if reason != 0 { throw OutboxError(system: reason, path: path, doing: "write \(files.part + suffix)") }
        }
    }

    private func mergePart() throws(OutboxError) {
        let part = try Connection(path: files.part, access: .alone, medium: medium)
        try part.execute("PRAGMA synchronous = FULL")
        guard try part.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
            throw OutboxError(.io, path: path, message: "\(files.part) is in use")
        }
    }
}

extension Connection {
    /// The name of the file leads to another one by now, or to none.
    var hasMoved: Bool { waypost_sqlite_has_moved(handle) != 0 }

    /// Copies what this connection sees into a new file, and flushes it.
    fileprivate func copy(to path: String) throws(OutboxError) {
        let reason = medium.create(path)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "open") }
        let copy = try Connection(path: path, access: .readWrite, medium: medium)
        // What a power cut leaves of it is not used.
        try copy.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL")
        let backup = sqlite3_backup_init(copy.handle, "main", handle, "main")
        let failed = medium.failedReads
        var code = backup == nil ? sqlite3_errcode(copy.handle) : sqlite3_backup_step(backup, -1)
        let end = backup == nil ? SQLITE_OK : sqlite3_backup_finish(backup)
        if code == SQLITE_DONE { code = end }
        guard code != SQLITE_OK else { return }
        let reads = medium.failedReads
        guard reads.count == failed.count else { throw OutboxError(failedRead: reads, path: self.path, code: code) }
        var error = OutboxError(
            code: code, path: self.path, message: String(cString: sqlite3_errmsg(copy.handle)), sql: nil)
        // The log is shorter than its index says.
        if code == SQLITE_IOERR | (2 << 8) { error.cause = .corrupt }
        throw error
    }
}
