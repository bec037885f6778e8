import Delivery
import JSON
import Positioning

/// One commit at work: changes the file within a transaction and a copy of the ledger beside it.
struct Transaction {
    let database: Database
    var ledger: Ledger
    /// Uuid of the queue.
    let outbox: [UInt8]
    var life: Life
    let settings: OutboxSettings
    /// How to do without the disk; nil = this is the disk.
    var memory: MemoryRules?
    /// Batches in flight whose rows need not be read, by id.
    var known: [String: Batch] = [:]
    /// Batches of a queue in memory that this one did not know of, by id.
    var former: [String: FormerBatch] = [:]

    /// Cursors or counts on disk are out of date in a way that counting from the mark does not mend.
    var needsCounts = false
    /// Ids of batches that came to be other than by a request to form.
    var made: Set<String> = []
    /// Ids of batches in flight that were given up.
    var dissolved: [String] = []
    /// Rows of the batches that this commit formed: what was read to plan them also goes out.
    private var planned: [BatchStart: [QueuedLocation]] = [:]
    /// Rows that batches bear as the newest one, by number, as far as they are known.
    var newest: [Int64: QueuedLocation] = [:]
    /// The names of the last row, with their numbers: rows that follow each other mostly bear the same ones.
    private var trackable: (name: String?, number: Int64?) = (nil, nil)
    private var reason: (name: String?, number: Int64?) = (nil, nil)

    /// From so many on, names of boots that no row bears any more leave.
    private static let bootNames = 64

    init(database: Database, ledger: Ledger, outbox: [UInt8], life: Life, settings: OutboxSettings) {
        self.database = database
        self.ledger = ledger
        self.outbox = outbox
        self.life = life
        self.settings = settings
    }

    mutating func run(_ commit: Commit) throws(OutboxError) -> CommitReply {
        try whole { (self) throws(OutboxError) in try self.perform(commit) }
    }

    /// All of the work, or none of it on the medium.
    mutating func whole<Value>(
        _ work: (inout Transaction) throws(OutboxError) -> Value
    ) throws(OutboxError) -> Value {
        try database.begin.run()
        do throws(OutboxError) {
            let value = try work(&self)
            try database.reserve()
            try database.commit.run()
            return value
        } catch {
            if database.connection.isInTransaction { try? database.rollback.run() }
            throw error
        }
    }

    private mutating func perform(_ commit: Commit) throws(OutboxError) -> CommitReply {
        try append(commit.rows, boot: life.bootID)
        if let state = commit.trackerState { try database.store(.tracker, state) }
        if let position = commit.sourceState { try database.store(.file, position) }
        for answer in commit.answers { try settle(answer) }
        for change in commit.states { try apply(change) }
        let orders = try carryOut(commit.orders)
        try settleTaken()
        if needsCounts { try removeDelivered() }
        let rows = ledger.rows
        let dropped = try enforceLimits(commit)
        if ledger.rows != rows { needsCounts = true }
        let ages = commit.ages.map { RowAges($0, ledger.recorded) }
        for request in commit.forms { try form(request, ages: ages) }
        try refreshNewest(commit.forms)
        let formed = try formed(for: commit.forms)
        if needsCounts || ledger.lastSeq - ledger.mark >= Ledger.countInterval {
            try writeCounts()
        }
        try findOldest()
        var reply = CommitReply(
            lastSeq: ledger.lastSeq, formed: formed, depths: ledger.depths, dropped: dropped, rows: ledger.rows,
            orders: orders)
        reply.dissolved = dissolved
        return reply
    }

    /// For other rows or other bytes between the same first and last one.
    ///
    /// Of what memory makes the disk may never hear: another life must not give the same id to what it makes instead.
    func generation(after former: Int) -> Int { max(former + 1, memory?.generation ?? 1) }

    /// A batch that is asked for again although the row that it bears as the newest one has left has other bytes, and so
    /// another id.
    private mutating func refreshNewest(_ requests: [FormRequest]) throws(OutboxError) {
        for request in requests {
            guard let index = ledger.index(of: request.endpoint) else { continue }
            for place in ledger.endpoints[index].batches.indices {
                var batch = ledger.endpoints[index].batches[place]
                guard let newest = batch.newestSeq, newest < ledger.firstSeq, newest > ledger.base else { continue }
                let former = known.removeValue(forKey: id(of: batch, ledger.endpoints[index]))
                batch.newestSeq = nil
                batch.generation = generation(after: batch.generation)
                ledger.endpoints[index].batches[place] = batch
                try database.write(batch, endpoint: ledger.endpoints[index].id)
                guard var former else { continue }
                former.id = id(of: batch, ledger.endpoints[index])
                former.newest = nil
                former.generation = batch.generation
                known[former.id] = former
            }
        }
    }

