import Positioning

/// When one endpoint forms batches, when it sends them, and what the answers settle.
///
/// It counts rows and knows times, never the rows themselves. Its owner tells what happened, asks `next(at:)` and does
/// what that says. Several batches may be in flight on disk, one request at a time; a batch is the same one until it is
/// settled.
public struct DeliverySchedule: Sendable {
    /// A batch that stands on disk and is not settled.
    public struct InFlight: Hashable, Sendable {
        public var id: String
        public var rows: Int
        /// The way that it was formed for: 0 = the endpoint itself.
        public var route: Int

        public init(id: String, rows: Int, route: Int = 0) {
            self.id = id
            self.rows = rows
            self.route = route
        }
    }

    /// What becomes of a batch, to be written with the next commit.
    public struct Settled: Hashable, Sendable {
        public enum How: Hashable, Sendable {
            case accepted
            /// It becomes two batches, the older ⌈n/2⌉ rows and the rest.
            case split
            /// To quarantine.
            case refused
            /// By the words of the server about single rows.
            case partly(ItemVerdicts)
        }
        public var batch: String
        public var how: How

        public init(batch: String, how: How) {
            self.batch = batch
            self.how = how
        }
    }

    /// What to do now.
    public enum Step: Hashable, Sendable {
        /// Commit what is held in memory and form batches of at most this many rows, 0 = none; then `formRequested(at:)`.
        /// The reply to that commit lists what is in flight, for `batchesFormed`.
        case form(limit: Int)
        /// The same for another way, which also gets what is in flight, formed anew.
        case reform(limit: Int)
        /// Send this batch; then `attemptStarted`.
        case send(batch: String)
        /// Send the newest row alone, ahead of its turn; then `previewStarted`.
        case preview
        /// Ask the server to bind the asset to this device; then `bindStarted(at:)`.
        case bind
        /// Look for a new credential; then `refreshStarted(at:)`.
        case refreshCredentials
        /// Nothing until this instant, or until something happens (nil).
        case wait(until: EventTime?)
    }

    /// - Parameters:
    ///   - state: as kept from an earlier run.
    ///   - waiting: rows on disk that are in no batch; they come from an earlier run, so their window is over.
    ///   - inFlight: batches of an earlier run, which go first, in their order.
    ///   - unlisted: rows of further batches, which the queue has not listed.
    ///   - routes: ways to send: the endpoint itself and those that stand in for it.
    ///   - acceptedBefore: this endpoint has accepted something since the configuration changed.
    public init(
        settings: EndpointSettings, state: EndpointState = .active, waiting: Int = 0, inFlight: [InFlight] = [],
        unlisted: Int = 0, routes: Int = 1, acceptedBefore: Bool = false, at now: EventTime
    ) {
        self.settings = settings
        self.state = state
        self.acceptedBefore = acceptedBefore
        self.routes = RouteChoice(count: routes, route: inFlight.first?.route ?? 0, at: now)
        limit = max(1, settings.batchSize)
        gzip = settings.gzip
        queue = WaitingRows(depth: settings.batchSize)
        if waiting > 0 { queue.recorded(waiting, at: now - settings.batchWindow) }
        isUnlisted = unlisted > 0
        unlistedRows = unlisted
        parts = inFlight.map(Part.init)
        nextAttempt = now
    }

    public internal(set) var settings: EndpointSettings
    public internal(set) var state: EndpointState
    /// Failures in a row.
    public internal(set) var failures = 0
    /// Whether to compress: off once the server has refused it.
    public internal(set) var gzip: Bool
    /// Times that a refused batch was taken apart.
    public internal(set) var bisects = 0
    /// Answers to attempts that were given up, or that had been answered before.
    public internal(set) var strayAnswers = 0
    /// Which way was taken last, and the next batches are formed for: 0 = the endpoint itself.
    public var route: Int { routes.current }

