import Delivery
import Glibc
import Positioning

/// The durable queue: what was recorded waits here, in order, until every endpoint that needs it has accepted it.
///
/// One writer at a time; a second instance is refused with `.locked`. `commit` is the only way to change anything, and
/// what it returns is on the medium. After a failure the caller keeps its rows and hands them in again, oldest first,
/// ahead of newer ones; rows that did reach the medium in spite of the failure are recognised and not stored twice.
public final class Outbox {
    public let settings: OutboxSettings
    /// 16 bytes, made once for this file.
    public private(set) var uuid: [UInt8]
    /// First 8 hex digits of `uuid`: the queue's part of every batch id.
    public var name: String { String(hexOf: uuid.prefix(4)) }
    /// Why the file could not be opened; a later commit opens it. nil = it was opened.
    public private(set) var openProblem: OutboxError?
    /// As of the last commit that brought one; nil in a new queue.
    public private(set) var trackerState: [UInt8]?
    /// As of the last commit that brought one; nil without a file source.
    public private(set) var sourceState: [UInt8]?

    let endpoints: [EndpointSettings]
    let boot: Boot
    var ledger = Ledger()
    /// nil after a failure, until the next commit opens the file again.
    var database: Database?
    private var lock: OutboxLock?
    /// nil: everybody may read at any time.
    private let readers: ReaderWatch?
    private let migrations: [String]
    /// What is known to be wrong with the file, until another has taken its place.
    private var damage: OutboxError?
    var plan = SalvagePlan()
    var salvage: Salvage?
    var recovery = Recovery()
    /// Of the last row, Unix milliseconds.
    var lastTime = Int64.min
    /// So many rows in one commit tell that the disk has refused for long.
    private static let crowd = 5000
    /// A commit whose fate is unknown.
    private var uncertain: (lastSeq: Int64, rows: [NewRow])?
    /// Rows that are on the medium although the caller was told of a failure: it will hand them in again.
    private var storedUnseen: [NewRow] = []

    /// What the kernel shows of the file.
    private var cache = PageCache.unknown
    private var isClosed = false
    /// The file was opened by a commit, and no commit has succeeded since.
    private var wasOpenedLate = false

