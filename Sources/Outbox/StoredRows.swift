import Delivery

/// A look at what waits for an endpoint, while the queue cannot be written.
public struct StoredQuery: Hashable, Sendable {
    /// Whose cursor.
    public var endpoint: String
    public var feed: EndpointSettings.Feed
    /// Only rows behind this one, and none behind `through`.
    public var after: Int64
    public var through: Int64
    /// Most rows.
    public var limit: Int

    public init(endpoint: String, feed: EndpointSettings.Feed, after: Int64, through: Int64, limit: Int) {
        self.endpoint = endpoint
        self.feed = feed
        self.after = after
        self.through = through
        self.limit = limit
    }
}

/// Rows on disk that are in no batch.
public struct StoredRows: Sendable {
    /// Oldest first.
    public var rows: [QueuedLocation]
    /// No row waits behind these.
    public var isAll: Bool
    /// Rows that wait in all, as in `EndpointDepth.waiting`.
    public var waiting: Int
    /// Ids of the batches that were formed, and not settled.
    public var inFlight: [String]
    /// Uuid of the queue, 16 bytes.
    public var outbox: [UInt8]
}

extension Database {
    /// - Returns: nil when the queue does not know the endpoint, or holds its rows back for another binding.
    func stored(_ query: StoredQuery) throws(OutboxError) -> StoredRows? {
        try beginReading.run()
        defer { try? rollback.run() }
        let known = try endpointRows(mark: try mark()).first {
            $0.settings.name == query.endpoint && $0.removedAt == nil
        }
        guard let known, known.state != .rebind, !known.isDamaged else { return nil }
        let names = try names()
        let limit = max(0, min(query.limit, BatchRow.longest))
        var found: [QueuedLocation] = []
        var isAll = false
        var from = max(known.formed, query.after) + 1
        while found.count <= limit, !isAll {
            let wanted = limit + 1 - found.count
            let rows = try rows(from: from, through: query.through, feed: query.feed, limit: wanted, names: names)
            found += rows.filter { !known.ahead.contains($0.seq) }
            isAll = rows.count < wanted
            if let last = rows.last { from = (known.ahead.range(of: last.seq)?.upperBound ?? last.seq) + 1 }
        }
        if found.count > limit { found.removeLast(found.count - limit) }
        let outbox = try blob(.uuid) ?? []
        let name = String(hexOf: outbox.prefix(4))
        let inFlight = known.batches.map { $0.id(outbox: name, endpoint: query.endpoint) }
        return StoredRows(
            rows: found, isAll: isAll, waiting: known.waiting + known.quarantine.retrying, inFlight: inFlight,
            outbox: outbox)
    }
}

/// Rows on disk that an endpoint has had although no batch with them was ever formed.
public struct HadRows: Hashable, Sendable {
    public var endpoint: String
    /// Sequence numbers, in any order.
    public var ranges: [ClosedRange<Int64>]

    public init(endpoint: String, ranges: [ClosedRange<Int64>]) {
        self.endpoint = endpoint
        self.ranges = ranges
    }
}

extension Transaction {
    /// They are passed over when the next batches are formed.
    mutating func note(_ had: HadRows) throws(OutboxError) {
        guard let index = ledger.index(of: had.endpoint) else { return }
        let endpoint = ledger.endpoints[index]
        let news: [ClosedRange<Int64>] = had.ranges.compactMap { range in
            let (first, last) = (max(range.lowerBound, endpoint.formed + 1), min(range.upperBound, ledger.lastSeq))
            return first <= last ? first...last : nil
        }
        guard !news.isEmpty else { return }
        ledger.endpoints[index].ahead.formUnion(news)
        try database.connection.execute("DELETE FROM ahead WHERE endpoint = \(endpoint.id)")
        let insert = try database.connection.prepare("INSERT INTO ahead VALUES (?, ?, ?)")
        for range in ledger.endpoints[index].ahead.ranges {
            try insert.run(endpoint.id, range.lowerBound, range.upperBound)
        }
        ledger.endpoints[index].waiting = try database.count(of: ledger.endpoints[index], after: endpoint.formed)
        ledger.endpoints[index].oldest = .unknown
        ledger.droppableFrom = 0
        needsCounts = true
    }
}
