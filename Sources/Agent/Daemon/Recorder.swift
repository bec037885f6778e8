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
        /// Rows that are kept while the disk refuses; then some go, counted.
        var ringMax = 10_000
        /// Which of them. The default is `dropOldest`.
        var onFull = OutboxSettings.OnFull.dropOldest
        /// Metres; see `OutboxSettings.bound`.
        var bound = 5.0
        /// Those with a cursor, which can be sent to from memory.
        var endpoints: [EndpointSettings] = []
        /// Of the running system; nil when it has none.
        var bootID: String?
        /// So long after a medium began to fail nothing is sent from memory: the rows may be on disk.
        var doubt = Duration.seconds(10)
        /// So long a disk has to refuse before rows that lie on it are sent without its knowledge.
        var storedPatience = Duration.seconds(60)
    }

    /// Acknowledged rows alone make a commit only after this long, so that a parked and drained tracker writes nothing.
    private static let settlementPatience = Duration.seconds(900)

    /// A request takes no longer than this; then nobody knows what became of it.
    private static let sendingPatience = Duration.seconds(90)
    /// The same while somebody waits for the commit, who may be the end of the program.
    private static let hurriedPatience = Duration.seconds(3)

    /// When rows of a damaged queue are being brought back, the next ones are due so long after the last.
    private static let salvageDelay = Duration.seconds(1)

    private(set) var settings: Settings
    let writer: OutboxWriter
    private let log: AgentLog
    let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var problem = RepeatGate()

    var ring = RowRing()
    private(set) var underWay: (commit: Commit, held: [RowRing.Held])?
    private(set) var retry = DiskRetry()
    /// What is sent from memory, as long as the disk refuses.
    var memory: MemoryEpisode?
    private var dropsTold = DropLog()
    private(set) var settlements: [Settlement] = []
    /// By endpoint: rows on disk that it has had, which the disk is to be told.
    var hadRows: [String: [ClosedRange<Int64>]] = [:]
    private var states: [Commit.StateChange] = []
    private var forms: [FormRequest] = []
    private var orders: [(order: QueueOrder, done: (OrderResult) -> Void)] = []
    private(set) var windowEnds: EventTime?
    private(set) var commitWanted = false
    private var waiters: [() -> Void] = []

    /// Rows that the ring gave up while the disk refused.
    var ringDropped: Int { ring.dropped }
    /// Rows that every required endpoint got from memory, so that they never came to disk.
    var sentFromRAM: Int { ring.sent }
    /// Rows in memory that no commit has taken yet.
    var rows: [NewRow] { ring.rows }
    /// The disk has refused the last commit.
    var isDiskBad: Bool { problem.isOpen }
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
    /// Newest trusted time of the receiver, Unix milliseconds; nil = none yet.
    var receiverMs: () -> Int64? = { nil }
    /// A commit succeeded, which carried these form requests.
    var committed: (CommitReply, [FormRequest], EventTime) -> Void = { _, _, _ in }
    /// The disk refused a commit with these form requests.
    var refused: ([FormRequest], EventTime) -> Void = { _, _ in }
    /// Rows of this endpoint were read from a disk that refuses: a batch can be made of them.
    var storedRowsRead: (String, EventTime) -> Void = { _, _ in }

    init(
        settings: Settings, writer: OutboxWriter, current: CommitReply, openProblem: OutboxError? = nil, log: AgentLog,
        loop: EventLoop
    ) throws(SystemError) {
        self.settings = settings
        self.writer = writer
        self.log = log
        self.loop = loop
        latest = current
        alarm = loop.alarm { [unowned self] now in commit(at: now) }
        try loop.watch(writer.descriptor) { [unowned self] _, _ in self.writer.drain() }
        if let openProblem { refusedBy(openProblem) }
        // Nothing that is recorded may come for long.
        if current.recovery.isSalvaging { endWindow(by: loop.now + Self.salvageDelay) }
        arm()
    }

    /// So many rows make a commit by themselves.
    var rowsMax: Int { settings.rowsMax }
    /// Rows in memory, those under way included.
    var held: Int { ring.count + (underWay?.held.count ?? 0) }

    /// Bytes of the queue's files, the log beside it included.
    var bytesOnDisk: Int { writer.bytesOnDisk }

    /// What is in memory already waits no longer than the new window.
    func reload(commitWindow: Duration, at now: EventTime) {
        settings.commitWindow = commitWindow
        guard windowEnds != nil, !problem.isOpen else { return }
        endWindow(by: now + commitWindow)
        arm()
    }

    /// Takes a row; it reaches the disk with a later commit.
    func record(_ row: NewRow, at now: EventTime) {
        ring.append(row)
        // Only a disk that refuses is given longer than the window.
        if !problem.isOpen {
            endWindow(by: now + settings.commitWindow)
        } else if windowEnds == nil {
            endWindow(by: now + max(settings.commitWindow, retry.pause))
        }
        ring.limit(to: settings.ringMax, onFull: settings.onFull, bound: settings.bound)
        // Never from in here: tracker and source are ahead of the row that is being recorded. And a disk that has just
        // refused is not asked again for each row.
        if ring.count >= settings.rowsMax, !problem.isOpen { windowEnds = now }
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
        if !problem.isOpen || windowEnds == nil { endWindow(by: now) }
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
    /// What is being sent from memory is waited for, but not for long.
    /// - Parameter done: called once everything that is held now is on disk, or the disk has refused it.
    func commit(at now: EventTime, done: (() -> Void)? = nil) {
        if let done { waiters.append(done) }
        guard underWay == nil else {
            commitWanted = true
            return
        }
        if isSending, let since = memory?.sendingSince {
            let patience = waiters.isEmpty ? Self.sendingPatience : Self.hurriedPatience
            if now.duration(since: since) < patience {
                // As soon as it is answered; until then nothing else is sent from memory.
                commitWanted = true
                windowEnds = since + patience
                return arm()
            }
            ring.abandonSending()
            memory?.sendingStored = []
        }
        let (trackerState, sourceState) = snapshot()
        let taken = ring.takeAll()
        let commit = Commit(
            rows: taken.map(\.row), trackerState: trackerState, sourceState: sourceState, settlements: settlements,
            states: states, orders: orders.map(\.order), forms: forms,
            had: hadRows.map { HadRows(endpoint: $0.key, ranges: $0.value) }, receiverMs: receiverMs())
        let answers = orders.map(\.done)
        underWay = (commit, taken)
        settlements = []
        states = []
        forms = []
        orders = []
        hadRows = [:]
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
                failed(error, commit, taken)
                for answer in answers { answer(.refused(error.description)) }
            }
            for waiter in waiters { waiter() }
            // What was recorded while the commit was under way waits for an alarm that nobody has set yet.
            if commitWanted { self.commit(at: loop.now) } else { arm() }
        }
    }

    private func succeeded(_ reply: CommitReply, _ commit: Commit) {
        let now = loop.now
        commits += 1
        dropped += reply.dropped
        if reply.recovery.corruptRecovered > latest.recovery.corruptRecovered { log.queueSetAside(reply.recovery) }
        if latest.recovery.isSalvaging, !reply.recovery.isSalvaging { log.queueSalvaged(reply.recovery) }
        latest = reply
        lastError = nil
        memory = nil
        retry = DiskRetry()
        if problem.ended(at: now.nanoseconds) != nil { log.queueRecovered() }
        if let lines = dropsTold.dropped(reply.dropped, at: now) { log.queueDropped(lines) }
        if reply.recovery.isSalvaging { endWindow(by: now + Self.salvageDelay) }
        committed(reply, commit.forms, now)
    }

    private func failed(_ error: OutboxError, _ commit: Commit, _ taken: [RowRing.Held]) {
        let now = loop.now
        ring.putBack(taken)
        ring.limit(to: settings.ringMax, onFull: settings.onFull, bound: settings.bound)
        settlements = commit.settlements + settlements
        states = commit.states.filter { old in !states.contains { $0.endpoint == old.endpoint } } + states
        for rows in commit.had { hadRows[rows.endpoint] = rows.ranges + (hadRows[rows.endpoint] ?? []) }
        refusedBy(error)
        storedRowsMayBeRead()
        refused(commit.forms, now)
    }

    private func refusedBy(_ error: OutboxError) {
        let now = loop.now
        commitsFailed += 1
        lastError = error
        if memory == nil { memory = (try? HostIdentity.randomBytes(16)).map { MemoryEpisode(since: now, outbox: $0) } }
        windowEnds = now + retry.failed(error.cause, window: settings.commitWindow)
        switch problem.occurred(at: now.nanoseconds) {
        case .suppressed: break
        default:
            log.queueProblem(
                "\(error.description)\(DiskFinding(path: error.path, cause: error.cause).text)", waiting: ring.count)
        }
        arm()
    }

    func endWindow(by instant: EventTime) {
        windowEnds = windowEnds.map { min($0, instant) } ?? instant
    }

    func arm() {
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
