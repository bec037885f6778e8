import CSQLite
import Delivery
import Profiles
import WaypostCore

/// The durable queue: what was recorded waits here, in order, until every endpoint that needs it has accepted it.
///
/// One writer at a time; a second instance is refused with `.locked`. `commit` is the only way to change anything, and
/// what it returns is on the medium, or says that it is not (`CommitReply.refusal`): while the disk refuses, the same code
/// works on a database in memory, with the same numbers, batches and ids, and the disk gets the result once it works again.
package final class Outbox {
    package let settings: OutboxSettings
    /// 16 bytes, made once for this file.
    package private(set) var uuid: [UInt8]
    /// First 8 hex digits of `uuid`: the queue's part of every batch id.
    package var name: String { String(hexOf: uuid.prefix(4)) }
    /// Why the disk refuses; a later commit tries again. nil = it does not.
    package var refusal: OutboxError? { memory?.refusal }
    /// Each as of the last commit that brought it.
    package private(set) var parts = PartStates()

    private(set) var ledger = Ledger()
    private(set) var processRun: ProcessRun
    private var phase = Phase.resting {
        didSet { if database == nil { held.isWatched = false } }
    }
    /// The files of the queue, whatever their names lead to.
    private let held: HeldQueue
    /// To the file, which has to hold it when it is opened again.
    private let committed = Committed()
    var salvaging = Salvaging()
    private var endpoints: [EndpointSettings]
    private let medium: any QueueMedium
    private var lock: (any QueueLock)?
    /// nil: other programs may read at any time.
    private let readers: ReaderWatch?
    private let worksWithoutDisk: Bool
    /// Batches in flight, by id, as far as they were read or formed.
    private var known: [String: Batch] = [:]
    /// Batches of the queue in memory when another was found on disk, by id.
    private var former: [String: FormerBatch] = [:]
    /// For the next reply: endpoints that are not held for an old binding any more, and batches that went with a damaged
    /// file.
    private var released: [String] = []
    private var dissolved: [String] = []
    /// Of the last row, Unix milliseconds.
    private var lastTime = Int64.min
    /// Bytes of the log as of the last commit.
    private var logBytes: Int64 = 0
    private var sentUnstored = 0
    /// Whether what the kernel shows of the file is on the medium.
    private var cache = PageCache.unknown
    /// Openings that have failed since the last one that did not.
    private var failedOpenings = 0
    private var failingReads = FailingReads()
    private var setAsides = SetAsidePace()

    /// Where commits go.
    private enum Phase {
        /// To the file, which is open.
        case disk(Database)
        /// To the file, which the next commit opens.
        case resting
        /// To memory, while the disk refuses.
        case memory(MemoryQueue)
        /// Nowhere any more.
        case closed
    }

    /// nil while the file is not open.
    var database: Database? { if case .disk(let database) = phase { database } else { nil } }
    /// nil while the disk does not refuse.
    private var memory: MemoryQueue? { if case .memory(let memory) = phase { memory } else { nil } }
    private var isClosed: Bool { if case .closed = phase { true } else { false } }

    /// The file is opened again with the next commit.
    private func rest() { if database != nil { phase = .resting } }

    /// After so many failed openings what cannot be read of a damaged file counts as damaged.
    private static let patience = 12
    /// A log that a reader keeps from being copied back may always be this large.
    private static let leastLog: Int64 = 4 << 20

    /// - Parameters:
    ///   - endpoints: the configured ones, in their order. An endpoint that is no longer among them keeps its cursor
    ///     and its rows up to this moment until `forget`.
    ///   - bootID: of the running system; nil when it has none.
    ///   - newUUID: 16 random bytes, other ones at each start: they name a queue that is new, and determine how far the
    ///     numbers leap at this start.
    ///   - worksWithoutDisk: goes on in memory where the disk refuses, with `refusal`.
    ///   - locksExclusively: locks the file until a reader comes, which saves flash writes. For an outbox that goes to an
    ///     `OutboxWriter`, which lets them in.
    ///   - medium: of its files.
    package init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        worksWithoutDisk: Bool = false, locksExclusively: Bool = false, medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        self.medium = medium
        held = HeldQueue(QueueFiles(path: settings.path, medium: medium))
        readers = locksExclusively ? ReaderWatch(medium: medium) : nil
        self.settings = settings
        self.endpoints = endpoints
        self.worksWithoutDisk = worksWithoutDisk
        processRun = ProcessRun(bootID: bootID, random: newUUID)
        salvaging = Salvaging(life: 1 + newUUID.suffix(6).reduce(0) { $0 << 8 | Int64($1) })
        uuid = newUUID
        do throws(OutboxError) {
            let lock = try medium.lock(settings.path)
            self.lock = lock
            let left = QueueNote(lock.note)
            committed.earlierEnd = left?.log
            let queue = try open(noted: left)
            // No earlier run gave numbers of it.
            if queue.opened.isNew { processRun.leap = 0 }
            phase = .disk(queue.database)
            adopt(queue.opened)
            salvaging.adopt(queue.plan)
            if let left, left.uuid == uuid, !queue.opened.isNew, left.lastSeq > ledger.lastSeq {
                if queue.setAside == nil { held.foundOlder(than: left.lastSeq, through: ledger.lastSeq) }
                skip(to: left.lastSeq, in: queue.database)
            }
            if let left, queue.opened.isNew, queue.setAside == nil { held.foundNone(after: left.lastSeq) }
        } catch {
            guard worksWithoutDisk, error.isOfDisk else { throw error }
            // With what the disk holds, as far as it can be read.
            let start = try MemoryQueue.Start(
                settings, endpoints: endpoints, newUUID: newUUID, hasNoOtherWriter: lock != nil, held: held,
                medium: medium, processRun: &processRun, error)
            phase = .memory(start.queue)
            adopt(start.opened)
            for batch in start.inFlight { known[batch.id] = batch }
        }
    }

    private func adopt(_ opened: Database.Opened) {
        uuid = opened.uuid
        committed.lastSeq = database == nil ? 0 : opened.ledger.lastSeq
        ledger = opened.ledger
        ledger.recorded = RecordingTimes(earlierThrough: ledger.lastSeq)
        parts = opened.parts
    }

    /// The numbers up to this one were given, although the file does not have them: a server that has rows under them would take new
    /// ones for repeats.
    private func skip(to last: Int64, in database: Database) {
        ledger.lastSeq = last
        let stored: Void? = try? database.transaction { () throws(OutboxError) in try database.writeCounts(ledger) }
        if stored != nil { (ledger.mark, committed.lastSeq) = (last, last) }
        held.settle(storedBytes: database.storedBytes)
    }

    /// The last rows on disk, oldest first; none where they cannot be read.
    package func newest(_ count: Int) -> [QueuedLocation] { (try? database?.newest(count)) ?? [] }

    /// Depths and counts as of the last commit.
    package var current: CommitReply { complete(CommitReply(lastSeq: ledger.lastSeq)) }

    /// The reply as of now: rows may have been brought back since the commit.
    private func complete(_ reply: CommitReply) -> CommitReply {
        var reply = reply
        reply.lastSeq = ledger.lastSeq
        reply.depths = ledger.depths(outbox: name)
        reply.removed = removedEndpoints.filter { $0.rows > 0 }
        reply.rows = ledger.rows + (memory?.rowsOnDisk ?? 0)
        (reply.limitReached, reply.shortage) = (ledger.retention.reached, ledger.retention.shortage)
        reply.recovery = salvaging.report(
            onDisk: memory == nil, at: medium.now, of: QueueFiles(path: settings.path, medium: medium))
        reply.replacement = held.report(held.spoiled.map { salvaging.rest(of: $0.copy, lostBefore: $0.lostBefore) })
        reply.refusal = memory?.refusal
        reply.unstored = memory == nil ? 0 : ledger.rows
        reply.sentUnstored = sentUnstored
        if let usage = try? database?.usage() {
            logBytes = usage.log
            reply.bytes = usage.live + usage.log
        }
        return reply
    }

    /// Endpoints that are no longer configured and have a cursor here, with or without rows.
    package var removedEndpoints: [RemovedEndpoint] {
        ledger.endpoints.filter { $0.removedAt != nil }.map { .init(name: $0.settings.name, rows: $0.unsent) }
    }

    /// Batches that were formed and not finished, to be sent first: the same rows under the same id, oldest first for each
    /// endpoint whose cursor they are of.
    ///
    /// One whose rows cannot be read is not among them. The commit that asks for it finds out why.
    package func inFlight() -> [Batch] {
        ledger.endpoints.flatMap { endpoint in
            endpoint.removedAt == nil && endpoint.state != .rebind
                ? endpoint.batches.compactMap { try? batch($0, of: endpoint) } : []
        }
    }

    private func batch(_ row: BatchRow, of endpoint: Ledger.Endpoint) throws(OutboxError) -> Batch? {
        let id = row.id(outbox: name, endpoint: endpoint.settings.name)
        if known[id] == nil, memory == nil {
            let database = try opened()
            let rows = try database.rows(of: row, endpoint: endpoint.id, names: ledger.names)
            known[id] = try database.batch(row, rows, of: endpoint, outbox: uuid, names: ledger.names)
        }
        return known[id]
    }

    /// All of it or nothing, on the medium when this returns without a `refusal`.
    ///
    /// A queue that turns out to be damaged is set aside, and the commit goes into a new one.
    ///
    /// - Throws: where it may not work without the disk, and where even memory fails: then nothing of it was done.
    package func commit(_ commit: Commit) throws(OutboxError) -> CommitReply {
        for settings in commit.reloaded {
            for index in endpoints.indices where endpoints[index].name == settings.name {
                endpoints[index].copyPace(from: settings)
            }
            ledger.reload(settings)
        }
        var reply = try store(commit)
        reply.released = released
        reply.formed.removeAll { dissolved.contains($0.id) }
        reply.dissolved += dissolved
        (released, dissolved) = ([], [])
        return reply
    }

    private func store(_ commit: Commit) throws(OutboxError) -> CommitReply {
        if let memory {
            // Here first: what is answered in it may be about batches that another queue on disk does not know.
            let reply = try store(commit, in: memory)
            return commit.asksDisk ? returnToDisk(from: memory, reply, commit.orders) : reply
        }
        let reply: CommitReply
        let failed = medium.failedReads
        do throws(OutboxError) { reply = try storeOnDisk(commit) } catch {
            note(error, since: failed)
            guard worksWithoutDisk, !isClosed else { throw error }
            return try store(commit, in: try beginInMemory(error))
        }
        guard held.isDisplaced else { return reply }
        // The files that have the commit are not in place: its rows count once they are.
        do throws(OutboxError) { _ = try opened() } catch {
            guard worksWithoutDisk, !isClosed else { throw error }
            _ = try beginInMemory(error)
        }
        return complete(reply)
    }

    /// A file is damaged if the same commit fails in the same way once more, first through the open connection, then on what is
    /// read from the medium again.
    private func storeOnDisk(_ commit: Commit) throws(OutboxError) -> CommitReply {
        var database: Database? = try opened(answered: commit.answers)
        var first: OutboxError?
        for _ in 0..<2 {
            do throws(OutboxError) {
                if let database { return try store(commit, in: database) }
            } catch {
                first = nil
                // Another program is to blame, which has changed the files: they are put right.
                if held.isDisplaced { break }
                guard error.mayBeDamage, lock != nil else { throw error }
                first = error
            }
        }
        // Its connection is closed before the file is opened once more.
        database = nil
        let failed = medium.failedReads
        do throws(OutboxError) {
            return try store(commit, in: try opened(answered: commit.answers))
        } catch {
            guard let first, lock != nil else { throw error }
            rest()
            try error.mustBeDamage(since: failed, as: first, of: medium)
            return try store(commit, in: try opened(damage: error, answered: commit.answers))
        }
    }

    private func store(_ commit: Commit, in database: Database) throws(OutboxError) -> CommitReply {
        var reply = CommitReply(lastSeq: ledger.lastSeq)
        if !commit.isEmpty {
            // When the supply has gone, what matters is that the rows are safe soon: the log is copied back later.
            let isUrgent = commit.rows.indices.contains { index in
                commit.rows[index].location.event == .power
                    && commit.rows[index].location.power.externalPower == false
            }
            if isUrgent { database.connection.checkpointsItself(after: 0) }
            defer { if isUrgent { database.connection.checkpointsItself(after: Schema.checkpointPages) } }
            let transaction = transaction(on: database, settings)
            do throws(OutboxError) {
                try boundLog(of: database)
                reply = try transaction.run(commit)
            } catch {
                failed(error)
                throw error
            }
            noteRows(of: transaction)
            stored(commit, transaction, reply)
            guard held.settle(storedBytes: database.storedBytes) else { return reply }
        }
        let changes = database.connection.totalChanges
        salvage(database, commit.ages)
        if self.database !== database || database.connection.totalChanges != changes {
            held.settle(storedBytes: self.database?.storedBytes ?? 0)
        }
        return complete(reply)
    }

    private func transaction(
        on database: Database, _ settings: OutboxSettings, _ memory: MemoryRules? = nil
    ) -> Transaction {
        Transaction(
            database: database, ledger: ledger, outbox: uuid, processRun: processRun, settings: settings, known: known,
            former: former, memory: memory)
    }

    /// The file has the rows of a transaction.
    private func noteRows(of transaction: Transaction) {
        // Where the file was gone, the numbers go on, and it has none of them.
        if transaction.ledger.lastSeq > ledger.lastSeq { committed.lastSeq = transaction.ledger.lastSeq }
    }

    private func stored(_ commit: Commit, _ transaction: Transaction, _ reply: CommitReply) {
        ledger = transaction.ledger
        processRun = transaction.processRun
        if let row = commit.rows.last(where: \.location.isPlaced) { lastTime = row.location.time.milliseconds }
        parts.update(commit.parts)
        known = [:]
        for id in ledger.batchIDs(outbox: name) { known[id] = transaction.known[id] }
        for batch in reply.formed { known[batch.id] = batch }
    }

    /// A reader that stays keeps the log from being copied back, and it grows with each commit.
    private func boundLog(of database: Database) throws(OutboxError) {
        guard logBytes > max(Self.leastLog, (settings.maxBytes ?? 256 << 20) / 4) else { return }
        let isBusy = try database.connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        held.noteLog()
        guard isBusy else { return }
        throw OutboxError(
            .full, path: settings.path,
            message: "its log has grown to \(logBytes >> 20) MiB, because another program keeps the queue open")
    }

    /// Brings some rows of a damaged copy back, after a commit that is on the medium whatever becomes of this.
    ///
    /// - Parameter ages: with the present of the commit.
    private func salvage(_ database: Database, _ ages: AgeReference?) {
        let files = QueueFiles(path: settings.path, medium: medium)
        planOthers(database, files)
        guard self.database === database else { return }
        guard var step = salvaging.read(for: endpoints, of: files, maxBytes: settings.maxBytes) else { return }
        let (plan, now) = (salvaging.plan, ages?.now)
        if step.next.lost > plan.lost { step.next.lostMs = max(0, ages?.trusted?.milliseconds ?? 0) }
        do throws(OutboxError) {
            do throws(OutboxError) {
                try bringBack(step, in: database, at: now)
            } catch {
                failed(error)
                salvaging.refused(isUncertain: self.database == nil)
                guard error.mayBeDamage, lock != nil else { return }
                throw error
            }
        } catch {
            // Bringing rows back may be the first to run into damage.
            let reads = medium.failedReads
            do throws(OutboxError) {
                let database = try opened()
                if salvaging.plan == plan { try bringBack(step, in: database, at: now) }
            } catch let again {
                failed(again)
                salvaging.refused(isUncertain: self.database == nil)
                guard (try? again.mustBeDamage(since: reads, as: error, of: medium)) != nil else { return }
                _ = try? opened(damage: again)
            }
        }
    }

    private func bringBack(_ step: Salvaging.Step, in database: Database, at now: EventTime?) throws(OutboxError) {
        let transaction = transaction(on: database, settings)
        var lastTime = lastTime
        let (inversions, released) = try SalvageIntake(queue: transaction).bringBack(
            step.rows, gaps: step.gaps, after: &lastTime, plan: step.next, at: now)
        noteRows(of: transaction)
        ledger = transaction.ledger
        processRun = transaction.processRun
        self.lastTime = lastTime
        self.released += released
        salvaging.stored(step, inversions: inversions)
    }

    /// Plans to bring back the rows of files that had taken the place of the queue.
    private func planOthers(_ database: Database, _ files: QueueFiles) {
        guard !held.others.isEmpty else { return }
        var plan = salvaging.plan
        for copy in held.others {
            // What is no queue, or not a sound one, is kept as it is. Of this queue all is known that has a number already.
            guard let name = Self.uuid(of: files.copy(copy), medium) else { continue }
            plan.parts.append(
                .init(copy: copy, next: name == uuid ? ledger.lastSeq + 1 : 0, through: Ledger.seqMax))
        }
        guard plan != salvaging.plan else { return held.others = [] }
        do throws(OutboxError) {
            try database.transaction { () throws(OutboxError) in try database.store(.salvage, plan.bytes) }
            held.others = []
            ledger.isSalvaging = true
            salvaging.adopt(plan)
        } catch {
            failed(error)
        }
    }

    private static func uuid(of path: String, _ medium: any QueueMedium) -> [UInt8]? {
        let connection = try? Connection(path: path, access: .readOnlyAlone, medium: medium)
        let sql = "SELECT value FROM state WHERE id = \(Schema.Key.uuid.rawValue)"
        return (try? connection?.rows(sql) { $0.blob(0) ?? [] })?.first
    }

    /// Closes the file and gives up its lock. Everything committed is on the medium already; the log stays as it is.
    package func close() {
        if database != nil { try? putInPlace() }
        if database != nil, committed.lastSeq > 0 {
            lock?.leave(QueueNote(uuid: uuid, lastSeq: committed.lastSeq, log: committed.logEnd).text)
        }
        memory?.below.close()
        phase = .closed
        held.close()
        lock = nil
    }

    /// Puts the files under their names again where another program has removed, replaced or overwritten them.
    ///
    /// - Throws: where that is not possible: an open connection still has the rows.
    private func putInPlace() throws(OutboxError) {
        let kept = database ?? memory?.below.kept
        let difference = held.difference(isOpen: kept != nil)
        guard !difference.isEmpty else { return try held.flush() }
        defer {
            // The connection is to files that the names do not lead to any more.
            if !held.isDisplaced {
                rest()
                memory?.below.close()
            }
        }
        do throws(OutboxError) {
            try lockForWriting()
            try held.putBack(difference, from: kept?.connection)
        } catch {
            var error = error
            error.message = "\(difference.words(settings.path)), and cannot be written again: \(error.message)"
            throw error
        }
    }

    /// Keeps a second writer away before this one writes.
    private func lockForWriting() throws(OutboxError) {
        guard !isClosed else { throw OutboxError(.cannotOpen, path: settings.path, message: "closed") }
        if lock?.isForReading == true { lock = nil }
        guard let former = lock else { return lock = try medium.lock(settings.path) }
        guard !former.isInPlace else { return }
        do throws(OutboxError) { lock = try medium.lock(settings.path) } catch {
            // The database itself is locked.
            if !held.isInPlace { throw error }
        }
    }

    /// The file, opened again where it was closed.
    ///
    /// - Parameters:
    ///   - damage: what is known to be wrong with it: then it is set aside.
    ///   - answered: answers that the commit carries.
    private func opened(
        damage: OutboxError? = nil, answered: [BatchAnswer] = []
    ) throws(OutboxError) -> Database {
        if damage == nil { try putInPlace() }
        if readers?.mayCloseAgain == true {
            readers?.closesAgain()
            rest()
        }
        if damage != nil { rest() }
        if let database { return database }
        try lockForWriting()
        let given = ledger
        var before = given.endpoints
        for index in before.indices {
            for answer in answered { before[index].keepUnaccepted(after: answer, outbox: name) }
        }
        let queue = try open(
            lastSeq: given.lastSeq, plan: salvaging.plan, before: given.endpoints, expected: given.mostUnsent,
            damage: damage)
        // Also by a try that failed after it.
        let copies = queue.plan.copies.subtracting(salvaging.plan.copies)
        if !copies.isEmpty {
            let kept = Set(queue.opened.ledger.batchIDs(outbox: name))
            dissolved += given.batchIDs(outbox: name).filter { !kept.contains($0) }
        }
        salvaging.note(queue.plan.withoutKept(before), before: copies)
        salvaging.adopt(queue.plan)
        ledger = queue.opened.ledger
        committed.lastSeq = ledger.lastSeq
        // Should the file have gone meanwhile, a number given twice would make a server take new rows for old ones.
        ledger.lastSeq = max(ledger.lastSeq, given.lastSeq)
        ledger.recorded = given.recorded
        for index in ledger.endpoints.indices {
            guard let before = given.index(of: ledger.endpoints[index].settings.name) else { continue }
            ledger.endpoints[index].finishedUnsent = given.endpoints[before].finishedUnsent
            // By a step that was stored although it failed.
            if given.endpoints[before].state == .rebind, ledger.endpoints[index].state != .rebind {
                released.append(ledger.endpoints[index].settings.name)
            }
        }
        parts = queue.opened.parts
        phase = .disk(queue.database)
        return queue.database
    }

    /// - Parameters:
    ///   - lastSeq: the last number that is known to have been on the medium.
    ///   - plan: what is to be brought back besides what this may set aside; nil = as the file has it.
    ///   - before: the endpoints; none = as the file has them.
    ///   - expected: rows in the file that one of them still needs; nil = as the file has it.
    ///   - noted: what the process before this one has left.
    private func open(
        lastSeq: Int64 = 0, plan: SalvagePlan? = nil, before: [Ledger.Endpoint] = [], expected: Int? = nil,
        noted: QueueNote? = nil, damage: OutboxError? = nil
    ) throws(OutboxError) -> OpenedQueue {
        var opening = QueueOpening(
            settings: settings, endpoints: endpoints, newUUID: uuid, medium: medium,
            lastSeq: lastSeq, plan: plan, before: before, committed: committed, known: known, expected: expected,
            noted: noted, damage: damage, maySetAside: !worksWithoutDisk || setAsides.mayBegin(at: medium.now),
            cache: cache,
            access: readers?.access ?? .readWrite,
            isPatient: failedOpenings < Self.patience && !areReadsLasting)
        try held.claim()
        failedOpenings += 1
        // Opening may write.
        cache = .suspect
        let queue: OpenedQueue
        let isUnchecked = held.isUnchecked
        var setAside: (copy: String, reason: String)?
        do throws(OutboxError) {
            // Its connection has to be closed before the file is opened once more.
            if isUnchecked { (opening.damage, setAside) = try check(opening) }
            do throws(OutboxError) {
                queue = try opening.open()
            } catch  where error.cause == .locked(pid: nil) && opening.access == .alone {
                opening.access = .readWrite
                queue = try opening.open()
            }
        } catch {
            held.openingFailed()
            throw error
        }
        held.isUnchecked = false
        try held.opened(queue.database.connection, isWatched: readers != nil)
        (cache, failedOpenings) = (.trusted, 0)
        readers?.opened(settings.path, as: opening.access)
        setAside = queue.setAside ?? setAside
        salvaging.count(setAside)
        guard let setAside else { return queue }
        setAsides.begun(at: medium.now)
        if isUnchecked, let copy = queue.plan.copies.max() { held.became(copy: copy, lostBefore: queue.plan.lost) }
        var replacing = queue
        replacing.setAside = setAside
        return replacing
    }

    private func check(
        _ opening: QueueOpening
    ) throws(OutboxError) -> (damage: OutboxError?, setAside: (copy: String, reason: String)?) {
        let queue = try opening.open()
        return (try findDamage(in: queue.database), queue.setAside)
    }

    /// Looks at all that was read through a connection while another program wrote to its files.
    ///
    /// - Returns: what is wrong with it; nil = nothing.
    private func findDamage(in database: Database) throws(OutboxError) -> OutboxError? {
        let failed = medium.failedReads
        var problems: [String] = []
        do throws(OutboxError) {
            problems = try database.rows.problems()
            let found = try database.connection.text("PRAGMA quick_check(1)")
            if found != "ok" { problems.append(found) }
            let last = try database.lastSeq()
            if last < committed.lastSeq { problems.append("it ends with row \(last), before \(committed.lastSeq)") }
        } catch {
            guard error.mayBeDamage else { throw error }
            problems = [error.message]
        }
        guard let problem = problems.first else { return nil }
        let reads = medium.failedReads
        guard reads.count == failed.count else { throw OutboxError(failedRead: reads, path: settings.path) }
        return OutboxError(.corrupt, path: settings.path, message: "it was overwritten while in use: \(problem)")
    }

    /// Readable when another program opens the queue, which is kept out until `letReadersIn`; nil = all may read.
    var readerDescriptor: Int32? { readers?.descriptor }

    /// Shares the file from now on, as long as readers come.
    ///
    /// What opened it may have removed or overwritten it: then it is put in place first. Without the lock file, readers are not
    /// let in: a second daemon could be among them.
    func letReadersIn() {
        if database != nil { try? putInPlace() }
        if !isClosed { try? lockForWriting() }
        let isLetIn = !held.isDisplaced && lock?.isInPlace == true
        readers?.readerCame(isLetIn: isLetIn)
        guard isLetIn, memory == nil, !isClosed else { return }
        rest()
        // Not only with the next commit, which may be long in coming: what is open can be put back.
        _ = try? opened()
    }

    /// A failed medium is never trusted again: the file is opened again, and what it really holds is read from it.
    func failed(_ error: OutboxError) {
        // The connection may be all that has the rows.
        if let database, !held.settle(storedBytes: database.storedBytes) { return }
        // A full disk that let the transaction be rolled back can be trusted, once nothing of it is left.
        if error.cause == .full, let connection = database?.connection, !connection.isInTransaction,
            (try? connection.cutLog()) != nil
        {
            held.noteLog()
            return
        }
        rest()
        cache = .suspect
    }
}

