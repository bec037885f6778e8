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
        schedule.resumed(at: now)
        recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        lastProblem = nil
        changed()
        step(at: now)
    }

    /// Asks the receiver to bind the asset to this device, where the profile has a request for that.
    ///
    /// - Parameter done: with what went wrong, in words for people; nil = bound, or nothing to ask.
    func bind(isRepeated: Bool = false, _ done: @escaping (String?) -> Void) {
        guard settings.bindRequest() != nil else { return done(nil) }
        let credentials = routes[0].credentials
        credentials.obtain(at: loop.now) { [unowned self] result in
            do throws(CredentialProblem) {
                let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                guard var request = settings.bindRequest(in: context) else { return done(nil) }
                request.timeout = min(request.timeout, Self.bindPatience)
                try credentials.complete(&request, batchID: "\(settings.name)-bind", at: loop.now)
                uplink.send(request) { [unowned self] outcome in
                    counters.requests += 1
                    switch outcome.result {
                    case .failed(let failure): done(failure.message)
                    case .reply(let reply) where (200..<300).contains(reply.status): done(nil)
                    case .reply(let reply) where [401, 407].contains(reply.status) && !isRepeated:
                        credentials.refresh(at: loop.now) { [unowned self] isNew in
                            guard isNew else { return done("status \(reply.status), the credential is refused") }
                            bind(isRepeated: true, done)
                        }
                    case .reply(let reply): done("status \(reply.status)")
                    }
                }
            } catch {
                done(error.message)
            }
        }
    }

    /// Somebody waits for the answer.
    private static let bindPatience = Duration.seconds(15)

    /// An operator gave its rows another binding, or none: from now on the queue's word counts.
    func rebound(_ depth: EndpointDepth) {
        let now = loop.now
        batches = []
        histories = [:]
        collisionHandledAt = nil
        schedule.emptied()
        // Batches that are still there are handed out again when one is asked for.
        schedule.waitingCorrected(to: depth.waiting + depth.inFlight + recorder.uncommitted(for: settings))
        schedule.stateChanged(to: depth.state, at: now)
        lastProblem = nil
        changed()
        step(at: now)
    }
}
