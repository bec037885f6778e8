import WaypostCore

/// Counts the rows of one endpoint that are in no batch, and knows since when they wait and what asks for them before their
/// window ends.
struct WaitingRows: Sendable {
    /// On disk and in memory.
    private(set) var count = 0
    /// Number of the oldest rows that go out without waiting for size or window.
    private(set) var flushing = 0
    /// When rows were recorded, oldest first, for the newest `depth` rows at most: only those can wait for a window.
    private var arrivals: [(count: Int, at: EventTime)] = []
    private var depth: Int
    private let share: Double
    private var sharedFlush = SharedFlush.none

    /// - Parameters:
    ///   - depth: maximum rows of a batch.
    ///   - share: 0 ≤ share < 1, of the device in its fleet (`FleetShare`).
    init(depth: Int, share: Double) {
        self.depth = max(1, depth)
        self.share = share
    }

    /// When the oldest was recorded; nil for rows that were not announced, whose window is over.
    var oldest: EventTime? { arrivals.first?.at }

    /// When a flush of the fleet takes what waits; nil = none is due that anything waits for.
    var sharedFlushAt: EventTime? { sharedFlush.due }

    /// Whether they go out without waiting for size or window.
    func areWanted(at now: EventTime) -> Bool { flushing > 0 || sharedFlushAt.map { $0 <= now } == true }

    /// - Parameter window: for how long the first of them may wait.
    mutating func recorded(_ more: Int, window: Duration, at now: EventTime) {
        count += more
        if let last = arrivals.last, last.at == now {
            arrivals[arrivals.count - 1].count += more
        } else {
            arrivals.append((more, now))
        }
        var known = arrivals.reduce(0) { $0 + $1.count }
        while let first = arrivals.first, known - first.count >= depth {
            known -= first.count
            arrivals.removeFirst()
        }
        if case .ofNextRow(let start) = sharedFlush { flush(atTurnSince: start, of: window, at: now) }
    }

    /// The true number.
    ///
    /// Whichever rows are gone, the oldest keep their time. Otherwise a full queue that gives up the newest row for each that
    /// comes would make the others wait for ever.
    mutating func corrected(to count: Int) {
        self.count = max(0, count)
        flushing = min(flushing, self.count)
        var surplus = arrivals.reduce(0) { $0 + $1.count } - self.count
        while surplus > 0, let last = arrivals.last {
            arrivals.removeLast()
            if last.count > surplus { arrivals.append((last.count - surplus, last.at)) }
            surplus -= last.count
        }
    }

    /// Rows of a dissolved batch, ahead of the others.
    mutating func returned(_ rows: Int) {
        count += rows
        flushing += rows
    }

    /// Rows that waited before another depth count as they did.
    mutating func limited(to depth: Int) { self.depth = max(1, depth) }

    mutating func flush() { flushing = count }

    /// The oldest rows, up to this number.
    mutating func flush(atLeast rows: Int) { flushing = max(flushing, min(rows, count)) }

    mutating func endFlush() { flushing = 0 }

    /// What waits, or else the next row, goes out at the turn of the device, within a window.
    mutating func flushWithFleet(window: Duration, at now: EventTime) {
        if count > 0 { flush(atTurnSince: now, of: window, at: now) } else { flushNextWithFleet(at: now) }
    }

    mutating func flushNextWithFleet(at now: EventTime) { sharedFlush = .ofNextRow(since: now) }

    private mutating func flush(atTurnSince start: EventTime, of window: Duration, at now: EventTime) {
        let turn = FleetShare.turn(share, of: window, since: start, at: now)
        sharedFlush = .due(min(turn, sharedFlushAt ?? turn))
    }

    /// A batch of the oldest is being formed: a flush that is due takes all that waits, in as many batches as that needs.
    mutating func batchRequested(at now: EventTime) {
        guard let due = sharedFlushAt, due <= now else { return }
        flush()
        sharedFlush = .none
    }

    mutating func removeOldest(_ removed: Int) {
        let known = arrivals.reduce(0) { $0 + $1.count }
        var rest = removed - max(0, count - known)
        while rest > 0, let first = arrivals.first {
            if first.count > rest {
                arrivals[0].count -= rest
                break
            }
            rest -= first.count
            arrivals.removeFirst()
        }
        count = max(0, count - removed)
        flushing = max(0, min(flushing - removed, count))
        if count == 0, sharedFlushAt != nil { sharedFlush = .none }
    }
}

extension WaitingRows {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(count >= 0, "\(count) rows wait")
        invariant(flushing >= 0 && flushing <= count, "\(flushing) of \(count) rows are flushed")
        invariant(arrivals.reduce(0) { $0 + $1.count } <= count, "times of more rows than wait")
        invariant(arrivals.allSatisfy { $0.count > 0 }, "a time of no row")
        invariant(zip(arrivals, arrivals.dropFirst()).allSatisfy { $0.at <= $1.at }, "times in no order")
        invariant(depth >= 1 && share >= 0 && share < 1, "a depth of \(depth), a share of \(share)")
    }
}
