/// Rows with numbers from one to another.
struct RowRange {
    var first, last: Int64
    /// Only those that are published.
    var isPublishedOnly: Bool

    init(_ first: Int64, _ last: Int64, isPublishedOnly: Bool = false) {
        self.first = max(0, first)
        self.last = min(last, Ledger.highestSeq)
        self.isPublishedOnly = isPublishedOnly
    }

    func contains(_ row: StoredRow) -> Bool {
        row.seq >= first && row.seq <= last && (row.isPublished || !isPublishedOnly)
    }

    /// First number, last number, whether rows that are not published count.
    var parameters: [Int64] { [first, last, isPublishedOnly ? 0 : 1] }
}

/// What becomes of a row.
enum RowChange {
    case none, removal
    /// Under the same number.
    case replacement(StoredRow)
}

/// The rows of a queue, in the order of their numbers: those that an earlier version stored in the table of locations, then
/// segments.
final class RowStore {
    private let locations: LocationTable
    private let segments: SegmentTable
    /// No location has a greater number; nil = there is none.
    private let lastLocation: Int64?

    /// - Parameter isPatient: of a damaged file: what is in one table is read although the other is damaged, or, without patience,
    ///   cannot be read. nil: both have to be readable.
    init(
        _ connection: Connection, isPatient: Bool?, _ statement: (String) throws(OutboxError) -> Statement
    ) throws(OutboxError) {
        locations = try LocationTable(connection, statement)
        let segments = try SegmentTable(connection, statement)
        self.segments = segments
        do throws(OutboxError) {
            lastLocation = try locations.last
        } catch {
            guard let isPatient, !error.mayPass(isPatient) else { throw error }
            // They end before the segments begin. Without any segment, all rows are looked for there.
            let first = try unlessDamaged(isPatient) { () throws(OutboxError) in try segments.first }
            lastLocation = (first ?? nil).map { $0 - 1 } ?? Ledger.highestSeq
        }
    }

    private func locations(from first: Int64) -> LocationTable? {
        lastLocation.map { first <= $0 } == true ? locations : nil
    }

    /// - Parameter rows: with rising numbers after all that are there.
    func append(_ rows: [StoredRow]) throws(OutboxError) { try segments.append(rows) }

    /// The oldest rows of a range, oldest first.
    func rows(_ range: RowRange, limit: Int) throws(OutboxError) -> [StoredRow] {
        var found: [StoredRow] = []
        // An array that grows leaves its former places as holes in memory.
        found.reserveCapacity(min(limit, 1024))
        try locations(from: range.first)?.read(range, limit: limit, into: &found)
        let older = found.count
        try segments.read(range, limit: limit, into: &found)
        if older > 0, older < found.count, found[older].seq <= found[older - 1].seq {
            throw segments.damage("segment with \(found[older].seq) after location \(found[older - 1].seq)")
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
        if try segments.eachBackwards(range, work) { _ = try locations(from: range.first)?.eachBackwards(range, work) }
    }

    /// What is wrong with rows and counts, in words for people. Reads all of them.
    func problems() throws(OutboxError) -> [String] {
        try segments.problems(after: lastLocation ?? 0)
    }

    func count(_ range: RowRange) throws(OutboxError) -> Int {
        guard range.first <= range.last else { return 0 }
        return try (locations(from: range.first)?.count(range) ?? 0) + segments.count(range)
    }

    /// The number of the row in this place of a range, from 0 on; nil where there are fewer.
    func seq(at place: Int, of range: RowRange) throws(OutboxError) -> Int64? {
        guard let locations = locations(from: range.first) else { return try segments.seq(at: place, of: range) }
        // Counting all of a long queue would cost more than looking for the place.
        if let seq = try locations.seq(at: place, of: range) { return seq }
        return try segments.seq(at: place - locations.count(range), of: range)
    }

    /// The number of the oldest row; nil without any.
    var first: Int64? {
        get throws(OutboxError) {
            if let first = try locations(from: 0)?.first { return first }
            return try segments.first
        }
    }

    /// The number of the newest row; nil without any.
    var last: Int64? {
        get throws(OutboxError) {
            if let last = try segments.last { return last }
            return try locations(from: 0)?.last
        }
    }

    /// - Returns: how many rows were removed.
    func removeThrough(_ seq: Int64) throws(OutboxError) -> Int {
        try (locations(from: 0)?.removeThrough(seq) ?? 0) + segments.removeThrough(seq)
    }

    /// - Returns: how many rows were removed.
    func removeAfter(_ seq: Int64) throws(OutboxError) -> Int {
        let removed = try count(RowRange(seq + 1, .max))
        try change(RowRange(seq + 1, .max)) { _ in .removal }
        return removed
    }

    /// Changes rows of a range.
    func change(_ range: RowRange, _ work: (StoredRow) -> RowChange) throws(OutboxError) {
        try locations(from: range.first)?.change(range, work)
        try segments.change(range, work)
    }
}
