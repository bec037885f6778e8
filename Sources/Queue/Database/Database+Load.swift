import Profiles
import WaypostCore

extension Database {
    struct Opened {
        var ledger: Ledger
        var uuid: [UInt8]
        /// Its uuid was made just now.
        var isNew: Bool
        var parts: PartStates
    }

    /// Reads what the ledger needs and reconciles the configured endpoints with the known ones.
    ///
    /// Counts are read as of the last mark and only the rows after it are counted, so a queue of a million rows opens
    /// as fast as an empty one.
    func load(endpoints configured: [EndpointSettings], newUUID: [UInt8]) throws(OutboxError) -> Opened {
        try connection.reusingStatements { () throws(OutboxError) in try read(configured, newUUID: newUUID) }
    }

    private func read(_ configured: [EndpointSettings], newUUID: [UInt8]) throws(OutboxError) -> Opened {
        if let problem = try damagedTables().first {
            throw OutboxError(.corrupt, path: connection.path, message: problem)
        }
        var ledger = Ledger()
        ledger.names = try names()
        let mark = try mark()
        ledger.lastSeq = try lastSeq()
        ledger.mark = min(mark, ledger.lastSeq)
        ledger.firstSeq = Ledger.clamped(try firstSeq() ?? ledger.lastSeq + 1)
        ledger.rows = try rowCount(mark: mark)

        var known = try endpointRows(mark: mark)
        return try transaction { () throws(OutboxError) in
            let changesBefore = connection.totalChanges
            let isNew = try blob(.uuid)?.count != 16
            let uuid = try loadUUID(new: newUUID)
            ledger.isSalvaging = SalvagePlan(bytes: try blob(.salvage) ?? []).isUnderWay
            for settings in configured {
                if let index = known.firstIndex(where: { $0.settings.name == settings.name }) {
                    ledger.endpoints.append(try reconcile(known.remove(at: index), with: settings, in: ledger))
                } else {
                    ledger.endpoints.append(try addEndpoint(settings, in: ledger))
                }
            }
            for endpoint in known { ledger.endpoints.append(try retire(endpoint, lastSeq: ledger.lastSeq)) }
            for index in ledger.endpoints.indices where ledger.endpoints[index].removedAt == nil {
                try checkBatches(of: &ledger.endpoints[index], in: ledger)
            }
            for index in ledger.endpoints.indices {
                ledger.endpoints[index].oldest = try oldestRow(of: ledger.endpoints[index])
            }
            // A full disk must not keep the queue from being opened, so nothing is written without need.
            if connection.totalChanges != changesBefore || ledger.lastSeq - mark >= Ledger.countInterval {
                try writeCounts(ledger)
                ledger.mark = ledger.lastSeq
            }
            return Opened(
                ledger: ledger, uuid: uuid, isNew: isNew, parts: try partStates())
        }
    }

    /// The small tables of which a row is gone, or not as it was written, in words.
    func damagedTables() throws(OutboxError) -> [String] {
        var problems: [String] = []
        for table in Schema.summed where try !table.isSound(in: connection) {
            problems.append("its table \(table.table) is damaged")
        }
        return problems
    }

    /// The number of the oldest row; nil without any.
    private func firstSeq() throws(OutboxError) -> Int64? {
        if let below {
            let first = below.read { (database) throws(OutboxError) in try database.firstSeq() }
            if let first = first ?? nil { return first }
        }
        return try rows.first
    }

    /// Counts and cursors as of now, and the mark that says so.
    func writeCounts(_ ledger: Ledger) throws(OutboxError) {
        try store(.mark, ledger.lastSeq)
        try store(.rows, Int64(ledger.rows))
        for endpoint in ledger.endpoints {
            try setCount.run(endpoint.id, endpoint.formed, Int64(endpoint.waiting))
        }
    }

    /// The oldest row after the cursor that is not finished for the endpoint.
    func oldestRow(of endpoint: Ledger.Endpoint) throws(OutboxError) -> Ledger.Oldest {
        guard endpoint.waiting > 0, !endpoint.isSpare else { return .none }
        var from = endpoint.formed + 1
        while true {
            let oldest = try oldestRow(
                from: from, through: endpoint.removedAt ?? Ledger.highestSeq, feed: endpoint.settings.feed)
            guard case .row(let seq, _) = oldest, let had = endpoint.ahead.range(of: seq) else { return oldest }
            from = had.upperBound + 1
        }
    }

    func names() throws(OutboxError) -> Record.Names {
        Record.Names(trackables: try table(.trackable), boots: try table(.boot), reasons: try table(.reason))
    }