    private func formed(for requests: [FormRequest]) throws(OutboxError) -> [Batch] {
        var formed: [Batch] = []
        for endpoint in ledger.endpoints where endpoint.removedAt == nil && endpoint.state != .rebind {
            let request = requests.last { $0.endpoint == endpoint.settings.name }
            for batch in endpoint.batches
            where request.map({ $0.wants(batch) }) ?? made.contains(id(of: batch, endpoint)) {
                if let known = known[id(of: batch, endpoint)] {
                    formed.append(known)
                    continue
                }
                let rows = try rows(of: batch, endpoint)
                if rows.isEmpty {
                    // A damaged file may hold fewer. A disk that refuses may not show them: the next ones wait for them.
                    if memory == nil { continue }
                    break
                }
                do throws(OutboxError) {
                    let newest = batch.newestSeq.flatMap { self.newest[$0] }
                    formed.append(
                        try database.batch(
                            batch, rows, newest: newest, of: endpoint, outbox: outbox, names: ledger.names))
                } catch {
                    // Nor the row that the batch bears as the newest one.
                    if memory == nil { throw error }
                    break
                }
            }
        }
        return formed
    }

    /// The rows of a batch as recorded, oldest first; fewer where they cannot be had.
    func rows(of batch: BatchRow, _ endpoint: Ledger.Endpoint) throws(OutboxError) -> [QueuedLocation] {
        if let known = known[id(of: batch, endpoint)] { return known.rows }
        let start = BatchStart(endpoint: endpoint.id, first: batch.first)
        guard batch.origin == .queue, let rows = planned[start], rows.count == batch.rows, rows.last?.seq == batch.last,
            batch.picked.map({ $0.elementsEqual(rows.lazy.map(\.seq)) }) ?? true
        else {
            guard memory == nil else {
                return (try? database.rows(of: batch, endpoint: endpoint.id, names: ledger.names)) ?? []
            }
            return try database.rows(of: batch, endpoint: endpoint.id, names: ledger.names)
        }
        return rows
    }

    /// Notes rows that a batch of the queue was made of.
    mutating func notePlanned(_ rows: [QueuedLocation], of endpoint: Ledger.Endpoint) {
        guard let first = rows.first?.seq else { return }
        planned[BatchStart(endpoint: endpoint.id, first: first)] = rows
    }

    func id(of batch: BatchRow, _ endpoint: Ledger.Endpoint) -> String {
        batch.id(outbox: String(hexOf: outbox.prefix(4)), endpoint: endpoint.settings.name)
    }

    /// - Parameter boot: of the system when the rows were recorded.
    mutating func append(_ rows: [NewRow], boot: String?) throws(OutboxError) {
        let keepsUnpublished = ledger.endpoints.contains {
            $0.removedAt == nil && !$0.isSpare && $0.settings.feed == .engine
        }
        let rows = keepsUnpublished ? rows : rows.filter(\.location.published)
        guard !rows.isEmpty else { return }
        if let memory, !memory.isBlind { life.gives(rows.count) }
        ledger.lastSeq = min(Ledger.seqMax, ledger.lastSeq + life.leap)
        life.leap = 0
        let boot = try number(ofBoot: boot)
        let before = ledger.lastSeq
        for row in rows {
            let seq = ledger.lastSeq + 1
            try store(row, seq: seq, boot: boot)
            if ledger.rows == 0 { ledger.firstSeq = seq }
            if !row.finishedFor.isEmpty { noteSettled(row.finishedFor, seq: seq) }
            ledger.recorded.append(seq, at: row.recordedAt, first: ledger.removedThrough + 1)
            ledger.appended(
                seq: seq, published: row.location.published, time: Record.plausible(row.location.time.milliseconds))
        }
        if rows.contains(where: { !$0.finishedFor.isEmpty }) { try writeAhead(from: before + 1) }
    }

