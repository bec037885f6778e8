import Positioning

/// When one endpoint forms a batch and when it sends.
///
/// It counts rows and knows times, never the rows themselves. Its owner tells what happened, asks `next(at:)` and does
/// what that says; one batch is in flight at most, and it is the same one until it is accepted or dissolved.
public struct DeliverySchedule: Sendable {
    /// What to do now.
    public enum Step: Hashable, Sendable {
        /// Commit what is held in memory and form a batch of at most this many rows; then `formRequested()`.
        case form(limit: Int)
        /// The same after splitting the batch in flight (`Settlement.split`): it was too large for the server.
        case reform(limit: Int)
        /// Send the batch in flight; then `attemptStarted(at:)`.
        case send
        /// Nothing until this instant, or until something happens (nil).
        case wait(until: EventTime?)
    }

    /// - Parameters:
    ///   - state: as kept from an earlier run.
    ///   - waiting: rows on disk that are in no batch; they come from an earlier run, so their window is over.
    ///   - inFlight: rows of a batch that was formed in an earlier run and goes first; nil without one.
    ///   - acceptedBefore: this endpoint has accepted something since its address was set.
    public init(
        settings: EndpointSettings, state: EndpointState = .active, waiting: Int = 0, inFlight: Int? = nil,
        acceptedBefore: Bool = false, at now: EventTime
    ) {
        self.settings = settings
        self.state = state
        self.acceptedBefore = acceptedBefore
        limit = max(1, settings.batchSize)
        gzip = settings.gzip
        if waiting > 0 {
            self.waiting = waiting
            arrivals = [Arrival(count: waiting, at: now - settings.batchWindow)]
        }
        if let inFlight {
            batchCount = inFlight
            phase = .formed
            nextAttempt = now
        }
    }

    public let settings: EndpointSettings
    public private(set) var state: EndpointState
    /// Recorded rows that are in no batch, on disk and in memory.
    public private(set) var waiting = 0
    /// Failures in a row.
    public private(set) var failures = 0
    /// Whether to compress: off once the server has refused it.
    public private(set) var gzip: Bool

    /// When the batch in flight is sent next; nil without one, or while it is being sent.
    public var nextAttemptAt: EventTime? { phase == .formed && !isHeld ? nextAttempt : nil }
    /// A commit that forms a batch was asked for and has not been answered.
    public var isForming: Bool { phase == .forming }
    /// After `shutdownRequested`: there is nothing left to do or to wait for.
    public var isShutDown: Bool {
        guard shutdown != nil else { return false }
        return phase != .sending && phase != .forming && shutdownStep(at: .max) == .wait(until: nil)
    }

    private enum Phase: Hashable {
        /// No batch. Leaves to `forming`.
        case idle
        /// A commit that forms a batch is under way. Leaves to `formed`, or to `idle` when it failed or gave no rows.
        case forming
        /// A batch waits for `nextAttempt`. Leaves to `sending`.
        case formed
        /// Leaves to `idle` when accepted, to `formed` after a failure, to `tooLarge` when it has to be made smaller.
        case sending
        /// A batch waits to be dissolved and formed anew with the smaller `limit`. Leaves to `forming`.
        case tooLarge
    }

    private struct Arrival {
        var count: Int
        var at: EventTime
    }

    private struct Shutdown {
        var until: EventTime
        var attempted: Bool
    }

    private var phase = Phase.idle
    private var limit: Int
    private var batchCount = 0
    /// When rows were recorded, oldest first, for the newest `batchSize` rows at most: only those can wait for a window.
    private var arrivals: [Arrival] = []
    /// So many of the oldest waiting rows go out without waiting for size or window.
    private var flushCount = 0
    private var nextAttempt = EventTime.zero
    /// No flush and no change of the link brings the next attempt before this.
    private var earliestAttempt = EventTime.zero
    private var askedUntil = EventTime(nanoseconds: .min)
    private var notFormingBefore = EventTime(nanoseconds: .min)
    private var broughtForward = false
    private var acceptedBefore: Bool
    private var streak: (word: String, count: Int) = ("", 0)
    private var shutdown: Shutdown?

    private static let probeInterval = Duration.seconds(900)
    private static let streakLimit = 5
    private static let formRetry = Duration.seconds(10)
}

extension DeliverySchedule {
    /// Rows of this endpoint's feed were recorded, on disk or still in memory.
    public mutating func rowsRecorded(_ count: Int, at now: EventTime) {
        guard count > 0 else { return }
        waiting += count
        if arrivals.last?.at == now {
            arrivals[arrivals.count - 1].count += count
        } else {
            arrivals.append(Arrival(count: count, at: now))
        }
        trimArrivals()
    }

