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

        public init(id: String, rows: Int) {
            self.id = id
            self.rows = rows
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
        /// Send the newest row alone, ahead of its turn; then `previewStarted(at:)`.
        case preview
        /// Look for a new credential; then `refreshStarted(at:)`.
        case refreshCredentials
        /// Nothing until this instant, or until something happens (nil).
        case wait(until: EventTime?)
    }

    /// - Parameters:
    ///   - state: as kept from an earlier run.
    ///   - waiting: rows on disk that are in no batch; they come from an earlier run, so their window is over.
    ///   - inFlight: batches of an earlier run, which go first, in their order.
    ///   - routes: ways to send: the endpoint itself and those that stand in for it.
    ///   - route: the way that the batches in flight were formed for.
    ///   - acceptedBefore: this endpoint has accepted something since the configuration changed.
    ///   - startDelay: nothing of an earlier run is sent before, so that many devices do not start at once.
    public init(
        settings: EndpointSettings, state: EndpointState = .active, waiting: Int = 0, inFlight: [InFlight] = [],
        routes: Int = 1, route: Int = 0, acceptedBefore: Bool = false, startDelay: Duration = .zero,
        at now: EventTime
    ) {
        self.settings = settings
        self.state = state
        self.acceptedBefore = acceptedBefore
        self.routes = RouteChoice(count: routes, route: route, at: now)
        limit = max(1, settings.batchSize)
        gzip = settings.gzip
        queue = WaitingRows(depth: settings.batchSize)
        if waiting > 0 { queue.recorded(waiting, at: now - settings.batchWindow + startDelay) }
        // A backlog of many batches has a size that needs no window.
        notFormingBefore = startDelay > .zero ? now + startDelay : .min
        parts = inFlight.map(Part.init)
        nextAttempt = now + startDelay
    }

    public internal(set) var settings: EndpointSettings
    public internal(set) var state: EndpointState
    /// Failures in a row.
    public internal(set) var failures = 0
    /// Whether to compress: off once the server has refused it.
    public internal(set) var gzip: Bool
    /// Times that a refused batch was taken apart.
    public internal(set) var bisects = 0
    /// Which way the next batches are formed for: 0 = the endpoint itself.
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
    var askedUntil = EventTime.min
    var notFormingBefore: EventTime
    var broughtForward = false
    var acceptedBefore: Bool
    var streak = Streak()
    var refresh = Refresh()
    var pacing = Pacing()
    /// A settlement makes batches that have not been told of yet.
    var isUnlisted = false
    /// All that is in flight is to be formed anew.
    var dissolves = false
    /// Whether the row behind a batch that fails alone is tried.
    var triesSuccessor = false
    /// The place in `parts` of what a pause tries next, and whether a row from behind them is tried instead.
    var probe = (place: 0, fresh: false)
    var refusals = RecentRefusals()
    var previewedAt = EventTime.min
    var sentAgain417 = false
    var wasCompressed = true
    var shutdown: Shutdown?

    struct Part: Sendable {
        let batch: InFlight
        /// It was refused while nothing shows that the endpoint accepts anything.
        var isRefused = false
        /// Equal failures of this batch in a row.
        var streak = Streak()
        var attempts = 0

        init(_ batch: InFlight) { self.batch = batch }
    }

    enum Phase: Hashable {
        /// Nothing is under way.
        case idle
        /// A commit that lists what is in flight is under way. Leaves to `idle`.
        case forming
        /// Leaves to `idle` with the answer.
        case sending(batch: String)
        case previewing
        /// A new credential is looked for. Leaves to `idle`.
        case refreshing
    }

    struct Shutdown: Sendable {
        var until: EventTime
        var attempted: Bool
    }

    static let probeInterval = Duration.seconds(900)
    static let formRetry = Duration.seconds(10)
}

extension DeliverySchedule {
    /// Recorded rows that are in no batch, on disk and in memory.
    public var waiting: Int { queue.count }
    /// Rows of batches that are not settled.
    public var inFlight: Int { parts.reduce(0) { $0 + $1.batch.rows } }
    /// When the next batch is sent; nil without one, or while one is being sent.
    public var nextAttemptAt: EventTime? {
        phase == .idle && !parts.isEmpty && state == .active ? nextAttempt : nil
    }
    /// A commit that lists what is in flight was asked for and has not been answered.
    public var isForming: Bool { phase == .forming }
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
    public mutating func waitingCorrected(to count: Int) { queue.corrected(to: count) }

