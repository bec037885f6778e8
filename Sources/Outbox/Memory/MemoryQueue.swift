import Delivery
import Positioning

/// The queue while the disk refuses: rows that came since, above those on disk, as far as these can still be read.
///
/// It is an ordinary queue in a database of SQLite in memory, of a bounded number of rows. Numbers, batches and ids go on as
/// on disk, so that the disk can take over what became of them.
final class MemoryQueue {
    let database: Database
    let below: RowsOnDisk
    let settings: OutboxSettings
    /// Rows on disk when it began to refuse.
    let rowsOnDisk: Int
    /// Why the disk refuses, as of its last answer.
    var refusal: OutboxError
    /// Answers about records of the quarantine, which the disk has not heard of.
    var deferred: [BatchAnswer] = []
    /// What the disk holds is not known.
    let isBlind: Bool
    /// What was to be brought back when the disk began to refuse: a commit that brought rows back may have been stored
    /// although it failed, and they leave again. nil = the disk knows.
    var plan: SalvagePlan?
    /// The queue on disk that was to get the rows, and its last number before that: the try failed, or seemed to.
    var found: (uuid: [UInt8], lastSeq: Int64)?
    /// Damaged files that were set aside since, by the numbers of their copies.
    var copies: Set<Int64> = []
    private let generation: Int

    /// Most rows: about 2 MB.
    static let rowsMax = 10_000
    /// More rows than this make room on a disk that has been full for long.
    private static let crowd = 5000

    private init(
        _ settings: OutboxSettings, _ database: Database, above below: RowsOnDisk, rowsOnDisk: Int, isBlind: Bool,
        generation: Int, _ refusal: OutboxError
    ) {
        self.database = database
        self.below = below
        self.rowsOnDisk = rowsOnDisk
        self.isBlind = isBlind
        self.generation = generation
        self.refusal = refusal
        var settings = settings
        settings.maxRecords = min(settings.maxRecords ?? .max, Self.rowsMax)
        settings.maxBytes = nil
        settings.minFree = nil
        self.settings = settings
    }

    /// - Parameters:
    ///   - ledger: as of the last commit that the disk took.
    ///   - isAlone: no other process writes the file.
    ///   - generation: of the batches that are formed here.
    convenience init(
        _ settings: OutboxSettings, above ledger: Ledger, isAlone: Bool, medium: any QueueMedium, generation: Int,
        _ refusal: OutboxError
    ) throws(OutboxError) {
        let below = RowsOnDisk(path: settings.path, last: ledger.lastSeq, isAlone: isAlone, medium: medium)
        self.init(
            settings, try Database(inMemoryFor: settings.path, above: below), above: below, rowsOnDisk: ledger.rows,
            isBlind: false, generation: generation, refusal)
    }

    /// Of a disk that has refused from the start.
    struct Start {
        var queue: MemoryQueue
        var opened: Database.Opened
        var inFlight: [Batch]

        /// - Parameter newUUID: names the queue where it is not known what the disk holds.
        init(
            _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], isAlone: Bool,
            medium: any QueueMedium, life: inout Life, _ refusal: OutboxError
        ) throws(OutboxError) {
            if let known = try? Start(
                reading: settings, endpoints: endpoints, isAlone: isAlone, medium: medium, life: &life, refusal)
            {
                self = known
                return
            }
            life.beginInMemory(isStart: true, above: 0)
            let below = RowsOnDisk(path: settings.path, last: 0, isAlone: isAlone, medium: medium)
            let database = try Database(inMemoryFor: settings.path, above: below)
            opened = try database.load(endpoints: endpoints, newUUID: newUUID)
            inFlight = []
            queue = MemoryQueue(
                settings, database, above: below, rowsOnDisk: 0, isBlind: true,
                generation: life.memoryGeneration, refusal)
        }

