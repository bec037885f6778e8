extension OutboxReader {
    /// Rows in quarantine in the order of their ids.
    ///
    /// - Parameters:
    ///   - endpoint: nil = of all.
    ///   - after: the id of the last one that was read; 0 = from the beginning.
    package func quarantined(
        endpoint: String? = nil, after id: Int64 = 0, limit: Int
    ) throws(OutboxError) -> [QuarantinedLocation] {
        try snapshot([]) { (database) throws(OutboxError) in
            try database.quarantined(endpoint: endpoint, after: id, limit: limit)
        }
    }
}

extension Database {
    /// Records in the order of their ids.
    fileprivate func quarantined(
        endpoint: String?, after id: Int64, limit: Int
    ) throws(OutboxError) -> [QuarantinedLocation] {
        let names = try names()
        return try connection.rows(
            """
            SELECT \(Self.columns), owner FROM quarantine
            JOIN (SELECT id AS number, name AS owner FROM endpoint) ON number = endpoint
            WHERE id > ?1 AND (?3 IS NULL OR owner = ?3) ORDER BY id LIMIT ?2
            """, [id, max(0, limit), endpoint]
        ) { row in
            QuarantinedLocation(
                id: row.integer(31), endpoint: row.text(43), row: Self.row(row, names: names),
                refusal: Self.refusal(row), assetID: row.optionalText(37), isRetried: row.integer(38) != 0)
        }
    }
}