    /// Of a damaged file: those that can be read, from both ends of each table.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    func readableNames(isPatient: Bool) throws(OutboxError) -> Record.Names {
        func table(_ summed: Schema.Summed) throws(OutboxError) -> Record.NameTable {
            var table = Record.NameTable(summed)
            for order in ["", " DESC"] {
                let isWhole = try unlessDamaged(isPatient) { () throws(OutboxError) in
                    let names = try connection.prepare("SELECT id, name FROM \(summed.table) ORDER BY id\(order)")
                    while try names.step() { table[names.integer(0)] = names.optionalText(1) }
                    return true
                }
                if isWhole == true { break }
            }
            return table
        }
        return Record.Names(trackables: try table(.trackable), boots: try table(.boot), reasons: try table(.reason))
    }

    func mark() throws(OutboxError) -> Int64 { try integer(.mark) }

    func integer(_ key: Schema.Key) throws(OutboxError) -> Int64 {
        try connection.integer("SELECT value FROM state WHERE id = ?", key.rawValue)
    }

    func rowCount(mark: Int64) throws(OutboxError) -> Int {
        let counted = Ledger.clamped(try integer(.rows))
        return Int(counted) + (try rows.count(RowRange(mark + 1, .max)))
    }

    /// Removes boots that no row refers to any more, which reads all rows.
    /// - Returns: those that remain.
    func pruneBoots() throws(OutboxError) -> Record.NameTable {
        var used: Set<Int64> = []
        try rows.eachBackwards(RowRange(0, .max)) { row in
            if let boot = row[.boot] { used.insert(boot) }
            return true
        }
        try connection.execute(
            """
            DELETE FROM boot WHERE id NOT IN (SELECT boot FROM quarantine WHERE boot NOT NULL)
            AND id NOT IN (\(used.map { "\($0)" }.joined(separator: ", ")))
            """)
        return try table(.boot)
    }

    private func table(_ summed: Schema.Summed) throws(OutboxError) -> Record.NameTable {
        var table = Record.NameTable(summed)
        for (number, name) in try connection.rows(
            "SELECT id, name FROM \(summed.table)", read: { ($0.integer(0), $0.optionalText(1)) })
        {
            table[number] = name
        }
        return table
    }

    /// The number by which rows refer to a name; a new name gets one.
    func number(of name: String?, in known: inout Record.NameTable) throws(OutboxError) -> Int64? {
        guard let name else { return nil }
        if let number = known[name] { return number }
        let number =
            try connection.rows(
                "INSERT INTO \(known.table.table) (name) VALUES (?) RETURNING id", [name], read: { $0.integer(0) }
            ).first ?? 0
        try connection.run(known.table.update(["name"]), number, name)
        known[number] = name
        return number
    }

    func blob(_ key: Schema.Key) throws(OutboxError) -> [UInt8]? {
        let statement = try connection.prepare("SELECT value FROM state WHERE id = ?")
        statement.bind([key.rawValue])
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

    func count(of feed: EndpointSettings.Feed, from first: Int64, through last: Int64) throws(OutboxError) -> Int {
        guard first <= last else { return 0 }
        var count = 0
        if let below, first <= below.last {
            // What cannot be read cannot be counted either: it is counted again when the disk is back.
            count =
                below.read { (database) throws(OutboxError) in
                    try database.count(of: feed, from: first, through: min(last, below.last))
                } ?? 0
        }
        let from = max(first, (below?.last ?? -1) + 1)
        return count + (try rows.count(RowRange(from, last, isPublishedOnly: feed == .network)))
    }

    /// Rows after a number, the cursor of an endpoint or one beyond it, that are not finished for it.
    func waitingRows(
        of endpoint: Ledger.Endpoint, after start: Int64, limit: Int, names: Record.Names
    ) throws(OutboxError) -> [QueuedLocation] {
        var rows: [QueuedLocation] = []
        var from = start + 1
        while rows.count < limit {
            let wanted = limit - rows.count
            let found = try self.rows(
                from: from, through: Ledger.highestSeq, feed: endpoint.settings.feed, limit: wanted, names: names)
            let unsent = endpoint.ahead.isEmpty ? found : found.filter { !endpoint.ahead.contains($0.seq) }
            // Not a copy where one statement finds all.
            rows = rows.isEmpty ? unsent : rows + unsent
            guard let last = found.last, found.count == wanted else { break }
            from = (endpoint.ahead.range(of: last.seq)?.upperBound ?? last.seq) + 1
        }
        return rows
    }

    /// The newest number that was ever given.
    func lastSeq() throws(OutboxError) -> Int64 {
        let cursors = try connection.integer("SELECT max(formed) FROM endpoint")
        let newest = try rows.last ?? 0
        return Ledger.clamped(max(try mark(), cursors, newest, below?.last ?? 0))
    }

    /// Copies the rows of a table of the same form.
    func copy(_ table: String, from other: Database) throws(OutboxError) {
        let select = try other.connection.prepare("SELECT * FROM \(table)")
        let marks = [String](repeating: "?", count: Int(select.columnCount)).joined(separator: ", ")
        let insert = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (\(marks))")
        while try select.step() {
            for column in 0..<select.columnCount { insert.bind(column + 1, valueOf: column, in: select) }
            try insert.run()
        }
    }

    /// Rows that an endpoint wants and has not had.
    func count(
        of endpoint: Ledger.Endpoint, after seq: Int64, through last: Int64 = Ledger.highestSeq
    ) throws(OutboxError) -> Int {
        let last = min(last, endpoint.removedAt ?? .max)
        guard seq < last, !endpoint.isSpare else { return 0 }
        var rows = try count(of: endpoint.settings.feed, from: seq + 1, through: last)
        for part in endpoint.ahead.parts(within: seq + 1...last) {
            rows -= try count(of: endpoint.settings.feed, from: part.lowerBound, through: part.upperBound)
        }
        return rows
    }
}
