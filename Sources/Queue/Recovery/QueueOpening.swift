import Profiles
import WaypostCore

/// A queue file that was opened.
struct OpenedQueue {
    var database: Database
    var opened: Database.Opened
    var plan = SalvagePlan()
    /// nil: the file was good.
    var setAside: (copy: String, reason: String)?
}

/// Opens a queue file. One that is damaged is moved away, and a new one replaces it, with higher numbers.
struct QueueOpening {
    var settings: OutboxSettings
    var endpoints: [EndpointSettings]
    /// Of a queue that is new.
    var newUUID: [UInt8]
    var medium: any QueueMedium = SystemMedium()
    /// The last number that was given, as far as the caller knows.
    var lastSeq: Int64 = 0
    /// What is to be brought back already; nil = as the file has it.
    var plan: SalvagePlan?
    /// The endpoints, as far as the caller knows; none = as the file has them.
    var before: [Ledger.Endpoint] = []
    /// What the file has to hold: this process has committed it.
    var committed = Committed()
    /// Batches in flight as far as the caller has their rows, by id.
    var known: [String: Batch] = [:]
    /// Rows in the file that one of them still needs; nil = as the file has it.
    var expected: Int?
    /// What the process before this one has left.
    var noted: QueueNote?
    /// What is known to be wrong with the file; nil = nothing.
    var damage: OutboxError?
    /// A damaged file is set aside; otherwise that is thrown.
    var maySetAside = true
    /// What is known of the file; unless it is trusted, the medium is read.
    var cache = PageCache.trusted
    var access = Connection.Access.readWrite
    /// Of a damaged file, what the medium cannot read just now is waited for; otherwise that counts as damage.
    var isPatient = true

    private var files: QueueFiles { QueueFiles(path: settings.path, medium: medium) }

    func open() throws(OutboxError) -> OpenedQueue {
        try files.finishReplacing()
        try files.finishSettingAside()
        try files.dropFromPageCache(cache)
        var found = damage
        if found != nil, try isBegun() { found = nil }
        if found == nil {
            switch try openAsItIs() {
            case .success(let queue): return queue
            case .failure(let error): found = error
            }
        }
        if let found, !maySetAside { throw found }
        let copy = try files.setAside()
        committed.forget()
        let database = try Database(path: settings.path, access: access, committed: committed, medium: medium)
        let next = try goOn(from: copy, in: database)
        let opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        return OpenedQueue(
            database: database, opened: opened, plan: next, setAside: (files.copy(copy), found?.description ?? ""))
    }

    /// Lets a new queue go on where a damaged one ended, and plans what is to be brought back from there.
    ///
    /// - Parameter isOrphan: the copy was made by an earlier process, and is the last one. That may be a file that another program had put
    ///   in the place of the new queue before it was finished, and that knows of no other copy.
    private func goOn(
        from copy: Int64, in database: Database, isOrphan: Bool = false
    ) throws(OutboxError) -> SalvagePlan {
        if !medium.hasPage(files.copy(copy)) { try SchemaPages.begin(files.copy(copy), medium: medium) }
        let damaged = try DamagedQueue(path: files.copy(copy), noted: noted, isPatient: isPatient, medium: medium)
        var plan = plan ?? damaged.plan ?? SalvagePlan(parts: files.copies().filter { $0 != copy }.map(wholeCopy))
        if isOrphan {
            let known = plan.copies.union(plan.finished)
            plan.parts += files.copies().filter { $0 != copy && !known.contains($0) }.map(wholeCopy)
        }
        // An earlier one may have had its number.
        plan.finished.remove(copy)
        plan.parts.append(.init(copy: copy, next: 0, through: lastSeq > 0 ? lastSeq : damaged.lastSeq))
        plan.counts[copy] = .init(expected: expected.map(Int64.init) ?? damaged.expected)
        let mark = max(lastSeq, damaged.lastSeq)
        // At a start ids go on only where it is certain that no number is given twice.
        let uuid = before.isEmpty ? damaged.uuid : newUUID
        var rows: [Int64: QueuedLocation] = [:]
        /// By the ids of endpoints in the copy.
        var keeping: [Int64: Set<Int64>] = [:]
        try database.transaction { () throws(OutboxError) in
            try database.store(.mark, mark)
            let waited = before.isEmpty ? damaged.endpoints : before.filter { $0.unsent > 0 || $0.wanted != nil }
            for (number, settings) in endpoints.enumerated() {
                let earlier = waited.first {
                    $0.settings.name == settings.name && $0.removedAt == nil && !$0.isSpare
                }
                guard let earlier else { continue }
                let endpoint = earlier.begun(as: Int64(number + 1), after: mark)
                try database.write(endpoint)
                guard let uuid, !endpoint.isSpare else { continue }
                for batch in earlier.batches where batch.origin == .queue && batch.through <= mark {
                    guard let found = try damaged.rows(of: batch, earlier, known, outbox: uuid) else { continue }
                    try database.write(batch, endpoint: endpoint.id)
                    for row in found where row.seq <= mark {
                        rows[row.seq] = row
                        keeping[earlier.id, default: []].insert(row.seq)
                    }
                    plan.kept.insert(.init(copy: copy, endpoint: earlier.id, first: batch.first))
                }
            }
            if let uuid, !rows.isEmpty {
                try store(rows.values.sorted { $0.seq < $1.seq }, in: database)
                try database.store(.uuid, uuid)
                // One that comes back for another endpoint as well counts then.
                plan.counts[copy]?.returned = Int64(
                    rows.keys.count { seq in
                        waited.allSatisfy { $0.hasHad(seq) || keeping[$0.id]?.contains(seq) == true }
                    })
            }
            try database.store(.salvage, plan.bytes)
            try database.store(damaged.parts)
        }
        return plan
    }

