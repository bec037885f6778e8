import Delivery
import Positioning

extension Database {
    struct Opened {
        var ledger: Ledger
        var uuid: [UInt8]
        var trackerState: [UInt8]?
        var sourceState: [UInt8]?
    }

    /// Reads what the ledger needs and settles how the configured endpoints stand to the known ones.
    ///
    /// Counts are read as of the last mark and only the rows after it are counted, so a million waiting rows open as
    /// fast as none.
    func load(endpoints configured: [EndpointSettings], newUUID: [UInt8]) throws(OutboxError) -> Opened {
        var ledger = Ledger()
        ledger.names = try names()
        let mark = try mark()
        let cursors = try connection.integer("SELECT max(acked) FROM endpoint") ?? 0
        let newest = try connection.integer("SELECT max(seq) FROM location") ?? 0
        ledger.mark = mark
        ledger.lastSeq = max(mark, cursors, newest)
        ledger.firstSeq = try connection.integer("SELECT min(seq) FROM location") ?? ledger.lastSeq + 1
        ledger.rows = try rowCount(mark: mark)

        var known = try endpointRows(mark: mark)
        try begin.run()
        do throws(OutboxError) {
            let changesBefore = connection.totalChanges
            let uuid = try loadUUID(new: newUUID)
            for settings in configured {
                if let index = known.firstIndex(where: { $0.settings.name == settings.name }) {
                    ledger.endpoints.append(try reconcile(known.remove(at: index), with: settings, in: ledger))
                } else {
                    ledger.endpoints.append(try addEndpoint(settings, in: ledger))
                }
            }
            for endpoint in known { ledger.endpoints.append(try retire(endpoint, lastSeq: ledger.lastSeq)) }
            for index in ledger.endpoints.indices {
                ledger.endpoints[index].oldest = try oldestRow(of: ledger.endpoints[index])
                ledger.endpoints[index].batch = try checkedBatch(of: &ledger.endpoints[index])
            }
            // A full disk must not keep the queue from being opened, so nothing is written without need.
            if connection.totalChanges != changesBefore || ledger.lastSeq - mark >= Ledger.countInterval {
                try writeCounts(ledger)
                ledger.mark = ledger.lastSeq
            }
            try commit.run()
            return Opened(
                ledger: ledger, uuid: uuid,
                trackerState: try blob(.tracker), sourceState: try blob(.file))
        } catch {
            if connection.isInTransaction { try? rollback.run() }
            throw error
        }
    }

    /// Counts as of now, and the mark that says so.
    func writeCounts(_ ledger: Ledger) throws(OutboxError) {
        try store(.mark, ledger.lastSeq)
        try store(.rows, Int64(ledger.rows))
        for endpoint in ledger.endpoints { try setCount.run(endpoint.id, Int64(endpoint.unsettled)) }
    }

    func oldestRow(of endpoint: Ledger.Endpoint) throws(OutboxError) -> Ledger.Oldest {
        guard endpoint.unsettled > 0 else { return .none }
        return try oldestRow(
            from: endpoint.acked + 1, through: endpoint.removedAt ?? .max, feed: endpoint.settings.feed)
    }

    func names() throws(OutboxError) -> Record.Names {
        Record.Names(trackables: try table("trackable"), boots: try table("boot"), reasons: try table("reason"))
    }

    func mark() throws(OutboxError) -> Int64 {
        try connection.integer("SELECT value FROM state WHERE id = \(Schema.Key.mark.rawValue)") ?? 0
    }

    func forgottenGeneration() throws(OutboxError) -> Int64 {
        try connection.integer("SELECT value FROM state WHERE id = \(Schema.Key.generation.rawValue)") ?? 0
    }

    func rowCount(mark: Int64) throws(OutboxError) -> Int {
        let counted = try connection.integer("SELECT value FROM state WHERE id = \(Schema.Key.rows.rawValue)") ?? 0
        let newer = try connection.integer("SELECT count(*) FROM location WHERE seq > \(mark)") ?? 0
        return Int(clamping: counted &+ newer)
    }

    private func table(_ name: String) throws(OutboxError) -> Record.NameTable {
        let statement = try connection.prepare("SELECT id, name FROM \(name)")
        var entries = Record.NameTable()
        while try statement.step() { entries[statement.integer(0) ?? 0] = statement.text(1) }
        return entries
    }

