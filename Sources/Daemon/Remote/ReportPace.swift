import WaypostCore

/// When a report goes out: at once, but few in a minute, and ever more rarely to a server that does not take them.
struct ReportPace {
    private static let pause = Duration.seconds(60)
    private static let longest = Duration.seconds(15_360)

    /// A trial and its end are two reports.
    private var budget = TokenBucket(burst: 4, refill: pause)
    private var isWanted = false
    /// Reports in a row that were not taken.
    private var failures = 0
    private var notBefore = EventTime.zero

    mutating func wanted() { isWanted = true }

    /// - Returns: whether one leaves now.
    mutating func begin(at now: EventTime) -> Bool {
        guard isWanted, notBefore <= now, budget.take(at: now) == nil else { return false }
        isWanted = false
        return true
    }

    mutating func ended(_ outcome: RemoteDispatch, at now: EventTime) {
        switch outcome {
        case .settled: failures = 0
        case .failed:
            isWanted = true
            failures += 1
            notBefore = now + Self.pause.doubled(failures, atMost: Self.longest)
        }
    }
}
