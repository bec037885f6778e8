import Delivery
import Profiles

/// Gives the disk, once it works again, what is in a queue in memory.
struct Handover {
    /// On disk.
    let queue: Transaction
    let memory: MemoryQueue
    /// The ledger of the queue in memory.
    let above: Ledger

    /// Rows that are read from memory at a time.
    private static let rowsAtOnce = 500

    /// A full disk gives up rows for those in memory.
    ///
    /// - Parameter isSame: memory knows this queue: rows of the batches that were formed there stay.
    func makeRoom(isSame: Bool) throws(OutboxError) -> DropCounts {
        let database = queue.database
        for endpoint in above.endpoints where isSame {
            guard let index = queue.ledger.index(of: endpoint.settings.name) else { continue }
            let id = queue[index].id
            let origin = BatchRow.Origin.queue.rawValue
            try database.connection.execute("DELETE FROM batch WHERE endpoint = \(id) AND origin = \(origin)")
            for batch in endpoint.batches { try database.write(batch, endpoint: id) }
        }
        queue.ledger.retention.limitSpace(fileBytes: try database.usage().live)
        return try LimitEnforcement(queue: queue).makeRoom(above.rows)
    }

    /// Applies what happened in memory to the queue on disk that it continued, as if it had happened here.
    ///
    /// - Parameters:
    ///   - plan: what is to be brought back from now on.
    ///   - states: of tracker and source.
    ///   - isReplaced: the file has replaced a damaged one: what is missing in it is to be brought back.
    func goOn(
        plan: SalvagePlan, parts: PartStates, isReplaced: Bool
    ) throws(OutboxError) {
        let database = queue.database
        for answer in memory.deferred { try AnswerHandling(queue: queue).apply(answer) }
        // A commit that failed may have left the same rows, under the same numbers.
        try removeRows(after: above.base)
        if plan.bytes != (try database.blob(.salvage) ?? []) { try database.store(.salvage, plan.bytes) }
        queue.ledger.isSalvaging = plan.isUnderWay
        queue.ledger.lastSeq = max(queue.ledger.lastSeq, above.lastSeq)
        queue.ledger.recorded = above.recorded
        let appending = RowAppending(queue: queue)
        try eachRows { (rows) throws(OutboxError) in
            var stored: [StoredRow] = []
            for row in rows {
                let boot = try appending.number(ofBoot: row.bootID)
                stored.append(
                    try appending.storedRow(
                        NewRow(row.location, receivedMs: row.receivedMs), seq: row.seq, boot: boot))
            }
            try database.rows.append(stored)
            if queue.ledger.rows == 0 { queue.ledger.firstSeq = rows[0].seq }
            queue.ledger.rows += rows.count
        }
        try database.connection.reusingStatements { () throws(OutboxError) in
            for endpoint in above.endpoints { try goOn(endpoint, isReplaced: isReplaced) }
        }
        try quarantine(try memory.database.quarantinedRecords(names: above.names))
        // A commit that was stored although it failed may have set aside rows that wait in memory.
        try QuarantineIntake(queue: queue).applyCollisionRules()
        try database.store(parts)
        queue.ledger.droppableFrom = 0
        try RowRemoval(queue: queue).removeDelivered()
        try queue.writeCounts()
        try queue.findOldest()
    }

    /// Also removes their records in the quarantine.
    private func removeRows(after seq: Int64) throws(OutboxError) {
        for table in Record.detailTables + ["quarantine"] {
            try queue.database.connection.execute("DELETE FROM \(table) WHERE seq > \(seq)")
        }
        queue.ledger.rows -= try queue.database.rows.removeAfter(seq)
        for index in queue.ledger.endpoints.indices { try queue.recountQuarantine(of: index) }
    }

    private func quarantine(_ refused: [Database.Quarantined]) throws(OutboxError) {
        for record in refused {
            guard let name = above.endpoints.first(where: { $0.id == record.endpoint })?.settings.name,
                let index = queue.ledger.endpoints.firstIndex(where: { $0.settings.name == name })
            else { continue }
            try QuarantineIntake(queue: queue).add(
                [(record.row, record.refusal)], of: index, generation: record.generation)
        }
    }

