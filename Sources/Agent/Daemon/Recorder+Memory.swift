import Delivery
import Outbox
import Positioning

/// What is sent from memory while the disk refuses.
struct MemoryEpisode {
    /// The last batch, which goes out again as it is when it has not arrived.
    struct Sent {
        var batch: Batch
        /// Its rows, and those before them that the endpoint is never to have.
        var numbers: Set<Int64>
        /// The numbers are those of rows on disk, and not those of the ring.
        var isStored = false
        /// Rows on disk up to here are out of date once this one has arrived; nil = none.
        var supersedes: Int64?
    }

    /// When the disk refused first.
    let since: EventTime
    /// Uuid of the keys: of an outbox that exists for this episode only, so that no key ever names two records.
    let outbox: [UInt8]
    var sendingSince: EventTime?
    /// By endpoint.
    var sent: [String: Sent] = [:]
    /// By endpoint: rows on disk, which can still be read.
    var stored: [String: StoredBacklog] = [:]
    /// Endpoints that are being sent rows on disk.
    var sendingStored: Set<String> = []
}

// Sending without a disk. Rows that arrive never come to disk; after a crash they may be repeated under other keys.
extension Recorder {
    /// A clock that lies this far behind the receiver is wrong.
    private static let clockTolerance: Int64 = 300_000

    /// Rows in memory, on their way to disk or not, that this endpoint waits for.
    func rowsInMemory(for endpoint: EndpointSettings) -> Int { ring.count(for: endpoint) }

    /// Rows that wait for this endpoint while the disk refuses; nil while nobody knows.
    func waitingWithoutDisk(for endpoint: EndpointSettings) -> Int? {
        guard isDiskBad, underWay == nil, let depth = latest.depths.first(where: { $0.endpoint == endpoint.name })
        else {
            return nil
        }
        return max(0, depth.waiting - (memory?.stored[endpoint.name]?.had ?? 0)) + rowsInMemory(for: endpoint)
    }

    /// A batch of the oldest rows that this endpoint has not had, while the disk refuses: first those that lie on it, as
    /// far as it can be read, then those in memory.
    ///
    /// The caller sees to it that none of its batches stands on disk. nil while rows on disk are being read, which
    /// `storedRowsRead` tells the end of, and where they cannot be, so that order is kept. Settle it with
    /// `memorySettled`, also when nothing came of it; until then no commit is made, as long as that takes no longer than
    /// a request.
    ///
    /// - Parameter sender: who sends it, the endpoint itself or a spare of it.
    func memoryBatch(
        for endpoint: EndpointSettings, by sender: EndpointSettings? = nil, limit: Int, sentMs: Int64?
    ) -> Batch? {
        guard isDiskBad, underWay == nil, !commitWanted, limit > 0, memory != nil, !mayBeStored(at: loop.now),
            let depth = latest.depths.first(where: { $0.endpoint == endpoint.name }), !isSending(to: endpoint.name)
        else { return nil }
        let sender = sender ?? endpoint
        let waiting = ring.waiting(for: endpoint)
        // Where only the newest row counts, those on disk have been overtaken.
        let isOvertaken = sender.delivery == .latest && !waiting.isEmpty
        if depth.waiting > 0, !isOvertaken {
            switch storedBatch(for: endpoint, by: sender, limit: limit, sentMs: sentMs) {
            case .batch(let batch): return batch
            case .unknown: return nil
            case .none: break
            }
        }
        guard let memory else { return nil }
        var found: MemoryEpisode.Sent
        if let last = memory.sent[endpoint.name], last.goesOutAgain(by: sender, limit: limit, isStored: false),
            last.numbers.isSubset(of: waiting.lazy.map(\.number))
        {
            found = last
        } else {
            let rows = waiting.lazy.map { [bootID = settings.bootID] in
                QueuedLocation(
                    seq: $0.number, bootID: bootID, receivedMs: $0.row.receivedMs, location: $0.row.location)
            }
            let plan = firstBatch(of: rows, isAll: true, sender, limit: limit)
            guard !plan.rows.isEmpty else { return nil }
            found = .init(
                batch: batch(plan.rows, sender, sentMs: sentMs, outbox: memory.outbox),
                numbers: plan.unsent.union(plan.rows.map(\.seq)))
        }
        found.supersedes = isOvertaken && depth.waiting > 0 ? latest.lastSeq : nil
        self.memory?.sent[endpoint.name] = found
        self.memory?.sendingSince = loop.now
        ring.send(found.numbers, to: endpoint.name)
        return found.batch
    }