        private init(
            reading settings: OutboxSettings, endpoints: [EndpointSettings], isAlone: Bool, medium: any QueueMedium,
            life: inout Life, _ refusal: OutboxError
        ) throws(OutboxError) {
            let isFlushed = (try? QueueFiles(path: settings.path, medium: medium).forget(.unknown)) != nil
            let disk = try Database(
                reading: Connection(path: settings.path, access: isAlone ? .readOnlyAlone : .readOnly, medium: medium))
            guard let uuid = try disk.blob(.uuid), uuid.count == 16 else {
                throw OutboxError(.cannotOpen, path: settings.path, message: "it has no name yet")
            }
            let names = try disk.names()
            let below = RowsOnDisk(path: settings.path, last: try disk.lastSeq(), isAlone: isAlone, medium: medium)
            let database = try Database(inMemoryFor: settings.path, above: below)
            for table in ["state", "endpoint", "batch", "ahead"] { try database.copy(table, from: disk) }
            // The quarantine stays on disk, and so do the batches of its records.
            try database.connection.execute("DELETE FROM batch WHERE origin <> \(BatchRow.Origin.queue.rawValue)")
            opened = try database.load(endpoints: endpoints, newUUID: uuid)
            life.beginInMemory(isStart: true, above: opened.ledger.highestGeneration)
            let generation = life.memoryGeneration
            let rows = try disk.rowCount(mark: try disk.mark())
            inFlight = []
            for index in opened.ledger.endpoints.indices {
                let endpoint = opened.ledger.endpoints[index]
                opened.ledger.endpoints[index].quarantine = try disk.quarantineCount(of: endpoint.id)
                for (place, found) in endpoint.batches.enumerated() {
                    var batch = found
                    let stored = try disk.connection.optionalInteger(
                        "SELECT generation FROM batch WHERE endpoint = \(endpoint.id) AND first = \(batch.first)")
                    if stored != Int64(batch.generation) || !isFlushed {
                        // What is other than on disk the disk may never hear of, and what it does not flush it may lose:
                        // another start must not repeat the id.
                        batch.generation = max(batch.generation, generation)
                        opened.ledger.endpoints[index].batches[place] = batch
                        try database.write(batch, endpoint: endpoint.id)
                    }
                    let rows = try disk.rows(of: batch, endpoint: endpoint.id, names: names)
                    inFlight.append(try disk.batch(batch, rows, of: endpoint, outbox: uuid, names: names))
                }
            }
            opened.ledger.leaveDisk()
            queue = MemoryQueue(
                settings, database, above: below, rowsOnDisk: rows, isBlind: false, generation: generation, refusal)
        }
    }

    func rules(passesUnreadable: Bool) -> MemoryRules {
        MemoryRules(
            refusal: refusal, generation: generation, isBlind: isBlind, passesUnreadable: passesUnreadable,
            deferred: deferred)
    }

    /// Memory is filling up too: older rows on a full disk make room for these.
    func isCrowded(_ ledger: Ledger) -> Bool { refusal.cause == .full && ledger.rows >= Self.crowd }
}

// The disk takes over.
extension Transaction {
    /// Rows that are given to the disk at a time.
    private static let stretch = 500

    /// Rows of a full disk make room for those in memory.
    ///
    /// - Parameter isSame: memory knows this queue: rows of the batches that were formed there stay.
    mutating func makeRoom(for above: Ledger, isSame: Bool) throws(OutboxError) -> DropCounts {
        for endpoint in above.endpoints where isSame {
            guard let index = ledger.index(of: endpoint.settings.name) else { continue }
            let id = ledger.endpoints[index].id
            let queue = BatchRow.Origin.queue.rawValue
            try database.connection.execute("DELETE FROM batch WHERE endpoint = \(id) AND origin = \(queue)")
            for batch in endpoint.batches { try database.write(batch, endpoint: id) }
        }
        ledger.retention.limitSpace(fileBytes: try database.usage().live)
        return try makeRoom(above.rows)
    }

