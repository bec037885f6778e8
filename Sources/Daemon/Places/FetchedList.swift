import CLinux
import Configuration
import Glibc
import Places
import Protocols
import WaypostCore
import WaypostHost

/// A list that a server is asked for again and again; its last good reply is kept for a start without a network.
///
/// What is in force is the owner's matter. A reply is read on a thread of its own, since a long one would hold the loop up,
/// and a good one is on disk before it is in force: a process that ends at any time starts again with that list or a
/// newer one. A long one is fetched while no other long one is, since each takes as much memory as all the rest of the daemon,
/// and only a few short ones are fetched at a time. One that is slow gives its turn up to those that wait.
final class FetchedList<Item: ListedItem>: FetchedSource {
    typealias Read = @Sendable ([UInt8]) throws(ListProblems) -> [Item]

    /// What is known of the list in force.
    private struct InForce {
        var version: ListVersion
        var sum: String
        var receivedMs: Int64?
        var count: Int
    }

    /// A reply that was read.
    private struct Reply: Sendable {
        var sum: String
        /// nil = the list in force is the same.
        var items: Result<[Item], ListProblems>?
        /// For the disk.
        var bytes: [UInt8] = []
    }

    /// The shortest and the longest time in which a list keeps its turn although others wait for one.
    private static var turnLeast: Duration { .seconds(60) }
    private static var turnMost: Duration { .seconds(960) }

    let config: ListSourceConfig
    private let path: String
    private let uplink: any Uplink
    private let log: AgentLog
    private let loop: EventLoop
    private let credentials: EndpointCredentials
    private let writer: FileWriter
    private let read: Read
    private let turns: ListTurns
    private var alarm: EventLoop.Alarm?
    private(set) var schedule: FetchSchedule
    private var transfer: UplinkTransfer?
    /// The list of the last time was longer than what may come beside others.
    private var isLong = false
    /// For how long it keeps its turn: twice as long after each that it gave up during this fetch.
    private var turn = turnLeast
    /// Ends its turn; nil = it has none.
    private var turnEnd: EventLoop.Alarm?
    /// Gives the memory of a long list back to the system; nil = there is none to give back.
    private var trimming: EventLoop.Alarm?
    private var isClosed = false
    private var inForce: InForce?
    private var waiters: [(FetchEnding) -> Void] = []
    private(set) var problem: String?

    /// What keeps a list from coming into force, before it is written.
    var check: ([Item]) -> ListProblems? = { _ in nil }
    /// Puts it in force, unless that is no longer possible.
    var adopt: ([Item], EventTime) -> ListProblems? = { _, _ in nil }
    /// Age, problem or the time of the next fetch are others now.
    var changed: () -> Void = {}

    /// - Parameters:
    ///   - directory: of state, where the list is kept.
    ///   - earlier: the same source before a reload, which is closed.
    ///   - turns: of all lists.
    ///   - read: what a reply lists.
    init(
        _ config: ListSourceConfig, directory: String, after earlier: FetchedList? = nil,
        uplink: any Uplink, log: AgentLog, loop: EventLoop, turns: ListTurns,
        makeCredentials: (EndpointConfig) -> EndpointCredentials, read: @escaping Read
    ) {
        self.config = config
        path = "\(directory)/\(config.endpoint.settings.name).list"
        (self.uplink, self.log, self.loop, self.read, self.turns) = (uplink, log, loop, read, turns)
        credentials = makeCredentials(config.endpoint)
        schedule = FetchSchedule(every: config.every)
        // One for each file, so that two never write the same draft.
        writer = earlier?.writer ?? FileWriter(mode: 0o600, isDurable: true, loop: loop)
        alarm = loop.alarm { [unowned self] now in fetch(at: now) }
    }

    var count: Int? { inForce?.count }

    // MARK: What is kept

