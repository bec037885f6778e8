import Profiles
import Protocols
import WaypostCore

/// When one endpoint forms batches, when it sends them, and what their answers decide.
///
/// It counts rows and knows times, never the rows themselves. Its owner reports what happened, asks `next(at:)` and does
/// what that says. Several batches may be in flight on disk, one request at a time; a batch stays the same until it is
/// settled.
package struct DeliverySchedule: Sendable {
    /// - Parameters:
    ///   - state: as kept from an earlier run.
    ///   - waiting: rows on disk that are in no batch; they come from an earlier run, so their window is over.
    ///   - inFlight: batches of an earlier run, which go first, in their order.
    ///   - unlisted: rows of further batches, which the queue has not listed.
    ///   - routes: the endpoint itself and its backups.
    ///   - acceptedBefore: this endpoint has accepted something since the configuration changed.
    ///   - share: 0 ≤ share < 1, of the device in its fleet (`FleetShare`).
    package init(
        settings: EndpointSettings, state: EndpointState = .active, waiting: Int = 0, inFlight: [InFlight] = [],
        unlisted: Int = 0, routes: Int = 1, acceptedBefore: Bool = false, share: Double = 0, at now: EventTime
    ) {
        self.settings = settings
        self.share = share
        self.state = state
        self.acceptedBefore = acceptedBefore
        self.routes = RouteChoice(count: routes, route: inFlight.first?.route ?? 0, at: now)
        server = ServerTolerance(settings)
        queue = WaitingRows(depth: settings.batchSize, share: share)
        let window = settings.batchWindow
        if waiting > 0 { queue.recorded(waiting, window: window, at: now - window) }
        batches = InFlightBatches(inFlight, unlisted: unlisted)
        timer = RetryTimer(at: now)
    }

    package private(set) var settings: EndpointSettings
    package private(set) var state: EndpointState

    private(set) var queue: WaitingRows
    private(set) var batches: InFlightBatches
    private var activity = Activity()
    private var routes: RouteChoice
    private var server: ServerTolerance
    private var timer: RetryTimer
    private var notFormingBefore = EventTime.min
    private var acceptedBefore: Bool
    /// Equal answers of the endpoint, whichever batch they are for.
    private var streak = Streak()
    /// Times that the server has answered that the endpoint is gone since it accepted anything, but for suspect rows.
    private var timesGone = 0
    private var refresh = CredentialRefresh()
    private var pacing = Pacing()
    private var previews = PreviewTurns()
    /// When the newest position was last looked for in memory.
    private var positionSought = EventTime.min
    private var subscriber = SubscriberWait()
    /// An operator wants the asset bound to this device; nothing else is started before that.
    private var wantsBind = false
    private let share: Double
    private var shutdown: (until: EventTime, attemptsLeft: Int)?
    /// When the last attempt began, and when it ended.
    private var attemptBegan = EventTime.zero
    private var attemptEnded = EventTime.min
    /// It goes with credentials that were replaced since.
    private var hasOldCredentials = false
    /// The asset moves: what it drives past may be in reach for less than a minute.
    package private(set) var isMoving = false
    /// The last attempt failed over the clock of this host.
    private var waitsForClock = false
    /// Attempts in a row that the server did not take in full in time.
    private var stalls = 0

    static let streakLimit = 5
    private static let formRetry = Duration.seconds(10)
    /// The longest wait of an asset that moves while nothing reaches the server.
    private static let longestWhileMoving = Duration.seconds(30)
    /// After so many attempts that the server did not take in full the batch is taken apart.
    private static let stallLimit = 2
}

extension DeliverySchedule {
    /// Recorded rows that are in no batch, on disk and in memory, and those of batches that the queue has not listed.
    package var waiting: Int { queue.count + batches.unlistedRows }
    /// Rows of batches that are not settled.
    package var inFlight: Int { batches.rows }
    /// Failures in a row.
    package var failures: Int { timer.failures }
    /// Nobody subscribes to what goes to the broker: only the oldest row of the next attempt is tried.
    package var awaitsSubscriber: Bool { subscriber.isOn }
    /// Whether the body of a batch is to be compressed.
    package func compresses(_ batch: String, at now: EventTime) -> Bool {
        server.compression.applies(to: batch, at: now)
    }
    /// Compression is turned off for a day, since the server fails over compressed bodies.
    package func isCompressionOff(at now: EventTime) -> Bool { server.compression.isOff(at: now) }
    /// Maximum rows of a batch that the server is known to accept, never more than the setting.
    var limit: Int { server.maxRows }
    /// Maximum rows of a batch, since larger ones were refused as too large, and the status of the last such answer; nil =
    /// as the setting says.
    package var rowsNotTooLarge: (rows: Int, status: Int)? {
        server.size.isLess ? (server.size.rows, server.size.status) : nil
    }
    /// Maximum rows of a batch, since larger ones were not answered in time; nil = as the setting says.
    package var rowsInTime: Int? { server.rowsInTime < settings.batchSize ? server.rowsInTime : nil }
    /// That is because the link is too slow for larger ones.
    package var isLinkSlow: Bool { server.isLinkSlow }
    /// Times that a batch was taken apart, since it was refused or failed while others were accepted.
    package var bisects: Int { batches.bisects }
    /// Batches of one row that fail while others are accepted: tried last, and in quarantine once that is proven.
    package var suspects: [String] { batches.suspects }
    /// Answers to attempts that were given up, or that had been answered before.
    package var strayAnswers: Int { activity.strayAnswers }
    /// Which route was used last, and the next batches are formed for: 0 = the endpoint itself.
    package var route: Int { routes.current }
    /// The number of the commit that was requested to list what is in flight; nil = none is waited for.
    package var formNumber: Int? { activity.formNumber }
    /// A commit that lists what is in flight was requested and has not been answered.
    package var isForming: Bool { formNumber != nil }
    /// What is under way with the server; nil = nothing.
    package var attempt: Attempt? { activity.attempt }

