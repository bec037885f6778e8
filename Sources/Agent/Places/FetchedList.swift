import Configuration
import Delivery
import EventLoop
import Glibc
import Places
import Positioning

/// A list that a server is asked for again and again; its last good reply is kept for a start without a network.
///
/// What a reply means is the owner's matter. One that the owner takes is on disk before it is in force: a process that ends at
/// any time starts again with that list or a newer one.
final class FetchedList {
    /// How a fetch ended.
    enum Ending: Equatable {
        /// The list in force is the one of the server.
        case unchanged
        /// It is in force now.
        case taken
        /// Why it is not known whether the list in force is still the one.
        case failed(String)
    }

    /// What the owner made of a reply: what puts it in force, unless that is no longer possible, or what is wrong with it.
    typealias Reading = Result<(EventTime) -> ListProblems?, ListProblems>

    /// A list that is good, and being written.
    private struct Pending {
        var adopt: (EventTime) -> ListProblems?
        var version: ListVersion
        var sum: String
        var receivedMs: Int64?
    }

    let config: ListSourceConfig
    private let path: String
    private let bytesMax: Int
    private let uplink: any Uplink
    private let log: AgentLog
    private let loop: EventLoop
    private let credentials: EndpointCredentials
    private let writer: FileWriter
    private var alarm: EventLoop.Alarm?
    private(set) var schedule: FetchSchedule
    private var transfer: UplinkTransfer?
    private var isClosed = false
    /// Of the list in force; nil = there is none.
    private var version: ListVersion?
    private var sum: String?
    private var receivedMs: Int64?
    private var pending: Pending?
    private var waiters: [(Ending) -> Void] = []
    /// The last failure, until a fetch succeeds.
    private(set) var problem: String?

    var read: ([UInt8]) -> Reading = { _ in .success({ _ in nil }) }
    /// Age, problem or the time of the next fetch are others now.
    var changed: () -> Void = {}

    /// - Parameters:
    ///   - directory: of state, where the list is kept.
    ///   - bytesMax: of a reply.
    ///   - earlier: the same source before a reload, which is closed.
    init(
        _ config: ListSourceConfig, directory: String, bytesMax: Int, after earlier: FetchedList? = nil,
        uplink: any Uplink, log: AgentLog, loop: EventLoop,
        makeCredentials: (EndpointConfig) -> EndpointCredentials
    ) {
        self.config = config
        path = "\(directory)/\(config.endpoint.settings.name).list"
        (self.bytesMax, self.uplink, self.log, self.loop) = (bytesMax, uplink, log, loop)
        credentials = makeCredentials(config.endpoint)
        schedule = FetchSchedule(every: config.every)
        // One for each file, so that two never write the same draft.
        writer = earlier?.writer ?? FileWriter(mode: 0o600, isDurable: true, loop: loop)
        alarm = loop.alarm { [unowned self] now in fetch(at: now) }
        writer.done = { [weak self] problem, _ in self?.written(problem) }
    }

    // MARK: What is kept