    var queue: WaitingRows
    var parts: [Part]
    var phase = Phase.idle
    var bisect: Bisect?
    var routes: RouteChoice
    /// Most rows of a batch that the server is known to take, never more than the setting.
    var limit: Int
    var nextAttempt: EventTime
    /// No flush and no change of the link brings the next attempt before this.
    var earliestAttempt = EventTime.zero
    var notFormingBefore = EventTime.min
    var broughtForward = false
    var acceptedBefore: Bool
    var streak = Streak()
    var refresh = Refresh()
    var pacing = Pacing()
    /// What is in flight has to be asked for before anything else.
    var isUnlisted = false
    /// Rows of batches that the queue has not listed, as far as that is known.
    var unlistedRows = 0
    /// All that is in flight is to be formed anew.
    var dissolves = false
    /// Whether the row behind a batch that fails alone is tried.
    var triesSuccessor = false
    /// The place in `parts` of what a pause tries next, if that is one row alone, else the head; and whether a row from behind
    /// them is tried instead.
    var probe = (place: 0, fresh: false)
    var refusals = RecentRefusals()
    /// When the newest row was last to be sent ahead, and the newest that was.
    var previewed = (at: EventTime.min, seq: Int64.min)
    /// An operator wants the asset bound to this device; nothing else is started before that.
    var wantsBind = false
    /// Of the last form request or attempt.
    var lastNumber = 0
    var sentAgain417 = false
    var wasCompressed = true
    var shutdown: Shutdown?

    struct Part: Sendable {
        let batch: InFlight
        /// It was refused while nothing shows that the endpoint accepts anything.
        var isRefused = false
        /// Equal failures of this batch in a row.
        var streak = Streak()

        init(_ batch: InFlight) { self.batch = batch }
    }

    /// What is under way, one thing at a time. Leaves to `idle` with the answer to what the case carries and with that alone,
    /// or when the attempt is given up.
    enum Phase: Hashable {
        case idle
        /// A commit that lists what is in flight was asked for, under this number.
        case forming(Int)
        case attempting(Attempt)
    }

    struct Shutdown: Sendable {
        var until: EventTime
        var attempted: Bool
    }

    static let probeInterval = Duration.seconds(900)
    static let formRetry = Duration.seconds(10)
}

extension DeliverySchedule {
    /// Recorded rows that are in no batch, on disk and in memory, and those of batches that the queue has not listed.
    public var waiting: Int { queue.count + unlistedRows }
    /// Rows of batches that are not settled.
    public var inFlight: Int { parts.reduce(0) { $0 + $1.batch.rows } }
    /// When the next batch is sent, or in a pause when the server is tried again; nil without anything to send, and while
    /// something is being formed or sent.
    public var nextAttemptAt: EventTime? {
        guard phase == .idle else { return nil }
        switch state {
        case .active: return parts.isEmpty ? nil : nextSend
        case .paused: return parts.isEmpty && queue.count == 0 ? nil : nextSend
        case .stopped, .taken, .rebind: return nil
        }
    }
    /// The server that comes next wants no request before this; in the past when it has no such wish.
    public var restsUntil: EventTime { routes.rests(of: routeOfNext) }
    /// The number of the commit that was asked for to list what is in flight; nil = none is waited for.
    public var formNumber: Int? { if case .forming(let number) = phase { number } else { nil } }
    /// A commit that lists what is in flight was asked for and has not been answered.
    public var isForming: Bool { formNumber != nil }
    /// What is under way with the server; nil = nothing.
    public var attempt: Attempt? { if case .attempting(let attempt) = phase { attempt } else { nil } }

    var routeOfNext: Int { parts.first?.batch.route ?? routes.current }

    /// Whatever is due, nothing goes out before the server wants it.
    var nextSend: EventTime { max(nextAttempt, restsUntil) }
    /// After `shutdownRequested`.
    public var isShuttingDown: Bool { shutdown != nil }

    /// After `shutdownRequested`: there is nothing left to do or to wait for.
    public var isShutDown: Bool {
        guard shutdown != nil else { return false }
        return phase == .idle && shutdownStep(at: .max) == .wait(until: nil)
    }

    /// Rows of this endpoint's feed were recorded, on disk or still in memory.
    public mutating func rowsRecorded(_ count: Int, at now: EventTime) {
        if count > 0 { queue.recorded(count, at: now) }
    }