    func blob(_ key: Schema.Key) throws(OutboxError) -> [UInt8]? {
        let statement = try connection.prepare("SELECT value FROM state WHERE id = \(key.rawValue)")
        return try statement.step() ? statement.blob(0) : nil
    }

    private func loadUUID(new: [UInt8]) throws(OutboxError) -> [UInt8] {
        if let uuid = try blob(.uuid), uuid.count == 16 { return uuid }
        guard new.count == 16 else {
            throw OutboxError(.refused, path: connection.path, message: "a queue uuid has 16 bytes")
        }
        try store(.uuid, new)
        return new
    }

    /// The endpoints on disk with their counts brought up to date, their settings only as far as the disk knows them.
    func endpointRows(mark: Int64) throws(OutboxError) -> [Ledger.Endpoint] {
        let statement = try connection.prepare(
            """
            SELECT id, name, fingerprint, acked, unsettled, required, feed, state, reason, removed_at,
            regenerated_through, generation FROM endpoint ORDER BY id
            """)
        var endpoints: [Ledger.Endpoint] = []
        while try statement.step() {
            let settings = EndpointSettings(
                name: statement.text(1) ?? "", baseURL: "", device: "",
                feed: statement.integer(6) == 1 ? .engine : .network, required: statement.integer(5) != 0)
            endpoints.append(
                Ledger.Endpoint(
                    id: statement.integer(0) ?? 0, settings: settings, fingerprint: statement.text(2) ?? "",
                    acked: statement.integer(3) ?? 0, unsettled: Int(clamping: statement.integer(4) ?? 0),
                    state: EndpointState(word: statement.text(7) ?? "", reason: statement.text(8)) ?? .active,
                    removedAt: statement.integer(9), regeneratedThrough: statement.integer(10) ?? 0,
                    generation: Int(clamping: statement.integer(11) ?? 1), oldest: .unknown))
        }
        for index in endpoints.indices {
            let endpoint = endpoints[index]
            endpoints[index].unsettled += try count(of: endpoint, after: max(mark, endpoint.acked))
            endpoints[index].batch = try batchRow(of: endpoint.id)
        }
        return endpoints
    }

    /// Rows that an endpoint wants.
    func count(
        of endpoint: Ledger.Endpoint, after seq: Int64, through last: Int64 = .max
    ) throws(OutboxError) -> Int {
        let feed = endpoint.settings.feed == .engine ? "" : " AND published = 1"
        let last = min(last, endpoint.removedAt ?? .max)
        return Int(
            clamping: try connection.integer(
                "SELECT count(*) FROM location WHERE seq > \(seq) AND seq <= \(last)\(feed)") ?? 0)
    }

    private func batchRow(of endpoint: Int64) throws(OutboxError) -> Ledger.BatchRow? {
        let statement = try connection.prepare(
            """
            SELECT first, last, rows, feed, sent_ms, newest_seq, generation, rendering FROM batch
            WHERE endpoint = \(endpoint) ORDER BY first LIMIT 1
            """)
        guard try statement.step() else { return nil }
        return Ledger.BatchRow(
            first: statement.integer(0) ?? 0, last: statement.integer(1) ?? 0,
            rows: Int(clamping: statement.integer(2) ?? 0), feed: statement.integer(3) == 1 ? .engine : .network,
            sentMs: statement.integer(4), newestSeq: statement.integer(5) ?? 0,
            generation: Int(clamping: statement.integer(6) ?? 1), rendering: statement.text(7) ?? "")
    }

    private func reconcile(
        _ known: Ledger.Endpoint, with settings: EndpointSettings, in ledger: Ledger
    ) throws(OutboxError) -> Ledger.Endpoint {
        var endpoint = known
        endpoint.settings = settings
        endpoint.removedAt = nil
        if known.removedAt != nil || known.settings.feed != settings.feed {
            endpoint.unsettled = try count(of: endpoint, after: endpoint.acked)
        }
        if endpoint.fingerprint == settings.fingerprint || endpoint.unsettled == 0 {
            endpoint.fingerprint = settings.fingerprint
            if endpoint.state == .rebind || known.fingerprint != settings.fingerprint { endpoint.state = .active }
        } else {
            endpoint.state = .rebind
        }
        if known.removedAt != nil || known.settings.feed != settings.feed || known.fingerprint != endpoint.fingerprint
            || known.state != endpoint.state || known.settings.required != settings.required
        {
            try write(endpoint)
        }
        return endpoint
    }

