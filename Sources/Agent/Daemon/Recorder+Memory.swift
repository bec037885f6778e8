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
    }

    /// When the disk refused first.
    let since: EventTime
    /// Uuid of the keys: of an outbox that exists for this episode only, so that no key ever names two records.
    let outbox: [UInt8]
    var sendingSince: EventTime?
    /// By endpoint.
    var sent: [String: Sent] = [:]
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
        return depth.waiting + rowsInMemory(for: endpoint)
    }

    /// A batch of the oldest rows that this endpoint has not had, straight from memory, while the disk refuses.
    ///
    /// The caller sees to it that none of its batches stands on disk. nil while rows of this endpoint wait there, so that
    /// order is kept. Settle it with `memorySettled`, also when nothing came of it; until then no commit is made, as long
    /// as that takes no longer than a request.
    ///
    /// - Parameter sender: who sends it, the endpoint itself or a spare of it.
    func memoryBatch(
        for endpoint: EndpointSettings, by sender: EndpointSettings? = nil, limit: Int, sentMs: Int64?
    ) -> Batch? {
        guard isDiskBad, underWay == nil, !commitWanted, limit > 0, let memory, !mayBeStored(at: loop.now),
            let depth = latest.depths.first(where: { $0.endpoint == endpoint.name }), depth.waiting == 0,
            !ring.isSending(to: endpoint.name)
        else { return nil }
        let sender = sender ?? endpoint
        let waiting = ring.waiting(for: endpoint)
        let found: MemoryEpisode.Sent
        if let last = memory.sent[endpoint.name], last.batch.endpoint == sender.name,
            last.batch.rows.count <= limit, last.numbers.isSubset(of: waiting.lazy.map(\.number))
        {
            found = last
        } else {
            guard let planned = planned(waiting, sender, limit: limit, sentMs: sentMs, memory) else { return nil }
            found = planned
        }
        self.memory?.sent[endpoint.name] = found
        self.memory?.sendingSince = loop.now
        ring.send(found.numbers, to: endpoint.name)
        return found.batch
    }

    /// A medium that failed may have stored the last commit all the same. For a while it is asked again before those rows
    /// go out under other keys.
    private func mayBeStored(at now: EventTime) -> Bool {
        guard lastError?.cause == .io, let memory else { return false }
        return now.duration(since: memory.since) < settings.doubt
    }

    /// The first batch that the profile's rules make of these rows.
    private func planned(
        _ waiting: [RowRing.Held], _ sender: EndpointSettings, limit: Int, sentMs: Int64?, _ memory: MemoryEpisode
    ) -> MemoryEpisode.Sent? {
        let depth = max(1, sender.planningDepth(limit: limit))
        var numbers: Set<Int64> = []
        var rest = waiting[...]
        while !rest.isEmpty {
            let rows = rest.prefix(depth).map {
                QueuedLocation(
                    seq: $0.number, bootID: settings.bootID, receivedMs: $0.row.receivedMs, location: $0.row.location)
            }
            let plan = sender.plan(rows, limit: limit, isEnd: rows.count == rest.count, receiverMs: receiverMs())
            let consumed = min(rows.count, plan.consumed)
            guard consumed > 0 else { return nil }
            for (place, why) in plan.settled where place < consumed {
                // What breaks a rule goes to quarantine, which is on disk.
                if case .refused = why { continue }
                numbers.insert(rows[place].seq)
            }
            if let places = plan.batches.first, !places.isEmpty {
                let chosen = places.map { rows[$0] }
                let batch = batch(chosen, sender, sentMs: sentMs, memory)
                return .init(batch: batch, numbers: numbers.union(chosen.map(\.seq)))
            }
            rest = rest.dropFirst(consumed)
        }
        return nil
    }

    private func batch(
        _ rows: [QueuedLocation], _ sender: EndpointSettings, sentMs: Int64?, _ memory: MemoryEpisode
    ) -> Batch {
        let newest = rows.reduce(Int64.min) { max($0, $1.location.time.milliseconds) }
        var batch = Batch(
            endpoint: sender.name, id: "", rows: rows,
            sentMs: sentMs.flatMap { $0 < newest - Self.clockTolerance ? nil : $0 }, outbox: memory.outbox)
        batch.id = "\(batch.outboxName)-\(sender.name)-\(rows[0].seq)-\(rows[rows.count - 1].seq)"
        // One id never names two bodies, also when a row between the others had to go.
        for last in memory.sent.values where last.batch.id.hasPrefix(batch.id) && last.batch.rows != rows {
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
        var had = accepted
        if !accepted.isEmpty, let last = memory?.sent[endpoint] {
            had.formUnion(last.numbers.subtracting(last.batch.rows.map(\.seq)))
        }
        ring.settle(endpoint, had: had, among: settings.endpoints)
        guard !ring.isSending else { return }
        if commitWanted {
            commit(at: loop.now)
        } else {
            // The disk was not asked meanwhile.
            if windowEnds == nil, !ring.isEmpty { endWindow(by: loop.now + retry.pause) }
            arm()
        }
    }
}
