import Positioning

extension DeliverySchedule {
    /// What to do now. Asking changes nothing.
    public func next(at now: EventTime) -> Step {
        if shutdown != nil { return shutdownStep(at: now) }
        guard phase == .idle else { return .wait(until: nil) }
        if wantsBind { return later(bindRestsUntil, at: now) ?? .bind }
        switch state {
        case .stopped, .taken, .rebind: return .wait(until: nil)
        case .active, .paused: break
        }
        if refresh.isWanted { return .refreshCredentials }
        // What is formed again is listed by that.
        if dissolves { return later(max(notFormingBefore, nextAttempt), at: now) ?? .reform(limit: limit) }
        if isUnlisted { return later(notFormingBefore, at: now) ?? .form(limit: 0) }
        if parts.isEmpty { return idleStep(at: now) }
        switch target {
        case .following: return later(notFormingBefore, at: now) ?? .form(limit: 1)
        case .probeFollowing: return later(max(notFormingBefore, nextSend), at: now) ?? .form(limit: 1)
        case .part(let place):
            if let wait = later(max(nextAttempt, routes.rests(of: parts[place].batch.route)), at: now) { return wait }
            return wantsPreview(at: now) ? .preview : .send(batch: parts[place].batch.id)
        }
    }

    private enum Target {
        case part(Int)
        /// The row behind what is in flight, at once.
        case following
        /// The same at the next attempt of a pause.
        case probeFollowing
    }

    /// Whose turn it is. Only asked while something is in flight.
    private var target: Target {
        if case .paused(let reason) = state {
            guard Self.pausesOfRows.contains(reason) else { return .part(0) }
            if probe.fresh, queue.count > 0, !hasManyAlone { return .probeFollowing }
            // Rows keep their order: only one alone may go ahead, to show whether the server is well.
            let place = min(probe.place, parts.count - 1)
            return .part(parts[place].batch.rows == 1 ? place : 0)
        }
        if triesSuccessor {
            // Rows keep their order: only one alone may go ahead. One that failed as well shows nothing; others may.
            let alone = parts.indices.dropFirst().filter { parts[$0].batch.rows == 1 }
            if let place = alone.first(where: { parts[$0].streak.count == 0 }) { return .part(place) }
            if queue.count > 0, !hasManyAlone { return .following }
            if let place = alone.first { return .part(place) }
        }
        if let place = parts.firstIndex(where: { !$0.isRefused }) { return .part(place) }
        if let bisect, bisect.probes < bisect.probesMax, queue.count > 0 { return .following }
        return .part(0)
    }

    /// So many rows were refused alone that another one would show no more.
    var hasManyAlone: Bool { parts.count { $0.batch.rows == 1 } >= Self.aloneMax }

    private func idleStep(at now: EventTime) -> Step {
        let step = formingStep(at: now)
        guard unlistedRows > 0, case .wait(let until) = step else { return step }
        let next = state == .active ? notFormingBefore : max(notFormingBefore, nextAttempt)
        return later(min(next, until ?? .max), at: now) ?? .form(limit: 0)
    }

    private func formingStep(at now: EventTime) -> Step {
        guard queue.count > 0 else { return .wait(until: nil) }
        if let wait = later(max(notFormingBefore, routes.restsAtBoundary), at: now) { return wait }
        if state != .active { return later(nextAttempt, at: now) ?? .form(limit: limit) }
        if queue.flushing > 0 { return later(pacing.nextBatch, at: now) ?? .form(limit: limit) }
        if queue.count >= limit { return later(pacing.nextBatch, at: now) ?? .form(limit: limit) }
        guard queue.count >= settings.minBatch else { return .wait(until: nil) }
        // Rows that nobody announced were found when the count was corrected: their window is over.
        guard let oldest = queue.oldest else { return .form(limit: limit) }
        let window = pacing.stretched(settings.batchWindow, settings.backoff)
        return later(oldest + window, at: now) ?? .form(limit: limit)
    }

    func shutdownStep(at now: EventTime) -> Step {
        guard let shutdown else { return .wait(until: nil) }
        // An instant that has passed would be due again and again.
        if phase != .idle { return .wait(until: now < shutdown.until ? shutdown.until : nil) }
        guard !shutdown.attempted, !isUnlisted, !dissolves, state == .active, now == .max || now < shutdown.until else {
            return .wait(until: nil)
        }
        if let head = parts.first(where: { !$0.isRefused }) {
            let earliest = max(earliestAttempt, restsUntil)
            guard earliest < shutdown.until else { return .wait(until: nil) }
            return later(earliest, at: now) ?? .send(batch: head.batch.id)
        }
        guard parts.isEmpty, queue.count > 0, max(notFormingBefore, restsUntil) < shutdown.until else {
            return .wait(until: nil)
        }
        return .form(limit: limit)
    }

    func later(_ instant: EventTime, at now: EventTime) -> Step? {
        instant > now ? .wait(until: instant) : nil
    }

    private func wantsPreview(at now: EventTime) -> Bool {
        settings.freshHead && !settings.profile.usesNewest && state == .active && failures == 0 && bisect == nil
            && queue.count > 0
            && inFlight + queue.count > limit && previewed.at + max(settings.batchWindow, .seconds(1)) <= now
    }
}
