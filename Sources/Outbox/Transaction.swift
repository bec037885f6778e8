import Delivery
import Positioning

/// One commit at work: changes the file within a transaction and a copy of the ledger beside it.
struct Transaction {
    let database: Database
    var ledger: Ledger
    let outbox: String
    var bootID: String?
    let settings: OutboxSettings

    /// So many rows at most are removed in one commit, which bounds what a commit writes to the log.
    static let removalLimit: Int64 = 5000
    /// A clock that lies this far behind the receiver is wrong.
    private static let clockTolerance: Int64 = 300_000

    init(database: Database, ledger: Ledger, outbox: String, bootID: String?, settings: OutboxSettings) {
        self.database = database
        self.ledger = ledger
        self.outbox = outbox
        self.bootID = bootID
        self.settings = settings
    }

    /// - Parameter makingRoom: rows leave before others come, because the disk has no room for both.
    mutating func run(_ commit: Commit, makingRoom: Bool = false) throws(OutboxError) -> CommitReply {
        try database.begin.run()
        do throws(OutboxError) {
            let dropped = makingRoom ? try makeRoom(commit.rows.count) : DropCounts()
            var reply = try perform(commit)
            reply.dropped += dropped
            try database.commit.run()
            return reply
        } catch {
            if database.connection.isInTransaction { try? database.rollback.run() }
            throw error
        }
    }

    mutating func forget(_ index: Int) throws(OutboxError) {
        try database.begin.run()
        do throws(OutboxError) {
            let endpoint = ledger.endpoints.remove(at: index)
            let generation = Int64(max(endpoint.generation, endpoint.batch?.generation ?? 1))
            try database.store(.generation, max(generation, try database.forgottenGeneration()))
            try database.deleteBatch.run(endpoint.id)
            try database.connection.execute("DELETE FROM endpoint WHERE id = \(endpoint.id)")
            try database.connection.execute("DELETE FROM cursor WHERE endpoint = \(endpoint.id)")
            ledger.droppableFrom = 0
            try removeDelivered()
            try writeCounts()
            try findOldest()
            try database.commit.run()
        } catch {
            if database.connection.isInTransaction { try? database.rollback.run() }
            throw error
        }
    }

    private mutating func perform(_ commit: Commit) throws(OutboxError) -> CommitReply {
        try append(commit.rows)
        if let state = commit.trackerState { try database.store(.tracker, state) }
        if let position = commit.sourceState { try database.store(.file, position) }
        var settled = false
        for settlement in commit.settlements where try settle(settlement) { settled = true }
        for change in commit.states { try apply(change) }
        if settled { try removeDelivered() }
        let dropped = try enforceLimits(commit)
        var formed: [Batch] = []
        for request in commit.forms {
            if let batch = try form(request) { formed.append(batch) }
        }
        if settled || dropped != DropCounts() || ledger.lastSeq - ledger.mark >= Ledger.countInterval {
            try writeCounts()
        }
        try findOldest()
        return CommitReply(
            lastSeq: ledger.lastSeq, formed: formed, depths: ledger.depths, dropped: dropped, rows: ledger.rows)
    }

    mutating func append(_ rows: [NewRow]) throws(OutboxError) {
        let keepsUnpublished = ledger.endpoints.contains { $0.removedAt == nil && $0.settings.feed == .engine }
        // Rows that follow each other mostly bear the same names.
        var trackable: (name: String?, number: Int64?) = (nil, nil)
        var reason: (name: String?, number: Int64?) = (nil, nil)
        let boot = rows.isEmpty ? nil : try bootNumber()
        for row in rows where row.location.published || keepsUnpublished {
            let seq = ledger.lastSeq + 1
            let location = row.location
            if location.trackable != trackable.name {
                trackable = (location.trackable, try number(ofTrackable: location.trackable))
            }
            if location.reason != reason.name { reason = (location.reason, try number(ofReason: location.reason)) }
            Record.bind(
                row, seq: seq, trackable: trackable.number, boot: boot, reason: reason.number, to: database.insert)
            _ = try database.insert.step()
            database.insert.reset()
            if let crossing = location.geofence { try append(crossing, seq: seq) }
            if let trip = location.trip { try append(trip, seq: seq) }
            if ledger.rows == 0 { ledger.firstSeq = seq }
            ledger.appended(seq: seq, published: location.published, time: Record.plausible(location.time.milliseconds))
        }
    }