    /// Takes over what became of the queue in memory, as if it had happened here.
    ///
    /// - Parameters:
    ///   - plan: what is to be brought back from now on.
    ///   - states: of tracker and source.
    ///   - isReplaced: the file has taken the place of a damaged one: what it misses is to be brought back.
    mutating func take(
        over memory: MemoryQueue, plan: SalvagePlan, _ above: Ledger, _ states: (tracker: [UInt8]?, source: [UInt8]?),
        isReplaced: Bool
    ) throws(OutboxError) {
        for answer in memory.deferred { try settle(answer) }
        // A commit that failed may have left the same rows, under the same numbers.
        try removeRows(after: above.base)
        if plan.bytes != (try database.blob(.salvage) ?? []) { try database.store(.salvage, plan.bytes) }
        ledger.isSalvaging = !plan.parts.isEmpty
        ledger.lastSeq = max(ledger.lastSeq, above.lastSeq)
        ledger.recorded = above.recorded
        try eachRow(of: memory, above) { (self, row) throws(OutboxError) in
            let boot = try self.number(ofBoot: row.bootID)
            try self.store(NewRow(row.location, receivedMs: row.receivedMs), seq: row.seq, boot: boot)
            if self.ledger.rows == 0 { self.ledger.firstSeq = row.seq }
            self.ledger.rows += 1
        }
        for endpoint in above.endpoints { try take(over: endpoint, isBlind: memory.isBlind, isReplaced: isReplaced) }
        let refused = try memory.database.quarantinedRecords(names: above.names)
        try takeOver(refused, above)
        // A commit that was stored although it failed may have set aside rows that wait in memory.
        try settleTaken()
        if let state = states.tracker { try database.store(.tracker, state) }
        if let state = states.source { try database.store(.file, state) }
        ledger.droppableFrom = 0
        try removeDelivered()
        try writeCounts()
        try findOldest()
    }

    /// With what was set aside of them.
    private mutating func removeRows(after seq: Int64) throws(OutboxError) {
        for table in ["geofence", "trip", "quarantine", "location"] {
            try database.connection.execute("DELETE FROM \(table) WHERE seq > \(seq)")
        }
        ledger.rows -= database.connection.changes
        for index in ledger.endpoints.indices {
            ledger.endpoints[index].quarantine = try database.quarantineCount(of: ledger.endpoints[index].id)
        }
    }

    private mutating func takeOver(_ refused: [Database.Quarantined], _ above: Ledger) throws(OutboxError) {
        for record in refused {
            guard let name = above.endpoints.first(where: { $0.id == record.endpoint })?.settings.name,
                let index = ledger.endpoints.firstIndex(where: { $0.settings.name == name })
            else { continue }
            try quarantine([(record.row, record.refusal)], of: index, generation: record.generation)
        }
    }

    private mutating func eachRow(
        of memory: MemoryQueue, _ above: Ledger,
        _ work: (inout Transaction, QueuedLocation) throws(OutboxError) -> Void
    ) throws(OutboxError) {
        var from = above.base + 1
        while true {
            let rows = try memory.database.rows(
                from: from, through: Ledger.highestSeq, feed: .engine, limit: Self.stretch, names: above.names)
            guard let last = rows.last else { return }
            for row in rows { try work(&self, row) }
            from = last.seq + 1
        }
    }

    /// Batches of records of the quarantine are those that are here.
    private mutating func take(
        over known: Ledger.Endpoint, isBlind: Bool, isReplaced: Bool
    ) throws(OutboxError) {
        let index = ledger.endpoints.firstIndex { $0.settings.name == known.settings.name }
        var endpoint = known
        endpoint.batches.removeAll { $0.origin == .quarantine }
        if let index {
            endpoint.id = ledger.endpoints[index].id
            endpoint.quarantine = ledger.endpoints[index].quarantine
            for batch in ledger.endpoints[index].batches where batch.origin == .quarantine { endpoint.insert(batch) }
            if isBlind, ledger.endpoints[index].wanted != nil {
                endpoint.fingerprint = ledger.endpoints[index].fingerprint
                endpoint.wanted = ledger.endpoints[index].wanted
                endpoint.state = ledger.endpoints[index].state
            }
        } else {
            endpoint.id = (ledger.endpoints.map(\.id).max() ?? 0) + 1
            endpoint.quarantine = .init()
        }
        if isReplaced {
            dissolved += known.batches.filter { $0.origin == .quarantine }.map { id(of: $0, known) }
        }
        try leaveOutMissing(of: &endpoint)
        endpoint.waiting = try database.count(of: endpoint, after: endpoint.formed)
        // The limits may have removed some with a commit that was stored although it failed.
        let ahead = endpoint.ahead
        try countEvicted(
            known.waiting - endpoint.waiting, of: &endpoint, among: endpoint.formed + 1...Ledger.highestSeq
        ) { !ahead.contains($0) }
        if isReplaced { endpoint.finishedUnsent = known.finishedUnsent }
        endpoint.oldest = .unknown
        try database.write(endpoint)
        try database.connection.execute("DELETE FROM batch WHERE endpoint = \(endpoint.id)")
        for batch in endpoint.batches { try database.write(batch, endpoint: endpoint.id) }
        try database.rewriteAhead(of: endpoint)
        if let index { ledger.endpoints[index] = endpoint } else { ledger.endpoints.append(endpoint) }
    }