    /// Stores rows under the numbers that they have.
    private func store(_ rows: [QueuedLocation], in database: Database) throws(OutboxError) {
        let appending = RowAppending(
            queue: Transaction(
                database: database, ledger: Ledger(), outbox: newUUID, processRun: ProcessRun(bootID: nil, random: []),
                settings: settings))
        var stored: [StoredRow] = []
        for row in rows {
            let boot = try appending.number(ofBoot: row.bootID)
            stored.append(
                try appending.storedRow(NewRow(row.location, receivedMs: row.receivedMs), seq: row.seq, boot: boot))
        }
        try database.rows.append(stored)
        try database.store(.rows, Int64(stored.count))
    }

    /// Also of an earlier copy, where it is not known what came back from it: that may come twice, but is not lost.
    private func wholeCopy(_ copy: Int64) -> SalvagePlan.Part { .init(copy: copy, next: 0, through: Ledger.seqMax) }

    /// Whether a damaged queue was set aside and the one that replaces it was not finished.
    private func isBegun() throws(OutboxError) -> Bool {
        guard !files.copies().isEmpty else { return false }
        guard medium.exists(settings.path) else { return true }
        return try unlessDamaged(true) { () throws(OutboxError) in
            let connection = try Connection(path: settings.path, access: .readOnly, medium: medium)
            let tables = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'state'")
            let uuid = "SELECT count(*) FROM state WHERE id = \(Schema.Key.uuid.rawValue)"
            if tables == 0 { return true }
            return try connection.integer(uuid) == 0
        } ?? false
    }

    /// - Returns: the queue, or what is wrong with its file. It is damaged only if it fails in the same way through another
    ///   connection, once it has left the page cache, and no read fails meanwhile.
    private func openAsItIs() throws(OutboxError) -> Result<OpenedQueue, OutboxError> {
        let first: OutboxError
        do throws(OutboxError) { return .success(try openGood()) } catch {
            guard error.mayBeDamage else { throw error }
            first = error
        }
        try files.dropFromPageCache(.suspect)
        let failed = medium.failedReads
        do throws(OutboxError) { return .success(try openGood()) } catch {
            try error.mustBeDamage(since: failed, as: first, of: medium)
            return .failure(error)
        }
    }

    private func openGood() throws(OutboxError) -> OpenedQueue {
        let database = try Database(path: settings.path, access: access, committed: committed, medium: medium)
        if cache == .suspect { try database.restartLog() }
        // The power may have gone between the copy and the queue that replaces it.
        var orphan = try database.blob(.uuid) == nil ? files.copies().last : nil
        if let copy = orphan, [files.copy(copy), files.copy(copy) + "-wal"].allSatisfy({ !medium.hasPage($0) }) {
            orphan = nil
        }
        let isLost = orphan.map { !medium.hasPage(files.copy($0)) } ?? false
        if let orphan { _ = try goOn(from: orphan, in: database, isOrphan: true) }
        var opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        opened.ledger.retention = Retention(stored: try database.integer(.thinned))
        guard opened.ledger.isPlausible else {
            throw OutboxError(.corrupt, path: settings.path, message: "numbers that were never given")
        }
        let plan = SalvagePlan(bytes: try database.blob(.salvage) ?? [])
        return OpenedQueue(
            database: database, opened: opened, plan: plan,
            setAside: orphan.map { copy in
                (
                    files.copy(copy),
                    isLost ? "\(settings.path): lost, and its log is not" : "it was set aside, and the power went"
                )
            })
    }
}

/// When a process may set a file aside.
///
/// Where a medium reads one file after the other wrongly, its answers are to blame, and each new file would be the next copy: rows
/// stay in memory for a while, and the same file is tried again.
struct SetAsidePace {
    private var count = 0
    /// Boot clock, nanoseconds: the last time.
    private var last: Int64 = 0

