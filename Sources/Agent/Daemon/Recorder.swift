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
    }

    /// Acknowledged rows alone make a commit only after this long, so that a parked and drained tracker writes nothing.
    private static let settlementPatience = Duration.seconds(900)

    /// A request takes no longer than this; then nobody knows what became of it.
    private static let sendingPatience = Duration.seconds(90)

    /// When rows of a damaged queue are being brought back, the next ones are due so long after the last.
    private static let salvageDelay = Duration.seconds(1)

    private let settings: Settings
    private let writer: OutboxWriter
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var problem = RepeatGate()

    private var ring = RowRing()
    private var underWay: (commit: Commit, held: [RowRing.Held])?
    private var retry = DiskRetry()
    /// Uuid of the keys of what is sent from memory, as long as the disk refuses.
    private var episode: [UInt8]?
    private var sendingSince: EventTime?
    private var dropsTold = DropLog()
    private var settlements: [Settlement] = []
    private var states: [Commit.StateChange] = []
    private var forms: [FormRequest] = []
    private var orders: [(order: QueueOrder, done: (OrderResult) -> Void)] = []
    private var windowEnds: EventTime?
    private var commitWanted = false
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

    /// Takes a row; it reaches the disk with a later commit.
    func record(_ row: NewRow, at now: EventTime) {
        ring.append(row)
        // Only a disk that has just refused is given longer than the window.
        if !problem.isOpen || windowEnds == nil { endWindow(by: now + settings.commitWindow) }
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
    /// What is being sent from memory is waited for, a minute at most, unless somebody waits for `done`.
    /// - Parameter done: called once everything that is held now is on disk, or the disk has refused it.
    func commit(at now: EventTime, done: (() -> Void)? = nil) {
        if let done { waiters.append(done) }
        guard underWay == nil else {
            commitWanted = true
            return
        }
        if ring.isSending {
            if done == nil, let sendingSince, now.duration(since: sendingSince) < Self.sendingPatience {
                windowEnds = now + retry.pause
                return arm()
            }
            ring.abandonSending()
        }
        let (trackerState, sourceState) = snapshot()
        let taken = ring.takeAll()
        let commit = Commit(
            rows: taken.map(\.row), trackerState: trackerState, sourceState: sourceState, settlements: settlements,
            states: states, orders: orders.map(\.order), forms: forms, receiverMs: receiverMs())
        let answers = orders.map(\.done)
        underWay = (commit, taken)
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
        episode = nil
        retry = DiskRetry()
        if problem.ended(at: now.nanoseconds) != nil { log.queueRecovered() }
        if let lines = dropsTold.dropped(reply.dropped, at: now) { log.queueDropped(lines) }
        if reply.recovery.isSalvaging { endWindow(by: now + Self.salvageDelay) }
        committed(reply, commit.forms, now)
    }

    private func failed(_ error: OutboxError, _ commit: Commit, _ taken: [RowRing.Held]) {
        let now = loop.now
        commitsFailed += 1
        lastError = error
        ring.putBack(taken)
        ring.limit(to: settings.ringMax, onFull: settings.onFull, bound: settings.bound)
        settlements = commit.settlements + settlements
        states = commit.states.filter { old in !states.contains { $0.endpoint == old.endpoint } } + states
        windowEnds = now + retry.failed(error.cause, window: settings.commitWindow)
        switch problem.occurred(at: now.nanoseconds) {
        case .suppressed: break
        default:
            log.queueProblem(
                "\(error.description)\(DiskFinding(path: error.path, cause: error.cause).text)", waiting: ring.count)
        }
        refused(commit.forms, now)
    }

    private func endWindow(by instant: EventTime) {
        windowEnds = windowEnds.map { min($0, instant) } ?? instant
    }

    private func arm() {
        if underWay == nil { alarm?.deadline = windowEnds }
    }

    /// A batch of rows that this endpoint wants and has not had, straight from memory, while the disk refuses.
    ///
    /// nil unless nothing of this endpoint waits on disk, so that order is kept. Its keys are of an outbox that exists for
    /// this episode only, so that no key ever names two records; after a crash rows may be repeated under other keys.
    /// Settle it with `memorySettled`; until then nothing is committed that nobody waits for.
    func memoryBatch(for endpoint: String, limit: Int, sentMs: Int64?) -> Batch? {
        guard isDiskBad, underWay == nil, limit > 0,
            let sender = settings.endpoints.first(where: { $0.name == endpoint }),
            let depth = latest.depths.first(where: { $0.endpoint == endpoint }), depth.waiting + depth.inFlight == 0
        else { return nil }
        if episode == nil { episode = try? HostIdentity.randomBytes(16) }
        guard let episode else { return nil }
        var rows: [QueuedLocation] = []
        ring.take(sender.planningDepth(limit: limit), for: sender) { held in
            let waiting = held.map(queued)
            let plan = sender.plan(waiting, limit: limit, isEnd: true, receiverMs: receiverMs())
            guard let places = plan.batches.first else { return [] }
            rows = places.map { waiting[$0] }
            // What is settled unsent goes the way of these; only what belongs to quarantine needs the disk.
            return places + plan.settled.compactMap { if case .refused = $0.why { nil } else { $0.index } }
        }
        guard let first = rows.first, let last = rows.last else { return nil }
        sendingSince = loop.now
        var batch = Batch(endpoint: endpoint, id: "", rows: rows, sentMs: sentMs, outbox: episode)
        batch.id = "\(batch.outboxName)-\(endpoint)-\(first.seq)-\(last.seq)"
        return batch
    }

    private func queued(_ held: RowRing.Held) -> QueuedLocation {
        QueuedLocation(
            seq: held.number, bootID: settings.bootID, receivedMs: held.row.receivedMs, location: held.row.location)
    }

    /// Rows in memory that an endpoint has not had; nil when a commit is under way, or more may wait on disk.
    func memoryRows(for endpoint: String) -> Int? {
        guard isDiskBad, underWay == nil, let sender = settings.endpoints.first(where: { $0.name == endpoint }),
            let depth = latest.depths.first(where: { $0.endpoint == endpoint }), depth.waiting + depth.inFlight == 0
        else { return nil }
        return ring.held.count { sender.wants($0.row.location) && !$0.row.settledFor.contains(endpoint) }
    }

    /// What became of a memory batch. Rows that are not accepted stay, for another one or for the disk.
    func memorySettled(_ batch: Batch, accepted: Bool) {
        ring.settle(batch.endpoint, accepted: accepted, among: settings.endpoints)
        // The disk was not asked meanwhile.
        if !ring.isSending, windowEnds == nil, !ring.isEmpty { endWindow(by: loop.now + retry.pause) }
        arm()
    }

    /// Ends the writer's thread, and waits no longer than this for a commit that the disk is busy with.
    /// - Returns: whether it ended; if not, nobody can say what became of that commit.
    @discardableResult
    func close(patience: Duration) -> Bool {
        loop.forget(writer.descriptor)
        return writer.close(patience: patience)
    }
}
