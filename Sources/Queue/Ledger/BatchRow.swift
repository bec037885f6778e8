import Profiles
import WaypostCore

/// A formed batch as it is on disk: which rows, under which name, sent by whom.
struct BatchRow: Hashable {
    enum Origin: Int64 {
        case queue, quarantine
    }

    /// Most rows of a batch, whatever the settings or a damaged file say.
    static let longest = 65_536

    var first: Int64
    var last: Int64
    var rows: Int
    var feed: EndpointSettings.Feed
    var origin = Origin.queue
    /// The rows, rising; nil = all of the feed from `first` to `last`.
    var picked: [Int64]?
    /// Those of its rows whose ENTER is in quarantine.
    var broken: [Int64] = []
    /// The endpoint that sends it in place of its own; nil = itself.
    var route: String?
    var sentMs: Int64?
    /// The row that the body carries as the newest one; nil = none.
    var newestSeq: Int64?
    var generation: Int
    var rendering: String
    /// Everything up to here was finished or in a batch when it was formed.
    var through: Int64
    /// Time of the first row. Not on disk.
    var firstTime = UTCTime(milliseconds: 0)

    /// Names these rows in these bytes for ever: within a generation a batch that begins at `first` only ever loses
    /// rows.
    func id(outbox: String, endpoint: String) -> String {
        "\(outbox)-\(route ?? endpoint)-\(first)-\(last)" + (generation > 1 ? "-g\(generation)" : "")
    }

    /// A batch of some of its rows under another name; nil without any.
    ///
    /// - Parameter isStretch: they are consecutive in this batch.
    func part(_ rows: ArraySlice<QueuedLocation>, isStretch: Bool) -> BatchRow? {
        guard let head = rows.first, let tail = rows.last else { return nil }
        var part = self
        part.first = head.seq
        part.last = tail.seq
        part.rows = rows.count
        part.firstTime = head.date
        part.picked = isStretch && picked == nil ? nil : rows.map(\.seq)
        part.broken = broken.filter { seq in rows.contains { $0.seq == seq } }
        return part
    }
}

extension BatchRow {
    func checkInvariants() {
        invariant(first <= last, "a batch from \(first) to \(last)")
        invariant(rows >= 1 && rows <= Self.longest, "a batch of \(rows) rows")
        invariant(picked != nil || origin == .queue, "records of the quarantine that are not named")
        invariant(Int64(rows) <= last - first + 1, "\(rows) rows from \(first) to \(last)")
        invariant(picked.map { $0.count == rows } ?? true, "\(picked?.count ?? 0) rows are picked of \(rows)")
        invariant(picked.map { zip($0, $0.dropFirst()).allSatisfy(<) } ?? true, "picked rows are in no order")
        invariant(picked.map { $0.first == first && $0.last == last } ?? true, "picked rows begin or end elsewhere")
        invariant(generation >= 1, "generation \(generation)")
        invariant(broken.allSatisfy { (first...max(first, last)).contains($0) }, "a row is broken that is none of it")
    }
}
