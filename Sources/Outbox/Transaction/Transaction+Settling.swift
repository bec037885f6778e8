import Delivery
import Positioning

extension Transaction {
    /// Carries out what an answer means for its batch. An answer that was stored before is no news.
    mutating func settle(_ answer: BatchAnswer) throws(OutboxError) {
        guard let (index, batch) = find(answer) else { return try settleFormer(answer) }
        if memory != nil, batch.origin == .quarantine {
            // Its records are on disk, which hears of it later.
            memory?.deferred.append(answer)
            let accepted =
                switch answer.outcome {
                case .accepted: batch.rows
                case .partly(let refused, let again): batch.rows - again.union(refused.keys).count
                case .split, .refused: 0
                }
            ledger.endpoints[index].quarantine.records -= accepted
            return try remove(batch, from: index)
        }
        if let row = known[answer.batchID]?.newest { newest[row.seq] = row }
        let rows = answer.outcome == .accepted ? [] : try rows(of: batch, ledger.endpoints[index])
        let how = memory?.possible(answer.outcome, rows) ?? answer.outcome
        if memory != nil, how != .accepted, rows.count != batch.rows {
            // Without its rows it stays as it is, and goes out again.
            made.insert(answer.batchID)
            return
        }
        switch how {
        case .accepted:
            try remove(batch, from: index)
            try noteAccepted(batch, by: answer.endpoint, of: index)
            if batch.origin == .quarantine {
                try database.unquarantine(batch.picked ?? [], of: ledger.endpoints[index].id)
            }
        case .split:
            guard try split(batch, rows, of: index) else {
                made.insert(id(of: batch, ledger.endpoints[index]))
                return
            }
        case .refused(let refusal):
            try remove(batch, from: index)
            try quarantine(rows.map { ($0, refusal) }, from: batch, of: index)
        case .partly(let refused, let again):
            try settlePartly(batch, rows, refused: refused, again: again, of: index)
            if rows.contains(where: { refused[$0.seq] == nil && !again.contains($0.seq) }) {
                try noteAccepted(batch, by: answer.endpoint, of: index)
            }
        }
        if batch.origin == .quarantine, memory == nil {
            let id = ledger.endpoints[index].id
            ledger.endpoints[index].quarantine = try database.quarantineCount(of: id)
        }
        // Rows that were in flight may be removed now.
        ledger.droppableFrom = 0
        needsCounts = true
    }

    private func find(_ answer: BatchAnswer) -> (index: Int, batch: BatchRow)? {
        for (index, endpoint) in ledger.endpoints.enumerated() {
            for batch in endpoint.batches where (batch.route ?? endpoint.settings.name) == answer.endpoint {
                if id(of: batch, endpoint) == answer.batchID { return (index, batch) }
            }
        }
        return nil
    }

    private mutating func noteAccepted(
        _ batch: BatchRow, by sender: String, of index: Int
    ) throws(OutboxError) {
        let index = batch.route.flatMap { ledger.index(of: $0) } ?? index
        guard !ledger.endpoints[index].acceptedBefore else { return }
        ledger.endpoints[index].acceptedBefore = true
        try database.writeState(ledger.endpoints[index])
    }

    /// - Returns: false for a batch that has no two halves.
    private mutating func split(
        _ batch: BatchRow, _ rows: [QueuedLocation], of index: Int
    ) throws(OutboxError) -> Bool {
        guard rows.count > 1 else { return false }
        let middle = (rows.count + 1) / 2
        try remove(batch, from: index)
        try add(batch.part(rows[..<middle], isStretch: true), rows[..<middle], to: index)
        try add(batch.part(rows[middle...], isStretch: true), rows[middle...], to: index)
        return true
    }

    private mutating func settlePartly(
        _ batch: BatchRow, _ rows: [QueuedLocation], refused: [Int64: Refusal], again: Set<Int64>, of index: Int
    ) throws(OutboxError) {
        let repeated = rows.filter { again.contains($0.seq) && refused[$0.seq] == nil }
        guard repeated.count < rows.count else {
            made.insert(id(of: batch, ledger.endpoints[index]))
            return
        }
        try remove(batch, from: index)
        try quarantine(rows.compactMap { row in refused[row.seq].map { (row, $0) } }, from: batch, of: index)
        if batch.origin == .quarantine {
            let accepted = rows.map(\.seq).filter { refused[$0] == nil && !again.contains($0) }
            try database.unquarantine(accepted, of: ledger.endpoints[index].id)
        }
        // The same first and last row with fewer between them would be other rows under the same id.
        var part = batch.part(repeated[...], isStretch: false)
        part?.generation = generation(after: batch.generation)
        try add(part, repeated[...], to: index)
    }

    private mutating func add(_ part: BatchRow?, _ rows: ArraySlice<QueuedLocation>, to index: Int) throws(OutboxError)
    {
        guard var part else { return }
        part.through = ledger.endpoints[index].formed
        ledger.endpoints[index].insert(part)
        try database.write(part, endpoint: ledger.endpoints[index].id)
        made.insert(id(of: part, ledger.endpoints[index]))
        if part.origin == .queue { notePlanned(Array(rows), of: ledger.endpoints[index]) }
    }
}
