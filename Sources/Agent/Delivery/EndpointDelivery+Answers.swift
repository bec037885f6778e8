import Delivery
import Outbox
import Positioning
import Uplink

// What an answer means, and what is done about it.
extension EndpointDelivery {
    func judge(of batch: Batch) -> AnswerJudge {
        AnswerJudge(route(of: batch).settings, in: RenderContext(identify: RecordID.make))
    }

    func finished(_ outcome: UplinkOutcome, _ attempt: Attempt, _ sent: Batch, wasCompressed: Bool) {
        link.reached(outcome.peerAddress)
        let judge = judge(of: sent)
        let verdict = judge.verdict(for: outcome, of: sent)
        counters.count(outcome, verdict)
        schedule.compressionUsed(wasCompressed)
        remember(verdict, outcome, sent)
        if verdict == .accepted, let stored = judge.stored(outcome) {
            counters.stored = (counters.stored ?? 0) + min(stored, sent.rows.count)
        }
        answered(attempt, verdict, outcome, sent, at: loop.now)
    }

    func answered(
        _ attempt: Attempt, _ verdict: Verdict, _ outcome: UplinkOutcome, _ sent: Batch, at now: EventTime
    ) {
        let stateBefore = schedule.state
        let failuresBefore = schedule.failures
        guard let settled = schedule.attemptFinished(attempt, verdict, jitter: jitter(), at: now) else { return }
        for answer in settled { settle(answer, at: now) }
        switch verdict {
        case .accepted, .partlyAccepted: succeeded(sent, failures: failuresBefore, at: now)
        default: counters.failed[verdict.word, default: 0] += 1
        }
        noteRoute()
        let isNews = stateMayHaveChanged(from: stateBefore, at: now)
        if verdict != .accepted { complain(verdict, outcome, isNews: isNews, at: now) }
        if verdict == .collision { collided(at: now) }
        changed()
        step(at: now)
    }

    private func remember(_ verdict: Verdict, _ outcome: UplinkOutcome, _ sent: Batch) {
        guard batches.contains(where: { $0.id == sent.id }) else { return }
        var history = histories[sent.id] ?? BatchHistory()
        history.attempts += 1
        switch outcome.result {
        case .failed(let failure):
            history.mayBeStored = history.mayBeStored || failure.mayFollowStoring
            history.answer = (failure.message, nil, [])
        case .reply(let reply):
            if case .retry(.unclear, _) = verdict {
                history.mayBeStored = true
            } else {
                history.mayBeStored = false
            }
            history.answer = (verdict.word, reply.status, Array(reply.body.prefix(512)))
        }
        histories[sent.id] = history
    }

