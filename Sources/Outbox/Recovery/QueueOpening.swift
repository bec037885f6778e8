import Delivery
import Positioning

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
    /// What is known to be wrong with the file; nil = nothing.
    var damage: OutboxError?
    /// What is known of the file; unless it is trusted, the medium is read.
    var cache = PageCache.trusted
    var access = Connection.Access.readWrite

    private var files: QueueFiles { QueueFiles(path: settings.path, medium: medium) }

    func open() throws(OutboxError) -> OpenedQueue {
        try files.finishSettingAside()
        try files.dropFromPageCache(cache)
        var found = isBegun ? nil : damage
        if found == nil {
            do throws(OutboxError) {
                return try openGood()
            } catch {
                guard error.isDamage else { throw error }
                found = error
            }
        }
        let copy = try files.setAside()
        let database = try Database(path: settings.path, access: access, medium: medium)
        let next = try goOn(from: copy, in: database)
        let opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        files.prune(maxBytes: settings.maxBytes, keeping: Set(next.parts.map(\.copy)))
        return OpenedQueue(
            database: database, opened: opened, plan: next, setAside: (files.copy(copy), found?.description ?? ""))
    }

    /// Lets a new queue go on where a damaged one ended, and plans what is to be brought back from there.
    private func goOn(from copy: Int64, in database: Database) throws(OutboxError) -> SalvagePlan {
        let damaged = DamagedQueue(path: files.copy(copy), medium: medium)
        var plan = plan ?? damaged.plan
        plan.parts.removeAll { !files.copies().contains($0.copy) }
        plan.parts.append(SalvagePlan.Part(copy: copy, next: 0, through: lastSeq > 0 ? lastSeq : Ledger.seqMax))
        try database.transaction { () throws(OutboxError) in
            let mark = max(lastSeq, damaged.lastSeq)
            try database.store(.mark, mark)
            let waited = before.isEmpty ? damaged.endpoints : before.filter { $0.unsent > 0 || $0.wanted != nil }
            for (number, settings) in endpoints.enumerated() {
                let earlier = waited.first {
                    $0.settings.name == settings.name && $0.removedAt == nil && !$0.isSpare
                }
                guard let earlier else { continue }
                try database.write(earlier.begun(as: Int64(number + 1), after: mark))
            }
            try database.store(.salvage, plan.bytes)
            try database.store(damaged.parts)
        }
        return plan
    }

    /// Whether a damaged queue was set aside and the one that replaces it was not finished.
    private var isBegun: Bool {
        guard !files.copies().isEmpty else { return false }
        guard medium.exists(settings.path) else { return true }
        guard let connection = try? Connection(path: settings.path, access: .readOnly, medium: medium),
            let tables = try? connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'state'")
        else { return false }
        let uuid = "SELECT count(*) FROM state WHERE id = \(Schema.Key.uuid.rawValue)"
        return tables == 0 || (try? connection.integer(uuid)) == 0
    }

    private func openGood() throws(OutboxError) -> OpenedQueue {
        let database = try Database(path: settings.path, access: access, medium: medium)
        if cache == .suspect { try database.restartLog() }
        // The power may have gone between the copy and the queue that replaces it.
        var orphan = try database.blob(.uuid) == nil ? files.copies().last : nil
        // Of a log alone nothing can be read, and SQLite would delete it.
        if let copy = orphan, medium.size(files.copy(copy)) < 512 { orphan = nil }
        if let orphan { _ = try goOn(from: orphan, in: database) }
        var opened = try database.load(endpoints: endpoints, newUUID: newUUID)
        opened.ledger.retention = Retention(stored: try database.integer(.thinned))
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
    var lastSeq: Int64 = 0
    var plan = SalvagePlan()
    var parts = PartStates()
    /// For whom rows waited, or may come back.
    var endpoints: [Ledger.Endpoint] = []

    init(path: String, medium: any QueueMedium) {
        guard let connection = try? Connection(damaged: path, medium: medium),
            let database = try? Database(damaged: connection)
        else { return }
        for sql in [
            "SELECT value FROM state WHERE id = \(Schema.Key.mark.rawValue)", "SELECT max(formed) FROM endpoint",
            "SELECT max(seq) FROM location", "SELECT max(last) FROM segment",
        ] {
            guard let seq = try? connection.integer(sql), (0...Ledger.seqMax / 2).contains(seq) else { continue }
            lastSeq = max(lastSeq, seq)
        }
        parts = PartStates(
            tracker: (try? database.blob(.tracker)) ?? nil, source: (try? database.blob(.file)) ?? nil,
            channels: (try? database.blob(.channels)) ?? nil)
        plan = SalvagePlan(bytes: (try? database.blob(.salvage)) ?? nil ?? [])
        let isRecovering = !plan.parts.isEmpty
        endpoints = ((try? database.knownEndpoints()) ?? []).filter { endpoint in
            let isSending = "SELECT 1 FROM batch WHERE endpoint = \(endpoint.id) LIMIT 1"
            return isRecovering || endpoint.formed < lastSeq || (try? connection.integer(isSending)) == 1
        }
    }
}

extension OutboxError {
    /// Whether a new queue helps. A statement that a sound file would not refuse shows a schema that cannot be read.
    var isDamage: Bool { cause == .corrupt || cause == .refused }
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
