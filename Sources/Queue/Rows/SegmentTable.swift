import WaypostCore

/// The rows of a queue, in the order of their numbers: consecutive rows, which one commit stored, are one row of the database, a
/// segment.
///
/// Reading back and deleting cost one row of the database for many locations, and what is the same in all of them is stored
/// once. Numbers rise from segment to segment. To change a row in the middle its segment is written again.
final class SegmentTable {
    private let connection: Connection
    private let insert, delete, deleteThrough, ascending, descending, sums: Statement
    private var recent = RecentSegments()

    init(_ connection: Connection, _ statement: (String) throws(OutboxError) -> Statement) throws(OutboxError) {
        self.connection = connection
        insert = try statement("INSERT INTO segment (last, first, rows, published, data) VALUES (?, ?, ?, ?, ?)")
        delete = try statement("DELETE FROM segment WHERE last = ?")
        deleteThrough = try statement("DELETE FROM segment WHERE last <= ?")
        let columns = "SELECT last, first, rows, published, data FROM segment"
        ascending = try statement("\(columns) WHERE last >= ? ORDER BY last")
        descending = try statement("\(columns) WHERE last <= ? ORDER BY last DESC")
        // Whatever a damaged file says, a segment has no more rows than one can have.
        func sum(_ column: String) -> String { "sum(max(0, min(\(column), \(SegmentCoding.rowsMax))))" }
        sums = try statement(
            "SELECT \(sum("rows")), \(sum("published")) FROM segment WHERE last BETWEEN ? AND ? AND first >= ?")
    }

    /// - Parameter rows: with rising numbers after all that are there.
    func append(_ rows: [StoredRow]) throws(OutboxError) {
        var rest = rows[...]
        while !rest.isEmpty {
            let (bytes, count) = SegmentCoding.encode(rest)
            try store(rest.prefix(count), bytes)
            rest = rest.dropFirst(count)
        }
    }

    private func store(_ rows: ArraySlice<StoredRow>, _ bytes: [UInt8]) throws(OutboxError) {
        guard !rows.isEmpty else { return }
        let last = rows[rows.endIndex - 1].seq
        invariant(zip(rows, rows.dropFirst()).allSatisfy { $0.seq < $1.seq }, "rows of a segment are in no order")
        invariant(rows.count <= SegmentCoding.rowsMax, "\(rows.count) rows in a segment")
        invariant(
            !Invariants.areChecked
                || bytes.withUnsafeBytes {
                    SegmentCoding.decode($0, first: rows[rows.startIndex].seq, rows: rows.count)
                }?.map(\.seq) == rows.map(\.seq), "a segment does not decode to its rows")
        try insert.run(last, rows[rows.startIndex].seq, rows.count, rows.publishedCount, bytes)
        recent.keep(Array(rows), bytes.withUnsafeBytes(SegmentCoding.checksum(of:)))
    }

    /// The rows of the segment that a statement has found.
    private func rows(_ statement: Statement) throws(OutboxError) -> [StoredRow] {
        if let rows = decoded(statement) { return rows }
        let last = statement.integer(0)
        statement.reset()
        throw damage("segment \(last) is damaged")
    }

    /// - Parameter looksAtBytes: also at those of a segment whose rows are in memory.
    /// - Returns: nil = they are not what its columns say.
    private func decoded(_ statement: Statement, looksAtBytes: Bool = false) -> [StoredRow]? {
        let (last, first) = (statement.integer(0), statement.integer(1))
        let count = Int(clamping: statement.integer(2))
        let checksum = statement.withBytes(4, SegmentCoding.checksum(of:))
        let kept = looksAtBytes ? nil : recent.rows(through: last, count, checksum)
        guard let rows = kept ?? statement.withBytes(4, { SegmentCoding.decode($0, first: first, rows: count) }),
            rows[count - 1].seq == last, rows[0].seq == first, rows.publishedCount == statement.integer(3)
        else { return nil }
        if kept == nil { recent.keep(rows, checksum) }
        return rows
    }

    /// Calls `work` with the rows of each segment that may have rows of a range, oldest first, until it returns false.
    private func eachSegment(
        from first: Int64, through last: Int64, _ work: ([StoredRow]) throws(OutboxError) -> Bool
    ) throws(OutboxError) {
        ascending.bind(1, first)
        defer { ascending.reset() }
        var before = Int64.min
        while try ascending.step() {
            // Where it begins is not believed before its checksum: what follows would be left out.
            let rows = try rows(ascending)
            guard rows[0].seq > before, rows[rows.count - 1].seq >= first else {
                throw damage("segment \(rows[0].seq) in the place of another")
            }
            before = rows[rows.count - 1].seq
            guard rows[0].seq <= last, try work(rows) else { return }
        }
    }

    func damage(_ what: String) -> OutboxError { OutboxError(.corrupt, path: connection.path, message: what) }

    /// The oldest rows of a range, oldest first.
    func rows(_ range: RowRange, limit: Int) throws(OutboxError) -> [StoredRow] {
        var found: [StoredRow] = []
        guard limit > 0 else { return found }
        // An array that grows leaves its former places as holes in memory.
        found.reserveCapacity(min(limit, 1024))
        try eachSegment(from: range.first, through: range.last) { (rows) throws(OutboxError) in
            // By index: a row that is iterated over is copied.
            for index in rows.indices where range.contains(rows[index]) {
                found.append(rows[index])
                if found.count == limit { return false }
            }
            return true
        }
        return found
    }