    /// When the next batch is sent, or in a pause when the server is tried again; nil without anything to send, and while
    /// something is being formed or sent.
    package var nextAttemptAt: EventTime? {
        guard activity.isIdle else { return nil }
        switch state {
        case .active:
            guard batches.isIdle else { return nextSend }
            return batches.suspect(hasWaiting: queue.count > 0).map { max(nextSend, $0.dueAt) }
        case .paused: return batches.isEmpty && queue.count == 0 ? nil : nextSend
        case .stopped, .taken, .rebind: return nil
        }
    }
    /// The next server wants no request before this; in the past if it asked for no wait.
    package var restsUntil: EventTime { routes.rests(of: routeOfNext) }

    private var routeOfNext: Int { batches.head?.route ?? routes.current }

    /// Whatever is due, nothing goes out before the server wants it.
    private var nextSend: EventTime { max(timer.next, restsUntil) }

    /// After `shutdownRequested`.
    package var isShuttingDown: Bool { shutdown != nil }

    /// After `shutdownRequested`: there is nothing left to do or to wait for.
    package var isShutDown: Bool {
        guard shutdown != nil else { return false }
        return activity.isIdle && shutdownStep(at: .max) == .wait(until: nil)
    }
}

// What to do next.
extension DeliverySchedule {
    /// What to do now. Asking changes nothing.
    package func next(at now: EventTime) -> Step {
        if Invariants.areChecked { checkInvariants() }
        if shutdown != nil { return shutdownStep(at: now) }
        guard activity.isIdle else { return .wait(until: nil) }
        if wantsBind { return later(bindRestsUntil, at: now) ?? .bind }
        switch state {
        case .stopped, .taken, .rebind: return .wait(until: nil)
        case .active, .paused: break
        }
        if refresh.isWanted { return .refreshCredentials }
        // Forming again also lists it.
        if routes.isChanging { return later(max(notFormingBefore, timer.next), at: now) ?? .reform(limit: limit) }
        if batches.awaitsCommit { return later(notFormingBefore, at: now) ?? .form(limit: 0) }
        if batches.isIdle { return idleStep(at: now) }
        switch batches.target(in: state, hasWaiting: queue.count > 0) {
        case .following: return later(notFormingBefore, at: now) ?? .form(limit: 1)
        case .probeFollowing: return later(max(notFormingBefore, nextSend), at: now) ?? .form(limit: 1)
        case .batch(let batch):
            if let wait = later(max(timer.next, routes.rests(of: batch.route)), at: now) { return wait }
            return wantsPreview(at: now) ? .preview : .send(batch: batch.id)
        }
    }

    /// A commit is made now anyway, perhaps with rows. A batch whose window ends soon is formed with it, so that it needs no
    /// commit of its own, and is sent when the window ends (`SendAlignment`). Not that of an endpoint that is not
    /// required: what is in a batch is not sent any more once a full queue takes a row of it, and until it is sent it may. Nor
    /// where the newest row counts, since newer ones may come before it is sent.
    ///
    /// - Parameter other: when another endpoint of this device sends what it forms with this commit: what may join it goes out
    ///   then, so that they share one wake-up of the radio; nil = there is none.
    /// - Returns: maximum rows of the batch, and when it is sent; nil = none is formed.
    package func commitComes(joining other: EventTime? = nil, at now: EventTime) -> (limit: Int, sendsAt: EventTime)? {
        guard settings.required, settings.delivery != .latest, !settings.profile.usesNewest, batches.isIdle,
            case .wait(_?) = next(at: now), shutdown == nil, state == .active,
            case .wait(let ends?) = formingStep(at: now), ends == windowEnd(at: now),
            limit == settings.batchSize || queue.count <= limit
        else { return nil }
        return SendAlignment.sendsAt(windowEnds: ends, window: settings.batchWindow, joining: other, at: now)
            .map { (limit, $0) }
    }

    private func idleStep(at now: EventTime) -> Step {
        let step = rowStep(at: now)
        guard case .wait(let until) = step, let due = positionDue else { return step }
        return due <= now ? .position : .wait(until: min(due, until ?? .max))
    }

    /// When the newest position is sent from memory; nil = not before something happens.
    private var positionDue: EventTime? {
        guard settings.delivery == .latest, isMoving, state == .active, batches.isEmpty, batches.unlistedRows == 0
        else { return nil }
        return max(positionSought + max(settings.batchWindow, .seconds(1)), nextSend, pacing.nextBatch)
    }