    /// The true number of rows in no batch, on disk and in memory: retention may have removed some.
    public mutating func waitingCorrected(to count: Int) {
        if count < waiting {
            removeOldest(waiting - max(0, count))
        } else {
            waiting = count
        }
    }

    /// Something happened that should be known soon: motion change, geofence, power, panic, a command.
    public mutating func flushRequested(at now: EventTime) {
        flushCount = waiting
        guard phase == .formed, !isHeld, nextAttempt > now, !broughtForward else { return }
        broughtForward = true
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// The commit of a `.form` or `.reform` step was handed to the outbox.
    public mutating func formRequested() {
        if phase == .tooLarge {
            // The dissolved rows wait again, ahead of the others.
            waiting += batchCount
            flushCount += batchCount
            batchCount = 0
        }
        phase = .forming
    }

    /// The batch is on disk.
    ///
    /// - Parameter count: its rows; 0 when there were none after all: then `waitingCorrected(to:)` follows.
    public mutating func batchFormed(count: Int, at now: EventTime) {
        guard count > 0 else {
            flushCount = 0
            return batchNotFormed(at: now)
        }
        removeOldest(count)
        batchCount = count
        phase = .formed
        nextAttempt = now
        earliestAttempt = now
    }

    /// The disk refused the commit; tried again after 10 s.
    public mutating func batchNotFormed(at now: EventTime) {
        phase = .idle
        notFormingBefore = now + Self.formRetry
    }

    public mutating func attemptStarted(at now: EventTime) {
        phase = .sending
        shutdown?.attempted = true
    }

    /// The link came up or changed its address: the own backoff starts again, what the server asked for stays.
    public mutating func linkChanged(at now: EventTime) {
        failures = 0
        guard phase == .formed, !isHeld else { return }
        nextAttempt = min(nextAttempt, max(now, earliestAttempt))
    }

    /// An operator resumed it, or its settings were read anew.
    public mutating func resumed(at now: EventTime) {
        guard state != .rebind else { return }
        state = .active
        failures = 0
        streak = ("", 0)
        if phase == .formed { nextAttempt = max(now, askedUntil) }
    }

    /// The program ends: one more attempt at most, and no longer than this.
    public mutating func shutdownRequested(at now: EventTime, grace: Duration) {
        shutdown = Shutdown(until: now + grace, attempted: phase == .sending)
    }

    /// What to do now. Asking changes nothing.
    public func next(at now: EventTime) -> Step {
        if shutdown != nil { return shutdownStep(at: now) }
        switch state {
        case .stopped, .taken, .rebind: return .wait(until: nil)
        case .active, .paused: break
        }
        switch phase {
        case .forming, .sending: return .wait(until: nil)
        case .tooLarge: return later(notFormingBefore, at: now) ?? .reform(limit: limit)
        case .formed: return later(nextAttempt, at: now) ?? .send
        case .idle: return idleStep(at: now)
        }
    }

    /// When `next(at:)` has something else to say by itself; in the past when it has already; nil = only after an event.
    public var nextDeadline: EventTime? {
        if case .wait(let until) = next(at: .min) { until } else { .min }
    }

    private func idleStep(at now: EventTime) -> Step {
        guard waiting > 0 else { return .wait(until: nil) }
        if let wait = later(notFormingBefore, at: now) { return wait }
        if flushCount > 0 || waiting >= limit { return .form(limit: limit) }
        guard waiting >= settings.minBatch else { return .wait(until: nil) }
        // Rows that nobody announced were found when the count was corrected: their window is over.
        guard let oldest = arrivals.first else { return .form(limit: limit) }
        return later(oldest.at + settings.batchWindow, at: now) ?? .form(limit: limit)
    }

    private func shutdownStep(at now: EventTime) -> Step {
        guard let shutdown else { return .wait(until: nil) }
        if phase == .sending || phase == .forming { return .wait(until: shutdown.until) }
        guard !shutdown.attempted, state == .active, now == .max || now < shutdown.until else {
            return .wait(until: nil)
        }
        switch phase {
        case .formed:
            guard earliestAttempt < shutdown.until else { return .wait(until: nil) }
            return later(earliestAttempt, at: now) ?? .send
        case .idle where waiting > 0 && notFormingBefore < shutdown.until: return .form(limit: limit)
        default: return .wait(until: nil)
        }
    }

    private func later(_ instant: EventTime, at now: EventTime) -> Step? {
        instant > now ? .wait(until: instant) : nil
    }

    private var isHeld: Bool { state != .active }

    private mutating func removeOldest(_ count: Int) {
        let known = arrivals.reduce(0) { $0 + $1.count }
        var rest = count - max(0, waiting - known)
        while rest > 0, let first = arrivals.first {
            if first.count > rest {
                arrivals[0].count -= rest
                break
            }
            rest -= first.count
            arrivals.removeFirst()
        }
        waiting = max(0, waiting - count)
        flushCount = max(0, min(flushCount - count, waiting))
    }

    private mutating func trimArrivals() {
        var known = arrivals.reduce(0) { $0 + $1.count }
        while let first = arrivals.first, known - first.count >= max(1, settings.batchSize) {
            known -= first.count
            arrivals.removeFirst()
        }
    }
}

extension DeliverySchedule {
    /// An attempt ended.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    public mutating func attemptFinished(_ verdict: Verdict, jitter: Double, at now: EventTime) {
        guard phase == .sending else { return }
        phase = .formed
        count(verdict)
        switch verdict {
        case .accepted:
            accepted()
        case .retry(let cause, let after):
            backOff(asked: after, jitter: jitter, at: now)
            guard streak.count >= Self.streakLimit else { return }
            switch cause {
            case .redirected: pause("redirected", jitter: jitter, at: now)
            case .conflict: pause("conflict", jitter: jitter, at: now)
            case .transport(.closedWithoutReply): pause("no reply", jitter: jitter, at: now)
            case .transport, .status: break
            }
        case .authStop:
            pause("auth", jitter: jitter, at: now)
        case .goneStop(410):
            stop(.stopped(reason: "gone"))
        case .goneStop:
            backOff(asked: nil, jitter: jitter, at: now)
            if !acceptedBefore || streak.count >= Self.streakLimit { pause("not found", jitter: jitter, at: now) }
        case .misconfigured(let status):
            let ours = status < 200 || [405, 406, 411, 426, 501, 505].contains(status)
            pause(ours ? "configuration (status \(status))" : "refused \(status)", jitter: jitter, at: now)
        case .encodingRefused where gzip:
            gzip = false
            nextAttempt = now
            earliestAttempt = now
        case .encodingRefused:
            pause("configuration (status 415)", jitter: jitter, at: now)
        case .split(let status):
            pause("refused \(status)", jitter: jitter, at: now)
        case .tooLarge(_, let after?):
            backOff(asked: after, jitter: jitter, at: now)
        case .tooLarge(let status, nil):
            guard batchCount > 1 else { return pause("record too large (status \(status))", jitter: jitter, at: now) }
            limit = batchCount / 2
            phase = .tooLarge
        case .collision:
            stop(.taken)
        }
    }

