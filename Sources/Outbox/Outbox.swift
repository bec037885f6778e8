import Delivery
import Glibc
import Positioning

/// The durable queue: what was recorded waits here, in order, until every endpoint that needs it has accepted it.
///
/// One writer at a time; a second instance is refused with `.locked`. `commit` is the only way to change anything, and
/// what it returns is on the medium, or says that it is not (`CommitReply.refusal`): while the disk refuses, the same code
/// works on a database in memory, with the same numbers, batches and ids, and the disk gets the result once it works again.
public final class Outbox {
    public let settings: OutboxSettings
    /// 16 bytes, made once for this file.
    public private(set) var uuid: [UInt8]
    /// First 8 hex digits of `uuid`: the queue's part of every batch id.
    public var name: String { String(hexOf: uuid.prefix(4)) }
    /// Why the disk refuses; a later commit asks it again. nil = it does not.
    public var refusal: OutboxError? { memory?.refusal }
    /// As of the last commit that brought one; nil in a new queue.
    public private(set) var trackerState: [UInt8]?
    /// As of the last commit that brought one; nil without a file source.
    public private(set) var sourceState: [UInt8]?

    private(set) var endpoints: [EndpointSettings]
    var life: Life
    var ledger = Ledger()
    /// nil while the queue is given up to readers, and while the disk refuses.
    var database: Database?
    /// The queue while the disk refuses; nil while it does not.
    private var memory: MemoryQueue?
    let medium: any QueueMedium
    private(set) var lock: AnyObject?
    /// nil: everybody may read at any time.
    private let readers: ReaderWatch?
    private let migrations: [String]
    private let worksWithoutDisk: Bool
    /// Batches in flight, by id, as far as they were read or formed.
    private var known: [String: Batch] = [:]
    /// Batches of the queue in memory when another was found on disk, by id.
    private var former: [String: FormerBatch] = [:]
    var salvaging = Salvaging()
    var recovery = Recovery()
    /// Of the last row, Unix milliseconds.
    var lastTime = Int64.min
    /// Bytes of the log as of the last commit.
    private var logBytes: Int64 = 0
    private var sentUnstored = 0
    /// What the kernel shows of the file.
    private var cache = PageCache.unknown
    private var isClosed = false

    /// A log that a reader keeps from being copied back may always be this large.
    private static let leastLog: Int64 = 4 << 20