    private func rowStep(at now: EventTime) -> Step {
        let step = formingStep(at: now)
        guard case .wait(let until) = step else { return step }
        if batches.unlistedRows > 0 {
            let next = state == .active ? notFormingBefore : max(notFormingBefore, timer.next)
            return later(min(next, until ?? .max), at: now) ?? .form(limit: 0)
        }
        guard let suspect = batches.suspect(hasWaiting: queue.count > 0) else { return step }
        let due = max(suspect.dueAt, timer.next, routes.rests(of: suspect.batch.route))
        if let wait = later(min(due, until ?? .max), at: now) { return wait }
        return suspect.needsCommit
            ? later(notFormingBefore, at: now) ?? .form(limit: 0) : .send(batch: suspect.batch.id)
    }

    private func formingStep(at now: EventTime) -> Step {
        guard queue.count > 0 else { return .wait(until: nil) }
        if let wait = later(max(notFormingBefore, routes.restsAtBoundary), at: now) { return wait }
        if state != .active { return later(timer.next, at: now) ?? .form(limit: limit) }
        if queue.count >= settings.batchSize || queue.areWanted(at: now) {
            return later(pacing.nextBatch, at: now) ?? .form(limit: limit)
        }
        let ends = [windowEnd(at: now), queue.sharedFlushAt].compactMap { $0 }.min()
        return ends.map { later($0, at: now) ?? .form(limit: limit) } ?? .wait(until: nil)
    }

    /// When the window alone sends what waits; nil = not before there are more rows.
    private func windowEnd(at now: EventTime) -> EventTime? {
        guard queue.count >= settings.minBatch else { return nil }
        // Rows that were not announced were found when the count was corrected: their window is over.
        guard let oldest = queue.oldest else { return now }
        // Fixes of a fleet are of the same seconds, and so would all its requests be.
        return oldest + pacing.stretched(settings.batchWindow, settings.backoff)
            + FleetShare.part(share, of: settings.batchWindow) / 10
    }

    private func shutdownStep(at now: EventTime) -> Step {
        guard let shutdown else { return .wait(until: nil) }
        // An instant that has passed would be due again and again.
        if !activity.isIdle { return .wait(until: now < shutdown.until ? shutdown.until : nil) }
        guard shutdown.attemptsLeft > 0, !batches.awaitsCommit, !routes.isChanging, state == .active,
            now == .max || now < shutdown.until
        else { return .wait(until: nil) }
        if let head = batches.firstNotRefused {
            let earliest = max(timer.earliest, restsUntil)
            guard earliest < shutdown.until else { return .wait(until: nil) }
            return later(earliest, at: now) ?? .send(batch: head.id)
        }
        guard batches.isIdle, queue.count > 0, max(notFormingBefore, restsUntil) < shutdown.until else {
            return .wait(until: nil)
        }
        return .form(limit: limit)
    }

    private func later(_ instant: EventTime, at now: EventTime) -> Step? {
        instant > now ? .wait(until: instant) : nil
    }

    private func wantsPreview(at now: EventTime) -> Bool {
        settings.freshHead && !settings.profile.usesNewest && state == .active && failures == 0
            && !batches.isBisecting && queue.count > 0 && inFlight + queue.count > limit
            && previews.isDue(every: settings.batchWindow, at: now)
    }
}

// Rows and batches.
extension DeliverySchedule {
    /// Rows of this endpoint's feed were recorded, on disk or still in memory.
    package mutating func rowsRecorded(_ count: Int, at now: EventTime) {
        guard count > 0 else { return }
        queue.recorded(count, window: settings.batchWindow, at: now)
    }

    /// Something happened that should be known soon: motion change, geofence, power, panic, a command.
    ///
    /// - Parameter byOperator: a person waits for it.
    package mutating func flushRequested(byOperator: Bool = false, at now: EventTime) {
        queue.flush()
        timer.sendBatchAtOnce()
        guard activity.isIdle, !batches.isEmpty, state == .active else { return }
        if byOperator { timer.cutShortByOperator(at: now) } else { timer.bringForward(at: now) }
    }

    /// Something happened that may happen to a whole fleet at once, such as the end of the hours of tracking: what waits, or
    /// else the next row, goes out within one window, at the time of this device. A back-off goes on.
    package mutating func sharedFlushRequested(at now: EventTime) {
        queue.flushWithFleet(window: settings.batchWindow, at: now)
    }

    /// This host has just started, perhaps with a fleet: so that not all windows end at once, the first is a part of one.
    package mutating func startedWithHost(at now: EventTime) { queue.flushNextWithFleet(at: now) }

    /// The commit of a `.form` or `.reform` step was handed to the outbox.
    ///
    /// - Parameters:
    ///   - rows: of the step.
    ///   - sendsAt: when the batch goes out; nil = at once. See `commitComes`.
    /// - Returns: the number of the request, which its answer (`committed` or `notFormed`) has too.
    @discardableResult
    package mutating func formRequested(
        _ rows: Int, sendsAt: EventTime? = nil, at now: EventTime
    ) -> Int {
        invariant(rows == 0 || !batches.awaitsCommit, "a batch is formed before what was answered is written")
        let number = activity.beginForming(limit: rows)
        timer.batchRequested(for: sendsAt)
        // A smaller batch is no reason for more wake-ups of the radio: the rows of one window go out together.
        if limit < settings.batchSize, state == .active, batches.isIdle, case .form = formingStep(at: now) {
            queue.flush(atLeast: settings.batchSize)
        }
        queue.batchRequested(at: now)
        if routes.isChanging {
            routes.changed()
            queue.returned(batches.dissolveAll())
        }
        if batches.isEmpty, !batches.awaitsCommit, batches.unlistedRows == 0 { routes.batchBoundaryReached(at: now) }
        return number
    }