    private mutating func count(_ verdict: Verdict) {
        let word = verdict.word
        streak = streak.word == word ? (word, min(streak.count + 1, 1_000_000)) : (word, 1)
    }

    private mutating func accepted() {
        // After an outage all that waits goes out at once.
        if failures > 0 || state != .active { flushCount = waiting }
        phase = .idle
        state = .active
        failures = 0
        batchCount = 0
        acceptedBefore = true
        broughtForward = false
        askedUntil = .min
    }

    private mutating func backOff(asked: Duration?, jitter: Double, at now: EventTime) {
        failures = min(failures + 1, 1_000_000)
        if case .paused(let reason) = state { return pause(reason, jitter: jitter, at: now) }
        let backoff = settings.backoff
        askedUntil = asked.map { now + min($0, backoff.longestAsked) } ?? .min
        earliestAttempt = max(now + backoff.base, askedUntil)
        nextAttempt = now + backoff.delay(failures: failures, jitter: jitter, asked: asked)
    }

    private mutating func pause(_ reason: String, jitter: Double, at now: EventTime) {
        failures = max(1, failures)
        state = .paused(reason: reason)
        let share = jitter > 0 ? min(jitter, 1) : 0
        nextAttempt = now + .nanoseconds(Int64(Double(Self.probeInterval.nanoseconds) * (0.9 + 0.2 * share)))
        earliestAttempt = nextAttempt
    }

    private mutating func stop(_ state: EndpointState) {
        self.state = state
        failures = max(1, failures)
    }
}

extension EventTime {
    static let min = EventTime(nanoseconds: .min)
    static let max = EventTime(nanoseconds: .max)
}