    /// Stores a row, and what it has in other tables, under this number.
    mutating func store(_ row: NewRow, seq: Int64, boot: Int64?) throws(OutboxError) {
        let location = row.location
        if location.trackable != trackable.name {
            trackable = (location.trackable, try number(ofTrackable: location.trackable))
        }
        if location.reason != reason.name { reason = (location.reason, try number(ofReason: location.reason)) }
        Record.bind(row, seq: seq, trackable: trackable.number, boot: boot, reason: reason.number, to: database.insert)
        _ = try database.insert.step()
        database.insert.reset()
        if let crossing = location.geofence { try append(crossing, seq: seq) }
        if let trip = location.trip { try append(trip, seq: seq) }
    }

    /// Endpoints that have a new row already.
    private mutating func noteSettled(_ names: [String], seq: Int64) {
        for name in names {
            guard var index = ledger.index(of: name) else { continue }
            if let primary = ledger.endpoints[index].settings.backupFor {
                guard let owner = ledger.index(of: primary) else { continue }
                index = owner
            }
            ledger.endpoints[index].ahead.append(seq)
        }
    }

    private func writeAhead(from seq: Int64) throws(OutboxError) {
        let insert = try database.connection.prepare("INSERT OR REPLACE INTO ahead VALUES (?, ?, ?)")
        for endpoint in ledger.endpoints {
            for range in endpoint.ahead.ranges.reversed().prefix(while: { $0.upperBound >= seq }) {
                try insert.run(endpoint.id, range.lowerBound, range.upperBound)
            }
        }
    }

    private func append(_ crossing: GeofenceCrossing, seq: Int64) throws(OutboxError) {
        let insert = database.insertGeofence
        insert.bind(1, seq)
        insert.bind(2, text: crossing.id)
        insert.bind(3, text: crossing.name)
        insert.bind(4, Record.number(of: crossing.action))
        insert.bind(5, Record.number(of: crossing.source))
        _ = try insert.step()
        insert.reset()
    }

    private func append(_ trip: TripSummary, seq: Int64) throws(OutboxError) {
        try database.insertTrip.run(
            seq, trip.start.milliseconds, Int64(trip.startCoordinate.latitudeE7),
            Int64(trip.startCoordinate.longitudeE7), trip.end.milliseconds, Scaled.odometer(trip.distance) ?? 0,
            Scaled.integer(trip.idle, places: 3) ?? 0, Scaled.speed(trip.maxSpeed))
    }

    private mutating func number(ofTrackable name: String?) throws(OutboxError) -> Int64? {
        guard let name else { return nil }
        if let known = ledger.names.trackables[name] { return known }
        let id = try addName(name, to: "trackable")
        ledger.names.trackables[id] = name
        return id
    }

    mutating func number(ofReason name: String?) throws(OutboxError) -> Int64? {
        guard let name else { return nil }
        if let known = ledger.names.reasons[name] { return known }
        let id = try addName(name, to: "reason")
        ledger.names.reasons[id] = name
        return id
    }

    mutating func number(ofBoot name: String?) throws(OutboxError) -> Int64? {
        guard let name else { return nil }
        if let known = ledger.names.boots[name] { return known }
        if memory == nil, ledger.names.boots.count >= Self.bootNames, ledger.rows <= Ledger.countInterval {
            ledger.names.boots = try database.pruneBoots()
        }
        let id = try addName(name, to: "boot")
        ledger.names.boots[id] = name
        return id
    }

    private func addName(_ name: String, to table: String) throws(OutboxError) -> Int64 {
        let insert = try database.connection.prepare("INSERT INTO \(table) (name) VALUES (?) RETURNING id")
        insert.bind(1, text: name)
        guard try insert.step() else { return 0 }
        let id = insert.integer(0)
        while try insert.step() {}
        return id
    }

    private mutating func apply(_ change: Commit.StateChange) throws(OutboxError) {
        guard let index = ledger.index(of: change.endpoint), ledger.endpoints[index].state != .rebind,
            ledger.endpoints[index].state != change.state
        else { return }
        ledger.endpoints[index].state = change.state
        try database.writeState(ledger.endpoints[index])
    }

    mutating func writeCounts() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            let through = max(ledger.endpoints[index].formed, ledger.removedThrough)
            guard let first = ledger.endpoints[index].ahead.ranges.first, first.upperBound <= through else { continue }
            ledger.endpoints[index].ahead.removeThrough(through)
            try database.connection.execute(
                "DELETE FROM ahead WHERE endpoint = \(ledger.endpoints[index].id) AND last <= \(through)")
        }
        try database.writeCounts(ledger)
        ledger.mark = ledger.lastSeq
    }
}

/// Endpoints may send other rows from the same first one on.
private struct BatchStart: Hashable {
    var endpoint: Int64
    var first: Int64
}