    /// The true number of rows in no batch, on disk and in memory: retention may have removed some.
    ///
    /// - Parameters:
    ///   - inFlight: the true number of rows in batches. Those of a batch that was not listed yet count as waiting.
    ///   - mayBeUnlisted: there may be batches that the queue has not listed.
    public mutating func waitingCorrected(to count: Int, inFlight: Int = 0, mayBeUnlisted: Bool = false) {
        queue.corrected(to: count)
        unlistedRows = isUnlisted || unlistedRows > 0 || mayBeUnlisted ? max(0, inFlight - self.inFlight) : 0
    }

    /// Something happened that should be known soon: motion change, geofence, power, panic, a command.
    public mutating func flushRequested(at now: EventTime) {
        queue.flush()
        guard phase == .idle, !parts.isEmpty, state == .active, nextAttempt > now, !broughtForward else { return }
        broughtForward = true
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// The commit of a `.form` or `.reform` step was handed to the outbox.
    ///
    /// - Returns: the number that its answer bears, which is `batchesFormed` or `batchNotFormed`.
    @discardableResult
    public mutating func formRequested(at now: EventTime) -> Int {
        precondition(attempt == nil, "batches are formed while \(phase)")
        if dissolves {
            dissolves = false
            bisect = nil
            queue.returned(inFlight)
            parts = []
        }
        if parts.isEmpty, !isUnlisted, unlistedRows == 0 { routes.batchBoundaryReached(at: now) }
        lastNumber += 1
        phase = .forming(lastNumber)
        return lastNumber
    }

    /// The commit is on disk, and these batches are in flight, in the order in which they go out.
    ///
    /// None, although rows were thought to wait: `waitingCorrected(to:)` follows.
    ///
    /// - Parameters:
    ///   - number: of the request.
    ///   - left: the true number of rows in no batch. Where it is less than what was waiting and is not in a batch now, rows
    ///     were settled without being sent, so that others may follow at once. nil = not known.
    ///   - unlisted: rows of further batches, which the queue does not list: they were formed for another address, device or
    ///     asset, or cannot be read.
    /// - Returns: whether that is the request that was waited for. If not, what is in flight will be asked for again.
    @discardableResult
    public mutating func batchesFormed(
        _ batches: [InFlight], of number: Int, left: Int? = nil, unlisted: Int = 0, at now: EventTime
    ) -> Bool {
        guard phase == .forming(number) else {
            isUnlisted = true
            return false
        }
        phase = .idle
        let known = Dictionary(parts.map { ($0.batch.id, $0) }, uniquingKeysWith: { first, _ in first })
        let new = batches.filter { known[$0.id] == nil }.reduce(0) { $0 + $1.rows }
        let rowsBefore = isUnlisted ? 0 : inFlight
        let wasUnlisted = isUnlisted
        let advanced = left.map { $0 < queue.count } ?? false
        // What is listed at last was not among those that wait.
        let taken = max(0, new - max(0, unlistedRows - unlisted))
        isUnlisted = false
        unlistedRows = unlisted
        let isProbe = !parts.isEmpty && !wasUnlisted
        parts = batches.map { known[$0.id] ?? Part($0) }
        if unlisted > 0, parts.isEmpty { notFormingBefore = now + Self.formRetry }
        if !wasUnlisted { queue.removeOldest(max(taken, queue.count - (left ?? queue.count))) }
        if new == 0, !wasUnlisted {
            probe.fresh = false
            if parts.isEmpty || rowsBefore > 0 { queue.endFlush() }
            if queue.count > 0, !advanced { notFormingBefore = now + Self.formRetry }
            if isProbe { bisect?.probes += 1 }
            return true
        }
        if isProbe, new > 0 {
            probe = (parts.count - 1, false)
            bisect?.probes += 1
            // A row that shows whether the server is well comes no earlier than the batch that made it look unwell.
            if !triesSuccessor { nextAttempt = max(now, earliestAttempt) }
        } else if !isProbe, !wasUnlisted {
            // The batch that failed may have been dissolved: its back-off holds for the one behind.
            nextAttempt = max(nextAttempt, now, pacing.nextBatch)
            earliestAttempt = max(earliestAttempt, pacing.nextBatch)
        }
        return true
    }

    /// The disk refused the commit of the request with this number; tried again after 10 s.
    public mutating func batchNotFormed(_ number: Int, at now: EventTime) {
        guard phase == .forming(number) else { return }
        phase = .idle
        notFormingBefore = now + Self.formRetry
    }

    /// The batch of a `.send` step is on its way.
    public mutating func attemptStarted(_ batch: String, at now: EventTime) -> Attempt {
        shutdown?.attempted = true
        // Batches of another way may have been found in a queue that could not be read before.
        if let part = parts.first(where: { $0.batch.id == batch }) { routes.take(part.batch.route, at: now) }
        return started(.batch(batch))
    }

    mutating func started(_ purpose: Attempt.Purpose) -> Attempt {
        precondition(phase == .idle, "\(purpose) is begun while \(phase)")
        lastNumber += 1
        let attempt = Attempt(endpoint: settings.name, purpose: purpose, number: lastNumber)
        phase = .attempting(attempt)
        return attempt
    }

    /// Whether an answer is one to the attempt that is under way. Any other is counted, and is to change nothing.
    public mutating func receives(_ attempt: Attempt) -> Bool {
        if phase == .attempting(attempt) { return true }
        strayAnswers += 1
        return false
    }

    /// Gives up what is under way with the server, whose answer changes nothing from now on. The caller cancels its transfer.
    ///
    /// - Returns: what was given up; nil = nothing was under way.
    public mutating func abandonAttempt() -> Attempt? {
        guard let attempt else { return nil }
        phase = .idle
        return attempt
    }

    /// Whether the body of the attempt was compressed.
    public mutating func compressionUsed(_ wasCompressed: Bool) { self.wasCompressed = wasCompressed }

    /// The link came up or changed its address: the own backoff starts again, what the server asked for stays.
    public mutating func linkChanged(at now: EventTime) {
        failures = 0
        routes.linkChanged()
        guard phase == .idle, !parts.isEmpty, state == .active else { return }
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// The configuration was read again. What was learnt about the server (a smaller body, none that is compressed, the own
    /// back-off) no longer counts. What is under way is not touched, and what the server asked for holds.
    public mutating func reloaded(_ new: EndpointSettings, at now: EventTime) {
        limit = max(1, new.batchSize)
        gzip = settings.gzip
        settings.copyPace(from: new)
        queue.limited(to: limit)
        linkChanged(at: now)
    }

    /// An operator resumed it, or its settings were read again.
    public mutating func resumed(at now: EventTime) {
        guard state != .rebind else { return }
        state = .active
        if unlistedRows > 0 { isUnlisted = true }
        failures = 0
        streak = Streak()
        refresh = Refresh()
        refusals = RecentRefusals()
        bisect = nil
        for place in parts.indices { parts[place].isRefused = false }
        nextAttempt = now
        earliestAttempt = now
    }

    /// What waits and what is in flight was dropped, cleared or moved: the queue tells what is left.
    public mutating func emptied() {
        parts = []
        bisect = nil
        triesSuccessor = false
        isUnlisted = true
    }

    /// The queue has given up these batches: there is nothing to settle by an answer to one of them.
    ///
    /// What is left of them, which `waitingCorrected` tells, has to be asked for.
    public mutating func batchesDissolved(_ ids: [String]) {
        unlistedRows += parts.reduce(0) { $0 + (ids.contains($1.batch.id) ? $1.batch.rows : 0) }
        parts.removeAll { ids.contains($0.batch.id) }
        if parts.isEmpty {
            bisect = nil
            triesSuccessor = false
        }
    }

    /// What the queue says counts from now on: an operator bound it to its present address, dropped what waited, or the queue
    /// can be read at last. A back-off goes on.
    ///
    /// - Parameter acceptedBefore: something was accepted under this binding.
    public mutating func stateChanged(to state: EndpointState, acceptedBefore: Bool) {
        self.state = state
        self.acceptedBefore = acceptedBefore
    }

    /// The program ends: one more attempt at most, and no longer than this.
    public mutating func shutdownRequested(at now: EventTime, grace: Duration) {
        var attempted = false
        if case .batch = attempt?.purpose { attempted = true }
        shutdown = Shutdown(until: now + grace, attempted: attempted)
    }
}

extension EventTime {
    static let min = EventTime(nanoseconds: .min)
    static let max = EventTime(nanoseconds: .max)
}