    /// - Parameters:
    ///   - endpoints: the configured ones, in their order. An endpoint that is no longer among them keeps its cursor
    ///     and its rows up to this moment until `forget`.
    ///   - bootID: of the running system; nil when it has none.
    ///   - newUUID: 16 random bytes, other ones at each start: they name a queue that is new, and say how far the
    ///     numbers leap at this start.
    ///   - worksWithoutDisk: goes on in memory where the disk refuses, with `refusal`.
    ///   - isAlone: keeps readers out until they come, which saves flash. For an outbox that an `OutboxWriter` takes over,
    ///     who lets them in.
    ///   - medium: what it stands on.
    public convenience init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        worksWithoutDisk: Bool = false, isAlone: Bool = false, medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        try self.init(
            settings, endpoints: endpoints, bootID: bootID, newUUID: newUUID, migrations: Schema.migrations,
            worksWithoutDisk: worksWithoutDisk, isAlone: isAlone, medium: medium)
    }

    init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        migrations: [String], worksWithoutDisk: Bool = false, isAlone: Bool = false,
        medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        self.medium = medium
        readers = isAlone ? ReaderWatch(medium: medium) : nil
        self.settings = settings
        self.endpoints = endpoints
        self.worksWithoutDisk = worksWithoutDisk
        life = Life(bootID: bootID, random: newUUID)
        self.migrations = migrations
        uuid = newUUID
        do throws(OutboxError) {
            lock = try medium.lock(settings.path)
            take(try open())
        } catch {
            guard worksWithoutDisk, error.isOfDisk else { throw error }
            try beginInMemoryAtStart(error)
        }
    }

    /// Goes on with what the file holds.
    private func take(_ queue: OpenedQueue) {
        uuid = queue.opened.uuid
        // No life before this one gave numbers of it.
        if queue.opened.isNew { life.leap = 0 }
        database = queue.database
        ledger = queue.opened.ledger
        ledger.recorded = RecordingTimes(earlierThrough: ledger.lastSeq)
        trackerState = queue.opened.trackerState
        sourceState = queue.opened.sourceState
        salvaging.adopt(queue.plan)
    }

    private func count(_ setAside: (copy: String, reason: String)?) {
        guard let (copy, reason) = setAside else { return }
        recovery.corruptRecovered += 1
        recovery.copy = copy
        recovery.reason = reason
    }

    /// Depths and counts as of the last commit.
    public var current: CommitReply { complete(CommitReply(lastSeq: ledger.lastSeq)) }

    /// The reply as of now: rows may have been brought back since the commit.
    private func complete(_ reply: CommitReply) -> CommitReply {
        var reply = reply
        reply.lastSeq = ledger.lastSeq
        reply.depths = ledger.depths
        reply.rows = ledger.rows + (memory?.rowsOnDisk ?? 0)
        reply.recovery = recovery
        reply.recovery.isSalvaging = !salvaging.plan.parts.isEmpty
        reply.recovery.due = memory == nil ? salvaging.due : nil
        reply.refusal = memory?.refusal
        reply.unstored = memory == nil ? 0 : ledger.rows
        reply.sentUnstored = sentUnstored
        if let usage = try? database?.usage() {
            logBytes = usage.log
            reply.bytes = usage.live + usage.log
        }
        return reply
    }

    /// Endpoints that are no longer configured and have a cursor here, with the rows that wait for them.
    public var removedEndpoints: [(name: String, rows: Int)] {
        ledger.endpoints.filter { $0.removedAt != nil }.map { ($0.settings.name, $0.unsent) }
    }

    /// Batches that were formed and not settled, to be sent first: the same rows under the same id, oldest first for each
    /// endpoint whose cursor they are of.
    ///
    /// One whose rows cannot be read is not among them. The commit that asks for it finds out why.
    public func inFlight() -> [Batch] {
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
    public func commit(_ commit: Commit) throws(OutboxError) -> CommitReply {
        var reply = try carryOut(commit)
        (reply.released, salvaging.released) = (salvaging.released, [])
        reply.formed.removeAll { salvaging.dissolved.contains($0.id) }
        reply.dissolved += salvaging.dissolved
        salvaging.dissolved = []
        return reply
    }

    private func carryOut(_ commit: Commit) throws(OutboxError) -> CommitReply {
        for settings in commit.reloaded {
            for index in endpoints.indices where endpoints[index].name == settings.name {
                endpoints[index].copyPace(from: settings)
            }
            if let index = ledger.index(of: settings.name) { ledger.endpoints[index].settings.copyPace(from: settings) }
        }
        if let memory {
            // Here first: what is answered in it may be about batches that another queue on disk does not know.
            let reply = try store(commit, in: memory)
            return commit.asksDisk ? returnToDisk(from: memory, reply, commit.orders) : reply
        }
        do throws(OutboxError) {
            return try store(commit)
        } catch {
            guard worksWithoutDisk, !isClosed else { throw error }
            return try store(commit, in: try beginInMemory(error))
        }
    }

    /// On disk.
    private func store(_ commit: Commit) throws(OutboxError) -> CommitReply {
        do throws(OutboxError) {
            return try perform(commit, in: try opened(answered: commit.answers))
        } catch {
            guard error.cause == .corrupt, lock != nil else { throw error }
            return try perform(commit, in: try opened(damage: error, answered: commit.answers))
        }
    }

    private func perform(_ commit: Commit, in database: Database) throws(OutboxError) -> CommitReply {
        var reply = CommitReply(lastSeq: ledger.lastSeq)
        if !commit.isEmpty {
            // When the supply has gone, what matters is that the rows are safe soon: the log is copied back later.
            let isUrgent = commit.rows.contains {
                $0.location.event == .power && $0.location.power.externalPower == false
            }
            if isUrgent { database.connection.checkpointsItself(after: 0) }
            defer { if isUrgent { database.connection.checkpointsItself(after: Schema.checkpointPages) } }
            var transaction = transaction(on: database, settings)
            do throws(OutboxError) {
                try boundLog(of: database)
                reply = try transaction.run(commit)
            } catch {
                failed(error)
                throw error
            }
            succeeded(commit, transaction, reply)
        }
        salvage(database, at: commit.ages?.now)
        return complete(reply)
    }

    func transaction(on database: Database, _ settings: OutboxSettings) -> Transaction {
        var transaction = Transaction(
            database: database, ledger: ledger, outbox: uuid, life: life, settings: settings)
        transaction.known = known
        transaction.former = former
        return transaction
    }

    private func succeeded(_ commit: Commit, _ transaction: Transaction, _ reply: CommitReply) {
        ledger = transaction.ledger
        life = transaction.life
        if let row = commit.rows.last { lastTime = row.location.time.milliseconds }
        if let state = commit.trackerState { trackerState = state }
        if let position = commit.sourceState { sourceState = position }
        var inFlight: [String: Batch] = [:]
        for endpoint in ledger.endpoints {
            for batch in endpoint.batches {
                let id = batch.id(outbox: name, endpoint: endpoint.settings.name)
                inFlight[id] = transaction.known[id]
            }
        }
        for batch in reply.formed { inFlight[batch.id] = batch }
        known = inFlight
    }

    /// A reader that stays keeps the log from being copied back, and it grows with each commit.
    private func boundLog(of database: Database) throws(OutboxError) {
        let most = max(Self.leastLog, (settings.maxBytes ?? 256 << 20) / 4)
        guard logBytes > most else { return }
        let checkpoint = try database.connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)")
        let isBusy = try checkpoint.step() && checkpoint.integer(0) != 0
        while try checkpoint.step() {}
        guard isBusy else { return }
        throw OutboxError(
            .full, path: settings.path,
            message: "its log has grown to \(logBytes >> 20) MiB, because another program keeps the queue open")
    }

    /// Gives the file and its lock back. Everything committed is on the medium already; the log is kept as it is.
    public func close() {
        isClosed = true
        database = nil
        lock = nil
    }

    /// Keeps a second writer away before this one writes.
    private func takeLock() throws(OutboxError) {
        if (lock as? OutboxLock)?.isForReading == true { lock = nil }
        if lock == nil { lock = try medium.lock(settings.path) }
    }

    /// The file, opened again where it was given up.
    ///
    /// - Parameters:
    ///   - damage: what is known to be wrong with it: then it is set aside.
    ///   - answered: answers that the commit bears.
    func opened(
        damage: OutboxError? = nil, answered: [BatchAnswer] = []
    ) throws(OutboxError) -> Database {
        if readers?.mayCloseAgain == true {
            readers?.closesAgain()
            database = nil
        }
        if damage != nil { database = nil }
        if let database { return database }
        guard !isClosed else { throw OutboxError(.cannotOpen, path: settings.path, message: "closed") }
        try takeLock()
        let given = ledger
        var before = given.endpoints
        for index in before.indices {
            for answer in answered { before[index].leave(answer, outbox: name) }
        }
        let queue = try open(lastSeq: given.lastSeq, plan: salvaging.plan, before: before, damage: damage)
        // Also by a try that failed after it.
        let copies = queue.plan.copies.subtracting(salvaging.plan.copies)
        if !copies.isEmpty { salvaging.dissolved += given.batchIDs(outbox: name) }
        for copy in copies { salvaging.before[copy] = before }
        salvaging.adopt(queue.plan)
        ledger = queue.opened.ledger
        // Should the file have gone meanwhile, a number given twice would make a server take new rows for old ones.
        ledger.lastSeq = max(ledger.lastSeq, given.lastSeq)
        ledger.recorded = given.recorded
        for index in ledger.endpoints.indices {
            guard let before = given.index(of: ledger.endpoints[index].settings.name) else { continue }
            ledger.endpoints[index].finishedUnsent = given.endpoints[before].finishedUnsent
            // By a step that was stored although it failed.
            if given.endpoints[before].state == .rebind, ledger.endpoints[index].state != .rebind {
                salvaging.released.append(ledger.endpoints[index].settings.name)
            }
        }
        trackerState = queue.opened.trackerState
        sourceState = queue.opened.sourceState
        database = queue.database
        return queue.database
    }

    /// - Parameters:
    ///   - lastSeq: the last number that is known to have been on the medium.
    ///   - plan: what is to be brought back besides what this may set aside; nil = the file knows.
    ///   - before: the endpoints; none = the file tells.
    private func open(
        lastSeq: Int64 = 0, plan: SalvagePlan? = nil, before: [Ledger.Endpoint] = [], damage: OutboxError? = nil
    ) throws(OutboxError) -> OpenedQueue {
        var access = readers?.access ?? .readWrite
        let cache = cache
        // Opening may write.
        self.cache = .suspect
        let queue: OpenedQueue
        do throws(OutboxError) {
            queue = try OpenedQueue.open(
                settings, endpoints: endpoints, newUUID: uuid, migrations: migrations, lastSeq: lastSeq,
                plan: plan, before: before, damage: damage, cache: cache, access: access, medium: medium)
        } catch  where error.cause == .locked(pid: nil) && access == .alone {
            access = .readWrite
            queue = try OpenedQueue.open(
                settings, endpoints: endpoints, newUUID: uuid, migrations: migrations, lastSeq: lastSeq,
                plan: plan, before: before, damage: damage, cache: cache, access: access, medium: medium)
        }
        self.cache = .trusted
        readers?.opened(settings.path, as: access)
        count(queue.setAside)
        return queue
    }

    /// Readable when somebody wants to look at the queue, who is kept out until `letReadersIn`; nil = everybody may.
    var readerDescriptor: Int32? { readers?.descriptor }

    /// Gives the file up until the next commit, and has it together with others from then on, as long as they come.
    func letReadersIn() {
        readers?.readerCame()
        database = nil
    }

    /// A failed medium is never trusted again: the file is opened again, and what it really holds is read from it.
    func failed(_ error: OutboxError) {
        // A full disk that let the transaction be rolled back has told the truth.
        if error.cause == .full, database?.connection.isInTransaction == false { return }
        database = nil
        cache = .suspect
    }
}