    private static let atOnce = 2
    private static let minute: Int64 = 60_000_000_000
    private static let longest = 60 * minute
    private static let memory = 24 * 60 * minute

    func mayBegin(at now: Int64) -> Bool {
        count < Self.atOnce || now - last >= min(Self.longest, 5 * Self.minute << Int64(min(6, count - Self.atOnce)))
    }

    mutating func begun(at now: Int64) {
        if now - last > Self.memory { count = 0 }
        count += 1
        last = now
    }
}

/// Reads of one place that a medium fails again and again, for long, and none of which succeeds between.
///
/// A page that cannot be read any more would keep the queue in memory, or what waits behind it from being sent, for ever. After an hour
/// its file is set aside: what can be read of it is brought back, and the rest is tried again from time to time.
struct FailingReads {
    private var run = 0
    private var since: Int64 = 0
    /// Boot clock, nanoseconds.
    private var last: Int64 = 0
    private var count = 0

    private static let minute: Int64 = 60_000_000_000
    /// After so long without one, the medium works again.
    private static let rest = 10 * minute
    private static let longest = 60 * minute
    private static let least = 12

    mutating func failed(_ reads: FailedReads, at now: Int64) {
        if count == 0 || reads.run != run || now - last > Self.rest { (run, since, count) = (reads.run, now, 0) }
        last = now
        count += 1
    }

    func areLasting(_ reads: FailedReads, at now: Int64) -> Bool {
        count >= Self.least && reads.run == run && now - last <= Self.rest && last - since >= Self.longest
    }
}

extension Ledger.Endpoint {
    /// As a new queue goes on from a damaged one: nothing waits for it yet, and no number is beyond what it can be.
    fileprivate func begun(as id: Int64, after mark: Int64) -> Self {
        var endpoint = self
        endpoint.id = id
        endpoint.formed = mark
        endpoint.waiting = 0
        endpoint.generation = max(1, generation)
        endpoint.regeneratedThrough = max(0, min(mark, regeneratedThrough))
        if let bound = wanted?.boundThrough { endpoint.wanted?.boundThrough = min(mark, bound) }
        return endpoint
    }
}

/// What can still be read of a damaged queue about itself.
private struct DamagedQueue {
    /// The last number that is known to have been given.
    var lastSeq: Int64 = 0
    /// nil: that cannot be read.
    var plan: SalvagePlan?
    var parts = PartStates()
    /// Rows that one of the endpoints still needed, at most; nil: that cannot be read.
    var expected: Int64?
    /// For whom rows waited, or may come back, with their batches.
    var endpoints: [Ledger.Endpoint] = []
    /// nil: numbers may have been given that cannot be read.
    var uuid: [UInt8]?
    private var database: Database?
    /// nil: one is gone, or not as it was written.
    private var names: Record.Names?
    private let isPatient: Bool

