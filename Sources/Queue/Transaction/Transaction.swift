import Delivery
import Profiles
import WaypostCore

/// One transaction on the database, with a copy of the ledger that replaces the outbox's own once it is committed.
///
/// Each kind of work has a type of its own, which does it on this: `RowAppending`, `AnswerHandling`, `OrderHandling`,
/// `LimitEnforcement`, `BatchForming`. After an error nothing of this is used any more.
final class Transaction {
    let database: Database
    var ledger: Ledger
    /// Uuid of the queue.
    let outbox: [UInt8]
    var processRun: ProcessRun
    let settings: OutboxSettings
    /// What is possible without the disk; nil = this is the disk.
    var memory: MemoryRules?
    /// Batches in flight whose rows need not be read, by id.
    var known: [String: Batch]
    /// Batches of a queue in memory that this one did not know of, by id.
    var former: [String: FormerBatch]

    /// Cursors or counts on disk are out of date in a way that counting from the mark does not correct.
    var needsCounts = false
    /// Ids of batches that no request formed.
    private(set) var made: Set<String> = []
    /// Ids of batches in flight that were given up.
    var dissolved: [String] = []
    /// Rows of the batches that this commit formed: what was read to plan them also goes out.
    private var planned: [BatchStart: [QueuedLocation]] = [:]
    /// Rows that batches carry as the newest one, by number, as far as they are known.
    var newest: [Int64: QueuedLocation] = [:]

    init(
        database: Database, ledger: Ledger, outbox: [UInt8], processRun: ProcessRun, settings: OutboxSettings,
        known: [String: Batch] = [:], former: [String: FormerBatch] = [:], memory: MemoryRules? = nil
    ) {
        self.database = database
        self.ledger = ledger
        self.outbox = outbox
        self.processRun = processRun
        self.settings = settings
        self.known = known
        self.former = former
        self.memory = memory
    }

    /// The endpoint at this place in the ledger.
    subscript(index: Int) -> Ledger.Endpoint {
        get { ledger.endpoints[index] }
        _modify { yield &ledger.endpoints[index] }
    }

    func run(_ commit: Commit) throws(OutboxError) -> CommitReply {
        try whole { () throws(OutboxError) in try perform(commit) }
    }

    /// All of the work, or none of it on the medium.
    func whole<Value>(_ work: () throws(OutboxError) -> Value) throws(OutboxError) -> Value {
        try database.transaction { () throws(OutboxError) in
            let value = try work()
            try database.reserve()
            return value
        }
    }

    private func perform(_ commit: Commit) throws(OutboxError) -> CommitReply {
        try RowAppending(queue: self).append(commit.rows, boot: processRun.bootID)
        try database.store(commit.parts)
        for answer in commit.answers { try AnswerHandling(queue: self).apply(answer) }
        for change in commit.states { try apply(change) }
        let orders = try OrderHandling(queue: self).carryOut(commit.orders)
        try QuarantineIntake(queue: self).applyCollisionRules()
        if needsCounts { try RowRemoval(queue: self).removeDelivered() }
        let rows = ledger.rows
        let dropped = try LimitEnforcement(queue: self).enforce(commit)
        if ledger.rows != rows { needsCounts = true }
        let ages = commit.ages.map { RowAges($0, ledger.recorded) }
        for request in commit.forms { try BatchForming(request, ages: ages, in: self)?.form() }
        try leaveOutRemovedNewest(commit.forms)
        let formed = try formed(for: commit.forms)
        if needsCounts || ledger.lastSeq - ledger.mark >= Ledger.countInterval { try writeCounts() }
        try findOldest()
        var reply = CommitReply(
            lastSeq: ledger.lastSeq, formed: formed, depths: ledger.depths(outbox: name), dropped: dropped,
            rows: ledger.rows,
            orders: orders)
        reply.dissolved = dissolved
        if Invariants.areChecked { checkInvariants(reply, to: commit) }
        return reply
    }

    private func apply(_ change: Commit.StateChange) throws(OutboxError) {
        invariant(change.state != .rebind, "the binding of \(change.endpoint) is for the queue to decide")
        guard let index = ledger.index(of: change.endpoint), self[index].state != .rebind,
            self[index].state != change.state
        else { return }
        self[index].state = change.state
        try database.writeState(self[index])
    }

    func noteAccepted(_ index: Int) throws(OutboxError) {
        guard !self[index].acceptedBefore else { return }
        self[index].acceptedBefore = true
        try database.writeState(self[index])
    }

    func writeCounts() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            let through = max(self[index].formed, ledger.removedThrough)
            guard let first = self[index].ahead.ranges.first, first.upperBound <= through else { continue }
            self[index].ahead.removeThrough(through)
            try database.connection.execute(
                "DELETE FROM ahead WHERE endpoint = \(self[index].id) AND last <= \(through)")
        }
        try database.writeCounts(ledger)
        ledger.mark = ledger.lastSeq
    }

    func findOldest() throws(OutboxError) {
        for index in ledger.endpoints.indices {
            guard case .unknown = self[index].oldest else { continue }
            self[index].oldest = try database.oldestRow(of: self[index])
        }
    }

    /// Rows that something held back may be removed from now on.
    func rowsBecameFree() {
        ledger.droppableFrom = 0
        needsCounts = true
    }

    func recountQuarantine(of index: Int) throws(OutboxError) {
        self[index].quarantine = try database.quarantineCount(of: self[index].id)
    }
}

