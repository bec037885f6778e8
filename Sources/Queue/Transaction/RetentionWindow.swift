import WaypostCore

/// Consecutive rows of the queue, from which rows are dropped one after the other.
///
/// Where rows were dropped, the last one stays as a gap record (event `gap`, reason `overflow`, its own time and
/// place), so that a server draws no line across; the time of the record before it is when the gap begins. A gap that
/// grows keeps one such record for each trackable: it moves along.
struct RetentionWindow {
    static let reason = "overflow"

    /// What is dropped, in this order.
    enum Kind {
        /// Plain fixes and heartbeats.
        case plain
        /// Gap records that dropped rows left.
        case gaps
        /// Everything else. An ENTER goes with its EXIT; one without the other stays.
        case events
        case anything
    }

    struct Row {
        var seq: Int64
        var trackable: Int64?
        var time: UTCTime
        var receivedMs: Int64?
        var coordinate: Coordinate
        var published: Bool
        /// It outlives plain fixes.
        var isLasting: Bool
        var isGap: Bool
        var hasDetails: Bool
        var inFlight: Bool
        /// ENTER or EXIT of a fence.
        var crossing: (fence: String, enters: Bool)?
    }

    private var rows: [Row]
    private var before: [Int]
    private var after: [Int]
    private let mustNotBecomeGap: (Int64) -> Bool
    /// Rows that go altogether.
    private(set) var removed: [Row] = []
    /// Positions of rows that became gap records, and still are.
    private var became: Set<Int> = []
    /// Rows whose content is lost.
    private(set) var lost = 0
    /// The last row that was dropped.
    private(set) var seenThrough: Int64?

    /// - Parameter mustNotBecomeGap: whether a row must not become a gap record.
    init(_ rows: [Row], mustNotBecomeGap: @escaping (Int64) -> Bool) {
        self.rows = rows
        self.mustNotBecomeGap = mustNotBecomeGap
        before = rows.indices.map { $0 - 1 }
        after = rows.indices.map { $0 + 1 }
    }

    var gaps: [Row] { became.sorted().map { rows[$0] } }

    /// - Parameter left: how many rows to remove; reduced by those removed.
    mutating func drop(_ kind: Kind, _ left: inout Int, newest: Bool, where isCandidate: (Row) -> Bool) {
        var partners: [Int: Int] = kind == .events ? pairs() : [:]
        for position in rows.indices where left > 0 {
            let index = newest ? rows.count - 1 - position : position
            guard !isGone(index), !rows[index].inFlight, isCandidate(rows[index]) else { continue }
            switch kind {
            case .plain where rows[index].isLasting: continue
            case .gaps:
                guard rows[index].isGap else { continue }
                remove(index)
                left -= 1
            case .plain: drop(index, &left)
            case .events where rows[index].crossing != nil:
                guard let partner = partners.removeValue(forKey: index) else { continue }
                partners[partner] = nil
                lose(partner, &left)
                lose(index, &left)
            case .events, .anything: lose(index, &left)
            }
        }
    }

    private func isGone(_ index: Int) -> Bool { before[index] == Int.min }

    /// Leaves no gap record: even those had to go.
    private mutating func lose(_ index: Int, _ left: inout Int) {
        if !rows[index].isGap { lost += 1 }
        remove(index)
        left -= 1
    }

    private mutating func drop(_ index: Int, _ left: inout Int) {
        lost += 1
        seenThrough = max(seenThrough ?? .min, rows[index].seq)
        let trackable = rows[index].trackable
        var neighbour = before[index]
        while neighbour >= 0, rows[neighbour].isGap {
            let next = before[neighbour]
            if rows[neighbour].trackable == trackable, !rows[neighbour].inFlight {
                remove(neighbour)
                left -= 1
            }
            neighbour = next
        }
        if !rows[index].published || isFollowedByGap(index) || mustNotBecomeGap(rows[index].seq) {
            remove(index)
            left -= 1
        } else {
            rows[index].isGap = true
            rows[index].isLasting = true
            became.insert(index)
        }
    }

    private func isFollowedByGap(_ index: Int) -> Bool {
        var next = after[index]
        while next < rows.count, rows[next].isGap {
            if rows[next].trackable == rows[index].trackable { return true }
            next = after[next]
        }
        return false
    }

    private mutating func remove(_ index: Int) {
        became.remove(index)
        removed.append(rows[index])
        let (previous, next) = (before[index], after[index])
        if previous >= 0 { after[previous] = next }
        if next < rows.count { before[next] = previous }
        before[index] = .min
    }

    /// The rows of a fence that belong together: an ENTER and the EXIT that follows it.
    private func pairs() -> [Int: Int] {
        struct Place: Hashable {
            var fence: String
            var trackable: Int64?
        }
        var open: [Place: Int] = [:]
        var pairs: [Int: Int] = [:]
        for index in rows.indices {
            guard let crossing = rows[index].crossing else { continue }
            let place = Place(fence: crossing.fence, trackable: rows[index].trackable)
            guard !crossing.enters else {
                open[place] = rows[index].inFlight ? nil : index
                continue
            }
            guard let enter = open.removeValue(forKey: place), !rows[index].inFlight else { continue }
            pairs[enter] = index
            pairs[index] = enter
        }
        return pairs
    }
}