    /// A commit was made, on disk or in memory. What the queue says is in flight and waits is so: a batch that it does not list is no
    /// longer sent, and one that it lists although nobody has requested it is.
    ///
    /// - Parameters:
    ///   - view: of the queue.
    ///   - numbers: of the requests that the commit has carried out.
    /// - Returns: whether the request that was waited for is among them.
    @discardableResult
    package mutating func committed(_ view: View, answering numbers: [Int] = [], at now: EventTime) -> Bool {
        let requested = numbers.compactMap { activity.endForming($0) }.first
        let hasSettled = view.waiting < queue.count
        let listing = batches.list(view)
        if requested != nil || listing.newRows > 0 { queue.removeOldest(max(0, queue.count - view.waiting)) }
        queue.corrected(to: view.waiting)
        guard let requested else { return false }
        if view.unlisted > 0, batches.isEmpty { notFormingBefore = now + Self.formRetry }
        guard requested > 0 else { return true }
        batches.formed(listing)
        if listing.newRows == 0 {
            if batches.isEmpty || listing.rowsBefore > 0 { queue.endFlush() }
            if queue.count > 0, !hasSettled { notFormingBefore = now + Self.formRetry }
        } else if !listing.hadOthers {
            // The batch that failed may have been dissolved: its back-off holds for the next one.
            timer.batchFormed(nextBatch: pacing.nextBatch, at: now)
        } else if !batches.isTrying {
            timer.skipBackOff(at: now)
        }
        return true
    }

    /// The commit of the request with this number was not made: what was in flight is so still. Retried after 10 s.
    package mutating func notFormed(_ number: Int, at now: EventTime) {
        if activity.endForming(number) != nil { notFormingBefore = now + Self.formRetry }
    }
}

// Events around the endpoint.
extension DeliverySchedule {
    /// The link came up or changed its address: our back-off starts over, but for what the server has answered. What was said
    /// without TLS may have been said by the former link.
    package mutating func linkChanged(at now: EventTime) {
        routes.linkChanged()
        timer.linkChanged()
        timer.sendBatchAtOnce()
        stalls = 0
        if settings.canBeIntercepted, state.mayBeOfLink {
            if case .stopped(let reason) = state { state = .paused(reason: reason) }
            refresh = CredentialRefresh()
            timer.makeDue(at: max(now, attemptEnded + settings.backoff.base))
        }
        guard activity.isIdle, !batches.isEmpty, state == .active else { return }
        timer.cutShortAfterAnswers(at: now)
    }

    /// The clock of this host was set: what failed over it is tried again.
    package mutating func clockWasSet(at now: EventTime) {
        guard waitsForClock, activity.isIdle, state == .active else { return }
        timer.forgetFailures()
        timer.makeDue(at: now)
    }

    package mutating func movementChanged(_ isMoving: Bool) { self.isMoving = isMoving }

    private mutating func startOver(at now: EventTime) {
        timer.forgetFailures()
        routes.linkChanged()
        timer.sendBatchAtOnce()
        // What redirects may be in the way on the former link alone.
        let mayBeOver = state == .active || state == .paused(reason: EndpointState.redirected)
        guard activity.isIdle, !batches.isEmpty, mayBeOver else { return }
        timer.cutShort(at: now)
    }

    /// The configuration was read again. What was learnt about the server (smaller bodies, no compression, our
    /// back-off) no longer counts. What is under way is not touched, and what the server asked for holds.
    package mutating func reloaded(_ new: EndpointSettings, at now: EventTime) {
        settings.copyPace(from: new)
        server = ServerTolerance(settings)
        queue.limited(to: limit)
        startOver(at: now)
    }

    /// An operator resumed it, or its settings were read again.
    package mutating func resumed(at now: EventTime) {
        guard state != .rebind else { return }
        state = .active
        timer.forgetFailures()
        timer.makeDue(at: now)
        streak = Streak()
        timesGone = 0
        refresh = CredentialRefresh()
        batches.resumed()
    }

    /// The server has said, otherwise than in an answer to an attempt, that another device has the place of this one.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    package mutating func takenOver(jitter: Double, at now: EventTime) { collided(jitter: jitter, at: now) }

    /// What the queue says counts from now on: an operator bound it to its present address, dropped what waited, or the queue
    /// can be read at last. A back-off goes on.
    ///
    /// - Parameter acceptedBefore: something was accepted under this binding.
    package mutating func stateChanged(to state: EndpointState, acceptedBefore: Bool) {
        self.state = state
        self.acceptedBefore = acceptedBefore
    }

    /// The program ends: one more attempt at most, and no longer than this. A batch that was formed early and waits for its
    /// time is one of its own, so that what was recorded since goes out too.
    package mutating func shutdownRequested(at now: EventTime, grace: Duration) {
        var attempts = timer.batchWaits(at: now) ? 2 : 1
        if case .batch = attempt?.purpose { attempts -= 1 }
        shutdown = (now + grace, attempts)
    }
}

