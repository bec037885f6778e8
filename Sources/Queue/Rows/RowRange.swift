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
