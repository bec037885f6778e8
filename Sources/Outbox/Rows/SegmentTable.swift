/// The table of segments: consecutive rows, which one commit stored, in one row of the database.
///
/// Reading back and deleting cost one row of the database for many locations, and what is the same in all of them is stored
/// once. Numbers rise from segment to segment. To change a row in the middle its segment is written again.
final class SegmentTable {
    private let connection: Connection
    private let insert, delete, deleteThrough, ascending, descending, sums: Statement
    /// The segment that was read last: the parts of a commit read it one after the other.
    private var latest: (last: Int64, checksum: UInt32, rows: [StoredRow])?

    init(_ connection: Connection, _ statement: (String) throws(OutboxError) -> Statement) throws(OutboxError) {
        self.connection = connection
        insert = try statement("INSERT INTO segment (last, first, rows, published, data) VALUES (?, ?, ?, ?, ?)")
        delete = try statement("DELETE FROM segment WHERE last = ?")
        deleteThrough = try statement("DELETE FROM segment WHERE last <= ?")
        let columns = "SELECT last, first, rows, published, data FROM segment"
        ascending = try statement("\(columns) WHERE last >= ? ORDER BY last")
        descending = try statement("\(columns) WHERE last <= ? ORDER BY last DESC")
        sums = try statement(
            "SELECT sum(rows), sum(published) FROM segment WHERE last BETWEEN ? AND ? AND first >= ?")
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
        try insert.run(
            rows[rows.endIndex - 1].seq, rows[rows.startIndex].seq, rows.count, rows.publishedCount, bytes)
    }

    /// The rows of the segment that a statement has found; they are what its columns say.
    private func rows(_ statement: Statement) throws(OutboxError) -> [StoredRow] {
        let (last, first) = (statement.integer(0), statement.integer(1))
        let count = Int(clamping: statement.integer(2))
        let (checksum, decoded) = statement.withBytes(4) { bytes in
            let checksum = SegmentCoding.checksum(of: bytes)
            if let latest, latest.last == last, latest.checksum == checksum, latest.rows.count == count {
                return (checksum, Optional(latest.rows))
            }
            return (checksum, SegmentCoding.decode(bytes, first: first, rows: count))
        }
        guard let rows = decoded, rows[count - 1].seq == last, rows[0].seq == first,
            rows.publishedCount == statement.integer(3)
        else {
            statement.reset()
            throw OutboxError(.corrupt, path: connection.path, message: "segment \(last) is damaged")
        }
        latest = (last, checksum, rows)
        return rows
    }

    /// Calls `work` with the rows of each segment that may have rows of a range, oldest first, until it returns false.
    private func eachSegment(
        from first: Int64, through last: Int64, _ work: ([StoredRow]) throws(OutboxError) -> Bool
    ) throws(OutboxError) {
        ascending.bind(1, first)
        defer { ascending.reset() }
        var before = Int64.min
        while try ascending.step(), ascending.integer(1) <= last {
            let rows = try rows(ascending)
            guard rows[0].seq > before, rows[rows.count - 1].seq >= first else {
                throw OutboxError(
                    .corrupt, path: connection.path, message: "segment \(rows[0].seq) in the place of another")
            }
            before = rows[rows.count - 1].seq
            guard try work(rows) else { return }
        }
    }

    /// Adds rows of a range, oldest first, up to a number of them.
    func read(
        _ range: RowRange, limit: Int, into found: inout [StoredRow]
    ) throws(OutboxError) {
        guard found.count < limit else { return }
        try eachSegment(from: range.first, through: range.last) { (rows) throws(OutboxError) in
            // By index: a row that is iterated over is copied.
            for index in rows.indices where range.contains(rows[index]) {
                found.append(rows[index])
                if found.count == limit { return false }
            }
            return true
        }
    }

    /// Adds rows up to a number, the newest first.
    func readBackwards(
        _ range: RowRange, limit: Int, into found: inout [StoredRow]
    ) throws(OutboxError) {
        guard found.count < limit else { return }
        // The segment that the end of the range is in the middle of has a greater last number.
        try eachSegment(from: range.last + 1, through: range.last) { (rows) throws(OutboxError) in
            for row in rows.reversed() where range.contains(row) && found.count < limit { found.append(row) }
            return false
        }
        guard found.count < limit else { return }
        descending.bind(1, range.last)
        defer { descending.reset() }
        while try descending.step(), descending.integer(0) >= range.first {
            for row in try rows(descending).reversed() where range.contains(row) {
                found.append(row)
                if found.count == limit { return }
            }
        }
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

    var first: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT first FROM segment ORDER BY last LIMIT 1") }
    }

    var last: Int64? {
        get throws(OutboxError) { try connection.optionalInteger("SELECT max(last) FROM segment") }
    }

    /// - Returns: how many rows were removed.
    func removeThrough(_ seq: Int64) throws(OutboxError) -> Int {
        let before = try count(RowRange(0, seq))
        guard before > 0 else { return 0 }
        try deleteThrough.run(seq)
        try change(RowRange(0, seq)) { _ in .removal }
        return before
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