    /// The list that was kept, if it is of this address; it is in force once the owner has taken it.
    /// - Returns: nil where there is none, or none that can be used, which was logged.
    func readKept() -> [Item]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno != ENOENT { log.keptListUnusable(config.label, errorText(errno)) }
            return nil
        }
        defer { Glibc.close(descriptor) }
        guard let bytes = readAll(descriptor, bytesMax: StoredList.fileBytesMax(reply: ListText.bytesMax)),
            let stored = StoredList(bytes)
        else {
            log.keptListUnusable(config.label, "it is damaged")
            return nil
        }
        guard stored.address == address else { return nil }
        do throws(ListProblems) {
            let items = try read(stored.reply)
            isLong = stored.reply.count > ListText.shortBytesMax
            inForce = InForce(
                version: stored.version, sum: StoredList.sum(stored.reply), receivedMs: stored.receivedMs,
                count: items.count)
            return items
        } catch {
            log.keptListUnusable(config.label, error.description.visible(bytesMax: 300))
            return nil
        }
    }

    /// The list in force is not: the next fetch asks for the whole of it.
    func forget() { inForce = nil }

    /// Another one did the same before a reload, and its list stays in force.
    func follow(_ earlier: FetchedList) { (inForce, isLong) = (earlier.inForce, earlier.isLong) }

    private var address: String { StoredList.sum(config.url.utf8) }

    // MARK: Times

    /// - Parameter sinceBoot: the host has just started, perhaps with a whole fleet.
    func start(sinceBoot: Bool, at now: EventTime) {
        let isUnfinished = unlink(readingMark) == 0
        schedule.started(sinceBoot: sinceBoot, isUnfinished: isUnfinished, at: now, jitter: loop.host.jitter)
        if isUnfinished { note("waypost ended while it read this list") }
        arm()
    }

    @discardableResult
    func refresh(at now: EventTime, _ done: ((FetchEnding) -> Void)?) -> Duration? {
        if let done { waiters.append(done) }
        credentials.resumed()
        let until = schedule.requested(at: now)
        arm()
        return until?.duration(since: now)
    }

    func linkChanged(at now: EventTime) {
        schedule.linkChanged(at: now)
        arm()
    }

    /// Reads secrets again that are in files.
    func rereadSecrets() { credentials.reread() }

    func close() {
        isClosed = true
        unlink(readingMark)
        alarm?.deadline = nil
        if let transfer { uplink.cancel(transfer) }
        (transfer, waiters) = (nil, [])
        leaveTurns()
    }

    /// Closes it, and removes what is kept.
    func remove() {
        close()
        writer.remove(path)
    }

    func age(at now: EventTime) -> Double? {
        guard let inForce else { return nil }
        if let confirmed = schedule.confirmedAt { return now.seconds(since: confirmed) }
        guard let receivedMs = inForce.receivedMs, loop.host.isClockSynchronised else { return nil }
        return max(0, Double(loop.host.wallClockMs - receivedMs) / 1000)
    }

    private func arm() { alarm?.deadline = isClosed ? nil : schedule.nextDeadline }

    // MARK: One fetch

    private func fetch(at now: EventTime) {
        schedule.fetchStarted()
        ask(at: now, mayRenew: true)
    }

    private func ask(at now: EventTime, mayRenew: Bool) {
        credentials.obtain(at: now) { [weak self] result in
            guard let self, !isClosed else { return }
            do throws(CredentialProblem) {
                _ = try result.get()
                send(mayRenew: mayRenew)
            } catch { failed(error.message) }
        }
    }

    private var places: Turns { isLong ? turns.long : turns.short }

    private func send(mayRenew: Bool, isPutBack: Bool = false) {
        let awaited = { [weak self] () -> Void in self?.giveWay(mayRenew: mayRenew) }
        places.take(self, isPutBack: isPutBack, awaited: awaited) { [weak self] in
            guard let self else { return }
            let end = loop.alarm { [unowned self] _ in giveWay(mayRenew: mayRenew) }
            end.deadline = loop.now + turn
            turnEnd = end
            send(bytesMax: isLong ? ListText.replyBytesMax : ListText.shortBytesMax, mayRenew: mayRenew)
        }
    }

    /// A server that is slow keeps other lists waiting no longer than a turn. What has come of this one is given up: it is asked
    /// for again after those that wait.
    private func giveWay(mayRenew: Bool) {
        guard let transfer, let turnEnd, turnEnd.deadline.map({ $0 <= loop.now }) ?? true, places.isAwaited else {
            return
        }
        uplink.cancel(transfer)
        (self.transfer, self.turnEnd) = (nil, nil)
        log.listGaveWay(config.label, after: turn)
        turn = min(turn * 2, Self.turnMost)
        places.leave(self)
        send(mayRenew: mayRenew, isPutBack: true)
    }

    private func send(bytesMax: Int, mayRenew: Bool) {
        let version = inForce?.version
        var request = UplinkRequest(
            method: "GET", url: config.url, headers: [.init("Accept", "application/json")], body: [],
            replyLimit: bytesMax)
        request.headers += version?.conditions ?? []
        do throws(CredentialProblem) { try credentials.complete(&request, batchID: "", at: loop.now) } catch {
            return failed(error.message)
        }
        // The next request comes in hours.
        request.idleLimit = .zero
        transfer = uplink.send(request) { [weak self] outcome in
            guard let self, !isClosed else { return }
            transfer = nil
            if !isLong, case .reply(let reply) = outcome.result, reply.status == 200, reply.bodyIncomplete,
                reply.body.count >= bytesMax
            {
                leaveTurns()
                isLong = true
                return send(mayRenew: mayRenew)
            }
            answered(FetchAnswer(outcome, version: version, bytesMax: bytesMax), mayRenew: mayRenew)
        }
    }

    private func answered(_ answer: FetchAnswer, mayRenew: Bool) {
        switch answer {
        case .unchanged: finish(.unchanged)
        case .list(let body, let version): received(body, version)
        case .failed(let words, _, isUnauthorised: true) where mayRenew:
            leaveTurns()
            credentials.refresh(at: loop.now) { [weak self] renewal in
                guard let self, !isClosed else { return }
                if renewal == .new { ask(at: loop.now, mayRenew: false) } else { failed(words) }
            }
        case .failed(let words, let asked, _): failed(words, asked: asked)
        }
    }

    /// A file that is there while a long list is read: it outlives the process if that ends meanwhile.
    private var readingMark: String { path + ".reading" }
    /// The card is spared where the list is too short to do harm.
    private static var markedAbove: Int { 65_536 }

    private func received(_ body: [UInt8], _ version: ListVersion) {
        isLong = body.count > ListText.shortBytesMax
        if isLong {
            trimming = loop.alarm { [unowned self] _ in
                trimming = nil
                waypost_trim_heap()
            }
        }
        turns.reading.take(self) { [weak self] in self?.read(body, version) }
    }

    private func read(_ body: [UInt8], _ version: ListVersion) {
        if body.count > Self.markedAbove {
            let mark = open(readingMark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            if mark >= 0 { Glibc.close(mark) }
        }
        let receivedMs = loop.host.isClockSynchronised ? loop.host.wallClockMs : nil
        let stored = StoredList(address: address, version: version, receivedMs: receivedMs, reply: body)
        do {
            try loop.inBackground("cannot read the list") { [read, known = inForce?.sum] in
                Self.read(stored, read, known: known)
            } then: { [weak self] reply in
                guard let self, !isClosed else { return }
                taken(reply, version, receivedMs)
            }
        } catch { failed("\(error)") }
    }

    /// - Parameter known: the sum of the list in force.
    private static func read(_ stored: StoredList, _ read: Read, known: String?) -> Reply {
        let sum = StoredList.sum(stored.reply)
        guard sum != known else { return Reply(sum: sum) }
        do throws(ListProblems) {
            return Reply(sum: sum, items: .success(try read(stored.reply)), bytes: stored.bytes)
        } catch {
            return Reply(sum: sum, items: .failure(error))
        }
    }

    private func taken(_ reply: Reply, _ version: ListVersion, _ receivedMs: Int64?) {
        switch reply.items {
        case nil:
            // The same again, from a server that knows no conditions: nothing is written for that.
            inForce?.version = version
            finish(.unchanged)
        case .failure(let problems): refused(problems)
        case .success(let items):
            if let problems = check(items) { return refused(problems) }
            writer.write(reply.bytes, to: path) { [weak self] problem in
                guard let self, !isClosed else { return }
                // It comes into force all the same, but not at the next start.
                if let problem { log.listNotKept(config.label, problem) }
                if let problems = adopt(items, loop.now) { return refused(problems) }
                inForce = InForce(version: version, sum: reply.sum, receivedMs: receivedMs, count: items.count)
                finish(.taken)
            }
        }
    }

    private func refused(_ problems: ListProblems) {
        failed("the list was refused: \(problems.description.visible(bytesMax: 300))")
    }

    private func failed(_ words: String, asked: Duration? = nil) {
        schedule.failed(asked: asked, at: loop.now, jitter: loop.host.jitter)
        note(words)
        end(.failed(words))
    }

    /// - Parameter words: what is wrong, until a fetch succeeds.
    private func note(_ words: String) {
        let next = schedule.nextDeadline?.seconds(since: loop.now) ?? 0
        if words != problem { log.listNotFetched(config.label, words, next: next, hasList: inForce != nil) }
        problem = words
    }

    private func finish(_ ending: FetchEnding) {
        schedule.fetched(at: loop.now, jitter: loop.host.jitter)
        if problem != nil { log.listFetchedAgain(config.label) }
        problem = nil
        end(ending)
    }

    private func leaveTurns() {
        turnEnd = nil
        turns.reading.leave(self)
        turns.long.leave(self)
        turns.short.leave(self)
    }

    private func end(_ ending: FetchEnding) {
        unlink(readingMark)
        leaveTurns()
        turn = Self.turnLeast
        // Until then the texts and items of this fetch are gone.
        trimming?.deadline = loop.now + .seconds(1)
        let waiting = waiters
        waiters = []
        arm()
        for done in waiting { done(ending) }
        changed()
    }
}
