import Delivery
import Outbox
import Positioning
import Systemd

/// Holds rows in memory until they are on disk: one commit per commit window, or at once when something important happened.
///
/// One commit is under way at a time, on the writer's thread; what comes meanwhile waits for the next one. Rows leave
/// memory when `COMMIT` has succeeded, not before. While the disk refuses, the newest rows are kept up to a bound and
/// the commit is tried again every window.
final class Recorder {
    struct Settings: Hashable, Sendable {
        /// The longest time a row waits in memory: what a pulled plug can cost. The default is 10 s.
        var commitWindow = Duration.seconds(10)
        /// So many rows make a commit by themselves.
        var rowsMax = 1000
        /// Rows that are kept while the disk refuses; then the oldest go, counted.
        var ringMax = 10_000
    }

    /// Acknowledged rows alone make a commit only after this long, so that a parked and drained tracker writes nothing.
    private static let settlementPatience = Duration.seconds(900)

    /// A disk that refuses is not asked more often, however short the commit window is.
    private static let retryMin = Duration.seconds(1)

    private let settings: Settings
    private let writer: OutboxWriter
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var problem = RepeatGate()

    private(set) var rows: [NewRow] = []
    private var underWay: Commit?
    private var settlements: [Settlement] = []
    private var states: [Commit.StateChange] = []
    private var forms: [FormRequest] = []
    private var windowEnds: EventTime?
    private var commitWanted = false
    private var waiters: [() -> Void] = []

    /// Rows that the ring gave up while the disk refused.
    private(set) var ringDropped = 0
    private(set) var commits = 0
    private(set) var commitsFailed = 0
    /// What retention removed since the start.
    private(set) var dropped = DropCounts()
    private(set) var latest: CommitReply
    private(set) var lastError: OutboxError?

    /// State of tracker and source as of the rows recorded so far.
    var snapshot: () -> (trackerState: [UInt8]?, sourceState: [UInt8]?) = { (nil, nil) }
    /// A commit succeeded, which carried these form requests.
    var committed: (CommitReply, [FormRequest], EventTime) -> Void = { _, _, _ in }
    /// The disk refused a commit with these form requests.
    var refused: ([FormRequest], EventTime) -> Void = { _, _ in }

    init(
        settings: Settings, writer: OutboxWriter, current: CommitReply, log: AgentLog, loop: EventLoop
    ) throws(SystemError) {
        self.settings = settings
        self.writer = writer
        self.log = log
        self.loop = loop
        latest = current
        alarm = loop.alarm { [unowned self] now in commit(at: now) }
        try loop.watch(writer.descriptor) { [unowned self] _, _ in self.writer.drain() }
    }

    /// Rows in memory, those under way included.
    var held: Int { rows.count + (underWay?.rows.count ?? 0) }
    var isIdle: Bool { underWay == nil && rows.isEmpty && settlements.isEmpty && states.isEmpty && forms.isEmpty }

    /// Takes a row; it reaches the disk with a later commit.
    func record(_ row: NewRow, at now: EventTime) {
        rows.append(row)
        // What is held may have time: acknowledgements wait far longer than a row may.
        windowEnds = min(windowEnds ?? EventTime(nanoseconds: .max), now + window)
        if rows.count > settings.ringMax {
            rows.removeFirst()
            ringDropped += 1
        }
        // Never from in here: tracker and source are ahead of the row that is being recorded. And a disk that has just
        // refused is not asked again for each row.
        if rows.count >= settings.rowsMax, !problem.isOpen { windowEnds = now }
        arm()
    }

    /// Takes along with the next commit; alone it waits.
    func settle(_ settlement: Settlement, at now: EventTime) {
        settlements.append(settlement)
        if windowEnds == nil { windowEnds = now + Self.settlementPatience }
        arm()
    }

    func stateChanged(_ change: Commit.StateChange, at now: EventTime) {
        states.removeAll { $0.endpoint == change.endpoint }
        states.append(change)
        commit(at: now)
    }

    func form(_ request: FormRequest, at now: EventTime) {
        forms.append(request)
        commit(at: now)
    }

    /// Commits what is held, or as soon as the commit under way has ended.
    /// - Parameter done: called once everything that is held now is on disk, or the disk has refused it.
    func commit(at now: EventTime, done: (() -> Void)? = nil) {
        if let done { waiters.append(done) }
        guard underWay == nil else {
            commitWanted = true
            return
        }
        let (trackerState, sourceState) = snapshot()
        let commit = Commit(
            rows: rows, trackerState: trackerState, sourceState: sourceState, settlements: settlements,
            states: states, forms: forms)
        underWay = commit
        rows = []
        settlements = []
        states = []
        forms = []
        windowEnds = nil
        commitWanted = false
        alarm?.deadline = nil
        let waiters = self.waiters
        self.waiters = []
        writer.submit(commit) { [unowned self] result in
            underWay = nil
            switch result {
            case .success(let reply): succeeded(reply, commit)
            case .failure(let error): failed(error, commit)
            }
            for waiter in waiters { waiter() }
            // Rows that came meanwhile have a window of their own, which nobody armed.
            if commitWanted { self.commit(at: loop.now) } else { arm() }
        }
    }

    private func succeeded(_ reply: CommitReply, _ commit: Commit) {
        commits += 1
        dropped += reply.dropped
        latest = reply
        lastError = nil
        if problem.ended(at: loop.now.nanoseconds) != nil { log.queueRecovered() }
        committed(reply, commit.forms, loop.now)
    }

    private func failed(_ error: OutboxError, _ commit: Commit) {
        commitsFailed += 1
        lastError = error
        rows = commit.rows + rows
        let excess = max(0, rows.count - settings.ringMax)
        rows.removeFirst(excess)
        ringDropped += excess
        settlements = commit.settlements + settlements
        states = commit.states + states
        switch problem.occurred(at: loop.now.nanoseconds) {
        case .suppressed: break
        default: log.queueProblem(error.description, waiting: rows.count)
        }
        windowEnds = loop.now + window
        arm()
        refused(commit.forms, loop.now)
    }

    private var window: Duration { problem.isOpen ? max(settings.commitWindow, Self.retryMin) : settings.commitWindow }

    private func arm() {
        if underWay == nil { alarm?.deadline = windowEnds }
    }

    func close() {
        loop.forget(writer.descriptor)
        writer.close()
    }
}