// While the disk refuses.
extension Outbox {
    /// Works in memory from now on.
    ///
    /// - Parameter stored: for tests: what the disk has stored although it reported an error.
    @discardableResult
    func beginInMemory(
        _ refusal: OutboxError, afterStoring stored: Commit? = nil
    ) throws(OutboxError) -> MemoryQueue {
        if let stored {
            let before = (ledger, processRun)
            _ = try commit(stored)
            (ledger, processRun) = before
        }
        processRun.beginInMemory(isStart: false, above: ledger.highestGeneration)
        // Rows that were brought back may have got the next numbers.
        if salvaging.isUncertain { processRun.leap += Int64(Salvaging.rowsMax) }
        let memory = try MemoryQueue(
            settings, after: ledger.lastSeq, rowsOnDisk: ledger.rows, hasNoOtherWriter: lock != nil, held: held,
            kept: held.isDisplaced ? database : nil, medium: medium, refusal)
        memory.plan = salvaging.plan
        ledger.leaveDisk()
        // What goes out again from the quarantine can only be sent as it was read: what was not is the disk's.
        for (index, endpoint) in ledger.endpoints.enumerated() {
            ledger.endpoints[index].batches.removeAll { batch in
                batch.origin == .quarantine && known[batch.id(outbox: name, endpoint: endpoint.settings.name)] == nil
            }
        }
        cache = .suspect
        phase = .memory(memory)
        return memory
    }

