import Positioning

extension DeliverySchedule {
    /// The attempt to send a batch ended.
    ///
    /// A batch that the queue has dissolved meanwhile has nothing to settle; its answer still says how the server is.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    /// - Returns: what becomes of batches; to be handed to the outbox before `next(at:)` is asked. nil = it was not the
    ///   attempt that is under way, and nothing has changed.
    public mutating func attemptFinished(
        _ attempt: Attempt, _ verdict: Verdict, jitter: Double, at now: EventTime
    ) -> [Settled]? {
        guard receives(attempt), case .batch(let batch) = attempt.purpose else { return nil }
        phase = .idle
        streak.add(verdict.word)
        if case .retry(.transport, _) = verdict {} else { routes.reached() }
        note(asked: verdict.asked, at: now)
        guard let place = parts.firstIndex(where: { $0.batch.id == batch }) else {
            answeredWithoutBatch(verdict, jitter: jitter, at: now)
            return []
        }
        parts[place].streak.add(verdict.word)
        switch verdict {
        case .accepted: return accepted(place, jitter: jitter, at: now)
        case .partlyAccepted(let items): return partlyAccepted(items, place, jitter: jitter, at: now)
        case .split: return refused(place, cause: nil, jitter: jitter, at: now)
        case .tooLarge(_, let after):
            return tooLarge(place, after: after, jitter: jitter, at: now)
        case .retry(let cause, let after):
            return retried(place, cause, after: after, word: verdict.word, jitter: jitter, at: now)
        default:
            triesSuccessor = false
            held(verdict, jitter: jitter, at: now)
            return []
        }
    }

    private mutating func answeredWithoutBatch(_ verdict: Verdict, jitter: Double, at now: EventTime) {
        switch verdict {
        case .accepted, .partlyAccepted: succeeded(rows: 0, at: now)
        case .split, .tooLarge, .retry: backOff(asked: verdict.asked, jitter: jitter, at: now)
        default: held(verdict, jitter: jitter, at: now)
        }
    }

    /// No request reaches this server earlier than it wants, whatever else becomes due: pause, resume, probe or preview.
    ///
    /// - Parameter route: whose server; nil = that of the present way.
    mutating func note(asked: Duration?, of route: Int? = nil, at now: EventTime) {
        guard let asked else { return }
        routes.rest(until: now + min(asked, settings.backoff.longestAsked), of: route)
    }

    /// Answers that are about the endpoint and not about rows.
    private mutating func held(_ verdict: Verdict, jitter: Double, at now: EventTime) {
        switch verdict {
        case .authStop: credentialRefused(jitter: jitter, at: now)
        case .goneStop(410, _): stop(.stopped(reason: "gone"))
        case .goneStop:
            backOff(asked: nil, jitter: jitter, at: now)
            if !acceptedBefore || streak.count >= Self.streakLimit { pause("not found", jitter: jitter, at: now) }
        case .misconfigured(417, _) where !sentAgain417:
            // We ask for no Expect, but a proxy in between may have.
            sentAgain417 = true
            sendAgain(at: now)
        case .misconfigured(let status, _):
            let ours = [405, 406, 411, 426, 501, 505].contains(status)
            pause(ours ? "configuration (status \(status))" : "refused \(status)", jitter: jitter, at: now)
        case .encodingRefused:
            guard gzip, wasCompressed else { return pause("configuration (status 415)", jitter: jitter, at: now) }
            gzip = false
            sendAgain(at: now)
        case .collision: stop(.taken)
        case .accepted, .partlyAccepted, .split, .tooLarge, .retry: break
        }
    }

    private mutating func sendAgain(at now: EventTime) {
        nextAttempt = now
        earliestAttempt = now
    }

    private mutating func retried(
        _ place: Int, _ cause: Verdict.RetryCause, after: Duration?, word: String, jitter: Double, at now: EventTime
    ) -> [Settled] {
        switch cause {
        case .transport(let failure):
            if routes.missed(failure, jitter: jitter, at: now) {
                dissolves = true
                if routes.allMissed {
                    backOff(asked: nil, jitter: jitter, at: now)
                } else {
                    failures = 0
                    sendAgain(at: now)
                }
                return []
            }
        case .status(429): pacing.throttled()
        default: break
        }
        if isSuspect(cause, place, word: word) {
            parts[place].streak.count = 0
            return refused(place, cause: word, jitter: jitter, at: now)
        }
        backOff(asked: after, jitter: jitter, at: now)
        if triesSuccessor, place > 0 {
            triesSuccessor = false
            parts[0].streak.count = 0
        } else if cause == .status(500), bisect?.hasEvidence != true, place == 0,
            parts[0].streak.count >= Self.silentPoison
        {
            triesSuccessor = true
        }
        guard streak.count >= Self.streakLimit else { return [] }
        switch cause {
        case .redirected: pause("redirected", jitter: jitter, at: now)
        case .conflict: pause("conflict", jitter: jitter, at: now)
        case .transport, .status, .notConfirmed, .unclear: break
        }
        return []
    }

    /// Whether a failure that says nothing about rows is to be taken for a refusal of this batch.
    private func isSuspect(_ cause: Verdict.RetryCause, _ place: Int, word: String) -> Bool {
        guard state == .active || isPausedOverRows else { return false }
        let part = parts[place]
        let isKnown = bisect?.cause == word
        switch cause {
        case .notConfirmed, .transport(.closedWithoutReply): break
        case .status(500) where isKnown: break
        default: return false
        }
        // Taking apart costs nothing but requests; what is refused alone may go for good, and is asked as often as the first.
        return part.streak.count >= (isKnown && part.batch.rows > 1 ? 1 : Self.streakLimit)
    }