    /// The newest rows of a range, newest first.
    func newest(_ range: RowRange, limit: Int) throws(OutboxError) -> [StoredRow] {
        var found: [StoredRow] = []
        try eachBackwards(range) { row in
            if found.count < limit { found.append(row) }
            return found.count < limit
        }
        return found
    }

    /// Calls `work` with the rows of a range, newest first, until it returns false.
    func eachBackwards(_ range: RowRange, _ work: (StoredRow) -> Bool) throws(OutboxError) {
        func goesOn(_ rows: [StoredRow]) -> Bool {
            for index in rows.indices.reversed() where range.contains(rows[index]) {
                guard work(rows[index]) else { return false }
            }
            return true
        }
        // The segment that the end of the range is in the middle of has a greater last number.
        var isWanted = true
        try eachSegment(from: range.last + 1, through: range.last) { (rows) throws(OutboxError) in
            isWanted = goesOn(rows)
            return false
        }
        guard isWanted else { return }
        descending.bind(1, range.last)
        defer { descending.reset() }
        while try descending.step(), descending.integer(0) >= range.first {
            guard goesOn(try rows(descending)) else { return }
        }
    }

    /// Each segment that cannot be read or is in the wrong place, in words for people.
    func problems() throws(OutboxError) -> [String] {
        var problems: [String] = []
        var before: Int64 = 0
        let all = try connection.prepare("SELECT last, first, rows, published, data FROM segment ORDER BY last")
        while try all.step() {
            let (last, first) = (all.integer(0), all.integer(1))
            if decoded(all, looksAtBytes: true) == nil {
                problems.append("segment \(first) to \(last) is damaged")
            } else if first <= before {
                problems.append("segment \(first) to \(last) is in the wrong place")
            }
            before = last
        }
        return problems
    }

    func count(_ range: RowRange) throws(OutboxError) -> Int {
        guard range.first <= range.last else { return 0 }
        sums.bind([range.first, range.last, range.first])
        guard try sums.step() else { return 0 }
        var count = Int(Ledger.clamped(sums.integer(range.isPublishedOnly ? 1 : 0)))
        sums.reset()
        // Of two segments at most, those at its ends, only some rows are in the range.
        var seen: Int64?
        for edge in [range.first, range.last + 1] {
            try eachSegment(from: edge, through: range.last) { (rows) throws(OutboxError) in
                let (head, tail) = (rows[0].seq, rows[rows.count - 1].seq)
                guard tail != seen, head < range.first || tail > range.last else { return false }
                count += rows.count(where: range.contains)
                seen = tail
                return false
            }
        }
        return count
    }

    /// The number of the row in this place of a range, from 0 on; nil where there are fewer.
    func seq(at place: Int, of range: RowRange) throws(OutboxError) -> Int64? {
        var left = place
        var found: Int64?
        try eachSegment(from: range.first, through: range.last) { (rows) throws(OutboxError) in
            for row in rows where range.contains(row) {
                if left == 0 {
                    found = row.seq
                    return false
                }
                left -= 1
            }
            return true
        }
        return found
    }

    /// The number of the oldest row; nil without any.
    var first: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT first FROM segment ORDER BY last LIMIT 1") }
    }

    /// The number of the newest row; nil without any.
    var last: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT max(last) FROM segment") }
    }

    /// - Returns: how many rows were removed.
    func removeThrough(_ seq: Int64) throws(OutboxError) -> Int {
        let before = try count(RowRange(0, seq))
        try deleteThrough.run(seq)
        try change(RowRange(0, seq)) { _ in .removal }
        return before
    }

    /// - Returns: how many rows were removed.
    func removeAfter(_ seq: Int64) throws(OutboxError) -> Int {
        let removed = try count(RowRange(seq + 1, .max))
        try change(RowRange(seq + 1, .max)) { _ in .removal }
        return removed
    }

    /// Changes rows of a range. A segment that stays as it is is not written.
    func change(_ range: RowRange, _ work: (StoredRow) -> RowChange) throws(OutboxError) {
        var changed: [(last: Int64, rows: [StoredRow])] = []
        try eachSegment(from: range.first, through: range.last) { (rows) throws(OutboxError) in
            var isChanged = false
            let kept = rows.compactMap { row -> StoredRow? in
                switch range.contains(row) ? work(row) : .none {
                case .none: return row
                case .removal: isChanged = true
                case .replacement(let new):
                    isChanged = true
                    return new
                }
                return nil
            }
            if isChanged { changed.append((rows[rows.count - 1].seq, kept)) }
            return true
        }
        for (last, rows) in changed {
            try delete.run(last)
            try store(rows[...], SegmentCoding.encode(rows[...], isOne: true).bytes)
        }
    }
}

extension RandomAccessCollection<StoredRow> {
    fileprivate var publishedCount: Int {
        var count = 0
        for index in indices where self[index].isPublished { count += 1 }
        return count
    }
}