    /// All rows in memory, some at a time.
    private func eachRows(_ work: ([QueuedLocation]) throws(OutboxError) -> Void) throws(OutboxError) {
        var from = above.base + 1
        while true {
            let rows = try memory.database.rows(
                from: from, through: Ledger.highestSeq, feed: .engine, limit: Self.rowsAtOnce, names: above.names)
            guard let last = rows.last else { return }
            try work(rows)
            from = last.seq + 1
        }
    }

    /// Of batches from the quarantine, those on disk count.
    private func goOn(_ known: Ledger.Endpoint, isReplaced: Bool) throws(OutboxError) {
        let database = queue.database
        let index = queue.ledger.endpoints.firstIndex { $0.settings.name == known.settings.name }
        var endpoint = known
        endpoint.batches.removeAll { $0.origin == .quarantine }
        if let stored = index.map({ queue[$0] }) {
            endpoint.id = stored.id
            endpoint.quarantine = stored.quarantine
            for batch in stored.batches where batch.origin == .quarantine { endpoint.insert(batch) }
            if memory.isBlind {
                endpoint.isMoved = stored.isMoved
                endpoint.acceptedBefore = stored.acceptedBefore || (stored.wanted == nil && known.acceptedBefore)
            }
            if memory.isBlind, stored.wanted != nil {
                endpoint.fingerprint = stored.fingerprint
                endpoint.wanted = stored.wanted
                endpoint.state = stored.state
            }
        } else {
            endpoint.id = (queue.ledger.endpoints.map(\.id).max() ?? 0) + 1
            endpoint.quarantine = .init()
        }
        if isReplaced {
            queue.dissolved += known.batches.filter { $0.origin == .quarantine }.map { queue.id(of: $0, known) }
        }
        try leaveOutMissing(of: &endpoint)
        endpoint.waiting = try database.count(of: endpoint, after: endpoint.formed)
        // The limits may have removed some with a commit that was stored although it failed.
        let ahead = endpoint.ahead
        let missing = memory.isMiscounted ? 0 : known.waiting - endpoint.waiting
        try countEvicted(missing, of: &endpoint, among: endpoint.formed + 1...Ledger.highestSeq) {
            !ahead.contains($0)
        }
        if isReplaced { endpoint.finishedUnsent = known.finishedUnsent }
        endpoint.oldest = .unknown
        try database.write(endpoint)
        try database.rewriteBatches(of: endpoint)
        try database.rewriteAhead(of: endpoint)
        if let index { queue[index] = endpoint } else { queue.ledger.endpoints.append(endpoint) }
    }

    /// A commit that was stored although it failed may have removed rows of a batch, and the file may be a new one, because
    /// the other was damaged: what can be read of that comes back as other rows.
    private func leaveOutMissing(of endpoint: inout Ledger.Endpoint) throws(OutboxError) {
        for batch in endpoint.batches {
            var part = try queue.database.present(batch, of: endpoint, names: queue.ledger.names)
            guard part != batch else { continue }
            endpoint.batches.removeAll { $0 == batch }
            queue.dissolved.append(queue.id(of: batch, endpoint))
            try countEvicted(batch.rows - (part?.rows ?? 0), of: &endpoint, among: batch.first...batch.last) {
                batch.picked?.contains($0) ?? true
            }
            part?.generation = queue.generation(after: batch.generation)
            if let part { endpoint.insert(part) }
        }
    }

    /// Counts rows that are missing, apart from those that such a commit has set aside.
    private func countEvicted(
        _ missing: Int, of endpoint: inout Ledger.Endpoint, among range: ClosedRange<Int64>,
        where concerns: (Int64) -> Bool
    ) throws(OutboxError) {
        guard missing > 0 else { return }
        let setAside = try queue.database.quarantinedAlone(of: endpoint.id, in: range).count(where: concerns)
        endpoint.count(unsent: Ledger.Endpoint.evicted, missing - setAside)
    }
}

