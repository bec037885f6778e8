import Positioning

extension DeliverySchedule {
    /// An attempt ended.
    ///
    /// - Parameter jitter: 0 ≤ jitter < 1, from the caller's random source.
    /// - Returns: what becomes of batches; to be handed to the outbox before `next(at:)` is asked.
    public mutating func attemptFinished(_ verdict: Verdict, jitter: Double, at now: EventTime) -> [Settled] {
        guard case .sending(let batch) = phase else { return [] }
        phase = .idle
        guard let place = parts.firstIndex(where: { $0.batch.id == batch }) else { return [] }
        streak.add(verdict.word)
        parts[place].streak.add(verdict.word)
        if case .retry(.transport, _) = verdict {} else { routes.reached() }
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

    /// Answers that are about the endpoint and not about rows.
    private mutating func held(_ verdict: Verdict, jitter: Double, at now: EventTime) {
        switch verdict {
        case .authStop: credentialRefused(jitter: jitter, at: now)
        case .goneStop(410): stop(.stopped(reason: "gone"))
        case .goneStop:
            backOff(asked: nil, jitter: jitter, at: now)
            if !acceptedBefore || streak.count >= Self.streakLimit { pause("not found", jitter: jitter, at: now) }
        case .misconfigured(417) where !sentAgain417:
            // We ask for no Expect, but a proxy in between may have.
            sentAgain417 = true
            sendAgain(at: now)
        case .misconfigured(let status):
            let ours = status < 200 || [405, 406, 411, 426, 501, 505].contains(status)
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
        nextAttempt = max(now, askedUntil)
        earliestAttempt = nextAttempt
    }

    private mutating func retried(
        _ place: Int, _ cause: Verdict.RetryCause, after: Duration?, word: String, jitter: Double, at now: EventTime
    ) -> [Settled] {
        switch cause {
        case .transport(let failure):
            if routes.missed(failure, jitter: jitter, at: now) {
                dissolves = true
                failures = 0
                return resend(at: now)
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
        } else if cause == .status(500), bisect == nil, place == 0, parts[0].streak.count >= Self.silentPoison {
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

    private mutating func resend(at now: EventTime) -> [Settled] {
        nextAttempt = now
        earliestAttempt = now
        return []
    }

    mutating func backOff(asked: Duration?, jitter: Double, at now: EventTime) {
        failures = min(failures + 1, 1_000_000)
        if case .paused(let reason) = state { return pause(reason, jitter: jitter, at: now) }
        let backoff = settings.backoff
        askedUntil = asked.map { now + min($0, backoff.longestAsked) } ?? .min
        earliestAttempt = max(now + backoff.base, askedUntil)
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
    static let everyRecordRefused = "every record refused"
    static let tooManyRejected = "too many rejected"
    /// Pauses that end when any row is accepted, not only the oldest.
    static let pausesOfRows = [everyRecordRefused, tooManyRejected]
    /// Rows that a pause tries beside the oldest stay in flight: no more than this.
    static let partsMax = 8

    var isPausedOverRows: Bool { state.reason.map(Self.pausesOfRows.contains) ?? false }
}

// Credentials.
extension DeliverySchedule {
    private mutating func credentialRefused(jitter: Double, at now: EventTime) {
        let again = refresh.last == .min ? now : refresh.last + Refresh.interval
        if now >= again {
            refresh.isWanted = true
        } else if refresh.hasHelped {
            backOff(asked: again.duration(since: now), jitter: jitter, at: now)
        } else {
            pause("auth", jitter: jitter, at: now)
        }
    }

    /// The credentials are being read anew, or their command runs.
    public mutating func refreshStarted(at now: EventTime) {
        refresh = Refresh(isWanted: false, last: now, hasHelped: false)
        phase = .refreshing
    }

    /// - Parameter isNew: there is something that has not been refused yet.
    public mutating func credentialsRefreshed(isNew: Bool, jitter: Double, at now: EventTime) {
        guard phase == .refreshing else { return }
        phase = .idle
        if isNew { _ = resend(at: now) } else { pause("auth", jitter: jitter, at: now) }
    }
}

// The newest row ahead of its turn.
extension DeliverySchedule {
    public mutating func previewStarted(at now: EventTime) {
        phase = .previewing
        previewedAt = now
    }

    /// What becomes of it settles nothing; a server that does not answer is left alone for a while.
    public mutating func previewFinished(_ verdict: Verdict?, jitter: Double, at now: EventTime) {
        guard phase == .previewing else { return }
        phase = .idle
        if case .retry(_, let after) = verdict { backOff(asked: after, jitter: jitter, at: now) }
    }
}
