import Delivery

extension Transaction {
    mutating func carryOut(_ orders: [QueueOrder]) throws(OutboxError) -> [OrderResult] {
        var results: [OrderResult] = []
        var refused: Set<String> = []
        for order in orders {
            if let memory {
                results.append(.refused(memory.refusal.description))
                continue
            }
            if let name = order.endpoint, refused.contains(name) {
                results.append(.refused("what had to come first was refused"))
                continue
            }
            let result = try carryOut(order)
            if case .refused = result, let name = order.endpoint { refused.insert(name) }
            results.append(result)
        }
        return results
    }

    private mutating func carryOut(_ order: QueueOrder) throws(OutboxError) -> OrderResult {
        switch order {
        case .bind(let name): try withRows(of: name) { (self, index) throws(OutboxError) in try self.bind(index) }
        case .drop(let name): try withRows(of: name) { (self, index) throws(OutboxError) in try self.drop(index) }
        case .clear(let name): try withRows(of: name) { (self, index) throws(OutboxError) in try self.clear(index) }
        case .quarantine(let name, let refusal):
            try withRows(of: name) { (self, index) throws(OutboxError) in try self.quarantine(index, refusal) }
        case .retryQuarantined(let name, let ids): try changeQuarantined(name, ids, to: .wanted)
        case .dropQuarantined(let name, let ids): try changeQuarantined(name, ids, to: nil)
        case .forget(let name): try forget(name)
        }
    }

    private mutating func withRows(
        of name: String, _ work: (inout Transaction, Int) throws(OutboxError) -> OrderResult
    ) throws(OutboxError) -> OrderResult {
        guard let index = ledger.index(of: name) else { return .refused("no endpoint \"\(name)\" is configured") }
        if let primary = ledger.endpoints[index].settings.backupFor {
            return .refused("endpoint \"\(name)\" has no rows of its own: it stands in for \"\(primary)\"")
        }
        if ledger.isSalvaging, ledger.endpoints[index].wanted != nil {
            return .refused(
                "locations of the old binding are still being brought back from a damaged queue; waypost does that while it runs"
            )
        }
        return try work(&self, index)
    }

    private mutating func bind(_ index: Int) throws(OutboxError) -> OrderResult {
        let result = unsent(of: index)
        if ledger.endpoints[index].wanted != nil { try regenerate(index) }
        ledger.endpoints[index].takeBinding()
        if ledger.endpoints[index].state == .taken { ledger.endpoints[index].state = .active }
        try database.writeState(ledger.endpoints[index])
        return result
    }

    private mutating func drop(_ index: Int) throws(OutboxError) -> OrderResult {
        let endpoint = ledger.endpoints[index]
        guard endpoint.state == .rebind || endpoint.state == .taken else {
            return .refused("no rows of an old binding wait for endpoint \"\(endpoint.settings.name)\"")
        }
        let first = endpoint.firstUnsent
        let last = endpoint.wanted?.boundThrough ?? ledger.lastSeq
        let rows = try dropUnsent(of: index, through: last)
        if endpoint.wanted != nil { try regenerate(index) }
        ledger.endpoints[index].takeBinding()
        ledger.endpoints[index].state = .active
        try database.writeState(ledger.endpoints[index])
        return .done(rows: rows, first: rows > 0 ? first : nil, last: rows > 0 ? last : nil)
    }

    private mutating func clear(_ index: Int) throws(OutboxError) -> OrderResult {
        let result = unsent(of: index)
        try dropUnsent(of: index, through: ledger.lastSeq)
        return result
    }

    private mutating func quarantine(_ index: Int, _ refusal: Refusal) throws(OutboxError) -> OrderResult {
        let endpoint = ledger.endpoints[index]
        guard fitsQuarantine(endpoint, refusalSize: refusal.reason.utf8.count + refusal.reply.count) else {
            return .refused(
                "\(endpoint.unsent) rows do not fit the quarantine, which holds \(endpoint.quarantine.records) of "
                    + "\(Quarantine.recordsMax)")
        }
        let result = unsent(of: index)
        try quarantineUnsent(of: index, refusal)
        return result
    }

    /// What an order concerns that takes all rows of an endpoint.
    private func unsent(of index: Int) -> OrderResult {
        let endpoint = ledger.endpoints[index]
        let rows = endpoint.unsent
        return .done(rows: rows, first: rows > 0 ? endpoint.firstUnsent : nil, last: rows > 0 ? ledger.lastSeq : nil)
    }

    /// The batches go out under other ids: another device or asset makes other bytes.
    private mutating func regenerate(_ index: Int) throws(OutboxError) {
        for place in ledger.endpoints[index].batches.indices {
            var batch = ledger.endpoints[index].batches[place]
            batch.generation = generation(after: batch.generation)
            ledger.endpoints[index].batches[place] = batch
            try database.write(batch, endpoint: ledger.endpoints[index].id)
        }
    }

    /// - Parameter retry: nil = the records are deleted.
    private mutating func changeQuarantined(
        _ name: String?, _ ids: [Int64], to retry: Quarantine.Retry?
    ) throws(OutboxError) -> OrderResult {
        let concerned = ledger.endpoints.filter {
            (name == nil || $0.settings.name == name) && (retry == nil || ($0.removedAt == nil && !$0.isSpare))
        }
        if concerned.isEmpty, let name { return .refused("no endpoint \"\(name)\" has a quarantine") }
        var seqs: [Int64] = []
        for endpoint in concerned {
            seqs += try database.changeQuarantined(of: endpoint.id, ids: ids, to: retry)
            let count = try database.quarantineCount(of: endpoint.id)
            for index in ledger.endpoints.indices where ledger.endpoints[index].id == endpoint.id {
                ledger.endpoints[index].quarantine = count
            }
        }
        return .done(rows: seqs.count, first: seqs.min(), last: seqs.max())
    }

    private mutating func forget(_ name: String) throws(OutboxError) -> OrderResult {
        let index = ledger.endpoints.firstIndex { $0.settings.name == name && $0.removedAt != nil }
        guard let index else {
            return .refused(
                ledger.index(of: name) == nil
                    ? "the queue knows no endpoint \"\(name)\""
                    : "endpoint \"\(name)\" is configured: take it out of the configuration first")
        }
        let result = unsent(of: index)
        let endpoint = ledger.endpoints.remove(at: index)
        let quarantined = try database.highestGeneration(inQuarantineOf: endpoint.id)
        // What was left of batches had higher ones, which nothing remembers.
        let generation = Int64(max(endpoint.nextGeneration - 1, quarantined, life.memoryGeneration))
        try database.store(.generation, max(generation, try database.forgottenGeneration()))
        for table in ["batch", "ahead", "quarantine"] {
            try database.connection.execute("DELETE FROM \(table) WHERE endpoint = \(endpoint.id)")
        }
        try database.connection.execute("DELETE FROM endpoint WHERE id = \(endpoint.id)")
        ledger.droppableFrom = 0
        needsCounts = true
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