// A queue on disk of which memory did not know.
extension Handover {
    /// A commit that appended the rows in memory, which have been answered since, was stored although it failed.
    ///
    /// - Parameter seq: the last number before it.
    func undoAppended(after seq: Int64) throws(OutboxError) {
        guard seq < queue.ledger.lastSeq else { return }
        try removeRows(after: seq)
        for index in queue.ledger.endpoints.indices {
            var endpoint = queue[index]
            endpoint.formed = min(endpoint.formed, seq)
            endpoint.ahead.remove(after: seq)
            try queue.database.rewriteAhead(of: endpoint)
            endpoint.waiting = try queue.database.count(of: endpoint, after: endpoint.formed)
            endpoint.oldest = .unknown
            queue[index] = endpoint
        }
    }

    /// Appends the rows, and notes who has had them.
    ///
    /// - Parameter name: of the queue in memory.
    func append(of name: String) throws(OutboxError) {
        queue.ledger.recorded = RecordingTimes(earlierThrough: queue.ledger.lastSeq)
        var numbers: [Int64: Int64] = [:]
        // What a profile or a server has refused.
        var refused = try memory.database.quarantinedRecords(names: above.names)
        // Some of these were removed from the queue, for all. They get numbers in the same order, and are removed again.
        var gone = refused.map(\.row).sorted { $0.seq < $1.seq }[...]
        let appending = RowAppending(queue: queue)
        let keepsUnpublished = appending.keepsUnpublished
        // Rows of one boot in one go: they become segments.
        var boot: String?
        var seen: Set<Int64> = []
        var collected: [(seq: Int64, row: NewRow)] = []
        func appendCollected() throws(OutboxError) {
            guard !collected.isEmpty else { return }
            try appending.append(collected.map(\.row), boot: boot)
            let first = queue.ledger.lastSeq - Int64(collected.count) + 1
            for (place, entry) in collected.enumerated() { numbers[entry.seq] = first + Int64(place) }
            collected = []
        }
        func add(_ row: QueuedLocation, _ had: [Ledger.Endpoint]) throws(OutboxError) {
            guard keepsUnpublished || row.location.published, seen.insert(row.seq).inserted else { return }
            if row.bootID != boot || collected.count == Self.rowsAtOnce { try appendCollected() }
            boot = row.bootID
            var new = NewRow(row.location, receivedMs: row.receivedMs, recordedAt: above.recorded[row.seq])
            new.finishedFor = had.map(\.settings.name)
            collected.append((row.seq, new))
        }
        try eachRows { (rows) throws(OutboxError) in
            for row in rows {
                while let first = gone.first, first.seq <= row.seq {
                    if first.seq < row.seq { try add(first, above.endpoints) }
                    gone = gone.dropFirst()
                }
                try add(row, above.endpoints.filter { $0.hasHad(row.seq) })
            }
        }
        for row in gone { try add(row, above.endpoints) }
        try appendCollected()
        for index in refused.indices {
            refused[index].row.seq = numbers[refused[index].row.seq] ?? refused[index].row.seq
        }
        for endpoint in above.endpoints {
            for batch in endpoint.batches {
                let id = batch.id(outbox: name, endpoint: endpoint.settings.name)
                guard let rows = queue.known[id]?.rows else { continue }
                queue.former[id] = FormerBatch(
                    owner: endpoint.settings.name,
                    numbers: rows.compactMap { row in numbers[row.seq].map { (row.seq, $0) } })
            }
            guard let index = queue.ledger.index(of: endpoint.settings.name) else { continue }
            for (reason, rows) in endpoint.finishedUnsent { queue[index].count(unsent: reason, rows) }
            if endpoint.acceptedBefore, queue[index].wanted == nil { try queue.noteAccepted(index) }
        }
        try quarantine(refused)
        try queue.findOldest()
        try RowRemoval(queue: queue).removeDelivered()
        try queue.writeCounts()
    }
}
