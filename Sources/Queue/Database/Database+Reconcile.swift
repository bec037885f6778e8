import Profiles
import WaypostCore

/// Reconciles the configured endpoints with those that the file knows.
extension Database {
    func reconcile(
        _ known: Ledger.Endpoint, with settings: EndpointSettings, in ledger: Ledger
    ) throws(OutboxError) -> Ledger.Endpoint {
        var endpoint = known
        endpoint.settings = settings
        endpoint.removedAt = nil
        try reconcileSpare(&endpoint, lastSeq: ledger.lastSeq)
        if known.removedAt != nil || known.settings.feed != settings.feed {
            endpoint.waiting = try count(of: endpoint, after: endpoint.formed)
        }
        reconcileBinding(&endpoint, in: ledger)
        if known.removedAt != nil || known.settings.feed != settings.feed || known.fingerprint != endpoint.fingerprint
            || known.state != endpoint.state || known.settings.required != settings.required
            || known.wanted != endpoint.wanted || known.isSpare != endpoint.isSpare
        {
            try write(endpoint)
        }
        return endpoint
    }

    /// An endpoint that becomes a spare gives up cursor and rows; one that ceases to be one begins with the next row.
    private func reconcileSpare(_ endpoint: inout Ledger.Endpoint, lastSeq: Int64) throws(OutboxError) {
        let isSpare = endpoint.settings.backupFor != nil
        guard isSpare != endpoint.isSpare else { return }
        endpoint.count(unsent: "dropped", endpoint.waiting + endpoint.inFlight)
        endpoint.isSpare = isSpare
        endpoint.regeneratedThrough = max(endpoint.regeneratedThrough, lastSeq)
        endpoint.generation = endpoint.nextGeneration
        endpoint.formed = lastSeq
        endpoint.waiting = 0
        endpoint.batches = []
        endpoint.ahead = SequenceRanges()
        try connection.execute("DELETE FROM batch WHERE endpoint = \(endpoint.id)")
        try connection.execute("DELETE FROM ahead WHERE endpoint = \(endpoint.id)")
        try connection.execute(
            """
            UPDATE quarantine SET retry = \(Quarantine.Retry.none.rawValue),
            generation = max(generation, \(endpoint.generation)) WHERE endpoint = \(endpoint.id)
            """)
        endpoint.quarantine.retrying = 0
    }

    private func reconcileBinding(_ endpoint: inout Ledger.Endpoint, in ledger: Ledger) {
        let configured = endpoint.settings.fingerprint
        if endpoint.fingerprint == configured {
            endpoint.takeBinding()
        } else if !endpoint.holdsRows || endpoint.mayMove, endpoint.isSpare || !ledger.isSalvaging {
            endpoint.isMoved = endpoint.holdsRows
            endpoint.takeBinding()
            endpoint.state = .active
        } else {
            if endpoint.wanted?.fingerprint != configured {
                endpoint.wanted = .init(fingerprint: configured, boundThrough: ledger.lastSeq)
            }
            endpoint.state = .rebind
        }
    }

    func addEndpoint(_ settings: EndpointSettings, in ledger: Ledger) throws(OutboxError) -> Ledger.Endpoint {
        // Its name may be that of a forgotten one, which had batches of these rows.
        let forgotten = Int(Int32(clamping: try integer(.generation)))
        let isSpare = settings.backupFor != nil
        var endpoint = Ledger.Endpoint(
            id: (try connection.integer("SELECT max(id) FROM endpoint")) &+ 1, settings: settings,
            fingerprint: settings.fingerprint,
            formed: settings.backfill && !isSpare ? max(0, ledger.firstSeq - 1) : ledger.lastSeq, waiting: 0,
            state: .active, regeneratedThrough: forgotten > 0 ? ledger.lastSeq : 0, generation: forgotten + 1,
            isSpare: isSpare, oldest: .none)
        endpoint.waiting = try count(of: endpoint, after: endpoint.formed)
        try write(endpoint)
        return endpoint
    }

    /// An endpoint that is no longer configured. What waits for a required one is kept; the others hold nothing back.
    func retire(_ known: Ledger.Endpoint, lastSeq: Int64) throws(OutboxError) -> Ledger.Endpoint {
        guard known.removedAt == nil else { return known }
        var endpoint = known
        endpoint.removedAt = lastSeq
        try write(endpoint)
        return endpoint
    }

    /// The batches as they may be sent: under a new generation when they would be rendered otherwise now, without rows
    /// that are missing, and by endpoints that are still configured.
    func checkBatches(of endpoint: inout Ledger.Endpoint, in ledger: Ledger) throws(OutboxError) {
        for batch in endpoint.batches {
            let checked = try checked(batch, of: endpoint, in: ledger)
            guard checked != batch else { continue }
            endpoint.batches.removeAll { $0.origin == batch.origin && $0.first == batch.first }
            try deleteBatch.run(endpoint.id, batch.first)
            guard let checked else { continue }
            endpoint.insert(checked)
            try write(checked, endpoint: endpoint.id)
        }
        try checkRetries(of: &endpoint)
    }

    private func checked(
        _ batch: BatchRow, of endpoint: Ledger.Endpoint, in ledger: Ledger
    ) throws(OutboxError) -> BatchRow? {
        guard var checked = try present(batch, of: endpoint, names: ledger.names) else { return nil }
        var sender = endpoint
        if let route = batch.route {
            let spare = ledger.endpoints.first { $0.settings.name == route && $0.removedAt == nil }
            if let spare, spare.settings.backupFor == endpoint.settings.name {
                sender = spare
            } else {
                checked.route = nil
            }
        }
        if let newest = batch.newestSeq, try count(of: .engine, from: newest, through: newest) == 0 {
            checked.newestSeq = nil
        }
        checked.rendering = sender.settings.profile.rendering
        if checked != batch || sender.isRebound { checked.generation += 1 }
        return checked
    }

    /// The batch without rows that are missing; nil when all are.
    func present(
        _ batch: BatchRow, of endpoint: Ledger.Endpoint, names: Record.Names
    ) throws(OutboxError) -> BatchRow? {
        guard try found(batch, of: endpoint) != batch.rows else { return batch }
        return batch.part(try rows(of: batch, endpoint: endpoint.id, names: names)[...], isStretch: false)
    }

    /// How many rows of a batch are there.
    private func found(_ batch: BatchRow, of endpoint: Ledger.Endpoint) throws(OutboxError) -> Int {
        guard let picked = batch.picked else {
            return try count(of: batch.feed, from: batch.first, through: batch.last)
        }
        if batch.origin == .quarantine { return try quarantinedCount(of: endpoint.id, seqs: picked) }
        var found = 0
        for seq in picked { found += try count(of: .engine, from: seq, through: seq) }
        return found
    }
}