    /// The reply that was kept, if it is of this address; it is in force once the owner has taken it.
    /// - Returns: nil where there is none, or none that can be used, which was logged.
    func readKept() -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno != ENOENT { log.keptListUnusable(config.label, errorText(errno)) }
            return nil
        }
        defer { Glibc.close(descriptor) }
        guard let bytes = readAll(descriptor, bytesMax: StoredList.fileBytesMax(reply: bytesMax)),
            let stored = StoredList(bytes)
        else {
            log.keptListUnusable(config.label, "it is damaged")
            return nil
        }
        guard stored.address == address else { return nil }
        (version, sum, receivedMs) = (stored.version, StoredList.sum(stored.reply), stored.receivedMs)
        return stored.reply
    }

    /// The list in force is not: the next fetch asks for the whole of it.
    func forget() { (version, sum, receivedMs) = (nil, nil, nil) }

    /// Another one did the same before a reload, and its list stays in force.
    func follow(_ earlier: FetchedList) {
        (version, sum, receivedMs) = (earlier.version, earlier.sum, earlier.receivedMs)
    }

    private var address: String { StoredList.sum(config.url.utf8) }

    // MARK: Times

    /// - Parameter sinceBoot: the host has just started, perhaps with a whole fleet.
    func start(sinceBoot: Bool, at now: EventTime) {
        schedule.started(sinceBoot: sinceBoot, at: now, jitter: loop.host.jitter)
        arm()
    }

    /// - Parameter done: called once the server has answered, unless the source is closed before.
    /// - Returns: for how long the server's wish for a pause delays it; nil = it does not.
    @discardableResult
    func refresh(at now: EventTime, _ done: ((Ending) -> Void)? = nil) -> Duration? {
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
        alarm?.deadline = nil
        if let transfer { uplink.cancel(transfer) }
        (transfer, pending, waiters) = (nil, nil, [])
    }

    /// Closes it, and removes what is kept.
    func remove() {
        close()
        writer.remove(path)
    }

    /// Seconds since the server gave the list or confirmed it; nil where there is no list or the time is not known.
    func age(at now: EventTime) -> Double? {
        guard version != nil else { return nil }
        if let confirmed = schedule.confirmedAt { return now.seconds(since: confirmed) }
        guard let receivedMs, loop.host.isClockSynchronised else { return nil }
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
                try send(at: max(now, loop.now), mayRenew: mayRenew)
            } catch { failed(error.message) }
        }
    }

    private func send(at now: EventTime, mayRenew: Bool) throws(CredentialProblem) {
        let version = version
        var request = UplinkRequest(
            method: "GET", url: config.url, headers: [.init("Accept", "application/json")], body: [],
            replyLimit: bytesMax)
        request.headers += version?.conditions ?? []
        try credentials.complete(&request, batchID: "", at: now)
        // The next request comes in hours.
        request.idleLimit = .zero
        transfer = uplink.send(request) { [weak self] outcome in
            guard let self, !isClosed else { return }
            transfer = nil
            answered(FetchAnswer(outcome, version: version, bytesMax: bytesMax), mayRenew: mayRenew)
        }
    }

    private func answered(_ answer: FetchAnswer, mayRenew: Bool) {
        switch answer {
        case .unchanged: finish(.unchanged)
        case .list(let body, let version): received(body, version)
        case .failed(let words, _, isUnauthorised: true) where mayRenew:
            credentials.refresh(at: loop.now) { [weak self] renewal in
                guard let self, !isClosed else { return }
                if renewal == .new { ask(at: loop.now, mayRenew: false) } else { failed(words) }
            }
        case .failed(let words, let asked, _): failed(words, asked: asked)
        }
    }

    private func received(_ body: [UInt8], _ version: ListVersion) {
        let sum = StoredList.sum(body)
        guard self.version == nil || self.sum != sum else {
            // The same again, from a server that knows no conditions: nothing is written for that.
            self.version = version
            return finish(.unchanged)
        }
        switch read(body) {
        case .failure(let problems): refused(problems)
        case .success(let adopt):
            let receivedMs = loop.host.isClockSynchronised ? loop.host.wallClockMs : nil
            let stored = StoredList(address: address, version: version, receivedMs: receivedMs, reply: body)
            pending = Pending(adopt: adopt, version: version, sum: sum, receivedMs: receivedMs)
            writer.write(stored.bytes, to: path)
        }
    }

    private func written(_ problem: String?) {
        guard let list = pending else { return }
        pending = nil
        // It comes into force all the same, but not at the next start.
        if let problem { log.listNotKept(config.label, problem) }
        if let problems = list.adopt(loop.now) { return refused(problems) }
        (version, sum, receivedMs) = (list.version, list.sum, list.receivedMs)
        finish(.taken)
    }

    private func refused(_ problems: ListProblems) {
        failed("the list was refused: \(problems.description.visible(bytesMax: 300))")
    }

    private func failed(_ words: String, asked: Duration? = nil) {
        schedule.failed(asked: asked, at: loop.now, jitter: loop.host.jitter)
        let next = schedule.nextDeadline?.seconds(since: loop.now) ?? 0
        if words != problem { log.listNotFetched(config.label, words, next: next, hasList: version != nil) }
        problem = words
        end(.failed(words))
    }

    private func finish(_ ending: Ending) {
        schedule.fetched(at: loop.now, jitter: loop.host.jitter)
        if problem != nil { log.listFetchedAgain(config.label) }
        problem = nil
        end(ending)
    }

    private func end(_ ending: Ending) {
        let waiting = waiters
        waiters = []
        arm()
        for done in waiting { done(ending) }
        changed()
    }
}
