import Profiles
import WaypostCore

extension Database {
    /// The endpoints on disk with their counts brought up to date, their settings only as far as the disk knows them.
    func endpointRows(mark: Int64) throws(OutboxError) -> [Ledger.Endpoint] {
        var endpoints = try knownEndpoints()
        for index in endpoints.indices {
            endpoints[index].ahead = try ahead(of: endpoints[index].id)
            endpoints[index].quarantine = try quarantineCount(of: endpoints[index].id)
            try readBatches(of: &endpoints[index], mark: mark)
        }
        return endpoints
    }

    /// The endpoints as they are written, without batches and what came since the mark.
    func knownEndpoints() throws(OutboxError) -> [Ledger.Endpoint] {
        try connection.rows(
            """
            SELECT id, name, fingerprint, formed, unsettled, required, feed, state, reason, removed_at,
            regenerated_through, generation, accepted, spare, wanted_fingerprint, bound_through
            FROM endpoint ORDER BY id
            """
        ) { Self.endpoint($0) }
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
    private func readBatches(of endpoint: inout Ledger.Endpoint, mark: Int64) throws(OutboxError) {
        endpoint.batches = try batchRows(of: endpoint.id)
        for index in endpoint.batches.indices where endpoint.batches[index].origin == .queue {
            let first = endpoint.batches[index].first
            if case .row(_, let time) = try oldestRow(from: first, through: first, feed: .engine) {
                endpoint.batches[index].firstTime = time
            }
        }
        let written = endpoint.formed
        // That row is there as long as the batch is, or at the mark or before it; anything else is damage.
        let newest = max(mark, written, try lastSeq())
        let through = endpoint.batches.map { $0.through > newest ? min($0.last, newest) : $0.through }.max() ?? 0
        let formed = max(written, through)
        if formed > written {
            endpoint.waiting -= try count(of: endpoint, after: written, through: min(formed, mark))
            endpoint.formed = formed
        }
        endpoint.waiting = max(0, endpoint.waiting + (try count(of: endpoint, after: max(mark, formed))))
    }

    func ahead(of endpoint: Int64) throws(OutboxError) -> SequenceRanges {
        var ranges = SequenceRanges()
        let select = "SELECT first, last FROM ahead WHERE endpoint = ? ORDER BY first"
        for (first, last) in try connection.rows(
            select, [endpoint], read: { (Ledger.clamped($0.integer(0)), Ledger.clamped($0.integer(1))) })
        where first <= last {
            ranges.append(first...last)
        }
        return ranges
    }

    func writeAhead(_ ranges: some Sequence<ClosedRange<Int64>>, of endpoint: Int64) throws(OutboxError) {
        let insert = try connection.prepare(Schema.Summed.ahead.insert)
        for range in ranges { try insert.run(endpoint, range.lowerBound, range.upperBound) }
    }

    /// Replaces what an endpoint has had beyond its cursor.
    func rewriteAhead(of endpoint: Ledger.Endpoint) throws(OutboxError) {
        try connection.run("DELETE FROM ahead WHERE endpoint = ?", endpoint.id)
        try writeAhead(endpoint.ahead.ranges, of: endpoint.id)
    }

    func write(_ endpoint: Ledger.Endpoint) throws(OutboxError) {
        let insert = try connection.prepare(
            """
            INSERT OR REPLACE INTO endpoint (id, name, formed, unsettled, required, feed, removed_at, spare, state,
            fingerprint, regenerated_through, generation) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, 0)
            """)
        try insert.run(
            endpoint.id, endpoint.settings.name, endpoint.formed, endpoint.waiting, endpoint.settings.required,
            endpoint.settings.feed == .engine, endpoint.removedAt, endpoint.isSpare)
        try writeState(endpoint)
    }

    /// All but cursor and counts, which are as of the mark.
    func writeState(_ endpoint: Ledger.Endpoint) throws(OutboxError) {
        try setEndpoint.run(
            endpoint.id, endpoint.state.word, endpoint.state.reason, endpoint.regeneratedThrough, endpoint.generation,
            endpoint.acceptedBefore, endpoint.fingerprint, endpoint.wanted?.fingerprint, endpoint.wanted?.boundThrough)
    }
}