    /// Something is being sent that is on no disk, or that the disk does not know of.
    var isSending: Bool { ring.isSending || memory?.sendingStored.isEmpty == false }

    func isSending(to endpoint: String) -> Bool {
        ring.isSending(to: endpoint) || memory?.sendingStored.contains(endpoint) == true
    }

    /// A medium that failed may have stored the last commit all the same. For a while it is asked again before those rows
    /// go out under other keys.
    private func mayBeStored(at now: EventTime) -> Bool {
        guard lastError?.cause == .io, let memory else { return false }
        return now.duration(since: memory.since) < settings.doubt
    }

    /// The first batch that the profile's rules make of these rows; empty when they make none yet.
    ///
    /// - Parameter isAll: no row waits behind these.
    /// - Returns: with it the rows before it that are not to be sent, and how many it has dealt with.
    func firstBatch(
        of waiting: some Collection<QueuedLocation>, isAll: Bool, _ sender: EndpointSettings, limit: Int
    ) -> (rows: [QueuedLocation], unsent: Set<Int64>, consumed: Int) {
        let depth = max(1, sender.planningDepth(limit: limit))
        var unsent: Set<Int64> = []
        var dealtWith = 0
        var rest = waiting[...]
        while !rest.isEmpty {
            let rows = Array(rest.prefix(depth))
            let plan = sender.plan(
                rows, limit: limit, isEnd: isAll && rows.count == rest.count, receiverMs: receiverMs())
            let consumed = min(rows.count, plan.consumed)
            guard consumed > 0 else { break }
            for (place, why) in plan.settled where place < consumed {
                // What breaks a rule goes to quarantine, which is on disk.
                if case .refused = why { continue }
                unsent.insert(rows[place].seq)
            }
            dealtWith += consumed
            if let places = plan.batches.first, !places.isEmpty { return (places.map { rows[$0] }, unsent, dealtWith) }
            rest = rest.dropFirst(consumed)
        }
        return ([], unsent, dealtWith)
    }

    /// - Parameter outbox: uuid of the keys of its rows.
    func batch(
        _ rows: [QueuedLocation], _ sender: EndpointSettings, sentMs: Int64?, outbox: [UInt8]
    ) -> Batch {
        let newest = rows.reduce(Int64.min) { max($0, $1.location.time.milliseconds) }
        var batch = Batch(
            endpoint: sender.name, id: "", rows: rows,
            sentMs: sentMs.flatMap { $0 < newest - Self.clockTolerance ? nil : $0 }, outbox: outbox)
        // A batch that was never formed has a key of this episode, whose ever its rows are.
        let episode = String(hexOf: (memory?.outbox ?? outbox).prefix(4))
        batch.id = "\(episode)-\(sender.name)-\(rows[0].seq)-\(rows[rows.count - 1].seq)"
        // One id never names two bodies, also when a row between the others had to go.
        for last in (memory?.sent ?? [:]).values where last.batch.id.hasPrefix(batch.id) && last.batch.rows != rows {
            batch.generation = max(batch.generation, last.batch.generation + 1)
        }
        if batch.generation > 1 { batch.id += "-g\(batch.generation)" }
        return batch
    }

    /// What became of the batch that was being sent to this endpoint. Rows that were not accepted stay, for another one or
    /// for the disk.
    ///
    /// - Parameter accepted: by `seq` of the batch; empty when nothing arrived.
    func memorySettled(_ endpoint: String, accepted: Set<Int64>) {
        var numbers = accepted
        let last = memory?.sent[endpoint]
        if !accepted.isEmpty, let last {
            numbers.formUnion(last.numbers.subtracting(last.batch.rows.map(\.seq)))
            if let through = last.supersedes { supersede(through, for: endpoint) }
        }
        if memory?.sendingStored.remove(endpoint) != nil {
            had(numbers, by: endpoint)
        } else {
            ring.settle(endpoint, had: numbers, among: settings.endpoints)
        }
        guard !isSending else { return }
        if commitWanted {
            commit(at: loop.now)
        } else {
            // The disk was not asked meanwhile.
            if windowEnds == nil, !ring.isEmpty { endWindow(by: loop.now + retry.pause) }
            arm()
        }
    }
}