    private func store(_ commit: Commit, in memory: MemoryQueue) throws(OutboxError) -> CommitReply {
        let rules = memory.rules(generation: processRun.memoryGeneration, passesUnreadable: commit.passesUnreadable)
        let transaction = transaction(on: memory.database, memory.settings, rules)
        // A queue that did not exist before needs no leap, the one that is found later does.
        let leap = processRun.leap
        if memory.isBlind { transaction.processRun.leap = 0 }
        let reply = try transaction.run(commit)
        stored(commit, transaction, reply)
        if memory.isBlind { processRun.leap = leap }
        memory.deferred = transaction.memory?.deferred ?? []
        sentUnstored += transaction.memory?.removed ?? 0
        var stored = complete(reply)
        stored.passedUnreadable = transaction.memory?.passed ?? false
        return stored
    }

    /// Tries the disk again, and gives it what is in memory. A file that turns out to be damaged is set aside.
    ///
    /// - Parameters:
    ///   - stored: the reply to a commit that was just stored in memory.
    ///   - orders: of that commit, which wait for the disk.
    private func returnToDisk(from memory: MemoryQueue, _ stored: CommitReply, _ orders: [QueueOrder]) -> CommitReply {
        var reply = stored
        let failedBefore = medium.failedReads
        do throws(OutboxError) {
            do throws(OutboxError) {
                try putInPlace()
                memory.below.close()
                // What cannot be read for long counts as damaged.
                let isUnread = memory.refusal.cause == .io && areReadsLasting
                try handOver(memory, &reply, damage: isUnread ? memory.refusal : nil)
                if isUnread { failingReads = FailingReads() }
            } catch {
                note(error, since: failedBefore)
                guard error.mayBeDamage, lock != nil else { throw error }
                memory.below.close()
                let failed = medium.failedReads
                do throws(OutboxError) { try handOver(memory, &reply) } catch let again {
                    try again.mustBeDamage(since: failed, as: error, of: medium)
                    try handOver(memory, &reply, damage: again)
                }
            }
            if !orders.isEmpty {
                let done = try store(Commit(orders: orders), in: try opened())
                reply.orders = done.orders
                reply.dissolved += done.dissolved
                reply.dropped += done.dropped
            }
        } catch {
            // A disk that refuses the orders has stored the rest: the next commit tries again.
            if self.memory != nil { memory.refusal = error }
            memory.below.hasNoOtherWriter = lock != nil
        }
        return complete(reply)
    }

