import Delivery
import Profiles
import Queue
import WaypostCore
import WaypostHost

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
        /// Most rows that wait while the disk is busy with a commit; more are dropped and counted.
        var ringMax = 10_000
        /// Which of them. The default is `dropOldest`.
        var onFull = OutboxSettings.OnFull.dropOldest
    }

    /// Since the start.
    struct Counters {
        fileprivate(set) var commits = 0
        fileprivate(set) var commitsFailed = 0
        /// Seconds that the slowest commit took.
        fileprivate(set) var slowestCommit = 0.0
        /// What retention removed.
        fileprivate(set) var dropped = DropCounts()
        /// Of these, what memory gave up while the disk refused.
        fileprivate var droppedInMemory = 0
    }

    /// Acknowledged rows alone make a commit only after this time, so that a parked and drained tracker writes nothing.
    private static let acknowledgementWindow = Duration.seconds(900)

    private var settings: Settings
    private let started: EventTime
    private let writer: any CommitWriter
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var pending = PendingCommit()
    private var underWay: Commit?
    private var windowEnds: EventTime?
    private var commitWanted = false
    private var disk: DiskHealth
    private(set) var counters = Counters()
    private(set) var latest: CommitReply
    /// When another program last changed the files of the queue.
    private var replacedAt: EventTime?
    private static let replacementShown = Duration.seconds(86_400)
    /// When the limits of the queue last deleted something.
    private var deletedAt: EventTime?
    private static let deletionShown = Duration.seconds(3600)
    /// When rows of a damaged queue were last given up in this process.
    private var lostAt: EventTime?

    /// As of the rows recorded so far.
    var snapshot: () -> PartStates = { PartStates() }
    /// A commit is due: what would need one soon may join it.
    var beforeCommit: (EventTime) -> Void = { _ in }
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
        disk = DiskHealth(log: log)
        latest = current
        started = loop.now
        if current.replacement.count > 0 { replacedAt = started }
        alarm = loop.alarm { [unowned self] now in
            beforeCommit(now)
            commit(at: now)
        }
        try loop.watch(writer.descriptor) { [unowned self] _, _ in self.writer.drain() }
        if let error = current.refusal { diskRefused(error) }
        // It may be long until anything is recorded.
        if let pause = current.recovery.nextStepIn { endWindow(by: loop.now + pause) }
        arm()
    }

    /// This number of rows makes a commit by itself.
    var rowsMax: Int { settings.rowsMax }
    /// Rows that are not on disk.
    var held: Int { uncommittedCount + latest.unstored }
    /// Rows in the queue, on disk and in memory.
    var depth: Int { latest.rows + uncommittedCount }
    private var uncommittedCount: Int { pending.ring.count + (underWay?.rows.count ?? 0) }
    /// Rows that memory gave up while the disk was busy or refused.
    var ringDropped: Int { pending.ring.dropped + counters.droppedInMemory }
    /// Rows that every required endpoint got from memory, so that they never came to disk.
    var sentFromRAM: Int { latest.sentUnstored }
    /// The disk has refused the last commit.
    var isDiskBad: Bool { disk.isBad }
    var lastError: OutboxError? { disk.lastError }
    /// Nothing waits for a commit, and the disk took the last one.
    var isSettled: Bool { underWay == nil && windowEnds == nil && !disk.isBad }
    var recovery: Recovery { latest.recovery }

    /// What another program has done to the files of the queue within the last day, for people; nil = nothing.
    func replacement(at now: EventTime) -> String? {
        guard let replacedAt, now.duration(since: replacedAt) < Self.replacementShown else { return nil }
        return latest.replacement.words
    }

    /// What the limits of the queue have deleted, while they do, and what they keep it from, for people; nil = nothing.
    func limitWords(at now: EventTime) -> String? {
        let shortage = latest.shortage.map { $0.words }
        guard let deletedAt, now.duration(since: deletedAt) < Self.deletionShown else { return shortage }
        let deleted =
            "\(InWords.count(counters.dropped.lost, "location")) deleted since the start by the limits of the queue"
        return [deleted + (latest.limitReached.map { ": \($0.cure)" } ?? ""), shortage].compactMap { $0 }
            .joined(separator: "; ")
    }

    /// What was given up of damaged queues within the last week, for people; nil = nothing.
    func loss(at now: EventTime) -> String? {
        recovery.recentLossWords(after: lostAt.map { now.duration(since: $0) }, trusted: trustedTime(now))
    }

    /// Bytes of the queue's files, the log beside it included.
    var bytesOnDisk: Int { writer.bytesOnDisk }

    /// Rows that this endpoint waits for and no commit has taken yet.
    func uncommitted(for endpoint: EndpointSettings) -> Int { pending.ring.count(for: endpoint) }

    /// What was answered since the commit under way was taken, or the last one, by the id of the batch.
    ///
    /// - Parameter senders: of the batches.
    func answers(by senders: [String]) -> [String: BatchAnswer.Outcome] { pending.answers(by: senders) }

    /// What is in memory already waits no longer than the new window.
    func reload(commitWindow: Duration, _ endpoints: [EndpointSettings], at now: EventTime) {
        settings.commitWindow = commitWindow
        pending.set(endpoints)
        if windowEnds != nil { commit(by: now + commitWindow) }
    }

    /// The row reaches the disk with a later commit.
    func record(_ row: consuming NewRow, at now: EventTime) {
        pending.add(row)
        endWindow(by: now + settings.commitWindow)
        pending.limit(to: settings.ringMax, onFull: settings.onFull)
        // Not committed from here: tracker and source are already ahead of this row.
        if pending.ring.count >= settings.rowsMax { windowEnds = now }
        arm()
    }

    /// Joins the next commit; alone it waits up to 15 min for one.
    /// - Parameter soon: commits at the end of the loop's turn.
    func acknowledge(_ answer: BatchAnswer, soon: Bool = false, at now: EventTime) {
        pending.add(answer)
        commit(by: soon ? now : now + Self.acknowledgementWindow)
    }

    /// Commits at the end of the loop's turn, together with whatever else comes up in it.
    func stateChanged(_ change: Commit.StateChange, at now: EventTime) {
        pending.add(change)
        commit(by: now)
    }

    /// Forms at the end of the loop's turn, so that rows and the batches of all endpoints share one commit.
    func form(_ request: FormRequest, at now: EventTime) {
        pending.add(request)
        commit(by: now)
    }

    /// Carries out an order with the commit that the end of the loop's turn makes.
    /// - Parameter done: what became of it; a disk that refuses refuses the order, which is not tried again.
    func order(_ order: QueueOrder, at now: EventTime, done: @escaping (OrderResult) -> Void) {
        pending.add(order, done: done)
        commit(by: now)
    }

    /// Commits what is held, or as soon as the commit under way has ended.
    ///
    /// - Parameter done: called once everything that is held now is on disk, or the disk has refused it. The disk is
    ///   tried even if it has just refused.
    func commit(at now: EventTime, done: (() -> Void)? = nil) {
        if let done { pending.add(waiter: done) }
        guard underWay == nil else {
            commitWanted = true
            return
        }
        let isAwaited = pending.isAwaited
        let taken = pending.take(
            snapshot(), ages: AgeReference(now: now, started: started, trusted: trustedTime(now)))
        var commit = taken.commit
        disk.prepare(&commit, isAwaited: isAwaited, at: now)
        underWay = commit
        windowEnds = nil
        commitWanted = false
        alarm?.deadline = nil
        let submitted = loop.now
        writer.submit(commit) { [unowned self, commit] result in
            underWay = nil
            counters.slowestCommit = max(counters.slowestCommit, loop.now.seconds(since: submitted))
            switch result {
            case .success(let reply):
                succeeded(reply, commit)
                for (result, done) in zip(reply.orders, taken.ordered) { done(result) }
            case .failure(let error):
                failed(error, commit)
                for done in taken.ordered { done(.refused(error.description)) }
            }
            for waiter in taken.waiters { waiter() }
            // What was recorded while the commit was under way waits for an alarm that is not set yet.
            if commitWanted { self.commit(at: loop.now) } else { arm() }
        }
    }

    private func succeeded(_ reply: CommitReply, _ commit: Commit) {
        let now = loop.now
        if reply.recovery.corruptRecovered > latest.recovery.corruptRecovered { log.queueSetAside(reply.recovery) }
        if reply.replacement.count > latest.replacement.count, let words = reply.replacement.words {
            replacedAt = now
            log.queueReplaced(words)
        }
        if latest.recovery.isSalvaging, !reply.recovery.isSalvaging { log.queueSalvaged(reply.recovery) }
        if !reply.recovery.isSalvaging, reply.recovery.incomplete.count > latest.recovery.incomplete.count {
            log.queueMisses(reply.recovery)
        }
        if reply.recovery.lostRows > latest.recovery.lostRows {
            lostAt = now
            log.queueLost(reply.recovery)
        }
        latest = reply
        counters.dropped += reply.dropped
        if let error = reply.refusal {
            counters.droppedInMemory += reply.dropped.total
            if reply.passedUnreadable { disk.passedUnreadable(error) }
            if commit.asksDisk { diskRefused(error) }
        } else {
            counters.commits += 1
            disk.accepted(at: now)
        }
        if reply.dropped.lost > 0 { deletedAt = now }
        disk.dropped(reply.dropped, at: now)
        if let pause = reply.recovery.nextStepIn { endWindow(by: now + pause) }
        committed(reply, commit.forms, now)
    }

    /// Memory failed as well.
    private func failed(_ error: OutboxError, _ commit: Commit) {
        pending.putBack(commit)
        pending.limit(to: settings.ringMax, onFull: settings.onFull)
        diskRefused(error)
        endWindow(by: loop.now + settings.commitWindow)
        refused(commit.forms, loop.now)
    }

    private func diskRefused(_ error: OutboxError) {
        counters.commitsFailed += 1
        disk.refused(error, window: settings.commitWindow, held: held, at: loop.now)
    }

    private func commit(by instant: EventTime) {
        endWindow(by: instant)
        arm()
    }

    private func endWindow(by instant: EventTime) { windowEnds = windowEnds.map { min($0, instant) } ?? instant }

    private func arm() {
        invariant(counters.commits >= 0 && counters.commitsFailed >= 0, "negative counts")
        invariant(pending.ring.count <= max(1, settings.ringMax), "\(pending.ring.count) rows in memory")
        invariant(!pending.hasOrders || windowEnds != nil || underWay != nil, "an order that no commit carries")
        guard underWay == nil else { return }
        alarm?.deadline = windowEnds.map { min($0, disk.askAt ?? $0) } ?? disk.askAt
    }

    /// Ends the writer's thread, and waits no longer than this for a commit that the disk is busy with.
    /// - Returns: whether it ended; if not, it is not known what became of that commit.
    @discardableResult
    func close(timeout: Duration) -> Bool {
        loop.forget(writer.descriptor)
        disk.logsRest()
        return writer.close(timeout: timeout)
    }
}

extension QueueLimit {
    /// Which limit that is, and what helps.
    fileprivate var cure: String {
        switch self {
        case .maxRecords, .maxBytes: "\(rawValue) is reached: raise it, or repair the way to the server"
        case .maxAge: "they were older than max_age: raise it, or repair the way to the server"
        case .minFree: "the file system has less free than min_free: make room, or lower it"
        }
    }
}

extension SpaceShortage {
    fileprivate var words: String {
        "the file system has \(free >> 10) KiB free, of which min_free wants \(wanted >> 10): the queue does not grow, and "
            + "deletes what has no room; make room, or lower min_free"
    }
}

extension DropCounts {
    fileprivate var total: Int { oldest + newest + thinned + expired + events }
}
