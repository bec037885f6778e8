import Profiles

/// Carries out the orders of an operator. After a refused one, those for the same endpoint are refused as well.
struct OrderHandling {
    let queue: Transaction

    func carryOut(_ orders: [QueueOrder]) throws(OutboxError) -> [OrderResult] {
        var results: [OrderResult] = []
        var refused: Set<String> = []
        for order in orders {
            if let memory = queue.memory {
                results.append(.refused(memory.refusal.description))
                continue
            }
            if let name = order.endpoint, refused.contains(name) {
                results.append(.refused("an earlier order for this endpoint was refused"))
                continue
            }
            let result = try carryOut(order)
            if case .refused = result, let name = order.endpoint { refused.insert(name) }
            results.append(result)
        }
        return results
    }

    private func carryOut(_ order: QueueOrder) throws(OutboxError) -> OrderResult {
        switch order {
        case .bind(let name): try withRows(of: name, bind)
        case .drop(let name): try withRows(of: name, drop)
        case .clear(let name): try withRows(of: name, clear)
        case .quarantine(let name, let refusal):
            try withRows(of: name) { (index) throws(OutboxError) in try quarantine(index, refusal) }
        case .retryQuarantined(let name, let ids): try changeQuarantined(name, ids, to: .wanted)
        case .dropQuarantined(let name, let ids): try changeQuarantined(name, ids, to: nil)
        case .forget(let name): try forget(name)
        }
    }

    private func withRows(
        of name: String, _ work: (Int) throws(OutboxError) -> OrderResult
    ) throws(OutboxError) -> OrderResult {
        guard let index = queue.ledger.index(of: name) else {
            return .refused("no endpoint \"\(name)\" is configured")
        }
        if let primary = queue[index].settings.backupFor {
            return .refused("endpoint \"\(name)\" has no rows of its own: it is a backup for \"\(primary)\"")
        }
        if queue.ledger.isSalvaging, queue[index].wanted != nil {
            return .refused(
                "locations of the old binding are still being brought back from a damaged queue; waypost does that while it runs"
            )
        }
        return try work(index)
    }

    @discardableResult
    func bind(_ index: Int) throws(OutboxError) -> OrderResult {
        let result = unsent(of: index)
        if queue[index].wanted != nil { try regenerate(index) }
        queue[index].takeBinding()
        if queue[index].state == .taken { queue[index].state = .active }
        try queue.database.writeState(queue[index])
        return result
    }

    private func drop(_ index: Int) throws(OutboxError) -> OrderResult {
        let endpoint = queue[index]
        guard endpoint.state == .rebind || endpoint.state == .taken else {
            return .refused("no rows of an old binding wait for endpoint \"\(endpoint.settings.name)\"")
        }
        let last = endpoint.wanted?.boundThrough ?? queue.ledger.lastSeq
        let rows = try QuarantineIntake(queue: queue).dropUnsent(of: index, through: last)
        if endpoint.wanted != nil { try regenerate(index) }
        queue[index].takeBinding()
        queue[index].state = .active
        try queue.database.writeState(queue[index])
        return .done(rows: rows, first: rows > 0 ? endpoint.firstUnsent : nil, last: rows > 0 ? last : nil)
    }

    private func clear(_ index: Int) throws(OutboxError) -> OrderResult {
        let result = unsent(of: index)
        try QuarantineIntake(queue: queue).dropUnsent(of: index, through: queue.ledger.lastSeq)
        return result
    }

    private func quarantine(_ index: Int, _ refusal: Refusal) throws(OutboxError) -> OrderResult {
        let endpoint = queue[index]
        guard endpoint.fitsQuarantine(refusalSize: refusal.size) else {
            return .refused(
                "\(endpoint.unsent) rows do not fit the quarantine, which holds \(endpoint.quarantine.records) of "
                    + "\(Quarantine.recordsMax)")
        }
        let result = unsent(of: index)
        try QuarantineIntake(queue: queue).addUnsent(of: index, refusal)
        return result
    }

    /// The result of an order that concerns all rows of an endpoint.
    private func unsent(of index: Int) -> OrderResult {
        let endpoint = queue[index]
        let rows = endpoint.unsent
        return .done(
            rows: rows, first: rows > 0 ? endpoint.firstUnsent : nil, last: rows > 0 ? queue.ledger.lastSeq : nil)
    }

    /// The batches go out under other ids: another device or asset makes other bytes.
    private func regenerate(_ index: Int) throws(OutboxError) {
        for (place, var batch) in queue[index].batches.enumerated() {
            batch.generation = queue.generation(after: batch.generation)
            try queue.replace(place, of: index, by: batch)
        }
    }

    /// - Parameter retry: nil = the records are deleted.
    private func changeQuarantined(
        _ name: String?, _ ids: [Int64], to retry: Quarantine.Retry?
    ) throws(OutboxError) -> OrderResult {
        let concerned = queue.ledger.endpoints.indices.filter { index in
            (name == nil || queue[index].settings.name == name)
                && (retry == nil || (queue[index].removedAt == nil && !queue[index].isSpare))
        }
        if concerned.isEmpty, let name { return .refused("no endpoint \"\(name)\" has a quarantine") }
        var seqs: [Int64] = []
        for index in concerned {
            seqs += try queue.database.changeQuarantined(of: queue[index].id, ids: ids, to: retry)
            try queue.recountQuarantine(of: index)
        }
        return .done(rows: seqs.count, first: seqs.min(), last: seqs.max())
    }

    private func forget(_ name: String) throws(OutboxError) -> OrderResult {
        let index = queue.ledger.endpoints.firstIndex { $0.settings.name == name && $0.removedAt != nil }
        guard let index else {
            return .refused(
                queue.ledger.index(of: name) == nil
                    ? "the queue knows no endpoint \"\(name)\""
                    : "endpoint \"\(name)\" is configured: remove it from the configuration first")
        }
        let result = unsent(of: index)
        let endpoint = queue.ledger.endpoints.remove(at: index)
        let database = queue.database
        let quarantined = try database.highestGeneration(inQuarantineOf: endpoint.id)
        // What was left of batches had higher ones, which are recorded nowhere.
        let generation = Int64(max(endpoint.nextGeneration - 1, quarantined, queue.processRun.memoryGeneration))
        try database.store(.generation, max(generation, try database.integer(.generation)))
        for table in ["batch", "ahead", "quarantine"] {
            try database.connection.execute("DELETE FROM \(table) WHERE endpoint = \(endpoint.id)")
        }
        try database.connection.execute("DELETE FROM endpoint WHERE id = \(endpoint.id)")
        queue.rowsBecameFree()
        return result
    }
}

extension QueueOrder {
    /// Whose rows it is about; nil = those of several.
    fileprivate var endpoint: String? {
        switch self {
        case .bind(let name), .drop(let name), .clear(let name), .quarantine(let name, _), .forget(let name): name
        case .retryQuarantined(let name, _), .dropQuarantined(let name, _): name
        }
    }
}
