import Profiles

extension OutboxReader {
    /// The oldest rows that an endpoint has not got yet.
    package struct Waiting: Sendable {
        /// Oldest first.
        package var rows: [QueuedLocation]
        /// No row waits after these.
        package var isAll: Bool
        /// Uuid of the queue, 16 bytes; empty when nothing was ever stored.
        package var outbox: [UInt8]
    }

    /// - Parameter limit: most rows.
    package func waiting(
        for endpoint: String, feed: EndpointSettings.Feed, limit: Int
    ) throws(OutboxError) -> Waiting {
        try snapshot(Waiting(rows: [], isAll: true, outbox: [])) { (database) throws(OutboxError) in
            let known = try database.endpointRows(mark: try database.mark()).first { $0.settings.name == endpoint }
            let limit = max(0, min(limit, 100_000))
            var rows = try database.rows(
                from: (known?.ackedThrough ?? 0) + 1, through: .max, feed: feed, limit: limit + 1,
                names: database.names())
            let isAll = rows.count <= limit
            if !isAll { rows.removeLast() }
            return Waiting(rows: rows, isAll: isAll, outbox: try database.blob(.uuid) ?? [])
        }
    }
}