// While the disk refuses.
extension Outbox {
    func beginInMemory(_ refusal: OutboxError) throws(OutboxError) -> MemoryQueue {
        life.beginInMemory(isStart: false, above: ledger.highestGeneration)
        // Rows that were brought back may have got the next numbers.
        if salvaging.isUncertain { life.leap += Int64(Salvaging.rowsMax) }
        let memory = try MemoryQueue(
            settings, above: ledger, isAlone: lock != nil, medium: medium, generation: life.memoryGeneration, refusal)
        memory.plan = salvaging.plan
        ledger.leaveDisk()
        // What goes out again from the quarantine can only be sent as it was read: what was not is the disk's.
        for (index, endpoint) in ledger.endpoints.enumerated() {
            ledger.endpoints[index].batches.removeAll { batch in
                batch.origin == .quarantine && known[batch.id(outbox: name, endpoint: endpoint.settings.name)] == nil
            }
        }
        database = nil
        cache = .suspect
        self.memory = memory
        return memory
    }

    /// With what the disk holds, as far as it can be read.
    private func beginInMemoryAtStart(_ refusal: OutboxError) throws(OutboxError) {
        let start = try MemoryQueue.Start(
            settings, endpoints: endpoints, newUUID: uuid, isAlone: lock != nil, medium: medium, life: &life, refusal)
        memory = start.queue
        uuid = start.opened.uuid
        ledger = start.opened.ledger
        ledger.recorded = RecordingTimes(earlierThrough: ledger.lastSeq)
        trackerState = start.opened.trackerState
        sourceState = start.opened.sourceState
        for batch in start.inFlight { known[batch.id] = batch }
    }

