import Profiles
import WaypostCore

/// Decides about the oldest unsent rows of one endpoint: which go out together, and which never do.
package struct BatchPlanner {
    private let settings: EndpointSettings

    package init(_ settings: EndpointSettings) { self.settings = settings }

    /// Maximum number of rows that a plan looks at for batches of at most `limit`: rows of several trackables may
    /// alternate, and many superseded ones go at once.
    package func depth(limit: Int) -> Int {
        let depth = rowsPerRequest(limit)
        if settings.delivery == .latest { return max(depth, 256) }
        return settings.profile.gathersTrackables ? depth.multipliedReportingOverflow(by: 4).partialValue : depth
    }

    /// The same rows always give the same plan.
    ///
    /// - Parameters:
    ///   - rows: oldest first, at most `depth(limit:)`.
    ///   - limit: maximum rows of a batch; the profile's own limits hold as well.
    ///   - isEnd: no row waits after these.
    ///   - ages: nil = nothing expires.
    ///   - shown: with `delivery = "latest"`, times up to which the server has seen positions; see `PositionFeed`.
    package func plan(
        _ rows: [QueuedLocation], limit: Int, isEnd: Bool, ages: RowAges?, shown: [String?: UTCTime] = [:]
    ) -> BatchPlan {
        var planning = Planning(settings: settings, rows: rows, limit: rowsPerRequest(limit), isEnd: isEnd)
        return planning.plan(ages, shown)
    }

    private func rowsPerRequest(_ limit: Int) -> Int {
        min(max(1, limit), settings.profile.maxRecords ?? .max, 1 << 20)
    }
}

/// One plan in the making.
private struct Planning {
    let settings: EndpointSettings
    let limit: Int
    let isEnd: Bool
    private let rules: RowRules
    private var rows: [QueuedLocation] { rules.rows }
    private var plan = BatchPlan()

    init(settings: EndpointSettings, rows: [QueuedLocation], limit: Int, isEnd: Bool) {
        self.settings = settings
        self.limit = limit
        self.isEnd = isEnd
        rules = RowRules(settings, rows: rows)
    }

    mutating func plan(_ ages: RowAges?, _ shown: [String?: UTCTime]) -> BatchPlan {
        var end = rows.count
        var sendable: [Int] = []
        for index in rows.indices {
            if let why = unsendable(index, ages) {
                plan.settled.append((index, why))
            } else {
                sendable.append(index)
            }
        }
        if settings.delivery == .latest { end = supersede(&sendable, shown) }
        if settings.profile.gathersTrackables { end = cut(&sendable, end) }
        var batches = settings.profile.gathersTrackables ? gathered(sendable) : runs(sendable)
        // A batch that can still grow waits for more rows, unless it is the only one.
        if !isEnd, !settings.profile.gathersTrackables, batches.count > 1, let last = batches.last, !isFull(last) {
            end = min(end, last[0])
            batches.removeLast()
        }
        plan.batches = batches
        plan.settled.removeAll { $0.index >= end }
        plan.settled.sort { $0.index < $1.index }
        plan.consumed = end
        if Invariants.areChecked { checkInvariants() }
        return plan
    }

    /// Each row that the plan covers is in one batch, or has one reason to be in none.
    private func checkInvariants() {
        let sent = plan.batches.flatMap { $0 }
        let settled = plan.settled.map(\.index)
        invariant((0...rows.count).contains(plan.consumed), "\(plan.consumed) of \(rows.count) rows are covered")
        invariant(Set(sent + settled).count == sent.count + settled.count, "a row is planned twice")
        invariant(
            settings.profile.gathersTrackables || sent.count + settled.count == plan.consumed,
            "\(sent.count) rows in batches and \(settled.count) in none of \(plan.consumed)")
        invariant(
            plan.batches.allSatisfy { !$0.isEmpty && $0.count <= limit }, "a batch without rows, or with too many")
        invariant(
            plan.batches.allSatisfy { zip($0, $0.dropFirst()).allSatisfy(<) }, "the rows of a batch are in no order")
        invariant(
            zip(plan.batches, plan.batches.dropFirst()).allSatisfy { $0[0] < $1[0] }, "the batches are in no order")
        invariant((sent + settled).allSatisfy { $0 < plan.consumed }, "a row is planned that is not covered")
    }

    private func unsendable(_ index: Int, _ ages: RowAges?) -> BatchPlan.Settled? {
        if rules.isSkipped(index) { return .skipped }
        if let ages, let maxAge = settings.maxAge, rows[index].location.event.isPlain,
            ages.isOlder(rows[index], than: maxAge)
        {
            return .expired
        }
        return switch rules.objection(index) {
        case .unfit(let name): .unfit(name)
        case .refused(let rule): .refused(rule: rule)
        case nil: nil
        }
    }

