import Delivery
import Outbox
import Positioning
import Uplink

// The way out, the company of other endpoints, and what an operator did.
extension EndpointDelivery {
    /// Whether the link lets it send, whatever is due.
    func maySend(at now: EventTime) -> Bool { link.gate.opening(at: now) == .open }

    /// After `shutdown`: there is nothing left to do or to wait for.
    var isShutDown: Bool { schedule.isShutDown || link.gate.isHeldByLink }

    /// Links, addresses or routes of this host may have changed.
    func linksChanged(at now: EventTime) {
        let reason = link.holdReason
        guard link.look() else { return }
        if link.holdReason != reason { log.linkHeld(endpoint: settings.name, link.holdReason) }
        // Another way than the one that failed.
        if link.wayOut != nil { schedule.linkChanged(at: now) }
        changed()
        step(at: now)
    }

    /// This host has just started, perhaps together with a fleet: what waits from before goes out a moment later.
    func startedWithHost(jitter: Double, at now: EventTime) {
        guard waiting > 0 else { return }
        link.gate.startedWithBacklog(window: settings.batchWindow, jitter: jitter, at: now)
    }

    /// Another endpoint forms a batch: forms one too when its own window ends soon.
    func mayJoin(at now: EventTime) {
        guard batches.isEmpty, !schedule.isForming, schedule.state == .active, maySend(at: now),
            case .wait(let ends) = schedule.next(at: now),
            SendAlignment.joins(windowEnds: ends, window: settings.batchWindow, at: now)
        else { return }
        schedule.flushRequested(at: now)
        step(at: now)
    }

    /// An operator ended a pause or a stop.
    func resumed(at now: EventTime) {
        for route in routes { route.credentials.resumed() }
        schedule.resumed(at: now)
        recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        lastProblem = nil
        changed()
        step(at: now)
    }

    /// Why what waits is not tried at once, and for how many seconds as far as that is known; nil = it is, or nothing waits.
    func postponement(at now: EventTime) -> (seconds: Double?, reason: String)? {
        guard waiting > 0 else { return nil }
        if let rest = restsFor(at: now) { return (rest, "the server has asked for that") }
        return link.holdReason.map { (nil, $0) }
    }

    /// Asks the server to bind the asset to this device, where the profile has a request for that.
    ///
    /// It waits for the attempt that is under way, and nothing else is sent from its start until `rebound` or
    /// `orderRefused` says what became of the order behind it.
    ///
    /// - Parameter done: with what went wrong, in words for people; nil = bound, or nothing to ask.
    func bind(at now: EventTime, _ done: @escaping (String?) -> Void) {
        guard settings.profile.canBind else { return done(nil) }
        if schedule.isShuttingDown { return done("waypost is stopping") }
        if binding != nil || schedule.attempt?.purpose == .bind { return done("another request to bind is under way") }
        let rests = schedule.bindRestsUntil
        if rests >= now + Self.bindLimit {
            return done("the server wants no request for another \(Int(rests.seconds(since: now).rounded(.up))) s")
        }
        binding = Binding(done: done)
        bindAlarm?.deadline = now + Self.bindLimit
        schedule.bindRequested()
        step(at: now)
    }

    /// Seconds for which the server wants no request; nil = it has no such wish.
    func restsFor(at now: EventTime) -> Double? {
        schedule.restsUntil > now ? schedule.restsUntil.seconds(since: now) : nil
    }

    func sendBind(at now: EventTime) { requestBind(schedule.bindStarted(at: now)) }

    private func requestBind(_ attempt: Attempt) {
        let credentials = routes[0].credentials
        credentials.obtain(at: loop.now) { [unowned self] result in
            guard receives(attempt) else { return }
            do throws(CredentialProblem) {
                let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                guard var request = RequestRenderer(settings, in: context).bindRequest() else { return endBinding(nil) }
                request.timeout = min(request.timeout, Self.bindPatience)
                try credentials.complete(&request, batchID: "\(settings.name)-bind", at: loop.now)
                send(request, of: attempt) { [unowned self] outcome in bindAnswered(attempt, outcome) }
            } catch {
                bindRefused(error.message)
            }
        }
    }