// Attempts and their answers.
extension DeliverySchedule {
    /// The batch of a `.send` step is on its way.
    package mutating func attemptStarted(_ batch: String, at now: EventTime) -> Attempt {
        shutdown?.attemptsLeft -= 1
        // Batches of another route may have been found in a queue that could not be read before.
        if let place = batches.place(of: batch) { routes.use(batches[place].route, at: now) }
        (attemptBegan, hasOldCredentials) = (now, false)
        // Rows show where the asset is as well.
        if batches.place(of: batch) != nil { positionSought = now }
        invariant(!batches.awaitsCommit, "\(batch) is sent before what was answered is written")
        return activity.begin(.batch(batch), endpoint: settings.name)
    }

    /// Whether an answer belongs to the attempt under way. Any other is counted, and must change nothing.
    package mutating func receives(_ attempt: Attempt) -> Bool { activity.receives(attempt) }

    /// Gives up what is under way with the server, whose answer changes nothing from now on. The caller cancels its transfer.
    ///
    /// - Returns: what was given up; nil = nothing was under way.
    package mutating func abandonAttempt() -> Attempt? { activity.abandon() }

    /// What was seen of an attempt beside the verdict.
    package struct Transmission: Hashable, Sendable {
        /// The body was compressed.
        package var wasCompressed: Bool
        package var blame: Blame
        /// All of the request was handed to the connection.
        package var wasWhole: Bool

        package init(wasCompressed: Bool = false, blame: Blame = .anyRow, wasWhole: Bool = true) {
            (self.wasCompressed, self.blame, self.wasWhole) = (wasCompressed, blame, wasWhole)
        }
    }

    /// The attempt to send a batch ended.
    ///
    /// If the queue no longer lists the batch, the answer only shows how the server is.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    /// - Returns: what becomes of batches; to be handed to the outbox before `next(at:)` is asked. nil = it was not the
    ///   attempt that is under way, and nothing has changed.
    package mutating func attemptFinished(
        _ attempt: Attempt, _ verdict: Verdict, _ sent: Transmission, jitter: Double, at now: EventTime
    ) -> [Settled]? {
        guard activity.receives(attempt), case .batch(let batch) = attempt.purpose else { return nil }
        _ = activity.finish(attempt)
        streak.add(verdict.word)
        if case .retry(.transport, _) = verdict {} else { routes.reached() }
        timer.attemptEnded(isAnswer: verdict.isAnswer && !(settings.canBeIntercepted && verdict.mayBeOfPortal))
        (waitsForClock, attemptEnded) = (verdict.isOverClock, now)
        stalls = verdict.isTimeout && !sent.wasWhole ? stalls + 1 : 0
        note(asked: verdict.asked, at: now)
        if case .authStop = verdict, hasOldCredentials {
            timer.makeDue(at: now)
            return []
        }
        // Whatever else is said, or keeps the server from saying it again, ends a pause. Failures count on.
        if case .paused = state, !verdict.isAcceptance, !state.isPaused(over: verdict) { state = .active }
        guard let place = batches.place(of: batch) else {
            answeredWithoutBatch(verdict, jitter: jitter, at: now)
            return []
        }
        batches.answered(place, verdict.word)
        if case .tooLarge(let status, _) = verdict, batches[place].rows == 1 {
            server.refusedAsTooLarge(rows: 1, status: status)
        }
        if server.compression.answered(verdict, to: batch, sent, isTakenApart: batches.isBisecting, at: now) {
            timer.makeDue(at: now)
            return []
        }
        let isSuspect =
            state == .active && sent.blame != .noRow && batches[place].rows == 1 && batches.isSuspicious(place)
        switch verdict {
        case .accepted: return accepted(place, jitter: jitter, at: now)
        case .partlyAccepted(let items): return partlyAccepted(items, place, jitter: jitter, at: now)
        case .split where isSuspect, .tooLarge where isSuspect:
            return failed(place, verdict, sent, jitter: jitter, at: now)
        case .split(let status, _):
            return refused(place, status < 200 ? .weak : .ofRecord, jitter: jitter, at: now)
        case .tooLarge(let status, nil): return tooLarge(place, status, jitter: jitter, at: now)
        case .tooLarge(let status, _) where !batches.isFirstAnswer(place) && batches[place].rows > 1:
            return tooLarge(place, status, jitter: jitter, at: now)
        default: return failed(place, verdict, sent, jitter: jitter, at: now)
        }
    }

    /// Nothing is concluded from the answer alone, but perhaps from what becomes of other rows.
    private mutating func failed(
        _ place: Int, _ verdict: Verdict, _ sent: Transmission, jitter: Double, at now: EventTime
    ) -> [Settled] {
        let isSuspicious = state == .active && sent.blame != .noRow && batches.isSuspicious(place)
        if isSuspicious || batches.isKnownAtOnce(place, sent.blame) {
            // The server accepts others: this is no reason to ask it less often, nor to doubt its address.
            if case .retry(let cause, _) = verdict, cause.asksForLess { pacing.throttled() }
            timer.hold(settings.backoff, asked: verdict.asked, jitter: jitter, at: now)
        } else if case .retry(let cause, let after) = verdict {
            guard retried(verdict, cause, after: after, jitter: jitter, at: now) else { return [] }
        } else if case .tooLarge(_, let after) = verdict {
            backOff(asked: after, jitter: jitter, at: now)
        } else {
            held(verdict, mayBeOfRows: batches.mayBeOfRows(place, sent.blame), jitter: jitter, at: now)
        }
        if stalls >= Self.stallLimit, batches[place].rows > 1, !batches.isSuspicious(place) {
            // As for 413: without all of it the server cannot have acted on any of it.
            stalls = 0
            server.linkWasTooSlow(rows: batches[place].rows)
            return batches.splitTooLarge(place).settled
        }
        let wasTooSlow = verdict.isTimeout && sent.wasWhole
        let outcome = batches.failed(
            place, sent.blame, wasTooSlow: wasTooSlow, hasWaiting: queue.count > 0, settings.backoff, jitter: jitter,
            at: now)
        return conclude(outcome, jitter: jitter, at: now)
    }

