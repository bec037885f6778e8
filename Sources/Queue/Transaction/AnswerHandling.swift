import Profiles

/// Does what an answer means for the rows of its batch.
struct AnswerHandling {
    let queue: Transaction

    /// An answer to a batch that is no longer in flight, because it was stored before, changes nothing.
    func apply(_ answer: BatchAnswer) throws(OutboxError) {
        guard let (index, batch) = find(answer) else { return try applyToFormer(answer) }
        if queue.memory != nil, batch.origin == .quarantine {
            // Its records are on disk, which learns of it later.
            queue.memory?.deferred.append(answer)
            let accepted =
                switch answer.outcome {
                case .accepted: batch.rows
                case .partly(let refused, let again): batch.rows - again.union(refused.keys).count
                case .split, .refused: 0
                }
            queue[index].quarantine.records -= accepted
            return try queue.remove(batch, from: index)
        }
        if let row = queue.known[answer.batchID]?.newest { queue.newest[row.seq] = row }
        let rows = answer.outcome == .accepted ? [] : try queue.rows(of: batch, queue[index])
        if queue.memory != nil, answer.outcome != .accepted, rows.count != batch.rows {
            // Without its rows it stays as it is, and goes out again.
            return queue.noteMade(batch, of: index)
        }
        switch answer.outcome {
        case .accepted:
            try queue.remove(batch, from: index)
            try noteAccepted(batch, of: index)
            if batch.origin == .quarantine {
                try queue.database.unquarantine(batch.picked ?? [], of: queue[index].id)
            }
        case .split:
            guard rows.count > 1 else { return queue.noteMade(batch, of: index) }
            let middle = (rows.count + 1) / 2
            try queue.remove(batch, from: index)
            try add(batch.part(rows[..<middle], isStretch: true), rows[..<middle], to: index)
            try add(batch.part(rows[middle...], isStretch: true), rows[middle...], to: index)
        case .refused(let refusal):
            try queue.remove(batch, from: index)
            try QuarantineIntake(queue: queue).add(rows.map { ($0, refusal) }, from: batch, of: index)
        case .partly(let refused, let again):
            try applyPartly(batch, rows, refused: refused, again: again, of: index)
        }
        if batch.origin == .quarantine, queue.memory == nil { try queue.recountQuarantine(of: index) }
        queue.rowsBecameFree()
    }

    private func find(_ answer: BatchAnswer) -> (index: Int, batch: BatchRow)? {
        for (index, endpoint) in queue.ledger.endpoints.enumerated() {
            for batch in endpoint.batches where (batch.route ?? endpoint.settings.name) == answer.endpoint {
                if queue.id(of: batch, endpoint) == answer.batchID { return (index, batch) }
            }
        }
        return nil
    }

    private func noteAccepted(_ batch: BatchRow, of index: Int) throws(OutboxError) {
        let index = batch.route.flatMap { queue.ledger.index(of: $0) } ?? index
        try queue.noteAccepted(index)
    }

    private func applyPartly(
        _ batch: BatchRow, _ rows: [QueuedLocation], refused: [Int64: Refusal], again: Set<Int64>, of index: Int
    ) throws(OutboxError) {
        let repeated = rows.filter { again.contains($0.seq) && refused[$0.seq] == nil }
        let accepted = rows.map(\.seq).filter { refused[$0] == nil && !again.contains($0) }
        guard repeated.count < rows.count else { return queue.noteMade(batch, of: index) }
        try queue.remove(batch, from: index)
        try QuarantineIntake(queue: queue).add(
            rows.compactMap { row in refused[row.seq].map { (row, $0) } }, from: batch, of: index)
        if batch.origin == .quarantine { try queue.database.unquarantine(accepted, of: queue[index].id) }
        // The same first and last row with fewer between them would be other rows under the same id.
        var part = batch.part(repeated[...], isStretch: false)
        part?.generation = queue.generation(after: batch.generation)
        try add(part, repeated[...], to: index)
        if !accepted.isEmpty { try noteAccepted(batch, of: index) }
    }

    private func add(_ part: BatchRow?, _ rows: ArraySlice<QueuedLocation>, to index: Int) throws(OutboxError) {
        guard var part else { return }
        part.through = queue[index].formed
        try queue.insert(part, into: index)
        queue.noteMade(part, of: index)
        if part.origin == .queue { queue.notePlanned(Array(rows), of: queue[index]) }
    }

    /// An answer that came while the rows of its batch moved to disk: those that the server has are not sent again.
    private func applyToFormer(_ answer: BatchAnswer) throws(OutboxError) {
        guard let batch = queue.former[answer.batchID], let index = queue.ledger.index(of: batch.owner) else { return }
        let had =
            switch answer.outcome {
            case .accepted: batch.numbers.map(\.now)
            case .split, .refused: [Int64]()
            case .partly(let refused, let again):
                batch.numbers.filter { refused[$0.before] == nil && !again.contains($0.before) }.map(\.now)
            }
        let formed = queue[index].formed
        let finished = had.filter { $0 > formed && !queue[index].ahead.contains($0) }
        queue[index].ahead.formUnion(finished.map { $0...$0 })
        try queue.database.rewriteAhead(of: queue[index])
        // Not all that wait are counted again: a disk that refuses may not show them.
        for seq in finished {
            let rows = queue.memory != nil ? 1 : try queue.database.count(of: .engine, from: seq, through: seq)
            queue[index].waiting = max(0, queue[index].waiting - rows)
        }
        queue[index].oldest = .unknown
        queue.rowsBecameFree()
    }
}

/// A batch of a queue in memory whose rows have other numbers on disk.
struct FormerBatch {
    /// Whose cursor its rows belong to.
    var owner: String
    var numbers: [(before: Int64, now: Int64)]
}