    mutating func backOff(asked: Duration?, jitter: Double, at now: EventTime) {
        failures = min(failures + 1, 1_000_000)
        if case .paused(let reason) = state { return pause(reason, jitter: jitter, at: now) }
        let backoff = settings.backoff
        earliestAttempt = now + backoff.base
        nextAttempt = now + backoff.delay(failures: failures, jitter: jitter, asked: asked)
    }

    mutating func pause(_ reason: String, jitter: Double, at now: EventTime) {
        failures = max(1, failures)
        if Self.pausesOfRows.contains(reason) {
            // What was refused was refused by an endpoint that may refuse everything: it proves nothing later.
            bisect = nil
            for place in parts.indices { parts[place].isRefused = false }
            probe = (parts.isEmpty ? 0 : (probe.place + 1) % parts.count, true)
        }
        state = .paused(reason: reason)
        nextAttempt = now + Self.probeDelay(jitter)
        earliestAttempt = nextAttempt
    }

    private mutating func stop(_ state: EndpointState) {
        self.state = state
        failures = max(1, failures)
    }

    static func probeDelay(_ jitter: Double) -> Duration {
        let share = jitter > 0 ? min(jitter, 1) : 0
        return .nanoseconds(Int64(Double(probeInterval.nanoseconds) * (0.9 + 0.2 * share)))
    }

    static let streakLimit = 5
    /// Times that a batch fails with 500 before the row behind it is tried.
    static let silentPoison = 20
    /// Rows that are too large alone, with none taken between them, before the server is to blame and not they.
    static let refusedAloneMax = 3
    static let everyRecordRefused = "every record refused"
    static let tooManyRejected = "too many rejected"
    /// Pauses that end when any row is accepted, not only the oldest.
    static let pausesOfRows = [everyRecordRefused, tooManyRejected]
    /// Rows that a pause tries alone stay in flight: no more than this.
    static let aloneMax = 8

    var isPausedOverRows: Bool { state.reason.map(Self.pausesOfRows.contains) ?? false }
}

// Credentials.
extension DeliverySchedule {
    private mutating func credentialRefused(jitter: Double, at now: EventTime) {
        let again = refresh.last == .min ? now : refresh.last + Refresh.interval
        if now >= again {
            refresh.isWanted = true
        } else if refresh.hasHelped {
            rest(until: again, jitter: jitter, at: now)
        } else {
            pause("auth", jitter: jitter, at: now)
        }
    }

    private mutating func rest(until again: EventTime, jitter: Double, at now: EventTime) {
        backOff(asked: nil, jitter: jitter, at: now)
        nextAttempt = max(nextAttempt, again)
        earliestAttempt = max(earliestAttempt, again)
    }

    /// The credentials are being read again, or their command runs.
    public mutating func refreshStarted(at now: EventTime) -> Attempt {
        refresh = Refresh(isWanted: false, last: now, hasHelped: false)
        return started(.refresh)
    }

    public mutating func credentialsRefreshed(
        _ attempt: Attempt, _ renewal: CredentialRenewal, jitter: Double, at now: EventTime
    ) {
        guard receives(attempt) else { return }
        phase = .idle
        switch renewal {
        case .new: sendAgain(at: now)
        case .none: pause("auth", jitter: jitter, at: now)
        case .later: rest(until: refresh.last + Refresh.interval, jitter: jitter, at: now)
        }
    }

    /// A reload has put others in the place of those that were in use: what was refused says nothing about them.
    public mutating func credentialsReplaced() { refresh = Refresh() }
}

// The newest row ahead of its turn.
extension DeliverySchedule {
    /// - Parameter newest: the sequence number of that row; nil = none is newer than what is in flight.
    /// - Returns: nil when there is nothing to send: no row goes out ahead of its turn twice.
    public mutating func previewStarted(_ newest: Int64?, at now: EventTime) -> Attempt? {
        previewed.at = now
        guard let newest, newest > previewed.seq else { return nil }
        previewed.seq = newest
        return started(.preview(seq: newest))
    }

    /// What becomes of it settles nothing; a server that does not answer is left alone for a while.
    ///
    /// - Parameter verdict: nil = it was not sent.
    public mutating func previewFinished(_ attempt: Attempt, _ verdict: Verdict?, jitter: Double, at now: EventTime) {
        guard receives(attempt) else { return }
        phase = .idle
        note(asked: verdict?.asked, of: routeOfNext, at: now)
        if case .retry(_, let after) = verdict { backOff(asked: after, jitter: jitter, at: now) }
    }
}

// What an operator has bound by a request to the server.
extension DeliverySchedule {
    /// An operator wants the asset bound: comes next, before anything else is begun.
    public mutating func bindRequested() { wantsBind = true }

    /// The operator does not wait for it any more.
    public mutating func bindWithdrawn() { wantsBind = false }

    public mutating func bindStarted(at now: EventTime) -> Attempt {
        wantsBind = false
        return started(.bind)
    }

    /// The server has answered to a bind. Until `bindEnded` nothing else is sent all the same.
    ///
    /// - Parameter asked: how long it wants no other request; nil = it does not say.
    public mutating func bindAnswered(asked: Duration?, at now: EventTime) { note(asked: asked, of: 0, at: now) }

    /// Before when the server that binds, that of the endpoint itself, wants no request.
    public var bindRestsUntil: EventTime { routes.rests(of: 0) }

    /// A bind that was under way has failed, or the order behind it was carried out or refused.
    public mutating func bindEnded() {
        if attempt?.purpose == .bind { phase = .idle }
    }
}