    private func settle(_ settled: DeliverySchedule.Settled, at now: EventTime) {
        guard let place = batches.firstIndex(where: { $0.id == settled.batch }) else { return }
        let batch = batches.remove(at: place)
        let history = histories.removeValue(forKey: batch.id) ?? BatchHistory()
        func refusal(_ reason: String) -> Refusal {
            Refusal(
                reason: reason, status: history.answer.status, reply: history.answer.reply,
                attempts: max(1, history.attempts))
        }
        var how = BatchAnswer.Outcome.accepted
        var gone = batch.rows.count
        switch settled.how {
        case .accepted:
            counters.accepted += batch.rows.count
        case .split:
            how = .split
            gone = 0
        case .refused:
            how = .refused(refusal(history.answer.reason))
            quarantined(batch.rows.map(\.seq), history.answer.reason)
        case .partly(let items):
            how = .partly(refused: items.refused.mapValues { refusal($0) }, again: items.again)
            gone -= items.again.count
            counters.accepted += gone - items.refused.count
            if !items.refused.isEmpty {
                quarantined(items.refused.keys.sorted(), items.refused.values.sorted().first ?? "")
            }
        }
        link.gate.settled(gone)
        let isFinal = settled.how == .accepted || settled.how == .split
        // What was set aside is worth a look at once; a split is committed with the list of its parts.
        recorder.settle(
            BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how), soon: !isFinal, at: now)
    }

    private func quarantined(_ seqs: [Int64], _ reason: String) {
        counters.quarantined += seqs.count
        log.quarantined(
            endpoint: settings.name, seqs.count, row: seqs.count == 1 ? seqs[0] : nil,
            reason.isEmpty ? "refused" : reason)
    }

    private func succeeded(_ sent: Batch, failures: Int, at now: EventTime) {
        counters.batchesAccepted += 1
        lastSuccess = now
        if schedule.state == .active { lastProblem = nil }
        log.uploaded(endpoint: settings.name, batch: sent.id, count: sent.rows.count)
        if problem.ended(at: now.nanoseconds) != nil {
            log.uploadRecovered(endpoint: settings.name, failures: failures)
        }
    }

    /// - Returns: whether it did.
    @discardableResult
    func stateMayHaveChanged(from before: EndpointState, at now: EventTime) -> Bool {
        guard schedule.state != before else { return false }
        recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        changed()
        return true
    }

    private func complain(_ verdict: Verdict, _ outcome: UplinkOutcome, isNews: Bool, at now: EventTime) {
        var text = verdict.word
        var isAlarm = false
        switch (outcome.result, verdict) {
        case (.failed(let failure), _):
            text = failure.message
            if case .tls = failure { isAlarm = true }
        case (.reply(let reply), .goneStop), (.reply(let reply), .authStop), (.reply(let reply), .encodingRefused),
            (.reply(let reply), .tooLarge):
            text = "status \(reply.status)"
        case (_, .retry(.redirected(let status, let host?), _)): text = "status \(status), redirected to \(host)"
        case (.reply(let reply), .retry(.unclear(let why), _)): text = "status \(reply.status), but \(why.rawValue)"
        default: break
        }
        complain(text, isAlarm: isAlarm, isNews: isNews, at: now)
    }

    /// - Parameter problem: what has gone wrong; what is done about it is added.
    func complain(_ problem: String, isAlarm: Bool = false, isNews: Bool, at now: EventTime) {
        var text = problem
        switch schedule.state {
        case .active:
            if let next = schedule.nextAttemptAt, next > now {
                text += "; next try in \(Int(min(next.seconds(since: now), 1e6).rounded(.up))) s"
            }
        case .paused(let reason): text += "; paused (\(reason)), tried again every 15 min"
        case .stopped(let reason): text += "; stopped (\(reason)) until the configuration changes"
        case .taken: text += "; another device reports this asset, stopped"
        case .rebind: text += "; held"
        }
        if case .paused = schedule.state, let rest = restsFor(at: now) {
            text += "; the server wants no request for \(Int(rest.rounded(.up))) s"
        }
        lastProblem = text
        // A batch that is taken apart speaks of the row that it finds.
        if case .active = schedule.state, schedule.failures == 0 { return }
        let told = self.problem.occurred(at: now.nanoseconds, isNews: isNews)
        guard told != .suppressed else { return }
        log.uploadProblem(
            endpoint: settings.name, text + told.words, failures: schedule.failures, isAlarm: isAlarm)
    }
}

// Another device reports this asset.
extension EndpointDelivery {
    /// Rows that are recorded meanwhile are dealt with no more often than this, so that they cost no commit each.
    private static let collisionInterval = Duration.seconds(900)

    private func collided(at now: EventTime) {
        log.collision(
            endpoint: settings.name,
            settings.onCollision == .keep
                ? "nothing is sent; waypost endpoint bind \(settings.name) takes it back"
                : "nothing is sent; what waits goes by on_collision = \"\(settings.onCollision.rawValue)\"")
        collisionHandledAt = nil
        handleCollision(at: now)
    }

    /// Does with what waits what `on_collision` says. What the quarantine cannot hold stays where it is.
    func handleCollision(at now: EventTime) {
        guard settings.onCollision != .keep else { return }
        if let last = collisionHandledAt, last + Self.collisionInterval > now { return }
        collisionHandledAt = now
        let asset = settings.assetID.map { " of asset \($0)" } ?? ""
        let order: QueueOrder =
            settings.onCollision == .clear
            ? .clear(endpoint: settings.name)
            : .quarantine(endpoint: settings.name, Refusal(reason: "collision\(asset)"))
        recorder.order(order, at: now) { [unowned self] result in
            switch result {
            case .refused(let why): log.collision(endpoint: settings.name, "what waits is kept: \(why)")
            case .done(let rows, let first, let last):
                guard rows > 0, let depth = recorder.latest.depths.first(where: { $0.endpoint == settings.name }) else {
                    return
                }
                startOver(from: depth, because: "its rows were given up meanwhile")
                if settings.onCollision == .quarantine { counters.quarantined += rows }
                let range = first.flatMap { first in last.map { " (\(first) to \($0))" } } ?? ""
                log.collision(
                    endpoint: settings.name,
                    "\(rows) locations\(range) were \(settings.onCollision == .clear ? "deleted" : "set aside")")
            }
        }
    }
}
