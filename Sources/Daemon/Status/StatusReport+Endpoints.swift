import Profiles
import Queue
import WaypostControl
import WaypostCore

// State and counters of each endpoint. docs/operations.md says what to do about each counter.
extension StatusReport {
    /// Those that follow the endpoint `after`.
    func endpoints(after name: String? = nil) -> [EndpointStatus] {
        let known = name.flatMap { name in deliveries.firstIndex { $0.settings.name == name } }
        return deliveries[(known.map { $0 + 1 } ?? 0)...].map(status(of:))
    }

    private func status(of delivery: EndpointDelivery) -> EndpointStatus {
        let depth = recorder.latest.depths.first { $0.endpoint == delivery.settings.name }
        let schedule = delivery.schedule
        var status = EndpointStatus()
        status.name = delivery.settings.name
        status.state = schedule.state.word
        status.reason = schedule.state.reason
        status.held = delivery.link.holdReason
        if schedule.route > 0 { status.sentBy = delivery.routes[schedule.route].settings.name }
        status.contact = delivery.contact.state.progress.rawValue
        status.contactAge = delivery.contact.state.since.map { now.seconds(since: $0) }
        status.interface = delivery.link.egressRoute?.interface
        status.waiting = delivery.waiting
        status.oldestAge = oldestAge(depth)
        status.problem = delivery.lastProblem.map(Self.shortened)
        status.problemLayer = delivery.problemLayer
        status.advice = Self.advice(delivery, depth)
        if schedule.state == .rebind {
            status.bindNeedsForce = OperatorOrders.bindNeedsForce(delivery.settings, depth)
        }
        status.consecutiveFailures = schedule.failures
        status.lastSuccessAge = delivery.lastSuccess.map { now.seconds(since: $0) }
        status.nextAttempt = delivery.nextAttempt(at: now).map { max(0, $0.seconds(since: now)) }
        let token = delivery.routes[schedule.route].credentials.tokenLife(at: now)
        status.tokenExpires = token.left
        status.tokenValidity = token.validity
        status.tokenProblem = token.problem.map(Self.shortened)
        if case .paused(let reason) = schedule.state { status.paused = Named([(reason, 1)]) }
        if let reason = Self.stop(schedule.state) { status.stopped = Named([(reason, 1)]) }
        count(delivery, &status)
        if let depth { count(depth, &status) }
        return status
    }

    private func count(_ delivery: EndpointDelivery, _ status: inout EndpointStatus) {
        let counters = delivery.counters
        status.accepted = counters.accepted
        status.batches = counters.batchesAccepted
        status.requests = counters.requests
        status.retries = counters.retries
        status.stored = counters.stored
        status.batchesRepeated = counters.batchesRepeated
        status.strayAnswers = delivery.schedule.strayAnswers
        status.retryAfterHonoured = counters.retryAfterHonoured
        status.bisects = delivery.schedule.bisects
        status.suspects = delivery.schedule.suspects.count
        status.quarantined = counters.quarantined
        status.previewSent = counters.previewSent
        status.connections = counters.connections
        status.bytesSent = counters.bytesSent
        status.bytesReceived = counters.bytesReceived
        if counters.accepted > 0 { status.bytesPerFix = Double(counters.bytesSent) / Double(counters.accepted) }
        status.failed = Self.counts(counters.failed)
    }

    private func count(_ depth: EndpointDepth, _ status: inout EndpointStatus) {
        let unsent = depth.finishedUnsent
        status.quarantineDepth = depth.quarantined
        status.quarantineOverflow = unsent["overflow"] ?? 0
        status.expired = unsent["expired"] ?? 0
        status.coalesced = unsent["superseded"] ?? 0
        status.dropped = unsent["dropped"] ?? 0
        status.evicted = unsent["evicted"] ?? 0
        status.profileRejected = Self.counts(unsent.filter { ["unfit", "refused", "skipped"].contains($0.key) })
    }

    /// Seconds between the record that has waited longest and the newest one; both are receiver time.
    private func oldestAge(_ depth: EndpointDepth?) -> Double? {
        guard let oldest = depth?.oldestTime, let newest = pipeline.tracker.snapshot.lastFixTime else { return nil }
        return max(0, Double(newest.milliseconds - oldest.milliseconds) / 1000)
    }

    /// What to do about its state, in words for people; nil when there is nothing to do.
    ///
    /// - Parameter depth: what the queue says of it.
    static func advice(_ delivery: EndpointDelivery, _ depth: EndpointDepth?) -> String? {
        let name = delivery.settings.name
        let bind = OperatorOrders.bindCommand(delivery.settings, depth)
        switch delivery.schedule.state {
        case .active where delivery.schedule.suspects.count > 0:
            return "look at the time of the upload in the log of the server; waypost quarantine list shows it later"
        case .active where delivery.schedule.failures > 10:
            return delivery.problemLayer == nil
                ? "waypost profile render shows the request" : "waypost doctor looks at the way to the server"
        case .active: return nil
        case .rebind:
            return
                "base_url, device or asset changed while locations waited for the old one: put it back; or \(bind) sends "
                + "them under the new one; or sudo waypost endpoint drop \(name) deletes them"
        case .taken: return "another device reports this asset: \(bind) takes it back"
        case .paused(EndpointState.notBound):
            return "the server has never taken this device for the one of the asset: \(bind)"
        case .paused(EndpointState.clientIDInUse):
            return
                "another client of the broker has the client id of this one: give each its own (client_id, or "
                + "[device] id), then waypost endpoint resume \(name)"
        case .paused where delivery.problemCure != nil:
            return "mend that, then waypost endpoint resume \(name)"
        case .paused("auth") where delivery.settings.profile.isForBroker:
            return
                "set user name and password as the broker knows them (vars and secrets), or have its access rules (ACL) extended, "
                + "then waypost endpoint resume \(name)"
        case .paused("auth") where !delivery.hasCredential:
            return "set auth of the endpoint, or ask whoever runs the server, then waypost endpoint resume \(name)"
        case .paused("auth"): return "renew the credential, then waypost endpoint resume \(name)"
        case .paused("not found"), .stopped: return "check base_url and device, then waypost endpoint resume \(name)"
        case .paused("records refused"), .paused("too many rejected"):
            return "compare waypost profile render with the server's rules, then waypost endpoint resume \(name)"
        case .paused: return "check the problem, then waypost endpoint resume \(name)"
        }
    }

    private static func stop(_ state: EndpointState) -> String? {
        switch state {
        case .stopped(let reason): reason
        case .taken, .rebind: state.word
        case .active, .paused: nil
        }
    }

    /// By reason; the first 32 of them.
    private static func counts(_ counts: [String: Int]) -> Named<Int> {
        Named(counts.sorted { $0.key < $1.key }.prefix(32).map { ($0.key, $0.value) })
    }

    /// Words of a server may be long.
    static func shortened(_ text: String) -> String { text.cut(toBytes: 400) }
}
