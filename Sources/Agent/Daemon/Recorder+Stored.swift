import Delivery
import Outbox
import Positioning

/// Rows of one endpoint that lie on a disk which refuses writes.
struct StoredBacklog {
    /// The oldest of them that have been read and that it has not had.
    var rows: [QueuedLocation] = []
    /// No row on disk waits behind these.
    var isAll = false
    var isBeingRead = false
    /// Read up to here.
    var through: Int64 = 0
    /// Rows that it has had by now.
    var had = 0
    /// Uuid of the queue.
    var outbox: [UInt8] = []
}

extension MemoryEpisode.Sent {
    /// Whether it is to go out again as it is, if its rows still wait.
    func goesOutAgain(by sender: EndpointSettings, limit: Int, isStored: Bool) -> Bool {
        self.isStored == isStored && batch.endpoint == sender.name && batch.rows.count <= limit
    }
}

// The backlog on a disk that refuses writes and can still be read, as a card does that has turned read-only. What arrives
// is noted on disk once it takes writes again; after a crash it is repeated, under other keys of batches and the same
// keys of records.
extension Recorder {
    enum Stored {
        case batch(Batch)
        /// Nothing on disk waits any more.
        case none
        /// They are being read, or cannot be.
        case unknown
    }

    /// - Parameter sender: who sends it, the endpoint itself or a spare of it.
    func storedBatch(
        for endpoint: EndpointSettings, by sender: EndpointSettings, limit: Int, sentMs: Int64?
    ) -> Stored {
        // What is over soon costs no repetition after a crash.
        guard let since = memory?.since, loop.now.duration(since: since) >= settings.storedPatience else {
            return .unknown
        }
        let depth = max(1, sender.planningDepth(limit: limit))
        while true {
            let backlog = memory?.stored[endpoint.name] ?? StoredBacklog()
            guard backlog.isAll || backlog.rows.count >= depth else {
                read(depth, for: endpoint)
                return .unknown
            }
            if let last = memory?.sent[endpoint.name], last.goesOutAgain(by: sender, limit: limit, isStored: true),
                last.batch.rows.allSatisfy(backlog.rows.contains)
            {
                return .batch(sending(last, to: endpoint.name))
            }
            let plan = firstBatch(of: backlog.rows, isAll: backlog.isAll, sender, limit: limit)
            if !plan.rows.isEmpty {
                let batch = batch(plan.rows, sender, sentMs: sentMs, outbox: backlog.outbox)
                let numbers = plan.unsent.union(plan.rows.map(\.seq))
                return .batch(sending(.init(batch: batch, numbers: numbers, isStored: true), to: endpoint.name))
            }
            had(plan.unsent, by: endpoint.name)
            // Those that a rule refuses are for the quarantine, and thus for the disk.
            let rest = backlog.rows.dropFirst(plan.consumed)
            memory?.stored[endpoint.name]?.rows = Array(rest)
            if rest.isEmpty, backlog.isAll { return .none }
            if plan.consumed == 0 { return .unknown }
        }
    }

    private func sending(_ found: MemoryEpisode.Sent, to endpoint: String) -> Batch {
        memory?.sent[endpoint] = found
        memory?.sendingSince = loop.now
        memory?.sendingStored.insert(endpoint)
        return found.batch
    }

    private func read(_ depth: Int, for endpoint: EndpointSettings) {
        let name = endpoint.name
        let backlog = memory?.stored[name] ?? StoredBacklog()
        guard let since = memory?.since, !backlog.isBeingRead else { return }
        memory?.stored[name, default: StoredBacklog()].isBeingRead = true
        let query = StoredQuery(
            endpoint: name, feed: endpoint.feed, after: backlog.through, through: latest.lastSeq, limit: depth)
        writer.read(query) { [unowned self] found in
            // What cannot be read is asked for again after the next commit that fails; and a batch that nobody here knows
            // of was formed by one that did not tell, so that its rows come first.
            guard memory?.since == since, let found, found.inFlight.allSatisfy(isAnswered) else { return }
            // A failing medium may not show what it took. Without those rows the others would overtake them.
            guard found.waiting >= latest.depths.first(where: { $0.endpoint == name })?.waiting ?? 0 else { return }
            memory?.stored[name]?.take(found)
            storedRowsRead(name, loop.now)
        }
    }

    /// Whether a batch that still stands on disk is known to have gone.
    private func isAnswered(_ batchID: String) -> Bool {
        settlements.contains { settlement in
            guard settlement.batchID == batchID else { return false }
            switch settlement.how {
            case .accepted, .refused: return true
            case .partly(_, let again): return again.isEmpty
            case .split: return false
            }
        }
    }

    /// The disk was asked in vain once more.
    func storedRowsMayBeRead() {
        for name in (memory?.stored ?? [:]).keys { memory?.stored[name]?.isBeingRead = false }
    }

    /// Rows on disk that an endpoint has, or is never to have.
    func had(_ seqs: Set<Int64>, by endpoint: String) {
        guard !seqs.isEmpty else { return }
        var ranges = hadRows[endpoint] ?? []
        for seq in seqs.sorted() {
            if let last = ranges.last, last.upperBound == seq - 1 {
                ranges[ranges.count - 1] = last.lowerBound...seq
            } else {
                ranges.append(seq...seq)
            }
        }
        hadRows[endpoint] = ranges
        guard var backlog = memory?.stored[endpoint] else { return }
        let before = backlog.rows.count
        backlog.rows.removeAll { seqs.contains($0.seq) }
        backlog.had += before - backlog.rows.count
        memory?.stored[endpoint] = backlog
    }

    /// All rows on disk up to here are out of date for this endpoint.
    func supersede(_ through: Int64, for endpoint: String) {
        guard through > 0 else { return }
        hadRows[endpoint] = [1...through]
        memory?.stored[endpoint] = StoredBacklog(
            isAll: true, through: through, had: latest.depths.first { $0.endpoint == endpoint }?.waiting ?? 0)
    }
}

extension StoredBacklog {
    fileprivate mutating func take(_ found: StoredRows) {
        isBeingRead = false
        rows += found.rows
        isAll = found.isAll
        outbox = found.outbox
        if let last = found.rows.last { through = last.seq }
    }
}