    private mutating func answeredWithoutBatch(_ verdict: Verdict, jitter: Double, at now: EventTime) {
        if verdict.isAcceptance { succeeded(rows: 0, at: now) }
        if verdict.lacksSubscriber { return awaitSubscriber(jitter: jitter, at: now) }
        switch verdict {
        case .accepted, .partlyAccepted: break
        case .split, .tooLarge, .retry: backOff(asked: verdict.asked, jitter: jitter, at: now)
        default: held(verdict, jitter: jitter, at: now)
        }
    }

    /// No request reaches this server earlier than it wants, whatever else becomes due: pause, resume, probe or preview.
    ///
    /// - Parameter route: whose server; nil = that of the current route.
    private mutating func note(asked: Duration?, of route: Int? = nil, at now: EventTime) {
        guard let asked else { return }
        routes.rest(until: now + min(asked, settings.backoff.longestAsked), of: route)
    }

    private mutating func succeeded(rows: Int, at now: EventTime) {
        // After an outage all that waits goes out at once.
        if timer.hasFailed || state != .active { queue.flush() }
        state = .active
        acceptedBefore = true
        timesGone = 0
        refresh.accepted()
        subscriber.end()
        server.accepted(rows: rows, took: now.duration(since: attemptBegan), settings)
        pacing.accepted(settings.backoff, at: now)
        timer.succeeded(nextBatch: pacing.nextBatch, at: now)
    }

    private mutating func accepted(_ place: Int, jitter: Double, at now: EventTime) -> [Settled] {
        let wasDoubted = state.isPausedOverRows
        succeeded(rows: batches[place].rows, at: now)
        return conclude(batches.accepted(place, wasDoubted: wasDoubted, at: now), jitter: jitter, at: now)
    }

    private mutating func partlyAccepted(
        _ items: ItemVerdicts, _ place: Int, jitter: Double, at now: EventTime
    ) -> [Settled] {
        let rows = batches[place].rows
        succeeded(rows: rows, at: now)
        let settled = conclude(batches.partlyAccepted(place, items, at: now), jitter: jitter, at: now)
        let isTooMany = batches.areTooManyRefused(items.refused.count, of: rows, at: now)
        if items.lacksSubscriber { awaitSubscriber(jitter: jitter, at: now) }
        if items.isTaken {
            stop(.taken)
        } else if items.needsCredential {
            credentialRefused(despiteAcceptance: true, jitter: jitter, at: now)
        } else if isTooMany {
            pause(EndpointState.tooManyRejected, jitter: jitter, at: now)
        } else if !items.again.isEmpty, !items.lacksSubscriber {
            backOff(asked: items.after, jitter: jitter, at: now)
        }
        return settled
    }

    private mutating func refused(
        _ place: Int, _ refusal: InFlightBatches.Refusal, jitter: Double, at now: EventTime
    ) -> [Settled] {
        if case .paused(let reason) = state, state.isPausedOverRows {
            pause(reason, jitter: jitter, at: now)
            return batches.splitForProbe().settled
        }
        timer.makeDue(at: now)
        let outcome = batches.refused(place, refusal, hasWaiting: queue.count > 0, at: now)
        return conclude(outcome, jitter: jitter, at: now)
    }

    /// Too large asks for smaller batches; of a single row it says no more than any failure.
    /// With `Retry-After` the first answer may be about the moment, and of a single row each.
    private mutating func tooLarge(_ place: Int, _ status: Int, jitter: Double, at now: EventTime) -> [Settled] {
        let rows = batches[place].rows
        guard rows > 1 else {
            let settled = refused(place, .weak, jitter: jitter, at: now)
            if state == .active, batches.areTooManyRefusedAlone(at: now) {
                pause(EndpointState.everyRecordRefused, jitter: jitter, at: now)
            }
            return settled
        }
        if state.isPausedOverRows {
            backOff(asked: nil, jitter: jitter, at: now)
        } else {
            state = .active
            timer.makeDue(at: now)
        }
        server.refusedAsTooLarge(rows: rows, status: status)
        return batches.splitTooLarge(place).settled
    }

    private mutating func conclude(
        _ outcome: InFlightBatches.Outcome, jitter: Double, at now: EventTime
    ) -> [Settled] {
        switch outcome.doubt {
        case .tooManyRejected: pause(EndpointState.tooManyRejected, jitter: jitter, at: now)
        case .everyRecordRefused: pause(EndpointState.everyRecordRefused, jitter: jitter, at: now)
        case .soleRecord:
            timer.countFailure()
            let delay = pauseDelay.delay(EndpointState.everyRecordRefused, jitter: jitter)
            timer.schedule(at: now + delay, earliest: now)
        case nil: break
        }
        if let rows = outcome.tooSlow { server.wasTooSlow(rows: rows) }
        if outcome.isContradiction { server.refusesAtRandom(settings) }
        return outcome.settled
    }

