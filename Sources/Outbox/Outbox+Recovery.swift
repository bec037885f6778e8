import Delivery
import Positioning

/// What became of a queue that was damaged, since it was opened.
public struct Recovery: Hashable, Sendable {
    /// Damaged queues that were set aside.
    public var corruptRecovered = 0
    /// Rows that were brought back from them.
    public var salvaged = 0
    /// Of these, rows that are older than the row before them.
    public var inversions = 0
    /// Rows are still being brought back, some with each commit: another one is due soon.
    public var isSalvaging = false
    /// The last one that was set aside, and what was wrong with it.
    public var copy: String?
    public var reason: String?

    public init() {}
}

/// A queue file that was opened, and what it took.
struct OpenedQueue {
    var database: Database
    var opened: Database.Opened
    var plan = SalvagePlan()
    /// nil: the file was good.
    var setAside: (copy: String, reason: String)?

    /// Opens the file. One that is damaged is moved away, and a new one takes its place, with higher numbers.
    ///
    /// - Parameters:
    ///   - lastSeq: the last number that was given, as far as the caller knows.
    ///   - damage: what is known to be wrong with the file; nil = nothing.
    ///   - cache: what is known of it; unless it is trusted, the medium is read.
    ///   - newUUID: of a queue that is new.
    static func open(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], migrations: [String],
        lastSeq: Int64 = 0, damage: OutboxError? = nil, cache: PageCache = .trusted,
        access: Connection.Access = .readWrite, medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) -> OpenedQueue {
        let files = QueueFiles(path: settings.path, medium: medium)
        try files.finishSettingAside()
        try files.forget(cache)
        var found = isBegun(files) ? nil : damage
        if found == nil {
            do throws(OutboxError) {
                return try good(
                    settings, endpoints: endpoints, newUUID: newUUID, migrations: migrations, lastSeq: lastSeq,
                    cache: cache, access: access, medium: medium)
            } catch {
                guard error.isDamage else { throw error }
                found = error
            }
        }
        let copy = try files.setAside()
        let database = try Database(
            path: settings.path, migrations: migrations, access: access, medium: medium)
        let plan = try takeOver(copy, of: files, by: database, lastSeq: lastSeq)
        let opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        files.prune(maxBytes: settings.maxBytes, keeping: Set(plan.parts.map(\.copy)))
        return OpenedQueue(
            database: database, opened: opened, plan: plan, setAside: (files.copy(copy), found?.description ?? ""))
    }

    /// Lets a new queue go on where a damaged one ended, and plans what is to be brought back from there.
    private static func takeOver(
        _ copy: Int64, of files: QueueFiles, by database: Database, lastSeq: Int64
    ) throws(OutboxError) -> SalvagePlan {
        let remains = Remains(path: files.copy(copy), medium: files.medium)
        var plan = remains.plan
        plan.parts.removeAll { !files.copies().contains($0.copy) }
        plan.parts.append(SalvagePlan.Part(copy: copy, next: 0, through: lastSeq > 0 ? lastSeq : Ledger.seqMax))
        try database.begin.run()
        do throws(OutboxError) {
            try database.store(.mark, max(lastSeq, remains.lastSeq))
            try database.store(.salvage, plan.bytes)
            if let state = remains.trackerState { try database.store(.tracker, state) }
            if let state = remains.sourceState { try database.store(.file, state) }
            try database.commit.run()
        } catch {
            if database.connection.isInTransaction { try? database.rollback.run() }
            throw error
        }
        return plan
    }

    /// Whether a damaged queue was set aside and the one in its place was not finished.
    private static func isBegun(_ files: QueueFiles) -> Bool {
        guard !files.copies().isEmpty else { return false }
        guard files.exists(files.path) else { return true }
        guard let connection = try? Connection(path: files.path, access: .readOnly, medium: files.medium),
            let tables = try? connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'state'")
        else { return false }
        let uuid = "SELECT count(*) FROM state WHERE id = \(Schema.Key.uuid.rawValue)"
        return tables == 0 || (try? connection.integer(uuid)) == 0
    }

    private static func good(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], migrations: [String],
        lastSeq: Int64, cache: PageCache, access: Connection.Access, medium: any QueueMedium
    ) throws(OutboxError) -> OpenedQueue {
        let database = try Database(
            path: settings.path, migrations: migrations, access: access, medium: medium)
        if cache == .suspect { try database.startLogAnew() }
        // The power may have gone between the copy and the queue that replaces it.
        let files = QueueFiles(path: settings.path, medium: medium)
        var orphan = try database.blob(.uuid) == nil ? files.copies().last : nil
        // Of a log alone nothing can be read, and SQLite would delete it.
        if let copy = orphan, files.size(files.copy(copy)) < 512 { orphan = nil }
        if let orphan { _ = try takeOver(orphan, of: files, by: database, lastSeq: lastSeq) }
        var opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        opened.ledger.retention = Retention(
            stored: try database.connection.integer(
                "SELECT value FROM state WHERE id = \(Schema.Key.thinned.rawValue)"))
        guard opened.ledger.isPlausible else {
            throw OutboxError(.corrupt, path: settings.path, message: "numbers that were never given")
        }
        let plan = SalvagePlan(bytes: try database.blob(.salvage) ?? [])
        return OpenedQueue(
            database: database, opened: opened, plan: plan,
            setAside: orphan.map { (files.copy($0), "it was set aside, and the power went") })
    }
}

