extension OutboxReader {
    /// Rows in quarantine in the order of their ids.
    ///
    /// - Parameters:
    ///   - endpoint: nil = of all.
    ///   - after: the id of the last one that was read; 0 = from the beginning.
    public func quarantined(
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
        let statement = try connection.prepare(
            """
            SELECT \(Self.columns), owner FROM quarantine
            JOIN (SELECT id AS number, name AS owner FROM endpoint) ON number = endpoint
            WHERE id > ?1 AND (?3 IS NULL OR owner = ?3) ORDER BY id LIMIT ?2
            """)
        statement.bind([id, Int64(max(0, limit))])
        statement.bind(3, text: endpoint)
        var records: [QuarantinedLocation] = []
        while try statement.step() {
            records.append(
                QuarantinedLocation(
                    id: statement.integer(31), endpoint: statement.text(39),
                    row: Self.row(statement, names: names),
                    refusal: Self.refusal(statement),
                    assetID: statement.optionalText(37), isRetried: statement.integer(38) != 0))
        }
        return records
    }
}