    private func addEndpoint(
        _ settings: EndpointSettings, in ledger: Ledger
    ) throws(OutboxError) -> Ledger.Endpoint {
        // Its name may be that of a forgotten one, which had batches of these rows.
        let forgotten = Int(clamping: try forgottenGeneration())
        var endpoint = Ledger.Endpoint(
            id: (try connection.integer("SELECT max(id) FROM endpoint") ?? 0) + 1, settings: settings,
            fingerprint: settings.fingerprint, acked: settings.backfill ? ledger.firstSeq - 1 : ledger.lastSeq,
            unsettled: 0, state: .active, removedAt: nil, regeneratedThrough: forgotten > 0 ? ledger.lastSeq : 0,
            generation: forgotten + 1, oldest: .none)
        if settings.backfill { endpoint.unsettled = try count(of: endpoint, after: endpoint.acked) }
        try write(endpoint)
        return endpoint
    }

    /// An endpoint that is no longer configured. What waits for a required one is kept; the others claim nothing.
    private func retire(_ known: Ledger.Endpoint, lastSeq: Int64) throws(OutboxError) -> Ledger.Endpoint {
        guard known.removedAt == nil else { return known }
        var endpoint = known
        endpoint.removedAt = lastSeq
        if !endpoint.settings.required, let batch = endpoint.batch {
            endpoint.release(batch)
            try deleteBatch.run(endpoint.id)
        }
        try write(endpoint)
        return endpoint
    }

    /// The batch in flight, as it may be sent: under a new generation when it would be rendered otherwise now, and not
    /// at all when rows of it are missing.
    private func checkedBatch(of endpoint: inout Ledger.Endpoint) throws(OutboxError) -> Ledger.BatchRow? {
        guard var batch = endpoint.batch, endpoint.removedAt == nil else { return endpoint.batch }
        let feed = batch.feed == .engine ? "" : " AND published = 1"
        let found = try connection.integer(
            "SELECT count(*) FROM location WHERE seq BETWEEN \(batch.first) AND \(batch.last)\(feed)")
        if found != Int64(batch.rows) || batch.feed != endpoint.settings.feed {
            endpoint.release(batch)
            try deleteBatch.run(endpoint.id)
            try write(endpoint)
            return nil
        }
        if batch.rendering != BatchEncoder.rendering {
            batch.generation += 1
            batch.rendering = BatchEncoder.rendering
            try deleteBatch.run(endpoint.id)
            try write(batch, endpoint: endpoint.id)
        }
        return batch
    }

    private func write(_ endpoint: Ledger.Endpoint) throws(OutboxError) {
        let statement = try connection.prepare(
            "INSERT OR REPLACE INTO endpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        statement.bind(1, endpoint.id)
        statement.bind(2, text: endpoint.settings.name)
        statement.bind(3, text: endpoint.fingerprint)
        statement.bind(4, endpoint.acked)
        statement.bind(5, Int64(endpoint.unsettled))
        statement.bind(6, endpoint.settings.required ? 1 : 0)
        statement.bind(7, endpoint.settings.feed == .engine ? 1 : 0)
        statement.bind(8, text: endpoint.state.word)
        statement.bind(9, text: endpoint.state.reason)
        statement.bind(10, endpoint.removedAt)
        statement.bind(11, endpoint.regeneratedThrough)
        statement.bind(12, Int64(endpoint.generation))
        _ = try statement.step()
    }

    func write(_ batch: Ledger.BatchRow, endpoint: Int64) throws(OutboxError) {
        insertBatch.bind([
            endpoint, batch.first, batch.last, Int64(batch.rows), batch.feed == .engine ? 1 : 0, batch.sentMs,
            batch.newestSeq, Int64(batch.generation),
        ])
        insertBatch.bind(9, text: batch.rendering)
        _ = try insertBatch.step()
        insertBatch.reset()
    }
}

extension Ledger.Endpoint {
    /// Dissolves a batch: whatever is formed from its rows later has another id.
    mutating func release(_ batch: Ledger.BatchRow) {
        regeneratedThrough = max(regeneratedThrough, batch.last)
        generation = max(generation, batch.generation) + 1
        self.batch = nil
    }
}