/// What a damaged queue still tells about itself.
private struct Remains {
    var lastSeq: Int64 = 0
    var plan = SalvagePlan()
    var trackerState: [UInt8]?
    var sourceState: [UInt8]?

    init(path: String, medium: any QueueMedium) {
        guard let connection = try? Connection(path: path, access: .readWrite, medium: medium) else { return }
        for sql in [
            "SELECT value FROM state WHERE id = \(Schema.Key.mark.rawValue)", "SELECT max(formed) FROM endpoint",
            "SELECT max(seq) FROM location",
        ] {
            guard let seq = try? connection.integer(sql), (0...Ledger.seqMax / 2).contains(seq) else { continue }
            lastSeq = max(lastSeq, seq)
        }
        func blob(_ key: Schema.Key) -> [UInt8]? {
            do throws(OutboxError) {
                let select = try connection.prepare("SELECT value FROM state WHERE id = \(key.rawValue)")
                return try select.step() ? select.blob(0) : nil
            } catch {
                return nil
            }
        }
        trackerState = blob(.tracker)
        sourceState = blob(.file)
        plan = SalvagePlan(bytes: blob(.salvage) ?? [])
    }
}

extension OutboxError {
    /// Whether a new queue helps. A statement that a sound file would not refuse tells of a schema that cannot be read.
    var isDamage: Bool { cause == .corrupt || cause == .refused }
}

extension Ledger {
    /// No queue lives long enough for more rows, and every receiver can tell such numbers apart.
    static let seqMax: Int64 = 1 << 53

    /// Whether these are numbers that counting can have led to.
    var isPlausible: Bool {
        (0...Self.seqMax).contains(lastSeq) && firstSeq >= 0 && firstSeq <= lastSeq + 1
            && (0...Self.seqMax).contains(Int64(rows))
            && endpoints.allSatisfy {
                (0...Self.seqMax).contains($0.formed) && $0.generation >= 0
            }
    }
}

extension Outbox {
    /// Rows that are brought back with one commit.
    private static let salvageRows = 250

    /// Brings some rows back from the damaged copy, in a transaction of its own.
    /// - Parameter now: boot clock.
    func salvageStep(_ database: Database, at now: EventTime?) throws(OutboxError) {
        guard let part = plan.parts.first else { return }
        if salvage == nil {
            salvage = Salvage(path: QueueFiles(path: settings.path).copy(part.copy), part: part, medium: medium)
        }
        let found = salvage?.rows(Self.salvageRows, for: endpoints) ?? []
        var next = plan
        if let salvage, !salvage.isFinished { next.parts[0].next = salvage.next } else { next.parts.removeFirst() }
        var transaction = transaction(on: database, settings)
        var lastTime = lastTime
        let inversions = try transaction.bringBack(found, after: &lastTime, plan: next, at: now)
        ledger = transaction.ledger
        life = transaction.life
        self.lastTime = lastTime
        if next.parts.first?.copy != part.copy { salvage = nil }
        plan = next
        recovery.salvaged += found.count
        recovery.inversions += inversions
        recovery.isSalvaging = !plan.parts.isEmpty
    }
}
