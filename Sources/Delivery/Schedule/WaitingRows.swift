import Positioning

/// Counts the rows of one endpoint that are in no batch, and knows since when they wait.
struct WaitingRows: Sendable {
    /// On disk and in memory.
    private(set) var count = 0
    /// Number of the oldest rows that go out without waiting for size or window.
    private(set) var flushing = 0
    /// When rows were recorded, oldest first, for the newest `depth` rows at most: only those can wait for a window.
    private var arrivals: [(count: Int, at: EventTime)] = []
    private var depth: Int

    init(depth: Int) { self.depth = max(1, depth) }

    /// When the oldest was recorded; nil for rows that were not announced, whose window is over.
    var oldest: EventTime? { arrivals.first?.at }

    mutating func recorded(_ more: Int, at now: EventTime) {
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

    mutating func endFlush() { flushing = 0 }

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
    }
}
