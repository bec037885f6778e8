import Delivery
import Positioning

extension Database {
    /// The endpoints on disk with their counts brought up to date, their settings only as far as the disk knows them.
    func endpointRows(mark: Int64) throws(OutboxError) -> [Ledger.Endpoint] {
        var endpoints = try knownEndpoints()
        for index in endpoints.indices {
            endpoints[index].ahead = try ahead(of: endpoints[index].id)
            endpoints[index].quarantine = try quarantineCount(of: endpoints[index].id)
            try takeBatches(&endpoints[index], mark: mark)
        }
        return endpoints
    }

    /// The endpoints as they are written, without batches and what came since the mark.
    func knownEndpoints() throws(OutboxError) -> [Ledger.Endpoint] {
        let statement = try connection.prepare(
            """
            SELECT id, name, fingerprint, formed, unsettled, required, feed, state, reason, removed_at,
            regenerated_through, generation, accepted, spare, wanted_fingerprint, bound_through
            FROM endpoint ORDER BY id
            """)
        var endpoints: [Ledger.Endpoint] = []
        while try statement.step() { endpoints.append(Self.endpoint(statement)) }
        return endpoints
    }

    private static func endpoint(_ row: Statement) -> Ledger.Endpoint {
        let settings = EndpointSettings(
            name: row.text(1), baseURL: "", device: "", feed: row.integer(6) == 1 ? .engine : .network,
            required: row.optionalInteger(5) != 0)
        var endpoint = Ledger.Endpoint(
            id: row.integer(0), settings: settings, fingerprint: row.text(2),
            formed: Ledger.clamped(row.integer(3)), waiting: Int(Int32(clamping: row.integer(4))),
            state: EndpointState(word: row.text(7), reason: row.optionalText(8)) ?? .active,
            removedAt: row.optionalInteger(9).map { Ledger.clamped($0) }, regeneratedThrough: row.integer(10),
            generation: Int(Int32(clamping: row.integer(11))))
        endpoint.acceptedBefore = row.integer(12) == 1
        endpoint.isSpare = row.integer(13) == 1
        if let wanted = row.optionalText(14) {
            endpoint.wanted = .init(fingerprint: wanted, boundThrough: Ledger.clamped(row.integer(15)))
        }
        return endpoint
    }

    /// The batches, and with them the cursor and the count as of the last of them: what is on disk is as of the mark.
    private func takeBatches(_ endpoint: inout Ledger.Endpoint, mark: Int64) throws(OutboxError) {
        let found = try batchRows(of: endpoint.id)
        endpoint.batches = found.compactMap { $0 }
        for index in endpoint.batches.indices where endpoint.batches[index].origin == .queue {
            let first = endpoint.batches[index].first
            if case .row(_, let time) = try oldestRow(from: first, through: first, feed: .engine) {
                endpoint.batches[index].firstTime = time
            }
        }
        let written = endpoint.formed
        // That row is there as long as the batch is, or the mark tells of it; anything else is damage.
        let newest = max(mark, written, try lastSeq())
        let through = endpoint.batches.map { $0.through > newest ? min($0.last, newest) : $0.through }.max() ?? 0
        let formed = max(written, through)
        if formed > written {
            endpoint.waiting -= try count(of: endpoint, after: written, through: min(formed, mark))
            endpoint.formed = formed
        }
        endpoint.waiting = max(0, endpoint.waiting + (try count(of: endpoint, after: max(mark, formed))))
        if found.count > endpoint.batches.count { try takeBack(&endpoint) }
    }

    /// A batch that cannot be read: what may have been its rows waits again, under other ids.
    private func takeBack(_ endpoint: inout Ledger.Endpoint) throws(OutboxError) {
        let oldest = try connection.optionalInteger(
            "SELECT min(first) FROM batch WHERE origin = 0 AND endpoint = \(endpoint.id)")
        endpoint.regeneratedThrough = max(endpoint.regeneratedThrough, endpoint.formed)
        endpoint.generation = endpoint.nextGeneration
        if let oldest { endpoint.formed = min(endpoint.formed, Ledger.clamped(oldest) - 1) }
        endpoint.formed = max(0, endpoint.formed)
        endpoint.batches.removeAll { $0.origin == .queue }
        endpoint.waiting = try count(of: endpoint, after: endpoint.formed)
        endpoint.isDamaged = true
    }

    func ahead(of endpoint: Int64) throws(OutboxError) -> SequenceRanges {
        let statement = try connection.prepare(
            "SELECT first, last FROM ahead WHERE endpoint = \(endpoint) ORDER BY first")
        var ranges = SequenceRanges()
        while try statement.step() {
            let first = Ledger.clamped(statement.integer(0))
            let last = Ledger.clamped(statement.integer(1))
            if first <= last { ranges.append(first...last) }
        }
        return ranges
    }

    func write(_ endpoint: Ledger.Endpoint) throws(OutboxError) {
        let statement = try connection.prepare(
            """
            INSERT OR REPLACE INTO endpoint (id, name, formed, unsettled, required, feed, removed_at, spare, state,
            fingerprint, regenerated_through, generation) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, 0)
            """)
        statement.bind(1, endpoint.id)
        statement.bind(2, text: endpoint.settings.name)
        statement.bind(3, endpoint.formed)
        statement.bind(4, Int64(endpoint.waiting))
        statement.bind(5, endpoint.settings.required ? 1 : 0)
        statement.bind(6, endpoint.settings.feed == .engine ? 1 : 0)
        statement.bind(7, endpoint.removedAt)
        statement.bind(8, endpoint.isSpare ? 1 : 0)
        _ = try statement.step()
        try writeState(endpoint)
    }

    /// All but cursor and counts, which are as of the mark.
    func writeState(_ endpoint: Ledger.Endpoint) throws(OutboxError) {
        setEndpoint.bind(1, endpoint.id)
        setEndpoint.bind(2, text: endpoint.state.word)
        setEndpoint.bind(3, text: endpoint.state.reason)
        setEndpoint.bind(4, endpoint.regeneratedThrough)
        setEndpoint.bind(5, Int64(endpoint.generation))
        setEndpoint.bind(6, endpoint.acceptedBefore ? 1 : 0)
        setEndpoint.bind(7, text: endpoint.fingerprint)
        setEndpoint.bind(8, text: endpoint.wanted?.fingerprint)
        setEndpoint.bind(9, endpoint.wanted?.boundThrough)
        _ = try setEndpoint.step()
        setEndpoint.reset()
    }
}