    private func store(_ commit: Commit, in memory: MemoryQueue) throws(OutboxError) -> CommitReply {
        var transaction = transaction(on: memory.database, memory.settings)
        transaction.memory = memory.rules(passesUnreadable: commit.passesUnreadable)
        // A queue that did not exist before needs no leap, the one that is found later does.
        let leap = life.leap
        if memory.isBlind { transaction.life.leap = 0 }
        let reply = try transaction.run(commit)
        succeeded(commit, transaction, reply)
        if memory.isBlind { life.leap = leap }
        memory.deferred = transaction.memory?.deferred ?? []
        sentUnstored += transaction.memory?.removed ?? 0
        var stored = complete(reply)
        stored.passedUnreadable = transaction.memory?.passed ?? false
        return stored
    }

    /// Asks the disk once more, and gives it what is in memory. A file that turns out to be damaged is set aside.
    ///
    /// - Parameters:
    ///   - kept: the reply to a commit that memory has just taken.
    ///   - orders: of that commit, which wait for the disk.
    private func returnToDisk(from memory: MemoryQueue, _ kept: CommitReply, _ orders: [QueueOrder]) -> CommitReply {
        var reply = kept
        memory.below.close()
        do throws(OutboxError) {
            do throws(OutboxError) {
                try handOver(memory, &reply)
            } catch {
                guard error.cause == .corrupt, lock != nil else { throw error }
                try handOver(memory, &reply, damage: error)
            }
            if !orders.isEmpty {
                let done = try perform(Commit(orders: orders), in: try opened())
                reply.orders = done.orders
                reply.dissolved += done.dissolved
                reply.dropped += done.dropped
            }
        } catch {
            // A disk that refuses the orders has taken the rest: the next commit asks it again.
            if self.memory != nil { memory.refusal = error }
            memory.below.isAlone = lock != nil
        }
        return complete(reply)
    }