    /// A commit that was stored although it failed may have removed rows of a batch, and the file may be a new one, because
    /// the other was damaged: what can be read of that comes back as other rows.
    private mutating func leaveOutMissing(of endpoint: inout Ledger.Endpoint) throws(OutboxError) {
        for batch in endpoint.batches {
            var part = try database.present(batch, of: endpoint, names: ledger.names)
            guard part != batch else { continue }
            endpoint.batches.removeAll { $0 == batch }
            dissolved.append(id(of: batch, endpoint))
            try countEvicted(batch.rows - (part?.rows ?? 0), of: &endpoint, among: batch.first...batch.last) {
                batch.picked?.contains($0) ?? true
            }
            part?.generation = generation(after: batch.generation)
            if let part { endpoint.insert(part) }
        }
    }

    /// Counts rows that are missing, apart from those that such a commit has set aside.
    private func countEvicted(
        _ missing: Int, of endpoint: inout Ledger.Endpoint, among range: ClosedRange<Int64>,
        where concerns: (Int64) -> Bool
    ) throws(OutboxError) {
        guard missing > 0 else { return }
        let setAside = try database.quarantinedAlone(of: endpoint.id, in: range).count(where: concerns)
        endpoint.count(unsent: Ledger.Endpoint.evicted, missing - setAside)
    }

    /// A commit that appended the rows in memory, which have been answered since, was stored although it failed.
    ///
    /// - Parameter seq: the last number before it.
    mutating func takeBack(after seq: Int64) throws(OutboxError) {
        guard seq < ledger.lastSeq else { return }
        try removeRows(after: seq)
        for index in ledger.endpoints.indices {
            var endpoint = ledger.endpoints[index]
            endpoint.formed = min(endpoint.formed, seq)
            endpoint.ahead.remove(after: seq)
            try database.rewriteAhead(of: endpoint)
            endpoint.waiting = try database.count(of: endpoint, after: endpoint.formed)
            endpoint.oldest = .unknown
            ledger.endpoints[index] = endpoint
        }
    }

