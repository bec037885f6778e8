import Delivery
import EventLoop
import Outbox
import Positioning
import Systemd

/// Hands rows to the queue: one commit per commit window, or at once when something important happened.
///
/// One commit is under way at a time, on the writer's thread; what comes meanwhile waits for the next one. While the disk
/// refuses, the queue takes commits in memory, and the disk is asked again with growing pauses.
final class Recorder {
    struct Settings: Hashable, Sendable {
        /// The longest time a row waits in memory: what a pulled plug can cost. The default is 10 s.
        var commitWindow = Duration.seconds(10)
        /// Rows that make a commit by themselves.
        var rowsMax = 1000
        /// Rows that wait while the disk is busy with a commit; then some go, counted.
        var ringMax = 10_000
        /// Which of them. The default is `dropOldest`.
        var onFull = OutboxSettings.OnFull.dropOldest
        /// Rows on a disk that refuses and that cannot be read keep newer ones waiting no longer than this.
        var unreadableLimit = Duration.seconds(600)
    }

    /// Acknowledged rows alone make a commit only after this long, so that a parked and drained tracker writes nothing.
    private static let settlementWindow = Duration.seconds(900)

    private(set) var settings: Settings
    private let started: EventTime
    let writer: any CommitWriter
    private let log: AgentLog
    let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var problem = RepeatGate()

    private var ring = RowRing()
    private var underWay: Commit?
    private var dropLog = DropLog()
    private var answers: [BatchAnswer] = []
    private var states: [Commit.StateChange] = []
    private var reloaded: [EndpointSettings] = []
    private var forms: [FormRequest] = []
    private var orders: [(order: QueueOrder, done: (OrderResult) -> Void)] = []
    private(set) var windowEnds: EventTime?
    private var commitWanted = false
    private var waiters: [() -> Void] = []

    /// Since when the disk refuses, and when it is asked again; nil = it does not.
    private var refusal: (since: EventTime, retry: DiskRetry, askAt: EventTime)?
    /// It was logged that rows on disk wait because they cannot be read.
    private var unreadableLogged = false

    /// Rows that memory gave up while the disk was busy or refused.
    var ringDropped: Int { ring.dropped + droppedInMemory }
    private var droppedInMemory = 0
    /// Rows that every required endpoint got from memory, so that they never came to disk.
    var sentFromRAM: Int { latest.sentUnstored }
    /// The disk has refused the last commit.
    var isDiskBad: Bool { refusal != nil }
    var recovery: Recovery { latest.recovery }
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
    /// See `TrustedTime`.
    var trustedTime: (EventTime) -> UTCTime? = { _ in nil }
    /// A commit is done, which carried these form requests: on disk, or in memory while the disk refuses.
    var committed: (CommitReply, [FormRequest], EventTime) -> Void = { _, _, _ in }
    /// A commit with these form requests was not done.
    var refused: ([FormRequest], EventTime) -> Void = { _, _ in }

    init(
        settings: Settings, writer: any CommitWriter, current: CommitReply, log: AgentLog, loop: EventLoop
    ) throws(SystemError) {
        self.settings = settings
        self.writer = writer
        self.log = log
        self.loop = loop
        latest = current
        started = loop.now
        alarm = loop.alarm { [unowned self] now in commit(at: now) }
        try loop.watch(writer.descriptor) { [unowned self] _, _ in self.writer.drain() }
        if let error = current.refusal { diskRefused(error) }
        // Nothing that is recorded may come for long.
        if let due = current.recovery.due { endWindow(by: loop.now + due) }
        arm()
    }

    /// So many rows make a commit by themselves.
    var rowsMax: Int { settings.rowsMax }
    /// Rows that are not on disk.
    var held: Int { ring.count + (underWay?.rows.count ?? 0) + latest.unstored }
    /// Rows in the queue, on disk and in memory.
    var depth: Int { latest.rows + ring.count + (underWay?.rows.count ?? 0) }
    /// Rows that no commit has taken yet.
    var rows: [NewRow] { ring.rows }

    /// Bytes of the queue's files, the log beside it included.
    var bytesOnDisk: Int { writer.bytesOnDisk }

    /// Rows that this endpoint waits for and no commit has taken yet.
    func uncommitted(for endpoint: EndpointSettings) -> Int { ring.count(for: endpoint) }

    /// What is in memory already waits no longer than the new window.
    func reload(commitWindow: Duration, _ endpoints: [EndpointSettings], at now: EventTime) {
        settings.commitWindow = commitWindow
        reloaded = endpoints
        guard windowEnds != nil else { return }
        endWindow(by: now + commitWindow)
        arm()
    }