// Batches.
extension Transaction {
    /// Of the queue: its part of every batch id.
    private var name: String { String(hexOf: outbox.prefix(4)) }

    func id(of batch: BatchRow, _ endpoint: Ledger.Endpoint) -> String {
        batch.id(outbox: name, endpoint: endpoint.settings.name)
    }

    /// For other rows or other bytes between the same first and last one.
    ///
    /// The disk may never learn of a batch that memory forms: another run must not give its id to what it forms instead.
    func generation(after former: Int) -> Int { max(former + 1, memory?.generation ?? 1) }

    func insert(_ batch: BatchRow, into index: Int) throws(OutboxError) {
        self[index].insert(batch)
        try database.write(batch, endpoint: self[index].id)
    }

    func replace(_ place: Int, of index: Int, by batch: BatchRow) throws(OutboxError) {
        self[index].batches[place] = batch
        try database.write(batch, endpoint: self[index].id)
    }

    func remove(_ batch: BatchRow, from index: Int) throws(OutboxError) {
        self[index].batches.removeAll { $0.origin == batch.origin && $0.first == batch.first }
        try database.deleteBatch.run(self[index].id, batch.first)
    }

    /// The reply lists a batch although no request formed it.
    func noteMade(_ batch: BatchRow, of index: Int) { made.insert(id(of: batch, self[index])) }

    /// The rows of a batch as recorded, oldest first; fewer where they cannot be read.
    func rows(of batch: BatchRow, _ endpoint: Ledger.Endpoint) throws(OutboxError) -> [QueuedLocation] {
        if let known = known[id(of: batch, endpoint)] { return known.rows }
        let start = BatchStart(endpoint: endpoint.id, first: batch.first)
        if batch.origin == .queue, let rows = planned[start], rows.count == batch.rows, rows.last?.seq == batch.last,
            batch.picked.map({ $0.elementsEqual(rows.lazy.map(\.seq)) }) ?? true
        {
            return rows
        }
        do throws(OutboxError) {
            return try database.rows(of: batch, endpoint: endpoint.id, names: ledger.names)
        } catch {
            if memory == nil { throw error }
            return []
        }
    }

    /// Notes rows that a batch of the queue was formed of.
    func notePlanned(_ rows: [QueuedLocation], of endpoint: Ledger.Endpoint) {
        guard let first = rows.first?.seq else { return }
        planned[BatchStart(endpoint: endpoint.id, first: first)] = rows
    }

    /// A batch that is requested again after the row that it carries as the newest was removed has other bytes, and so
    /// another id.
    private func leaveOutRemovedNewest(_ requests: [FormRequest]) throws(OutboxError) {
        for request in requests {
            guard let index = ledger.index(of: request.endpoint) else { continue }
            for (place, var batch) in self[index].batches.enumerated() {
                guard let newest = batch.newestSeq, newest < ledger.firstSeq, newest > ledger.base else { continue }
                let former = known.removeValue(forKey: id(of: batch, self[index]))
                batch.newestSeq = nil
                batch.generation = generation(after: batch.generation)
                try replace(place, of: index, by: batch)
                guard var former else { continue }
                former.id = id(of: batch, self[index])
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
                    // Nor the row that the batch carries as the newest one.
                    if memory == nil { throw error }
                    break
                }
            }
        }
        return formed
    }
}

/// Endpoints may send other rows from the same first one on.
private struct BatchStart: Hashable {
    var endpoint: Int64
    var first: Int64
}

extension Transaction {
    /// What holds after each commit.
    private func checkInvariants(_ reply: CommitReply, to commit: Commit) {
        ledger.checkInvariants()
        invariant(reply.orders.count == commit.orders.count, "an order has no result")
        invariant(reply.lastSeq == ledger.lastSeq && reply.rows == ledger.rows, "the reply has other counts")
        invariant(Set(reply.formed.map(\.id)).count == reply.formed.count, "a batch is listed twice")
        for batch in reply.formed {
            invariant(!batch.rows.isEmpty, "\(batch.id) has no rows")
            invariant(
                zip(batch.rows, batch.rows.dropFirst()).allSatisfy { $0.seq < $1.seq }, "\(batch.id) is in no order")
            invariant(!dissolved.contains(batch.id), "\(batch.id) was given up and is listed")
        }
        for depth in reply.depths {
            invariant(depth.waiting >= 0 && depth.inFlight >= 0, "\(depth.waiting) and \(depth.inFlight) rows")
            invariant(depth.quarantined >= 0, "\(depth.quarantined) records in quarantine")
            invariant(Set(depth.batches.map(\.id)).count == depth.batches.count, "a batch is in flight twice")
            invariant(depth.oldestSeq.map { $0 > depth.ackedThrough } ?? true, "a finished row is the oldest unsent")
        }
        invariant(reply.dropped.lost >= 0 && reply.dropped.thinned >= 0, "negative drops")
    }
}
