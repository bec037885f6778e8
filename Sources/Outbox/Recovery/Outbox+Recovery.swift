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
    /// Rows are still being brought back, some with each commit.
    public var isSalvaging = false
    /// So soon another commit should bring more of them, whatever is recorded; nil = it need not.
    public var due: Duration?
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
    ///   - plan: what is to be brought back already; nil = the file knows.
    ///   - before: the endpoints, as far as the caller knows; none = the file tells.
    ///   - damage: what is known to be wrong with the file; nil = nothing.
    ///   - cache: what is known of it; unless it is trusted, the medium is read.
    ///   - newUUID: of a queue that is new.
    static func open(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], migrations: [String],
        lastSeq: Int64 = 0, plan: SalvagePlan? = nil, before: [Ledger.Endpoint] = [], damage: OutboxError? = nil,
        cache: PageCache = .trusted,
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
                    plan: plan, before: before, cache: cache, access: access, medium: medium)
            } catch {
                guard error.isDamage else { throw error }
                found = error
            }
        }
        let copy = try files.setAside()
        let database = try Database(
            path: settings.path, migrations: migrations, access: access, medium: medium)
        let next = try takeOver(copy, of: files, by: database, endpoints, before, lastSeq: lastSeq, plan: plan)
        let opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        files.prune(maxBytes: settings.maxBytes, keeping: Set(next.parts.map(\.copy)))
        return OpenedQueue(
            database: database, opened: opened, plan: next, setAside: (files.copy(copy), found?.description ?? ""))
    }

    /// Lets a new queue go on where a damaged one ended, and plans what is to be brought back from there.
    private static func takeOver(
        _ copy: Int64, of files: QueueFiles, by database: Database, _ endpoints: [EndpointSettings],
        _ before: [Ledger.Endpoint], lastSeq: Int64, plan: SalvagePlan?
    ) throws(OutboxError) -> SalvagePlan {
        let remains = Remains(path: files.copy(copy), medium: files.medium)
        var plan = plan ?? remains.plan
        plan.parts.removeAll { !files.copies().contains($0.copy) }
        plan.parts.append(SalvagePlan.Part(copy: copy, next: 0, through: lastSeq > 0 ? lastSeq : Ledger.seqMax))
        try database.begin.run()
        do throws(OutboxError) {
            let mark = max(lastSeq, remains.lastSeq)
            try database.store(.mark, mark)
            let waited = before.isEmpty ? remains.endpoints : before.filter { $0.unsent > 0 || $0.wanted != nil }
            for (number, settings) in endpoints.enumerated() {
                let earlier = waited.first {
                    $0.settings.name == settings.name && $0.removedAt == nil && !$0.isSpare
                }
                guard let earlier else { continue }
                try database.write(earlier.begun(as: Int64(number + 1), after: mark))
            }
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
        lastSeq: Int64, plan: SalvagePlan?, before: [Ledger.Endpoint], cache: PageCache, access: Connection.Access,
        medium: any QueueMedium
    ) throws(OutboxError) -> OpenedQueue {
        let database = try Database(
            path: settings.path, migrations: migrations, access: access, medium: medium)
        if cache == .suspect { try database.startLogAnew() }
        // The power may have gone between the copy and the queue that replaces it.
        let files = QueueFiles(path: settings.path, medium: medium)
        var orphan = try database.blob(.uuid) == nil ? files.copies().last : nil
        // Of a log alone nothing can be read, and SQLite would delete it.
        if let copy = orphan, files.size(files.copy(copy)) < 512 { orphan = nil }
        if let orphan {
            _ = try takeOver(orphan, of: files, by: database, endpoints, before, lastSeq: lastSeq, plan: plan)
        }
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

extension Ledger.Endpoint {
    /// As a new queue takes it over from a damaged one: nothing waits for it yet, and no number is beyond what it can be.
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

/// What a damaged queue still tells about itself.
private struct Remains {
    var lastSeq: Int64 = 0
    var plan = SalvagePlan()
    var trackerState: [UInt8]?
    var sourceState: [UInt8]?
    /// For whom rows waited, or may come back.
    var endpoints: [Ledger.Endpoint] = []

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
        let known = (try? Database(damaged: connection).knownEndpoints()) ?? []
        let isRecovering = !plan.parts.isEmpty
        endpoints = known.filter { endpoint in
            let isSending = "SELECT 1 FROM batch WHERE endpoint = \(endpoint.id) LIMIT 1"
            return isRecovering || endpoint.formed < lastSeq || (try? connection.integer(isSending)) == 1
        }
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

/// Bringing back what can be read of damaged copies.
struct Salvaging {
    var plan = SalvagePlan()
    var reader: Salvage?
    /// Tries to read the first copy that failed.
    var tries = 0
    /// Commits until the next step.
    var rests = 0
    /// The last step may be on the medium, although it failed.
    var isUncertain = false
    /// The endpoints when a copy was set aside, by its number. After a restart only the copy tells of them.
    var before: [Int64: [Ledger.Endpoint]] = [:]
    /// Endpoints that are not held for an old binding any more, and batches that went with a damaged file; who sends has
    /// not heard of it.
    var released: [String] = []
    var dissolved: [String] = []

    /// Rows that are brought back with one commit.
    static let rowsMax = 250
    /// What cannot be read of a copy after so many tries counts as damaged. Before each, twice as many commits go by as
    /// before the last one.
    static let triesMax = 4
    /// A disk that has just refused what was brought back is asked again so many commits later.
    static let restAfterRefusal = 16

    /// See `Recovery.due`.
    var due: Duration? { plan.parts.isEmpty ? nil : rests == 0 ? .seconds(1) : .seconds(60) }

    mutating func adopt(_ new: SalvagePlan) {
        if new.parts.first?.copy != plan.parts.first?.copy { (tries, rests) = (0, 0) }
        plan = new
        before = before.filter { copy, _ in new.parts.contains { $0.copy == copy } }
        reader = nil
        isUncertain = false
    }
}

extension Outbox {
    /// Brings some rows back, after a commit that is on the medium whatever becomes of this.
    /// - Parameter now: boot clock.
    func salvage(_ database: Database, at now: EventTime?) {
        guard let part = salvaging.plan.parts.first else { return }
        guard salvaging.rests == 0 else { return salvaging.rests -= 1 }
        let found: [(row: QueuedLocation, finishedFor: [String])]
        do throws(OutboxError) {
            if salvaging.reader == nil {
                salvaging.reader = try Salvage(
                    path: QueueFiles(path: settings.path).copy(part.copy), part: part,
                    before: salvaging.before[part.copy],
                    isPatient: salvaging.tries < Salvaging.triesMax, medium: medium)
            }
            found = try salvaging.reader?.rows(Salvaging.rowsMax, for: endpoints) ?? []
        } catch {
            salvaging.reader = nil
            salvaging.tries = min(salvaging.tries + 1, Salvaging.triesMax)
            salvaging.rests = 1 << salvaging.tries
            return
        }
        do throws(OutboxError) {
            try bringBack(found, of: part, to: database, at: now)
        } catch {
            // It has read rows that are not stored.
            salvaging.reader = nil
            salvaging.rests = Salvaging.restAfterRefusal
            failed(error)
            salvaging.isUncertain = self.database == nil
            // What is to be brought back may be the only one to meet the damage.
            if error.cause == .corrupt, lock != nil { _ = try? opened(damage: error) }
        }
    }

    /// In a transaction of its own.
    private func bringBack(
        _ found: [(row: QueuedLocation, finishedFor: [String])], of part: SalvagePlan.Part, to database: Database,
        at now: EventTime?
    ) throws(OutboxError) {
        var next = salvaging.plan
        if let reader = salvaging.reader, !reader.isFinished {
            next.parts[0].next = reader.next
        } else {
            next.parts.removeFirst()
        }
        var transaction = transaction(on: database, settings)
        var lastTime = lastTime
        let (inversions, released) = try transaction.bringBack(found, after: &lastTime, plan: next, at: now)
        ledger = transaction.ledger
        life = transaction.life
        self.lastTime = lastTime
        if next.parts.first?.copy == part.copy { salvaging.plan = next } else { salvaging.adopt(next) }
        if salvaging.tries < Salvaging.triesMax { salvaging.tries = 0 }
        recovery.salvaged += found.count
        recovery.inversions += inversions
        salvaging.released += released
    }
}