    private var areReadsLasting: Bool { failingReads.areLasting(medium.failedReads, at: medium.now) }

    /// - Parameter failed: the reads that had failed before.
    private func note(_ error: OutboxError, since failed: FailedReads) {
        let reads = medium.failedReads
        guard error.cause == .io, reads.count != failed.count, reads.run != 0 else { return }
        failingReads.failed(reads, at: medium.now)
    }

    /// - Parameter damage: what is known to be wrong with the file: then it is set aside.
    private func handOver(
        _ memory: MemoryQueue, _ reply: inout CommitReply, damage: OutboxError? = nil
    ) throws(OutboxError) {
        try lockForWriting()
        var queue = try open(
            lastSeq: memory.found?.lastSeq ?? ledger.base, plan: memory.plan,
            before: memory.isBlind ? [] : ledger.endpoints,
            expected: memory.isBlind ? nil : max(0, ledger.mostUnsent - ledger.rows), damage: damage)
        let isOther = queue.opened.uuid != uuid
        if !isOther {
            if let plan = memory.plan {
                memory.copies.formUnion(queue.plan.copies.subtracting(plan.copies))
                queue.plan = plan.adding(queue.plan)
            } else if queue.setAside != nil {
                memory.copies = queue.plan.copies
            }
            if memory.plan != nil || queue.setAside != nil { memory.plan = queue.plan }
            if !memory.isBlind { salvaging.note(queue.plan.withoutKept(ledger.endpoints), before: memory.copies) }
        }
        let transaction = Transaction(
            database: queue.database, ledger: queue.opened.ledger, outbox: queue.opened.uuid, processRun: processRun,
            settings: settings, known: known)
        let handover = Handover(queue: transaction, memory: memory, above: ledger)
        var dropped = DropCounts()
        do throws(OutboxError) {
            try transaction.whole { () throws(OutboxError) in
                if isOther {
                    if let found = memory.found, found.uuid == queue.opened.uuid {
                        try handover.undoAppended(after: found.lastSeq)
                    } else {
                        memory.found = (queue.opened.uuid, queue.opened.ledger.lastSeq)
                    }
                }
                if memory.isCrowded(ledger) {
                    try? queue.database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    dropped = try handover.makeRoom(isSame: !isOther)
                }
                if isOther {
                    try handover.append(of: name)
                } else {
                    try handover.goOn(plan: queue.plan, parts: parts, isReplaced: !memory.copies.isEmpty)
                }
            }
            if !held.settle(storedBytes: queue.database.storedBytes) {
                throw OutboxError(.io, path: settings.path, message: "another program has changed its files meanwhile")
            }
        } catch {
            cache = .suspect
            held.isWatched = false
            throw error
        }
        reply.dropped += dropped
        reply.dissolved += transaction.dissolved
        reply.formed.removeAll { transaction.dissolved.contains($0.id) }
        if isOther {
            reply.wasFoundLate = true
            reply.foundState = queue.opened.parts.tracker
            reply.formed = []
            known = [:]
            former = transaction.former
        }
        if memory.isBlind, !isOther {
            // It had begun without knowing for whom rows are held.
            released += transaction.ledger.endpoints.filter { $0.wanted != nil || $0.isMoved }.map(\.settings.name)
        }
        committed.lastSeq = transaction.ledger.lastSeq
        reply.hasReturned = true
        uuid = queue.opened.uuid
        phase = .disk(queue.database)
        ledger = transaction.ledger
        processRun = transaction.processRun
        salvaging.adopt(queue.plan)
    }
}

extension Commit {
    fileprivate var isEmpty: Bool {
        rows.isEmpty && parts.isEmpty && answers.isEmpty && states.isEmpty && orders.isEmpty && forms.isEmpty
    }
}
