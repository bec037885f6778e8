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

    /// When a disk that refused is asked again: after a commit window, within these bounds.
    private static let retryDelay = Duration.seconds(1)...Duration.seconds(60)

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
    private var orders: [(order: QueueOrder, done: (OrderResult) -> Void)] = []
    private var windowEnds: EventTime?
    private var commitWanted = false
    private var waiters: [() -> Void] = []

    /// Rows that the ring gave up while the disk refused.
    private(set) var ringDropped = 0
    private(set) var commits = 0
    private(set) var commitsFailed = 0
    /// Seconds that the slowest commit took.
    private(set) var slowestCommit = 0.0
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

    /// So many rows make a commit by themselves.
    var rowsMax: Int { settings.rowsMax }
    /// Rows in memory, those under way included.
    var held: Int { rows.count + (underWay?.rows.count ?? 0) }

    /// Bytes of the queue's files, the log beside it included.
    var bytesOnDisk: Int { writer.bytesOnDisk }

    /// Takes a row; it reaches the disk with a later commit.
    func record(_ row: NewRow, at now: EventTime) {
        rows.append(row)
        // Only a disk that has just refused is given longer than the window.
        if !problem.isOpen || windowEnds == nil { endWindow(by: now + settings.commitWindow) }
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
    /// - Parameter soon: commits at the end of the loop's turn.
    func settle(_ settlement: Settlement, soon: Bool = false, at now: EventTime) {
        settlements.append(settlement)
        endWindow(by: soon ? now : now + Self.settlementPatience)
        arm()
    }

    /// Commits at the end of the loop's turn, together with whatever else comes up in it.
    func stateChanged(_ change: Commit.StateChange, at now: EventTime) {
        states.removeAll { $0.endpoint == change.endpoint }
        states.append(change)
        endWindow(by: now)
        arm()
    }

    /// Forms at the end of the loop's turn, so that rows and the batches of all endpoints share one commit.
    func form(_ request: FormRequest, at now: EventTime) {
        forms.append(request)
        endWindow(by: now)
        arm()
    }

    /// Carries out an order with the commit that the end of the loop's turn makes.
    /// - Parameter done: what became of it; a disk that refuses refuses the order, which is not tried again.
    func order(_ order: QueueOrder, at now: EventTime, done: @escaping (OrderResult) -> Void) {
        orders.append((order, done))
        endWindow(by: now)
        arm()
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
            states: states, orders: orders.map(\.order), forms: forms)
        let answers = orders.map(\.done)
        underWay = commit
        rows = []
        settlements = []
        states = []
        forms = []
        orders = []
        windowEnds = nil
        commitWanted = false
        alarm?.deadline = nil
        let waiters = self.waiters
        self.waiters = []
        let submitted = loop.now
        writer.submit(commit) { [unowned self] result in
            underWay = nil
            slowestCommit = max(slowestCommit, loop.now.seconds(since: submitted))
            switch result {
            case .success(let reply):
                succeeded(reply, commit)
                for (result, answer) in zip(reply.orders, answers) { answer(result) }
            case .failure(let error):
                failed(error, commit)
                for answer in answers { answer(.refused(error.description)) }
            }
            for waiter in waiters { waiter() }
            // What was recorded while the commit was under way waits for an alarm that nobody has set yet.
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
        windowEnds = loop.now + min(max(settings.commitWindow, Self.retryDelay.lowerBound), Self.retryDelay.upperBound)
        switch problem.occurred(at: loop.now.nanoseconds) {
        case .suppressed: break
        default: log.queueProblem(error.description, waiting: rows.count)
        }
        refused(commit.forms, loop.now)
    }

    private func endWindow(by instant: EventTime) {
        windowEnds = windowEnds.map { min($0, instant) } ?? instant
    }

    private func arm() {
        if underWay == nil { alarm?.deadline = windowEnds }
    }

    /// Ends the writer's thread, and waits no longer than this for a commit that the disk is busy with.
    /// - Returns: whether it ended; if not, nobody can say what became of that commit.
    @discardableResult
    func close(patience: Duration) -> Bool {
        loop.forget(writer.descriptor)
        return writer.close(patience: patience)
    }
}
