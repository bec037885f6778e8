import WaypostCore

/// The rows of the segments that were written or read last. A batch that is formed at once, and the removal of what was
/// delivered, need not decode them again.
struct RecentSegments {
    /// A batch and what is recorded while it is sent: some 43 kB.
    static let rowsMax = 256

    private var segments: [(rows: [StoredRow], checksum: UInt32)] = []
    private var rowCount = 0

    /// nil: not kept, or not as the table has it: a commit that failed may have written other rows under these numbers.
    func rows(through last: Int64, _ count: Int, _ checksum: UInt32) -> [StoredRow]? {
        for index in segments.indices.reversed() where segments[index].checksum == checksum {
            let rows = segments[index].rows
            if rows.count == count, rows[count - 1].seq == last { return rows }
        }
        return nil
    }

    mutating func keep(_ rows: [StoredRow], _ checksum: UInt32) {
        segments.append((rows, checksum))
        rowCount += rows.count
        while rowCount > Self.rowsMax { rowCount -= segments.removeFirst().rows.count }
        invariant(rowCount >= 0, "\(rowCount) rows are kept")
        invariant(segments.reduce(0) { $0 + $1.rows.count } == rowCount, "\(rowCount) rows are not those that are kept")
    }
}