    /// Something happened that should be known soon: motion change, geofence, power, panic, a command.
    public mutating func flushRequested(at now: EventTime) {
        queue.flush()
        guard phase == .idle, !parts.isEmpty, state == .active, nextAttempt > now, !broughtForward else { return }
        broughtForward = true
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// The commit of a `.form` or `.reform` step was handed to the outbox.
    public mutating func formRequested(at now: EventTime) {
        if dissolves {
            dissolves = false
            bisect = nil
            queue.returned(inFlight)
            parts = []
        }
        if parts.isEmpty { routes.batchBoundaryReached(at: now) }
        phase = .forming
    }

    /// The commit is on disk, and these batches are in flight, in the order in which they go out.
    ///
    /// None, although rows were thought to wait: `waitingCorrected(to:)` follows.
    ///
    /// - Parameter advanced: rows were settled without being sent, so that others may follow at once.
    public mutating func batchesFormed(_ batches: [InFlight], advanced: Bool = false, at now: EventTime) {
        phase = .idle
        let known = Dictionary(parts.map { ($0.batch.id, $0) }, uniquingKeysWith: { first, _ in first })
        let new = batches.filter { known[$0.id] == nil }.reduce(0) { $0 + $1.rows }
        let rowsBefore = isUnlisted ? 0 : inFlight
        let wasUnlisted = isUnlisted
        isUnlisted = false
        let isProbe = !parts.isEmpty && !wasUnlisted
        parts = batches.map { known[$0.id] ?? Part($0) }
        if new == 0, !wasUnlisted {
            probe.fresh = false
            if parts.isEmpty || rowsBefore > 0 { queue.endFlush() }
            if queue.count > 0, !advanced { notFormingBefore = now + Self.formRetry }
            if isProbe { bisect?.probes += 1 }
            return
        }
        if !wasUnlisted { queue.removeOldest(new) }
        if isProbe, new > 0 {
            probe = (parts.count - 1, false)
            bisect?.probes += 1
            nextAttempt = max(now, askedUntil)
        } else if !isProbe, !wasUnlisted {
            nextAttempt = max(now, pacing.nextBatch)
            earliestAttempt = nextAttempt
        }
    }

    /// The disk refused the commit; tried again after 10 s.
    public mutating func batchNotFormed(at now: EventTime) {
        phase = .idle
        notFormingBefore = now + Self.formRetry
    }

    public mutating func attemptStarted(_ batch: String, at now: EventTime) {
        phase = .sending(batch: batch)
        if let place = parts.firstIndex(where: { $0.batch.id == batch }) { parts[place].attempts += 1 }
        shutdown?.attempted = true
    }

    /// Whether the body of the attempt was compressed.
    public mutating func compressionUsed(_ wasCompressed: Bool) { self.wasCompressed = wasCompressed }

    /// The link came up or changed its address: the own backoff starts again, what the server asked for stays.
    public mutating func linkChanged(at now: EventTime) {
        failures = 0
        guard phase == .idle, !parts.isEmpty, state == .active else { return }
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// An operator resumed it, or its settings were read anew.
    public mutating func resumed(at now: EventTime) {
        guard state != .rebind else { return }
        state = .active
        failures = 0
        streak = Streak()
        refresh = Refresh()
        refusals = RecentRefusals()
        bisect = nil
        for place in parts.indices { parts[place].isRefused = false }
        nextAttempt = max(now, askedUntil)
        earliestAttempt = nextAttempt
    }

    /// What waits and what is in flight was dropped, cleared or moved: the queue tells what is left.
    public mutating func emptied() {
        parts = []
        bisect = nil
        isUnlisted = true
        if case .sending = phase { phase = .idle }
    }

    /// An operator bound it to its present address, or dropped what waited: what the queue says from now on counts.
    public mutating func stateChanged(to state: EndpointState, at now: EventTime) {
        self.state = state
        if state == .active { resumed(at: now) }
    }

    /// The program ends: one more attempt at most, and no longer than this.
    public mutating func shutdownRequested(at now: EventTime, grace: Duration) {
        var attempted = false
        if case .sending = phase { attempted = true }
        shutdown = Shutdown(until: now + grace, attempted: attempted)
    }

    /// When `next(at:)` has something else to say by itself; in the past when it has already; nil = only after an event.
    public var nextDeadline: EventTime? {
        if case .wait(let until) = next(at: .min) { until } else { .min }
    }
}

extension EventTime {
    static let min = EventTime(nanoseconds: .min)
    static let max = EventTime(nanoseconds: .max)
}