    /// - Parameters:
    ///   - endpoints: the configured ones, in their order. An endpoint that is no longer among them keeps its cursor
    ///     and its rows up to this moment until `forget`.
    ///   - bootID: of the running system; nil when it has none.
    ///   - newUUID: 16 random bytes, other ones at each start: they name a queue that is new, and say how far the
    ///     numbers leap in a new boot.
    ///   - waitsForDisk: goes on without a file where the disk refuses, with `openProblem`.
    ///   - isAlone: keeps readers out until they come, which saves flash. For an outbox that an `OutboxWriter` takes over,
    ///     who lets them in.
    public convenience init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        waitsForDisk: Bool = false, isAlone: Bool = false
    ) throws(OutboxError) {
        try self.init(
            settings, endpoints: endpoints, bootID: bootID, newUUID: newUUID, migrations: Schema.migrations,
            waitsForDisk: waitsForDisk, isAlone: isAlone)
    }

    init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        migrations: [String], waitsForDisk: Bool = false, isAlone: Bool = false
    ) throws(OutboxError) {
        readers = isAlone ? ReaderWatch() : nil
        self.settings = settings
        self.endpoints = endpoints
        boot = Boot(id: bootID, random: newUUID)
        self.migrations = migrations
        uuid = newUUID
        do throws(OutboxError) {
            lock = try OutboxLock(path: settings.path)
            take(try open(newUUID: newUUID))
        } catch {
            guard waitsForDisk, error.isOfDisk else { throw error }
            openProblem = error
        }
    }

    /// Goes on with what the file holds.
    private func take(_ queue: OpenedQueue) {
        uuid = queue.opened.uuid
        database = queue.database
        ledger = queue.opened.ledger
        trackerState = queue.opened.trackerState
        sourceState = queue.opened.sourceState
        adopt(queue)
    }

    private func adopt(_ queue: OpenedQueue) {
        plan = queue.plan
        salvage = nil
        recovery.isSalvaging = !plan.parts.isEmpty
        guard let (copy, reason) = queue.setAside else { return }
        recovery.corruptRecovered += 1
        recovery.copy = copy
        recovery.reason = reason
    }

    /// Depths and counts as of the last commit.
    ///
    /// While the file could not be opened nothing is known to wait.
    public var current: CommitReply {
        var reply = complete(CommitReply(lastSeq: ledger.lastSeq))
        if openProblem != nil {
            reply.depths = endpoints.map {
                EndpointDepth(
                    endpoint: $0.name, state: .active, waiting: 0, inFlight: 0, acked: 0, oldestSeq: nil,
                    oldestTime: nil)
            }
        }
        return reply
    }

    /// The reply as of now: rows may have been brought back since the commit.
    private func complete(_ reply: CommitReply) -> CommitReply {
        var reply = reply
        reply.lastSeq = ledger.lastSeq
        reply.depths = ledger.depths
        reply.rows = ledger.rows
        reply.recovery = recovery
        reply.wasOpenedLate = wasOpenedLate
        if let usage = try? database?.usage() { reply.bytes = usage.live + usage.log }
        return reply
    }

    /// Batches that were formed and not settled, to be sent first: the same rows under the same id, oldest first for each
    /// endpoint whose cursor they are of.
    public func inFlight() throws(OutboxError) -> [Batch] {
        let database = try opened()
        var batches: [Batch] = []
        for endpoint in ledger.endpoints where endpoint.removedAt == nil && endpoint.state != .rebind {
            for row in endpoint.batches {
                let rows = try database.rows(of: row, endpoint: endpoint.id, names: ledger.names)
                batches.append(try database.batch(row, rows, of: endpoint, outbox: uuid, names: ledger.names))
            }
        }
        return batches
    }

    /// All of it or nothing, on the medium when this returns.
    ///
    /// A queue that turns out to be damaged is set aside, and the commit goes into a new one.
    public func commit(_ commit: Commit) throws(OutboxError) -> CommitReply {
        do throws(OutboxError) {
            return try store(commit)
        } catch  where error.cause == .corrupt && lock != nil {
            damage = error
            return try store(commit)
        }
    }

    private func store(_ commit: Commit) throws(OutboxError) -> CommitReply {
        let database = try opened()
        let found = wasOpenedLate ? trackerState : nil
        let bringsRows = !commit.rows.isEmpty
        var commit = commit
        commit.rows = notYetStored(commit.rows)
        var reply = CommitReply(lastSeq: ledger.lastSeq)
        if !commit.isEmpty {
            reply = try perform(commit, in: database)
            if let row = commit.rows.last { lastTime = row.location.time.milliseconds }
            if let state = commit.trackerState { trackerState = state }
            if let position = commit.sourceState { sourceState = position }
        }
        if bringsRows { allSeen() }
        if !plan.parts.isEmpty {
            // The commit is on the medium, whatever becomes of this.
            do throws(OutboxError) { try salvageStep(database) } catch { failed(error, rows: []) }
        }
        defer { wasOpenedLate = false }
        reply = complete(reply)
        reply.foundState = found
        return reply
    }

    private func perform(_ commit: Commit, in database: Database) throws(OutboxError) -> CommitReply {
        var transaction = Transaction(
            database: database, ledger: ledger, outbox: uuid, boot: boot, settings: settings)
        // When the supply has gone, what matters is that the rows are safe soon: the log is copied back later.
        let isUrgent = commit.rows.contains { $0.location.event == .power && $0.location.power.externalPower == false }
        if isUrgent { database.connection.checkpointsItself(after: 0) }
        defer { if isUrgent { database.connection.checkpointsItself(after: Schema.checkpointPages) } }
        do throws(OutboxError) {
            let reply = try transaction.run(commit)
            ledger = transaction.ledger
            return reply
        } catch {
            failed(error, rows: commit.rows)
            guard error.cause == .full, commit.rows.count >= Self.crowd, self.database === database else { throw error }
        }
        // Memory is filling up too: older rows make room for these.
        return try makeRoom(for: commit, in: database)
    }

    private func makeRoom(for commit: Commit, in database: Database) throws(OutboxError) -> CommitReply {
        try? database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        var crowded = ledger
        if let usage = try? database.usage() { crowded.retention.limitSpace(fileBytes: usage.live) }
        var transaction = Transaction(
            database: database, ledger: crowded, outbox: uuid, boot: boot, settings: settings)
        do throws(OutboxError) {
            let reply = try transaction.run(commit, makingRoom: true)
            ledger = transaction.ledger
            return reply
        } catch {
            failed(error, rows: commit.rows)
            throw error
        }
    }

    /// Drops the cursor of an endpoint that is no longer configured, and with it its claim on rows.
    public func forget(endpoint name: String) throws(OutboxError) {
        _ = try commit(Commit(orders: [.forget(endpoint: name)]))
    }

    /// Removed endpoints that still have a cursor here, with the rows that wait for them.
    public var removedEndpoints: [(name: String, rows: Int)] {
        ledger.endpoints.filter { $0.removedAt != nil }.map { ($0.settings.name, $0.unsent) }
    }

    /// Gives the file and its lock back. Everything committed is on the medium already; the log is kept as it is.
    public func close() {
        isClosed = true
        database = nil
        lock = nil
    }

    /// A failed medium is never trusted again: the file is opened anew, and what it really holds is read from it.
    private func opened() throws(OutboxError) -> Database {
        if readers?.mayCloseAgain == true {
            readers?.closesAgain()
            database = nil
        }
        if let database { return database }
        guard !isClosed else { throw OutboxError(.cannotOpen, path: settings.path, message: "closed") }
        if lock == nil { lock = try OutboxLock(path: settings.path) }
        if openProblem != nil {
            let queue = try open(newUUID: uuid)
            take(queue)
            openProblem = nil
            wasOpenedLate = true
            return queue.database
        }
        let given = ledger
        let queue = try open(newUUID: uuid, lastSeq: given.lastSeq, damage: damage)
        let opened = queue.opened
        damage = nil
        // Rows of a commit whose fate is unknown are in the damaged file at most, and are not brought back from there.
        if queue.setAside != nil { uncertain = nil }
        adopt(queue)
        ledger = opened.ledger
        // Should the file have gone meanwhile, a number given twice would make a server take new rows for old ones.
        ledger.lastSeq = max(ledger.lastSeq, given.lastSeq)
        for index in ledger.endpoints.indices {
            guard let known = given.index(of: ledger.endpoints[index].settings.name) else { continue }
            ledger.endpoints[index].settledUnsent = given.endpoints[known].settledUnsent
        }
        trackerState = opened.trackerState
        sourceState = opened.sourceState
        database = queue.database
        return queue.database
    }

    private func open(
        newUUID: [UInt8], lastSeq: Int64 = 0, damage: OutboxError? = nil
    ) throws(OutboxError) -> OpenedQueue {
        var access = readers?.access ?? .readWrite
        let cache = cache
        // Opening may write.
        self.cache = .suspect
        let queue: OpenedQueue
        do throws(OutboxError) {
            queue = try OpenedQueue.open(
                settings, endpoints: endpoints, newUUID: newUUID, migrations: migrations, lastSeq: lastSeq,
                damage: damage, cache: cache, access: access)
        } catch  where error.cause == .locked(pid: nil) && access == .alone {
            access = .readWrite
            queue = try OpenedQueue.open(
                settings, endpoints: endpoints, newUUID: newUUID, migrations: migrations, lastSeq: lastSeq,
                damage: damage, cache: cache, access: access)
        }
        self.cache = .trusted
        readers?.opened(settings.path, as: access)
        return queue
    }

    /// Readable when somebody wants to look at the queue, who is kept out until `letReadersIn`; nil = everybody may.
    var readerDescriptor: Int32? { readers?.descriptor }

    /// Gives the file up until the next commit, and has it together with others from then on, as long as they come.
    func letReadersIn() {
        readers?.readerCame()
        database = nil
    }

    /// Rows that wait, for a caller whose commits fail.
    func stored(_ query: StoredQuery) throws(OutboxError) -> StoredRows? {
        if let database { return try database.stored(query) }
        try QueueFiles(path: settings.path).forget(.unknown)
        // Nobody writes: the lock says so.
        let connection = try Connection(path: settings.path, access: lock == nil ? .readOnly : .readOnlyAlone)
        return try Database(reading: connection).stored(query)
    }

    func failed(_ error: OutboxError, rows: [NewRow]) {
        if !rows.isEmpty { uncertain = (ledger.lastSeq, rows) }
        // A full disk that let the transaction be rolled back has told the truth.
        if error.cause == .full, database?.connection.isInTransaction == false { return }
        database = nil
        cache = .suspect
    }

    private func allSeen() {
        uncertain = nil
        storedUnseen = []
    }

    /// Leaves out rows that a commit has stored although it reported a failure.
    ///
    /// The caller may have lost some of the oldest of them since, so their end is looked for at the beginning of its rows.
    private func notYetStored(_ rows: [NewRow]) -> [NewRow] {
        if let uncertain, ledger.lastSeq > uncertain.lastSeq {
            storedUnseen += uncertain.rows
            self.uncertain = nil
        }
        guard !rows.isEmpty else { return rows }
        for start in storedUnseen.indices {
            let rest = storedUnseen[start...]
            guard rows.starts(with: rest) else { continue }
            storedUnseen.removeFirst(start)
            return Array(rows.dropFirst(storedUnseen.count))
        }
        storedUnseen = []
        return rows
    }
}

extension Commit {
    var isEmpty: Bool {
        rows.isEmpty && trackerState == nil && sourceState == nil && settlements.isEmpty && states.isEmpty
            && orders.isEmpty && forms.isEmpty && had.isEmpty
    }
}