    /// Plain fixes with a later row are superseded, and so are those of which the server has seen a later position. A gap counts as
    /// one: it has nothing but the position before it, to which it would move the asset back.
    ///
    /// - Returns: how many rows are consumed: while more wait, the newest plain fixes are not known to be newest.
    private mutating func supersede(_ sendable: inout [Int], _ shown: [String?: UTCTime]) -> Int {
        var hasLater: Set<String?> = []
        var newest: Set<Int> = []
        var kept: [Int] = []
        for index in sendable.reversed() {
            let row = rows[index]
            let trackable = settings.profile.namesTrackable ? row.location.trackable : nil
            let isPlain = row.location.event.isPlain || row.location.event == .gap
            if isPlain, let seen = shown[trackable], row.location.time <= seen {
                plan.settled.append((index, .superseded))
                continue
            }
            let isNewest = hasLater.insert(trackable).inserted
            if isNewest || !isPlain {
                kept.append(index)
                if isNewest, isPlain { newest.insert(index) }
            } else {
                plan.settled.append((index, .superseded))
            }
        }
        kept.reverse()
        var end = rows.count
        // Rows after a fix that waits have to wait too, so a fix waits only where no decided row comes after it.
        while !isEnd, kept.count > 1, let last = kept.last, newest.contains(last) {
            end = last
            kept.removeLast()
        }
        if !isEnd, kept.count == 1, let last = kept.last, newest.contains(last), last > 0 {
            end = last
            kept.removeLast()
        }
        sendable = kept
        return end
    }

    /// Neighbours with one template, as many as fit a request.
    private mutating func runs(_ sendable: [Int]) -> [[Int]] {
        var batches: [[Int]] = []
        var run: [Int] = []
        var template: Int?
        for index in sendable {
            let own = rules.template(index)
            if own != template, !run.isEmpty {
                batches += fitting(run)
                run = []
            }
            template = own
            run.append(index)
        }
        return batches + fitting(run)
    }

    /// Keeps no more rows than fill a batch of the trackable that has the oldest row.
    private func cut(_ sendable: inout [Int], _ end: Int) -> Int {
        guard let first = sendable.first else { return end }
        var count = 0
        for (position, index) in sendable.enumerated()
        where rows[index].location.trackable == rows[first].location.trackable {
            count += 1
            guard count == limit else { continue }
            sendable.removeSubrange((position + 1)...)
            return index + 1
        }
        return end
    }

    /// One trackable to a batch, in the order of their oldest rows.
    private mutating func gathered(_ sendable: [Int]) -> [[Int]] {
        var order: [String?] = []
        var indices: [String?: [Int]] = [:]
        for index in sendable {
            let trackable = rows[index].location.trackable
            if indices[trackable] == nil { order.append(trackable) }
            indices[trackable, default: []].append(index)
        }
        return order.flatMap { runs(indices[$0] ?? []) }.sorted { $0[0] < $1[0] }
    }

    /// Cuts a run into batches that keep the limits of rows and bytes.
    private mutating func fitting(_ run: [Int]) -> [[Int]] {
        var batches: [[Int]] = []
        var rest = run[...]
        while !rest.isEmpty {
            let candidates = Array(rest.prefix(limit))
            let count = fittingCount(candidates)
            if count == 0 {
                plan.settled.append((candidates[0], .refused(rule: "max_bytes")))
                rest = rest.dropFirst()
            } else {
                batches.append(Array(candidates.prefix(count)))
                rest = rest.dropFirst(count)
            }
        }
        return batches
    }

    /// How many of the candidates fit `max_bytes`: at most one rendering for each halving, and usually none.
    private func fittingCount(_ candidates: [Int]) -> Int {
        guard !candidates.isEmpty else { return 0 }
        if rules.sizeBound(candidates) <= settings.profile.maxBytes || fits(candidates, candidates.count) {
            return candidates.count
        }
        // `good` rows fit, `bad` rows do not.
        var good = 0
        var bad = candidates.count
        while bad - good > 1 {
            let middle = good + (bad - good) / 2
            if fits(candidates, middle) { good = middle } else { bad = middle }
        }
        return good
    }

    private func fits(_ candidates: [Int], _ count: Int) -> Bool {
        rules.size(candidates.prefix(count)) <= settings.profile.maxBytes
    }

    private func isFull(_ batch: [Int]) -> Bool { batch.count >= limit }
}

extension RowAges {
    fileprivate func isOlder(_ row: QueuedLocation, than age: Duration) -> Bool {
        isOlder(seq: row.seq, time: row.location.time.milliseconds, receivedMs: row.receivedMs, than: age)
    }
}
