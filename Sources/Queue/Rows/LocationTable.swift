/// The table of locations: rows that versions before the fourth stored, one in each row of the database.
///
/// They drain from where they are; nothing is added. It offers what `SegmentTable` does.
final class LocationTable {
    private let connection: Connection
    private let ascending, descending, count: Statement

    init(_ connection: Connection, _ statement: (String) throws(OutboxError) -> Statement) throws(OutboxError) {
        self.connection = connection
        let range = "FROM location WHERE seq BETWEEN ? AND ? AND (published = 1 OR ?)"
        ascending = try statement("SELECT seq, \(StoredRow.columns) \(range) ORDER BY seq")
        descending = try statement("SELECT seq, \(StoredRow.columns) \(range) ORDER BY seq DESC")
        count = try statement("SELECT count(*) \(range)")
    }

    func read(_ range: RowRange, limit: Int, into found: inout [StoredRow]) throws(OutboxError) {
        ascending.bind(range.parameters)
        defer { ascending.reset() }
        var next = range.first
        while found.count < limit, try ascending.step() {
            let row = StoredRow(ascending)
            guard row.seq >= next else {
                throw OutboxError(
                    .corrupt, path: connection.path, message: "location \(row.seq) in the place of \(next)")
            }
            next = row.seq + 1
            found.append(row)
        }
    }

    /// - Returns: whether `work` never returned false.
    func eachBackwards(_ range: RowRange, _ work: (StoredRow) -> Bool) throws(OutboxError) -> Bool {
        descending.bind(range.parameters)
        defer { descending.reset() }
        while try descending.step() { guard work(StoredRow(descending)) else { return false } }
        return true
    }

    func count(_ range: RowRange) throws(OutboxError) -> Int {
        count.bind(range.parameters)
        defer { count.reset() }
        return try count.step() ? Int(Ledger.clamped(count.integer(0))) : 0
    }

    func seq(at place: Int, of range: RowRange) throws(OutboxError) -> Int64? {
        try connection.rows(
            "SELECT seq FROM location WHERE seq BETWEEN ? AND ? AND (published = 1 OR ?) ORDER BY seq LIMIT 1 OFFSET ?",
            range.parameters + [Int64(place)]
        ) { $0.integer(0) }.first
    }

    var first: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT min(seq) FROM location") }
    }

    var last: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT max(seq) FROM location") }
    }

    func removeThrough(_ seq: Int64) throws(OutboxError) -> Int {
        try connection.run("DELETE FROM location WHERE seq <= ?", seq)
        return connection.changes
    }

    func change(_ range: RowRange, _ work: (StoredRow) -> RowChange) throws(OutboxError) {
        var rows: [StoredRow] = []
        try read(range, limit: .max, into: &rows)
        let delete = try connection.prepare("DELETE FROM location WHERE seq = ?")
        let marks = String(repeating: ", ?", count: StoredRow.columnCount)
        let replace = try connection.prepare(
            "INSERT OR REPLACE INTO location (seq, \(StoredRow.columns)) VALUES (?\(marks))")
        for row in rows {
            switch work(row) {
            case .none: continue
            case .removal: try delete.run(row.seq)
            case .replacement(let new):
                new.bind(to: replace, from: 1)
                _ = try replace.step()
                replace.reset()
            }
        }
    }
}
