import Positioning

extension DeliverySchedule {
    mutating func accepted(_ place: Int, jitter: Double, at now: EventTime) -> [Settled] {
        let part = parts.remove(at: place)
        var settled = [Settled(batch: part.batch.id, how: .accepted)]
        commitBeforeNext()
        let wasDoubted = isPausedOverRows
        succeeded(rows: part.batch.rows, at: now)
        if triesSuccessor {
            triesSuccessor = false
            // The row behind is fine and the server well: what it fails over stands in the batch ahead.
            if place > 0, let head = parts.first {
                bisect = Bisect(rows: head.batch.rows, cause: head.streak.word, hasEvidence: true)
                bisects += 1
                parts[0].isRefused = true
            }
        } else if bisect == nil, wasDoubted {
            bisect = Bisect(rows: parts.first?.batch.rows ?? 1, cause: nil, hasEvidence: true)
        }
        bisect?.hasEvidence = true
        settled += settleRefused(jitter: jitter, at: now)
        endBisectIfDone()
        return settled
    }

    mutating func partlyAccepted(_ items: ItemVerdicts, _ place: Int, jitter: Double, at now: EventTime) -> [Settled] {
        let part = parts.remove(at: place)
        var settled = [Settled(batch: part.batch.id, how: .partly(items))]
        isUnlisted = isUnlisted || !items.again.isEmpty
        unlistedRows += items.again.count
        commitBeforeNext()
        succeeded(rows: part.batch.rows, at: now)
        bisect?.hasEvidence = true
        settled += settleRefused(jitter: jitter, at: now)
        endBisectIfDone()
        let refused = items.refused.count
        let isTooMany = quarantined(refused, at: now) || (part.batch.rows > 1 && refused > max(2, part.batch.rows / 10))
        if items.needsCredential {
            refresh.hasHelped = false
            pauseForCredential(jitter: jitter, at: now)
        } else if isTooMany {
            pause(Self.tooManyRejected, jitter: jitter, at: now)
        } else if !items.again.isEmpty {
            backOff(asked: items.after, jitter: jitter, at: now)
        }
        return settled
    }

    /// What was accepted is written before another part is sent, so that a crash repeats one batch and not several.
    private mutating func commitBeforeNext() {
        if !parts.isEmpty { isUnlisted = true }
    }

    private mutating func pauseForCredential(jitter: Double, at now: EventTime) {
        if refresh.last == .min || refresh.last + Refresh.interval <= now {
            refresh.isWanted = true
        } else {
            pause("auth", jitter: jitter, at: now)
        }
    }

    /// The server has taken something.
    mutating func succeeded(rows: Int, at now: EventTime) {
        // After an outage all that waits goes out at once.
        if failures > 0 || state != .active { queue.flush() }
        state = .active
        failures = 0
        acceptedBefore = true
        broughtForward = false
        sentAgain417 = false
        refresh.hasHelped = true
        nextAttempt = now
        earliestAttempt = now
        limit = max(limit, min(rows, settings.batchSize))
        pacing.accepted(settings.backoff, at: now)
        nextAttempt = max(now, pacing.nextBatch)
    }

    /// - Parameter cause: the failure that is taken for a refusal; nil when the status says so.
    mutating func refused(_ place: Int, cause: String?, jitter: Double, at now: EventTime) -> [Settled] {
        if case .paused(let reason) = state {
            if isPausedOverRows {
                failures = min(failures + 1, 1_000_000)
                pause(reason, jitter: jitter, at: now)
                // One row alone may show that the server is well, whatever is wrong with those before it.
                guard !hasManyAlone, let next = parts.firstIndex(where: { $0.batch.rows > 1 }) else { return [] }
                return [split(next)]
            }
            // It listens again.
            state = .active
        }
        triesSuccessor = false
        nextAttempt = now
        earliestAttempt = now
        if bisect == nil {
            bisect = Bisect(rows: parts[place].batch.rows, cause: cause, hasEvidence: false)
            bisects += 1
        }
        let candidates = parts.contains { $0.isRefused }
        if bisect?.hasEvidence ?? false {
            parts[place].isRefused = true
            let settled = settleRefused(jitter: jitter, at: now)
            endBisectIfDone()
            return settled
        }
        if parts[place].batch.rows > 1, !candidates { return [split(place)] }
        parts[place].isRefused = true
        concludeWithoutEvidence(jitter: jitter, at: now)
        return []
    }

    /// Too large says which way to go, but no more of a single row than any other refusal.
    mutating func tooLarge(_ place: Int, after: Duration?, jitter: Double, at now: EventTime) -> [Settled] {
        if after != nil, parts[place].streak.count < 2 {
            backOff(asked: after, jitter: jitter, at: now)
            return []
        }
        let rows = parts[place].batch.rows
        guard rows > 1 else {
            let settled = refused(place, cause: nil, jitter: jitter, at: now)
            let alone = parts.count { $0.isRefused && $0.batch.rows == 1 }
            if state == .active, alone >= Self.refusedAloneMax {
                pause(Self.everyRecordRefused, jitter: jitter, at: now)
            }
            return settled
        }
        if isPausedOverRows {
            backOff(asked: nil, jitter: jitter, at: now)
        } else {
            state = .active
            nextAttempt = now
            earliestAttempt = now
        }
        if bisect == nil { bisect = Bisect(rows: rows, cause: nil, hasEvidence: false) }
        limit = min(limit, (rows + 1) / 2)
        return [split(place)]
    }

    private mutating func split(_ place: Int) -> Settled {
        let batch = parts.remove(at: place).batch
        isUnlisted = true
        unlistedRows += batch.rows
        return Settled(batch: batch.id, how: .split)
    }

    /// With evidence at hand: what was refused alone goes, what was refused as a whole is taken apart.
    private mutating func settleRefused(jitter: Double, at now: EventTime) -> [Settled] {
        var settled: [Settled] = []
        var isTooMany = false
        while !isTooMany, let place = parts.firstIndex(where: \.isRefused) {
            if parts[place].batch.rows > 1 {
                settled.append(split(place))
            } else {
                settled.append(Settled(batch: parts.remove(at: place).batch.id, how: .refused))
                isTooMany = quarantined(1, at: now)
            }
        }
        if isTooMany { pause(Self.tooManyRejected, jitter: jitter, at: now) }
        return settled
    }

    /// Everything at hand was refused and nothing accepted.
    private mutating func concludeWithoutEvidence(jitter: Double, at now: EventTime) {
        guard let bisect, parts.allSatisfy(\.isRefused) else { return }
        if bisect.probes < bisect.probesMax, queue.count > 0 { return }
        if parts.count > 1 { return pause(Self.everyRecordRefused, jitter: jitter, at: now) }
        // A single row with nobody behind it: the next row will show whether it is to blame.
        failures = min(failures + 1, 1_000_000)
        nextAttempt = now + Self.probeDelay(jitter)
        earliestAttempt = now
    }

    /// - Returns: whether so many went that the endpoint itself is to be doubted.
    private mutating func quarantined(_ count: Int, at now: EventTime) -> Bool {
        var isTooMany = false
        for _ in 0..<min(count, RecentRefusals.most + 1) where refusals.refused(at: now) { isTooMany = true }
        guard bisect != nil else { return isTooMany }
        bisect?.quarantined += count
        return isTooMany || bisect.map { $0.quarantined > $0.quarantineMax } ?? false
    }

    private mutating func endBisectIfDone() {
        if parts.isEmpty, !isUnlisted { bisect = nil }
    }
}