    /// Appends the rows of a queue in memory that did not know of this one, and notes who has had them.
    ///
    /// - Parameter name: of that queue.
    mutating func append(_ memory: MemoryQueue, _ above: Ledger, of name: String) throws(OutboxError) {
        ledger.recorded = RecordingTimes(earlierThrough: ledger.lastSeq)
        var numbers: [Int64: Int64] = [:]
        // What a profile has refused. Rows that a server refuses go out again instead: see `MemoryRules.possible`.
        var refused = try memory.database.quarantinedRecords(names: above.names)
        // Some of these have left the queue, for all. They get numbers in the same order, and leave again.
        var gone = refused.map(\.row).sorted { $0.seq < $1.seq }[...]
        func add(_ row: QueuedLocation, _ had: [Ledger.Endpoint], to queue: inout Transaction) throws(OutboxError) {
            guard numbers[row.seq] == nil else { return }
            var new = NewRow(
                row.location, receivedMs: row.receivedMs, recordedAt: above.recorded[row.seq])
            new.finishedFor = had.map(\.settings.name)
            try queue.append([new], boot: row.bootID)
            numbers[row.seq] = queue.ledger.lastSeq
        }
        try eachRow(of: memory, above) { (self, row) throws(OutboxError) in
            while let first = gone.first, first.seq <= row.seq {
                if first.seq < row.seq { try add(first, above.endpoints, to: &self) }
                gone = gone.dropFirst()
            }
            try add(row, above.endpoints.filter { $0.hasHad(row.seq) }, to: &self)
        }
        for row in gone { try add(row, above.endpoints, to: &self) }
        for index in refused.indices {
            refused[index].row.seq = numbers[refused[index].row.seq] ?? refused[index].row.seq
        }
        for endpoint in above.endpoints {
            for batch in endpoint.batches {
                let id = batch.id(outbox: name, endpoint: endpoint.settings.name)
                guard let rows = known[id]?.rows else { continue }
                former[id] = FormerBatch(
                    owner: endpoint.settings.name,
                    numbers: rows.compactMap { row in numbers[row.seq].map { (row.seq, $0) } })
            }
            guard let index = ledger.index(of: endpoint.settings.name) else { continue }
            for (reason, rows) in endpoint.finishedUnsent {
                ledger.endpoints[index].count(unsent: reason, rows)
            }
        }
        try takeOver(refused, above)
        try findOldest()
        try removeDelivered()
        try writeCounts()
    }
}

/// A batch of a queue in memory whose rows have other numbers on disk.
struct FormerBatch {
    /// Whose cursor its rows belong to.
    var owner: String
    var numbers: [(before: Int64, now: Int64)]
}

extension Transaction {
    /// An answer that came while the rows of its batch moved to disk: those that the server has are not sent again.
    mutating func settleFormer(_ answer: BatchAnswer) throws(OutboxError) {
        guard let batch = former[answer.batchID], let index = ledger.index(of: batch.owner) else { return }
        let had =
            switch answer.outcome {
            case .accepted: batch.numbers.map(\.now)
            case .split, .refused: [Int64]()
            case .partly(let refused, let again):
                batch.numbers.filter { refused[$0.before] == nil && !again.contains($0.before) }.map(\.now)
            }
        let endpoint = ledger.endpoints[index]
        ledger.endpoints[index].ahead.formUnion(had.filter { $0 > endpoint.formed }.map { $0...$0 })
        try database.rewriteAhead(of: ledger.endpoints[index])
        ledger.endpoints[index].waiting = try database.count(of: ledger.endpoints[index], after: endpoint.formed)
        ledger.endpoints[index].oldest = .unknown
        ledger.droppableFrom = 0
        needsCounts = true
    }
}

extension Database {
    /// The newest number that was ever given.
    func lastSeq() throws(OutboxError) -> Int64 {
        let cursors = try connection.integer("SELECT max(formed) FROM endpoint")
        let newest = try connection.integer("SELECT max(seq) FROM location")
        return Ledger.clamped(max(try mark(), cursors, newest, below?.last ?? 0))
    }

    /// Replaces what an endpoint has had beyond its cursor.
    func rewriteAhead(of endpoint: Ledger.Endpoint) throws(OutboxError) {
        try connection.execute("DELETE FROM ahead WHERE endpoint = \(endpoint.id)")
        let insert = try connection.prepare("INSERT INTO ahead VALUES (?, ?, ?)")
        for range in endpoint.ahead.ranges { try insert.run(endpoint.id, range.lowerBound, range.upperBound) }
    }

    /// Copies the rows of a table of the same form.
    func copy(_ table: String, from other: Database) throws(OutboxError) {
        let select = try other.connection.prepare("SELECT * FROM \(table)")
        let marks = [String](repeating: "?", count: Int(select.columnCount)).joined(separator: ", ")
        let insert = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (\(marks))")
        while try select.step() {
            for column in 0..<select.columnCount { insert.bind(column + 1, valueOf: column, in: select) }
            _ = try insert.step()
            insert.reset()
        }
    }
}