    /// - Returns: false where the failure says nothing about rows: another route is used from now on, or a topic has no subscriber.
    private mutating func retried(
        _ verdict: Verdict, _ cause: Verdict.RetryCause, after: Duration?, jitter: Double, at now: EventTime
    ) -> Bool {
        var isUnreached = false
        switch cause {
        case .transport(.moved), .lost(.moved, _):
            timer.makeDue(at: now)
            return false
        case .transport(let failure):
            isUnreached = failure.isUnreached
            guard routes.missed(failure, jitter: jitter, at: now) else { break }
            if routes.allMissed {
                backOff(asked: nil, jitter: jitter, at: now)
            } else {
                timer.forgetFailures()
                timer.makeDue(at: now)
            }
            return false
        case .noSubscriber:
            awaitSubscriber(jitter: jitter, at: now)
            return false
        default: if cause.asksForLess { pacing.throttled() }
        }
        pauseOrBackOff(verdict, asked: after, isUnreached: isUnreached, jitter: jitter, at: now)
        return true
    }

    /// The broker works, and nobody stores what it takes.
    private mutating func awaitSubscriber(jitter: Double, at now: EventTime) {
        let wait = subscriber.missed(jitter: jitter)
        if case .paused = state { return backOff(asked: nil, jitter: jitter, at: now) }
        timer.countFailure()
        timer.schedule(at: now + wait, earliest: now + settings.backoff.base)
    }

    /// Answers that are about the endpoint and not about rows.
    ///
    /// - Parameter mayBeOfRows: see `InFlightBatches`.
    private mutating func held(_ verdict: Verdict, mayBeOfRows: Bool = false, jitter: Double, at now: EventTime) {
        switch verdict {
        case .authStop: return credentialRefused(jitter: jitter, at: now)
        case .goneStop(410, _):
            timesGone += 1
            // Five times for one batch, and once more for another row, or for each half. What one row alone gets may be about it.
            if timesGone > Self.streakLimit + 1, !mayBeOfRows { return stop(.stopped(reason: EndpointState.gone)) }
        case .goneStop where acceptedBefore:
            return pauseOrBackOff(verdict, jitter: jitter, at: now)
        case .misconfigured(417, _) where server.refusedExpectation(): return timer.makeDue(at: now)
        case .collision: return collided(jitter: jitter, at: now)
        case .goneStop, .misconfigured, .encodingRefused: break
        case .accepted, .partlyAccepted, .split, .tooLarge, .retry: return
        }
        if let reason = verdict.pauseReason { pause(reason, jitter: jitter, at: now) }
    }

    /// Whoever was never accepted has lost its place to nobody, and none of its rows is another one's.
    private mutating func collided(jitter: Double, at now: EventTime) {
        if acceptedBefore { return stop(.taken) }
        pause(
            settings.profile.isForBroker ? EndpointState.clientIDInUse : EndpointState.notBound, jitter: jitter, at: now
        )
    }

    /// Pauses once an answer that leads to that has come five times in a row.
    private mutating func pauseOrBackOff(
        _ verdict: Verdict, asked: Duration? = nil, isUnreached: Bool = false, jitter: Double, at now: EventTime
    ) {
        guard let reason = verdict.pauseReason, state != .active || streak.count >= Self.streakLimit else {
            return backOff(asked: asked, isUnreached: isUnreached, jitter: jitter, at: now)
        }
        pause(reason, jitter: jitter, at: now)
    }

    private mutating func backOff(
        asked: Duration?, isUnreached: Bool = false, jitter: Double, at now: EventTime
    ) {
        if case .paused(let reason) = state { return pause(reason, jitter: jitter, at: now) }
        // Another route is found soon.
        let mayChange = routes.count > 1 && !routes.allMissed
        var backoff = settings.backoff
        if isMoving, isUnreached { backoff.cap = min(backoff.cap, Self.longestWhileMoving) }
        timer.backOff(
            backoff, asked: asked, window: mayChange ? .zero : settings.batchWindow, jitter: jitter, at: now)
    }

    private mutating func pause(_ reason: String, jitter: Double, at now: EventTime) {
        state = .paused(reason: reason)
        if state.isPausedOverRows { batches.doubtRefusals() }
        timer.countFailure()
        let next = now + pauseDelay.delay(reason, jitter: jitter)
        timer.schedule(at: next, earliest: reason == EndpointState.redirected ? now + settings.backoff.base : next)
    }

    private var pauseDelay: PauseDelay {
        PauseDelay(
            failures: failures, repeats: streak.count, backoff: settings.backoff, window: settings.batchWindow)
    }

    private mutating func stop(_ state: EndpointState) {
        self.state = state
        timer.countAtLeastOneFailure()
    }
}

extension Verdict {
    fileprivate var isTimeout: Bool { if case .retry(.transport(.timeout), _) = self { true } else { false } }

    fileprivate var isOverClock: Bool { if case .retry(.transport(.clock), _) = self { true } else { false } }
}

extension EndpointState {
    /// Answers of another server than the one that was asked may have led to it.
    fileprivate var mayBeOfLink: Bool {
        switch self {
        case .paused, .stopped: true
        case .active, .taken, .rebind: false
        }
    }
}

