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
    public let uuid: [UInt8]
    /// First 8 hex digits of `uuid`: the queue's part of every batch id.
    public let name: String
    /// As of the last commit that brought one; nil in a new queue.
    public private(set) var trackerState: [UInt8]?
    /// As of the last commit that brought one; nil without a file source.
    public private(set) var sourceState: [UInt8]?

    let endpoints: [EndpointSettings]
    let bootID: String?
    var ledger = Ledger()
    /// nil after a failure, until the next commit opens the file again.
    var database: Database?
    private var lock: OutboxLock?
    private let migrations: [String]
    /// A commit whose fate is unknown.
    private var uncertain: (lastSeq: Int64, rows: [NewRow])?
    /// Rows that are on the medium although the caller was told of a failure: it will hand them in again.
    private var storedUnseen: [NewRow] = []

    /// - Parameters:
    ///   - endpoints: the configured ones, in their order. An endpoint that is no longer among them keeps its cursor
    ///     and its rows up to this moment until `forget`.
    ///   - bootID: of the running system; nil when it has none.
    ///   - newUUID: 16 random bytes, used when the queue is new.
    public convenience init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8]
    ) throws(OutboxError) {
        try self.init(
            settings, endpoints: endpoints, bootID: bootID, newUUID: newUUID, migrations: Schema.migrations)
    }

    init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8],
        migrations: [String]
    ) throws(OutboxError) {
        self.settings = settings
        self.endpoints = endpoints
        self.bootID = bootID
        self.migrations = migrations
        let lock = try OutboxLock(path: settings.path)
        let database = try Database(path: settings.path, migrations: migrations)
        let opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        self.lock = lock
        self.database = database
        uuid = opened.uuid
        name = String(hexOf: opened.uuid.prefix(4))
        ledger = opened.ledger
        trackerState = opened.trackerState
        sourceState = opened.sourceState
    }

    /// Depths and counts as of the last commit.
    public var current: CommitReply {
        CommitReply(lastSeq: ledger.lastSeq, depths: ledger.depths, rows: ledger.rows)
    }

    /// Batches that were formed and not settled, to be sent first: the same rows under the same id, oldest first for each
    /// endpoint whose cursor they are of.
    public func inFlight() throws(OutboxError) -> [Batch] {
        let database = try opened()
        var batches: [Batch] = []
        for endpoint in ledger.endpoints where endpoint.removedAt == nil && endpoint.state != .rebind {
            for row in endpoint.batches {
                batches.append(try database.batch(row, of: endpoint, outbox: uuid, names: ledger.names))
            }
        }
        return batches
    }

    /// All of it or nothing, on the medium when this returns.
    public func commit(_ commit: Commit) throws(OutboxError) -> CommitReply {
        let database = try opened()
        let bringsRows = !commit.rows.isEmpty
        var commit = commit
        commit.rows = notYetStored(commit.rows)
        if commit.isEmpty {
            if bringsRows { allSeen() }
            return current
        }
        var transaction = Transaction(
            database: database, ledger: ledger, outbox: uuid, bootID: bootID, settings: settings)
        do {
            let reply = try transaction.run(commit)
            ledger = transaction.ledger
            if let state = commit.trackerState { trackerState = state }
            if let position = commit.sourceState { sourceState = position }
            if bringsRows { allSeen() }
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
        database = nil
        lock = nil
    }

    /// A failed medium is never trusted again: the file is opened anew, and what it really holds is read from it.
    private func opened() throws(OutboxError) -> Database {
        if let database { return database }
        guard lock != nil else { throw OutboxError(.cannotOpen, path: settings.path, message: "closed") }
        let database = try Database(path: settings.path, migrations: migrations)
        let opened = try database.load(endpoints: endpoints, newUUID: uuid)
        let given = ledger.lastSeq
        ledger = opened.ledger
        // Should the file have gone meanwhile, a number given twice would make a server take new rows for old ones.
        ledger.lastSeq = max(ledger.lastSeq, given)
        trackerState = opened.trackerState
        sourceState = opened.sourceState
        self.database = database
        return database
    }

    func failed(_ error: OutboxError, rows: [NewRow]) {
        if !rows.isEmpty { uncertain = (ledger.lastSeq, rows) }
        // A full disk that let the transaction be rolled back has told the truth.
        if error.cause == .full, database?.connection.isInTransaction == false { return }
        database = nil
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
            && orders.isEmpty && forms.isEmpty
    }
}
