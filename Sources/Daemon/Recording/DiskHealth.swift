import Journal
import Queue
import WaypostCore

/// Whether the disk takes commits, when one that refuses is asked again, and what is logged about it.
struct DiskHealth {
    /// How long newer rows wait for those on a refusing disk that cannot be read.
    private static let unreadableLimit = Duration.seconds(600)

    private let log: AgentLog
    /// Since when it refuses, and when it is asked again; nil = it does not.
    private var refusal: (since: EventTime, retry: DiskRetry, askAt: EventTime)?
    private var problem = RepeatGate()
    /// It was logged that rows on disk wait because they cannot be read.
    private var unreadableLogged = false
    private var dropLog = DropLog()
    private(set) var lastError: OutboxError?

    init(log: AgentLog) { self.log = log }

    /// It has refused the last commit.
    var isBad: Bool { refusal != nil }
    /// When it is asked again; nil while it takes commits.
    var askAt: EventTime? { refusal?.askAt }

    /// What the next commit has to know about a disk that refuses.
    /// - Parameter isAwaited: the outcome is waited for: the disk is asked now.
    func prepare(_ commit: inout Commit, isAwaited: Bool, at now: EventTime) {
        guard let refusal else { return }
        commit.asksDisk = refusal.askAt <= now || isAwaited
        commit.passesUnreadable = now.duration(since: refusal.since) >= Self.unreadableLimit
    }

    /// - Parameters:
    ///   - window: between two commits of a sound disk.
    ///   - held: rows that are not on disk.
    mutating func refused(_ error: OutboxError, window: Duration, held: Int, at now: EventTime) {
        lastError = error
        var retry = refusal?.retry ?? DiskRetry()
        let pause = retry.failed(error.cause, window: window)
        refusal = (refusal?.since ?? now, retry, now + pause)
        let verdict = problem.occurred(at: now.nanoseconds)
        guard verdict != .suppressed else { return }
        let finding = DiskFinding(path: error.path, cause: error.cause).text
        log.queueProblem("\(error.description)\(finding)\(verdict.words)", waiting: held)
    }

    /// Newer rows are sent before those on disk, which cannot be read.
    mutating func passedUnreadable(_ error: OutboxError) {
        guard !unreadableLogged else { return }
        unreadableLogged = true
        log.queueUnreadable(error.path)
    }

    mutating func accepted(at now: EventTime) {
        lastError = nil
        refusal = nil
        unreadableLogged = false
        if problem.ended(at: now.nanoseconds) { log.queueRecovered() }
    }

    mutating func dropped(_ counts: DropCounts, at now: EventTime) {
        if let counts = dropLog.dropped(counts, at: now) { log.queueDropped(counts, total: dropLog.total) }
    }

    /// What was not logged yet, at the end.
    mutating func logsRest() {
        if let counts = dropLog.rest() { log.queueDropped(counts, total: dropLog.total) }
    }
}

/// When a disk that has refused is asked again.
private struct DiskRetry {
    private static let longest = Duration.seconds(60)
    private var failures = 0

    /// - Parameter window: between two commits of a sound disk.
    /// - Returns: how long to wait now.
    mutating func failed(_ cause: OutboxError.Cause, window: Duration) -> Duration {
        failures += 1
        let pause: Duration =
            switch cause {
            // It waits for a person, who may just have done something.
            case .readOnly, .cannotOpen: failures == 1 ? .seconds(10) : Self.longest
            // The file is opened again, which often helps; then less and less.
            case .io, .corrupt:
                failures == 1 ? .milliseconds(100) : .seconds(1).doubled(failures - 2, atMost: Self.longest)
            case .full, .foreign, .locked, .otherSchema, .refused: max(window, .seconds(1))
            }
        return min(pause, Self.longest)
    }
}

/// What retention removed, logged once a minute at most.
private struct DropLog {
    private static let interval = Duration.seconds(60)
    private var unlogged = DropCounts()
    private var loggedAt: EventTime?
    /// Rows since the start, whatever became of them.
    private(set) var total = 0

    /// - Returns: what was not logged yet; nil = nothing.
    mutating func rest() -> DropCounts? {
        guard unlogged != DropCounts() else { return nil }
        defer { unlogged = DropCounts() }
        return unlogged
    }

    /// - Returns: what is to be logged now; nil = nothing.
    mutating func dropped(_ counts: DropCounts, at now: EventTime) -> DropCounts? {
        unlogged += counts
        total += counts.lost + counts.thinned
        guard unlogged != DropCounts(), loggedAt.map({ now.duration(since: $0) >= Self.interval }) ?? true else {
            return nil
        }
        loggedAt = now
        return rest()
    }
}