    /// - Parameter damage: what is known to be wrong with the file: then it is set aside.
    private func handOver(
        _ memory: MemoryQueue, _ reply: inout CommitReply, damage: OutboxError? = nil
    ) throws(OutboxError) {
        guard !isClosed else { throw OutboxError(.cannotOpen, path: settings.path, message: "closed") }
        try takeLock()
        var queue = try open(
            lastSeq: memory.found?.lastSeq ?? ledger.base, plan: memory.plan,
            before: memory.isBlind ? [] : ledger.endpoints, damage: damage)
        let isOther = queue.opened.uuid != uuid
        if !isOther {
            if let plan = memory.plan {
                memory.copies.formUnion(queue.plan.copies.subtracting(plan.copies))
                queue.plan = plan.adding(queue.plan)
            } else if queue.setAside != nil {
                memory.copies = queue.plan.copies
            }
            if memory.plan != nil || queue.setAside != nil { memory.plan = queue.plan }
            if !memory.isBlind { for copy in memory.copies { salvaging.before[copy] = ledger.endpoints } }
        }
        var transaction = Transaction(
            database: queue.database, ledger: queue.opened.ledger, outbox: queue.opened.uuid, life: life,
            settings: settings)
        transaction.known = known
        let states = (trackerState, sourceState)
        let (ledger, name) = (ledger, name)
        var dropped = DropCounts()
        do throws(OutboxError) {
            try transaction.whole { (self) throws(OutboxError) in
                if isOther {
                    if let found = memory.found, found.uuid == queue.opened.uuid {
                        try self.takeBack(after: found.lastSeq)
                    } else {
                        memory.found = (queue.opened.uuid, queue.opened.ledger.lastSeq)
                    }
                }
                if memory.isCrowded(ledger) {
                    try? queue.database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    dropped = try self.makeRoom(for: ledger, isSame: !isOther)
                }
                if isOther {
                    try self.append(memory, ledger, of: name)
                } else {
                    try self.take(over: memory, plan: queue.plan, ledger, states, isReplaced: !memory.copies.isEmpty)
                }
            }
        } catch {
            cache = .suspect
            throw error
        }
        reply.dropped += dropped
        reply.dissolved += transaction.dissolved
        reply.formed.removeAll { transaction.dissolved.contains($0.id) }
        if isOther {
            reply.wasFoundLate = true
            reply.foundState = queue.opened.trackerState
            reply.formed = []
            known = [:]
            former = transaction.former
        }
        if memory.isBlind, !isOther {
            // It had begun without knowing for whom rows are held.
            salvaging.released += transaction.ledger.endpoints.filter { $0.wanted != nil }.map(\.settings.name)
        }
        reply.hasReturned = true
        uuid = queue.opened.uuid
        database = queue.database
        self.ledger = transaction.ledger
        life = transaction.life
        salvaging.adopt(queue.plan)
        self.memory = nil
    }
}

extension Commit {
    var isEmpty: Bool {
        rows.isEmpty && trackerState == nil && sourceState == nil && answers.isEmpty && states.isEmpty
            && orders.isEmpty && forms.isEmpty
    }
}