    /// - Parameters:
    ///   - noted: what the process before this one has left.
    ///   - isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    init(path: String, noted: QueueNote?, isPatient: Bool, medium: any QueueMedium) throws(OutboxError) {
        self.isPatient = isPatient
        func read<Value>(_ work: () throws(OutboxError) -> Value?) throws(OutboxError) -> Value? {
            try unlessDamaged(isPatient, work) ?? nil
        }
        let opened = try read { () throws(OutboxError) in
            try Database(damaged: Connection(damaged: path, isPatient: isPatient, medium: medium))
        }
        database = opened
        guard let database = opened else { return }
        let connection = database.connection
        for sql in [Schema.Key.mark.select, "SELECT max(formed) FROM endpoint", "SELECT max(last) FROM segment"] {
            let seq = try read { () throws(OutboxError) in try connection.integer(sql) }
            guard let seq, (0...Ledger.seqMax / 2).contains(seq) else { continue }
            lastSeq = max(lastSeq, seq)
        }
        // The tables need not lead to it.
        let last = try read { () throws(OutboxError) in try SegmentPages.last(of: connection, isPatient: isPatient) }
        lastSeq = max(lastSeq, min(last ?? 0, Ledger.seqMax / 2))
        func blob(_ key: Schema.Key) throws(OutboxError) -> [UInt8]? {
            try read { () throws(OutboxError) in try database.blob(key) }
        }
        let found = try blob(.uuid)
        if let noted, found == nil || found == noted.uuid { lastSeq = max(lastSeq, noted.lastSeq) }
        parts = PartStates(
            tracker: try blob(.tracker), source: try blob(.file), channels: try blob(.channels),
            beacons: try blob(.beacons))
        let isStateSound = try database.isSound(.state, isPatient: isPatient)
        plan = try blob(.salvage).map(SalvagePlan.init(bytes:)) ?? (isStateSound ? SalvagePlan() : nil)
        let isRecovering = plan?.parts.isEmpty == false
        let readMark = try read { () throws(OutboxError) in try connection.optionalInteger(Schema.Key.mark.select) }
        let mark = readMark ?? lastSeq
        // Numbers leap farther at a start than rows may have come since the mark.
        if readMark != nil, found?.count == 16 { uuid = found }
        names = try read { () throws(OutboxError) in
            for table in [Schema.Summed.trackable, .boot, .reason]
            where try !database.isSound(table, isPatient: isPatient) { return nil }
            return try database.names()
        }
        var areEndpointsSound = true
        for table in [Schema.Summed.endpoint, .batch] where try !database.isSound(table, isPatient: isPatient) {
            areEndpointsSound = false
        }
        let known = try read { () throws(OutboxError) in try database.knownEndpoints() } ?? []
        for var endpoint in known {
            endpoint.batches = try read { () throws(OutboxError) in try database.batchRows(of: endpoint.id) } ?? []
            let isSending = try read { () throws(OutboxError) in
                try connection.integer("SELECT 1 FROM batch WHERE endpoint = \(endpoint.id) LIMIT 1")
            }
            if isRecovering || endpoint.formed < lastSeq || isSending == 1 { endpoints.append(endpoint) }
            let inFlight = try read { () throws(OutboxError) in
                try connection.integer("SELECT sum(rows) FROM batch WHERE origin = 0 AND endpoint = \(endpoint.id)")
            }
            guard areEndpointsSound, endpoint.removedAt == nil, !endpoint.isSpare, let inFlight else { continue }
            let unsent = Int64(endpoint.waiting) + inFlight + max(0, lastSeq - max(mark, endpoint.formed))
            expected = max(expected ?? 0, unsent)
        }
    }
}

extension DamagedQueue {
    /// The rows of a batch, with the one that it carries as the newest; nil: not all of them are known.
    ///
    /// - Parameters:
    ///   - known: batches whose rows the process has, by id.
    ///   - uuid: of the queue.
    fileprivate func rows(
        of batch: BatchRow, _ endpoint: Ledger.Endpoint, _ known: [String: Batch], outbox uuid: [UInt8]
    ) throws(OutboxError) -> [QueuedLocation]? {
        if let known = known[batch.id(outbox: String(hexOf: uuid.prefix(4)), endpoint: endpoint.settings.name)],
            known.rows.count == batch.rows, known.newest?.seq == batch.newestSeq
        {
            return known.rows + [known.newest].compactMap { $0 }
        }
        guard let database, let names else { return nil }
        let found = try unlessDamaged(isPatient) { () throws(OutboxError) -> [QueuedLocation]? in
            var rows = try database.rows(of: batch, endpoint: endpoint.id, names: names)
            guard rows.count == batch.rows, rows.first?.seq == batch.first, rows.last?.seq == batch.last else {
                return nil
            }
            if let newest = batch.newestSeq {
                let row = try database.rows(from: newest, through: newest, feed: .engine, limit: 1, names: names).first
                guard let row else { return nil }
                rows.append(row)
            }
            return rows
        }
        return found ?? nil
    }
}

extension OutboxError {
    /// The same work was done once more, on what the medium was read for again.
    ///
    /// - Parameters:
    ///   - failed: the reads that had failed before that.
    ///   - first: how it failed the first time.
    /// - Throws: where this does not show that the file is damaged: itself, or that the medium reads now this and now that.
    func mustBeDamage(since failed: FailedReads, as first: OutboxError, of medium: any QueueMedium) throws(OutboxError)
    {
        guard mayBeDamage else { throw self }
        let reads = medium.failedReads
        guard reads.count == failed.count else {
            throw OutboxError(failedRead: reads, path: path, code: code, sql: sql)
        }
        guard code == first.code, message == first.message, sql == first.sql else {
            throw OutboxError(
                .io, path: path, code: code, message: "\(message), and when it was read before: \(first.message)",
                sql: sql)
        }
        if isOfSchema, try Schema.isComplete(Connection(path: path, access: .readWrite, medium: medium)) { throw self }
    }
}

extension Ledger {
    /// No queue lives long enough for more rows, and every server can keep such numbers apart.
    static let seqMax: Int64 = 1 << 53

    /// Whether these are numbers that counting can have led to.
    fileprivate var isPlausible: Bool {
        (0...Self.seqMax).contains(lastSeq) && firstSeq >= 0 && firstSeq <= lastSeq + 1
            && (0...Self.seqMax).contains(Int64(rows))
            && endpoints.allSatisfy {
                (0...Self.seqMax).contains($0.formed) && $0.generation >= 0
            }
    }
}