    /// Takes a row; it reaches the disk with a later commit.
    func record(_ row: NewRow, at now: EventTime) {
        ring.append(row)
        endWindow(by: now + settings.commitWindow)
        ring.limit(to: settings.ringMax, onFull: settings.onFull)
        // Never from in here: tracker and source are ahead of the row that is being recorded.
        if ring.count >= settings.rowsMax { windowEnds = now }
        arm()
    }

    /// Takes along with the next commit; alone it waits.
    /// - Parameter soon: commits at the end of the loop's turn.
    func settle(_ answer: BatchAnswer, soon: Bool = false, at now: EventTime) {
        answers.append(answer)
        endWindow(by: soon ? now : now + Self.settlementWindow)
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
    ///
    /// - Parameter done: called once everything that is held now is on disk, or the disk has refused it. Who waits has the
    ///   disk asked.
    func commit(at now: EventTime, done: (() -> Void)? = nil) {
        if let done { waiters.append(done) }
        guard underWay == nil else {
            commitWanted = true
            return
        }
        let (trackerState, sourceState) = snapshot()
        var commit = Commit(
            rows: ring.takeAll(), trackerState: trackerState, sourceState: sourceState, answers: answers,
            states: states, orders: orders.map(\.order), forms: forms,
            ages: AgeReference(now: now, started: started, trusted: trustedTime(now)))
        commit.reloaded = reloaded
        if let refusal {
            commit.asksDisk = refusal.askAt <= now || !waiters.isEmpty
            commit.passesUnreadable = now.duration(since: refusal.since) >= settings.unreadableLimit
        }
        let orderDone = orders.map(\.done)
        underWay = commit
        answers = []
        states = []
        reloaded = []
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
                for (result, done) in zip(reply.orders, orderDone) { done(result) }
            case .failure(let error):
                failed(error, commit)
                for done in orderDone { done(.refused(error.description)) }
            }
            for waiter in waiters { waiter() }
            // What was recorded while the commit was under way waits for an alarm that nobody has set yet.
            if commitWanted { self.commit(at: loop.now) } else { arm() }
        }
    }

    private func succeeded(_ reply: CommitReply, _ commit: Commit) {
        let now = loop.now
        if reply.recovery.corruptRecovered > latest.recovery.corruptRecovered { log.queueSetAside(reply.recovery) }
        if latest.recovery.isSalvaging, !reply.recovery.isSalvaging { log.queueSalvaged(reply.recovery) }
        latest = reply
        dropped += reply.dropped
        if let error = reply.refusal {
            droppedInMemory += reply.dropped.total
            if reply.passedUnreadable, !unreadableLogged {
                unreadableLogged = true
                log.queueUnreadable(error.path)
            }
            if commit.asksDisk { diskRefused(error) }
        } else {
            commits += 1
            lastError = nil
            refusal = nil
            unreadableLogged = false
            if problem.ended(at: now.nanoseconds) != nil { log.queueRecovered() }
        }
        if let lines = dropLog.dropped(reply.dropped, at: now) { log.queueDropped(lines) }
        if let due = reply.recovery.due { endWindow(by: now + due) }
        committed(reply, commit.forms, now)
    }

    /// Memory failed as well.
    private func failed(_ error: OutboxError, _ commit: Commit) {
        ring.putBack(commit.rows)
        ring.limit(to: settings.ringMax, onFull: settings.onFull)
        answers = commit.answers + answers
        states = commit.states.filter { old in !states.contains { $0.endpoint == old.endpoint } } + states
        diskRefused(error)
        endWindow(by: loop.now + settings.commitWindow)
        refused(commit.forms, loop.now)
    }

    private func diskRefused(_ error: OutboxError) {
        let now = loop.now
        commitsFailed += 1
        lastError = error
        var retry = refusal?.retry ?? DiskRetry()
        let pause = retry.failed(error.cause, window: settings.commitWindow)
        refusal = (refusal?.since ?? now, retry, now + pause)
        let verdict = problem.occurred(at: now.nanoseconds)
        guard verdict != .suppressed else { return }
        let finding = DiskFinding(path: error.path, cause: error.cause).text
        log.queueProblem("\(error.description)\(finding)\(verdict.words)", waiting: held)
    }

    func endWindow(by instant: EventTime) {
        windowEnds = windowEnds.map { min($0, instant) } ?? instant
    }

    func arm() {
        guard underWay == nil else { return }
        alarm?.deadline = [windowEnds, refusal?.askAt].compactMap { $0 }.min()
    }

    /// Ends the writer's thread, and waits no longer than this for a commit that the disk is busy with.
    /// - Returns: whether it ended; if not, nobody can say what became of that commit.
    @discardableResult
    func close(timeout: Duration) -> Bool {
        loop.forget(writer.descriptor)
        return writer.close(timeout: timeout)
    }
}

extension DropCounts {
    fileprivate var total: Int { oldest + newest + thinned + expired + events }
}