extension Verdict.RetryCause {
    /// The server wants fewer requests.
    fileprivate var asksForLess: Bool {
        switch self {
        case .status(429): true
        case .reason(let code): MQTTReason(rawValue: code).meaning == .slowDown
        default: false
        }
    }
}

// Credentials.
extension DeliverySchedule {
    private mutating func credentialRefused(
        despiteAcceptance: Bool = false, jitter: Double, at now: EventTime
    ) {
        switch refresh.refused(despiteAcceptance: despiteAcceptance, at: now) {
        case .refresh: break
        case .wait(let until): rest(until: until, jitter: jitter, at: now)
        // Others were accepted with it.
        case .giveUp where despiteAcceptance: backOff(asked: nil, jitter: jitter, at: now)
        case .giveUp: pause(EndpointState.auth, jitter: jitter, at: now)
        }
    }

    private mutating func rest(until instant: EventTime, jitter: Double, at now: EventTime) {
        backOff(asked: nil, jitter: jitter, at: now)
        timer.postpone(to: instant, earliest: instant)
    }

    /// The credentials are being read again, or their command runs.
    package mutating func refreshStarted(at now: EventTime) -> Attempt {
        refresh.started(at: now)
        return activity.begin(.refresh, endpoint: settings.name)
    }

    package mutating func credentialsRefreshed(
        _ attempt: Attempt, _ renewal: CredentialRenewal, jitter: Double, at now: EventTime
    ) {
        guard activity.finish(attempt) else { return }
        switch renewal {
        case .new: timer.makeDue(at: now)
        case .none where refresh.followsAcceptance: backOff(asked: nil, jitter: jitter, at: now)
        case .none: pause(EndpointState.auth, jitter: jitter, at: now)
        case .later: rest(until: refresh.nextAllowed, jitter: jitter, at: now)
        }
    }

    /// A reload has replaced the credentials: a refusal of the old ones, with which an attempt may be under way, does not
    /// concern them.
    package mutating func credentialsReplaced() {
        refresh = CredentialRefresh()
        hasOldCredentials = true
    }
}

// The newest row ahead of its turn.
extension DeliverySchedule {
    /// - Parameter newest: the sequence number of that row; nil = none is newer than what is in flight.
    /// - Returns: nil when there is nothing to send: no row goes out ahead of its turn twice.
    package mutating func previewStarted(_ newest: Int64?, at now: EventTime) -> Attempt? {
        previews.begin(newest, at: now).map { activity.begin(.preview(seq: $0), endpoint: settings.name) }
    }

    /// Its answer settles no batch; a server that does not answer is left alone for a while.
    ///
    /// - Parameter verdict: nil = it was not sent.
    package mutating func previewFinished(_ attempt: Attempt, _ verdict: Verdict?, jitter: Double, at now: EventTime) {
        guard activity.finish(attempt) else { return }
        note(asked: verdict?.asked, of: routeOfNext, at: now)
        if verdict?.lacksSubscriber == true { return awaitSubscriber(jitter: jitter, at: now) }
        if case .retry(_, let after) = verdict { backOff(asked: after, jitter: jitter, at: now) }
    }
}

// The newest position from memory.
extension DeliverySchedule {
    /// - Parameter hasMore: others wait for a request of their own.
    package mutating func positionSought(hasMore: Bool, at now: EventTime) { if !hasMore { positionSought = now } }
}

// A bind that an operator requests from the server.
extension DeliverySchedule {
    /// An operator wants the asset bound: comes next, before anything else is begun.
    package mutating func bindRequested() { wantsBind = true }

    /// The operator no longer waits for it.
    package mutating func bindWithdrawn() { wantsBind = false }

    package mutating func bindStarted(at now: EventTime) -> Attempt {
        wantsBind = false
        return activity.begin(.bind, endpoint: settings.name)
    }

    /// The server has answered to a bind. Until `bindEnded` nothing else is sent all the same.
    ///
    /// - Parameter asked: how long it wants no other request; nil = it does not say.
    package mutating func bindAnswered(asked: Duration?, at now: EventTime) { note(asked: asked, of: 0, at: now) }

    /// The time before which the server that binds, that of the endpoint itself, wants no request.
    package var bindRestsUntil: EventTime { routes.rests(of: 0) }

    /// A bind that was under way has failed, or the order that follows was carried out or refused.
    package mutating func bindEnded() {
        if attempt?.purpose == .bind { _ = activity.abandon() }
    }
}

extension DeliverySchedule {
    /// What holds between two calls.
    private func checkInvariants() {
        queue.checkInvariants()
        batches.checkInvariants()
        routes.checkInvariants()
        timer.checkInvariants()
        pacing.checkInvariants()
        subscriber.checkInvariants()
        server.size.checkInvariants()
        invariant(limit >= 1 && limit <= max(1, settings.batchSize), "batches of \(limit) rows")
        invariant(timesGone >= 0 && stalls >= 0, "negative counts")
        invariant(share >= 0 && share < 1, "a share of \(share)")
        invariant(shutdown == nil || attempt != nil || activity.isIdle || isForming, "an end that waits for nothing")
        invariant(waiting >= 0 && inFlight >= 0, "\(waiting) rows wait, \(inFlight) are in flight")
    }
}