    private func append(_ crossing: GeofenceCrossing, seq: Int64) throws(OutboxError) {
        let insert = database.insertGeofence
        insert.bind(1, seq)
        insert.bind(2, text: crossing.id)
        insert.bind(3, text: crossing.name)
        insert.bind(4, Int64(Record.actions.firstIndex(of: crossing.action) ?? 0))
        insert.bind(5, Int64(Record.sources.firstIndex(of: crossing.source) ?? 0))
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

    private mutating func number(ofReason name: String?) throws(OutboxError) -> Int64? {
        guard let name else { return nil }
        if let known = ledger.names.reasons[name] { return known }
        let id = try addName(name, to: "reason")
        ledger.names.reasons[id] = name
        return id
    }

    private mutating func bootNumber() throws(OutboxError) -> Int64? {
        guard let bootID else { return nil }
        if let known = ledger.names.boots[bootID] { return known }
        let id = try addName(bootID, to: "boot")
        ledger.names.boots[id] = bootID
        return id
    }

    private func addName(_ name: String, to table: String) throws(OutboxError) -> Int64 {
        let insert = try database.connection.prepare("INSERT INTO \(table) (name) VALUES (?) RETURNING id")
        insert.bind(1, text: name)
        guard try insert.step(), let id = insert.integer(0) else { return 0 }
        while try insert.step() {}
        return id
    }

    /// - Returns: whether the batch was in flight; a settlement that was stored before is no news.
    private mutating func settle(_ settlement: Settlement) throws(OutboxError) -> Bool {
        guard let index = ledger.endpoints.firstIndex(where: { $0.settings.name == settlement.endpoint }),
            let batch = ledger.endpoints[index].batch,
            batch.id(outbox: outbox, endpoint: settlement.endpoint) == settlement.batchID
        else { return false }
        try database.deleteBatch.run(ledger.endpoints[index].id)
        switch settlement.how {
        case .accepted:
            ledger.endpoints[index].acked = batch.last
            ledger.endpoints[index].unsettled -= batch.rows
            ledger.endpoints[index].batch = nil
        case .released, .split, .refused, .partly:
            ledger.endpoints[index].release(batch)
        }
        ledger.endpoints[index].oldest = .unknown
        ledger.droppableFrom = 0
        try writeCursor(index)
        return true
    }

    private mutating func apply(_ change: Commit.StateChange) throws(OutboxError) {
        guard let index = ledger.endpoints.firstIndex(where: { $0.settings.name == change.endpoint }),
            ledger.endpoints[index].state != .rebind, ledger.endpoints[index].state != change.state
        else { return }
        ledger.endpoints[index].state = change.state
        try writeCursor(index)
    }

    private func writeCursor(_ index: Int) throws(OutboxError) {
        let endpoint = ledger.endpoints[index]
        let update = database.setCursor
        update.bind(1, endpoint.id)
        update.bind(2, endpoint.acked)
        update.bind(3, text: endpoint.state.word)
        update.bind(4, text: endpoint.state.reason)
        update.bind(5, endpoint.regeneratedThrough)
        update.bind(6, Int64(endpoint.generation))
        _ = try update.step()
        update.reset()
    }

    private mutating func removeDelivered() throws(OutboxError) {
        var budget = Self.removalLimit
        // Again after each step: what left may have been all that held the next rows back.
        while budget > 0 {
            try findOldest()
            guard let removable = ledger.removableThrough(), removable >= ledger.firstSeq else { return }
            let last = min(removable, ledger.firstSeq + budget - 1)
            budget -= last - ledger.firstSeq + 1
            try skip(through: last)
            try database.deleteThrough.run(last)
            ledger.rows -= database.connection.changes
            try database.deleteGeofencesThrough.run(last)
            try database.deleteTripsThrough.run(last)
            ledger.firstSeq = last + 1
        }
    }

    /// Takes rows that leave out of the counts of those who do not hold them back and have not had them yet.
    private mutating func skip(through last: Int64) throws(OutboxError) {
        for index in ledger.endpoints.indices {
            guard case .row(let seq, _) = ledger.endpoints[index].oldest, seq <= last else { continue }
            let endpoint = ledger.endpoints[index]
            ledger.endpoints[index].unsettled -= try database.count(of: endpoint, after: endpoint.acked, through: last)
            ledger.endpoints[index].oldest = .unknown
        }
    }

    mutating func findOldest() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            guard case .unknown = ledger.endpoints[index].oldest else { continue }
            ledger.endpoints[index].oldest = try database.oldestRow(of: ledger.endpoints[index])
        }
    }

    private mutating func form(_ request: FormRequest) throws(OutboxError) -> Batch? {
        guard
            let index = ledger.endpoints.firstIndex(where: {
                $0.settings.name == request.endpoint && $0.removedAt == nil && $0.state != .rebind
            })
        else { return nil }
        let endpoint = ledger.endpoints[index]
        if let batch = endpoint.batch {
            return try database.batch(batch, of: endpoint, outbox: outbox, names: ledger.names)
        }
        guard endpoint.unsettled > 0, request.limit > 0 else { return nil }
        let rows = try database.rows(
            from: endpoint.acked + 1, through: .max, feed: endpoint.settings.feed, limit: request.limit,
            names: ledger.names)
        guard let first = rows.first, let last = rows.last else { return nil }
        let newestTime = rows.map(\.location.time).max()?.milliseconds ?? 0
        let batch = Ledger.BatchRow(
            first: first.seq, last: last.seq, rows: rows.count, feed: endpoint.settings.feed,
            sentMs: request.sentMs.flatMap { $0 < newestTime - Self.clockTolerance ? nil : $0 },
            newestSeq: ledger.lastSeq,
            generation: first.seq <= endpoint.regeneratedThrough ? endpoint.generation : 1,
            rendering: BatchEncoder.rendering)
        try database.write(batch, endpoint: endpoint.id)
        ledger.endpoints[index].batch = batch
        return Batch(
            endpoint: request.endpoint, id: batch.id(outbox: outbox, endpoint: request.endpoint), rows: rows,
            sentMs: batch.sentMs, generation: batch.generation)
    }

    mutating func writeCounts() throws(OutboxError) {
        try database.writeCounts(ledger)
        ledger.mark = ledger.lastSeq
    }
}