    private func bindAnswered(_ attempt: Attempt, _ outcome: UplinkOutcome) {
        guard case .reply(let reply) = outcome.result else {
            if case .failed(let failure) = outcome.result { bindRefused(failure.message) }
            return
        }
        schedule.bindAnswered(asked: RetryAfter.parse(reply.headers), at: loop.now)
        switch reply.status {
        case 200..<300: endBinding(nil)
        case 401, 407:
            guard binding?.isRepeated == false, schedule.bindRestsUntil <= loop.now else {
                return bindRefused("status \(reply.status)")
            }
            binding?.isRepeated = true
            routes[0].credentials.refresh(at: loop.now) { [unowned self] renewal in
                guard receives(attempt) else { return }
                guard renewal == .new else { return bindRefused("status \(reply.status), the credential is refused") }
                requestBind(attempt)
            }
        default: bindRefused("status \(reply.status)")
        }
    }

    private func bindRefused(_ problem: String) {
        endBinding(problem)
        step(at: loop.now)
    }

    /// Answers the operator, if one waits.
    ///
    /// - Parameter problem: nil = the server has bound it, and the order behind it is next.
    func endBinding(_ problem: String?) {
        guard let done = binding?.done else { return }
        binding = nil
        bindAlarm?.deadline = nil
        schedule.bindWithdrawn()
        if problem != nil { schedule.bindEnded() }
        done(problem)
    }

    /// The operator has waited long enough.
    func bindTimedOut() {
        if schedule.attempt?.purpose == .bind {
            abandonAttempt(because: "no answer within 30 s; whether the server has bound the asset is not known")
        } else {
            endBinding("another request to the server is under way and has not ended within 30 s")
        }
        step(at: loop.now)
    }

    /// Somebody waits for the answer.
    private static let bindPatience = Duration.seconds(15)
    /// For the attempt before it, the bind itself and a renewed credential.
    private static let bindLimit = ControlTicket.patience

    /// The order behind a bind was refused.
    func orderRefused() {
        schedule.bindEnded()
        step(at: loop.now)
    }

    /// An operator gave its rows another binding, or none: from now on the queue's word counts.
    func rebound(_ depth: EndpointDepth) {
        let now = loop.now
        startOver(from: depth, because: "its rows have another binding meanwhile")
        collisionHandledAt = nil
        schedule.stateChanged(to: depth.state, acceptedBefore: depth.acceptedBefore)
        if depth.state == .active { schedule.resumed(at: now) }
        lastProblem = nil
        changed()
        step(at: now)
    }

    /// The queue tells at last what it holds, or lets go of what was held while damaged pages were read. The server is none the
    /// better for that: a back-off goes on, and so does a pause or a stop.
    func found(_ depth: EndpointDepth) {
        startOver(from: depth, because: "its queue was read meanwhile")
        let state = depth.state == .active && schedule.state != .rebind ? schedule.state : depth.state
        schedule.stateChanged(to: state, acceptedBefore: depth.acceptedBefore)
        stateMayHaveChanged(from: depth.state, at: loop.now)
        changed()
        step(at: loop.now)
    }

    /// What was in flight is no more, or is another's.
    ///
    /// - Parameter reason: for an operator who waits for what is under way.
    func startOver(from depth: EndpointDepth, because reason: String) {
        abandonAttempt(because: reason)
        batches = []
        histories = [:]
        schedule.emptied()
        // Batches that are still there are handed out again when one is asked for.
        schedule.waitingCorrected(
            to: depth.waiting + recorder.uncommitted(for: settings), inFlight: depth.inFlight)
    }
}
