import Delivery
import Outbox
import Positioning
import Systemd
import Uplink

/// Carries out what the schedule of one cursor says: forms batches through the recorder, sends them, settles them.
final class EndpointDelivery {
    /// A way to send what waits for this cursor.
    struct Route {
        var settings: EndpointSettings
        var credentials: EndpointCredentials
    }

    private(set) var settings: EndpointSettings
    /// The endpoint itself, and those that stand in for it.
    private(set) var routes: [Route]
    let uplink: any Uplink
    let recorder: Recorder
    let log: AgentLog
    let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    /// In flight on disk, in the order in which they go out.
    var batches: [Batch]
    /// What was tried with a batch in flight.
    var histories: [String: BatchHistory] = [:]
    var problem = RepeatGate()
    var schedule: DeliverySchedule
    var link: EndpointLink
    var counters = Counters()
    var lastSuccess: EventTime?
    var lastProblem: String?
    /// When rows of a taken asset were last dealt with as `on_collision` says; nil = not since it was taken.
    var collisionHandledAt: EventTime?
    /// Something about this endpoint changed that the status line shows.
    var changed: () -> Void = {}
    /// It is about to form a batch: others may join.
    var willForm: (EventTime) -> Void = { _ in }
    /// 0 ≤ x < 1, from the system's random source.
    let jitter: () -> Double

    /// - Parameters:
    ///   - depth: of its cursor, as the outbox was opened; nil when it has none yet.
    ///   - batches: those in flight of all endpoints.
    init(
        routes: [Route], depth: EndpointDepth?, batches: [Batch], uplink: any Uplink, recorder: Recorder,
        log: AgentLog, loop: EventLoop, jitter: @escaping () -> Double
    ) {
        let settings = routes[0].settings
        let names = routes.map(\.settings.name)
        let own = batches.filter { names.contains($0.endpoint) }
        self.settings = settings
        self.routes = routes
        self.batches = own
        self.uplink = uplink
        self.recorder = recorder
        self.log = log
        self.loop = loop
        self.jitter = jitter
        schedule = DeliverySchedule(
            settings: settings, state: depth?.state ?? .active, waiting: depth?.waiting ?? 0,
            inFlight: own.map { .init(id: $0.id, rows: $0.rows.count) }, routes: routes.count,
            route: own.first.flatMap { names.firstIndex(of: $0.endpoint) } ?? 0,
            acceptedBefore: depth?.acceptedBefore ?? false, at: loop.now)
        for batch in own { histories[batch.id] = BatchHistory(mayBeStored: true) }
        link = EndpointLink(settings, host: loop.host)
        alarm = loop.alarm { [unowned self] now in step(at: now) }
    }

    /// Rows that this endpoint has not accepted, in memory, on disk and in flight.
    var waiting: Int { schedule.waiting + schedule.inFlight }

    /// Nothing is sent until somebody does something about it.
    var awaitsOperator: Bool {
        switch schedule.state {
        case .stopped, .taken, .rebind: true
        case .active, .paused: false
        }
    }

    func recorded(_ location: Location, at now: EventTime) {
        guard settings.wants(location) else { return }
        schedule.rowsRecorded(1, at: now)
    }

    /// Goes on by another pace and with other credentials.
    ///
    /// - Parameter routes: the same endpoints in the same order.
    func reload(_ routes: [Route], at now: EventTime) {
        self.routes = routes
        settings = routes[0].settings
        schedule.paceChanged(to: settings)
        step(at: now)
    }

    func flush(at now: EventTime) {
        link.gate.flushRequested(waiting: waiting)
        schedule.flushRequested(at: now)
        step(at: now)
    }

    func shutdown(grace: Duration, at now: EventTime) {
        schedule.shutdownRequested(at: now, grace: grace)
        step(at: now)
    }

    /// Does what is due, and arms the alarm for what is due later.
    func step(at now: EventTime) {
        while true {
            if case .shut(let until) = link.gate.opening(at: now) {
                alarm?.deadline = until
                return
            }
            switch schedule.next(at: now) {
            case .form(let limit): form(limit, at: now)
            case .reform(let limit):
                batches = []
                histories = [:]
                form(limit, at: now)
            case .send(let id):
                guard let batch = batches.first(where: { $0.id == id }) else { return }
                send(batch, at: now)
            case .preview: preview(at: now)
            case .refreshCredentials: refreshCredentials(at: now)
            case .wait(let until):
                alarm?.deadline = until
                return
            }
        }
    }

    private func form(_ limit: Int, at now: EventTime) {
        let routeBefore = schedule.route
        schedule.formRequested(at: now)
        if schedule.route != routeBefore { routeChanged() }
        if limit > 0 { willForm(now) }
        recorder.form(
            FormRequest(
                endpoint: settings.name, route: schedule.route > 0 ? routes[schedule.route].settings.name : nil,
                limit: limit, isProbe: !batches.isEmpty, sentMs: loop.host.wallClockMs), at: now)
    }

    /// A commit succeeded: take over the batches in flight, and the truth about what waits.
    func committed(_ reply: CommitReply, _ forms: [FormRequest], at now: EventTime) {
        let depth = reply.depths.first { $0.endpoint == settings.name }
        let uncommitted = recorder.uncommitted(for: settings)
        if forms.contains(where: { $0.endpoint == settings.name }) {
            let names = routes.map(\.settings.name)
            let before = schedule.waiting
            batches = reply.formed.filter { names.contains($0.endpoint) }
            let known = Set(batches.map(\.id))
            histories = histories.filter { known.contains($0.key) }
            schedule.batchesFormed(
                batches.map { .init(id: $0.id, rows: $0.rows.count) },
                advanced: depth.map { $0.waiting + uncommitted < before } ?? false, at: now)
        }
        // Retention removes rows, and a commit that was reported as failed may have formed a batch all the same. While
        // another request to form is on its way its batch is counted on neither side.
        if !schedule.isForming, let depth {
            schedule.waitingCorrected(to: depth.waiting + uncommitted)
            link.gate.waitingCorrected(to: waiting)
            if schedule.state == .taken, depth.waiting + depth.inFlight > 0 { handleCollision(at: now) }
        }
        step(at: now)
    }

    /// A commit was not made.
    func refused(_ forms: [FormRequest], at now: EventTime) {
        guard forms.contains(where: { $0.endpoint == settings.name }) else { return }
        schedule.batchNotFormed(at: now)
        step(at: now)
    }

    /// The way by which a batch was formed to go.
    func route(of batch: Batch) -> Route {
        routes.first { $0.settings.name == batch.endpoint } ?? routes[0]
    }

    private func send(_ batch: Batch, at now: EventTime) {
        schedule.attemptStarted(batch.id, at: now)
        let repeats = histories[batch.id]?.attempts ?? 0
        transmit(batch) { [unowned self] outcome, request in
            counters.requests += 1
            if repeats > 0 { counters.retries += 1 }
            if histories[batch.id]?.mayBeStored ?? false { counters.batchesRepeated += 1 }
            finished(outcome, batch, wasCompressed: request.gzip)
        } withheld: { [unowned self] problem in
            let failure: TransportFailure = problem.isClock ? .clock(problem.message) : .broken(problem.message)
            answered(
                problem.isClock ? .retry(.transport(failure), after: nil) : .authStop(status: 401),
                UplinkOutcome(.failed(failure)), batch, at: loop.now)
        }
    }

    /// The newest row alone: what becomes of it settles nothing.
    private func preview(at now: EventTime) {
        schedule.previewStarted(at: now)
        guard let head = batches.first, let newest = head.newest, newest.seq > (head.rows.last?.seq ?? .max) else {
            return schedule.previewFinished(nil, jitter: 0, at: now)
        }
        let id = "\(head.outboxName)-\(head.endpoint)-\(newest.seq)-\(newest.seq)-preview"
        let batch = Batch(
            endpoint: head.endpoint, id: id, rows: [newest], sentMs: loop.host.wallClockMs, outbox: head.outbox)
        transmit(batch) { [unowned self] outcome, _ in
            counters.requests += 1
            counters.previewSent += 1
            let verdict = verdict(of: outcome, batch)
            counters.count(outcome, verdict)
            schedule.previewFinished(verdict, jitter: jitter(), at: loop.now)
            step(at: loop.now)
        } withheld: { [unowned self] _ in
            schedule.previewFinished(nil, jitter: 0, at: loop.now)
            step(at: loop.now)
        }
    }

    private func transmit(
        _ batch: Batch, _ done: @escaping (UplinkOutcome, UplinkRequest) -> Void,
        withheld: @escaping (CredentialProblem) -> Void
    ) {
        let route = route(of: batch)
        route.credentials.obtain(at: loop.now) { [unowned self] result in
            do throws(CredentialProblem) {
                let context = RenderContext(
                    identify: RecordID.make, secrets: try result.get(), gzip: schedule.gzip)
                var request = route.settings.request(for: batch, in: context)
                try route.credentials.complete(&request, batchID: batch.id, at: loop.now)
                uplink.send(request) { done($0, request) }
            } catch {
                withheld(error)
            }
        }
    }

    private func refreshCredentials(at now: EventTime) {
        schedule.refreshStarted(at: now)
        let route = batches.first.map(route(of:)) ?? routes[schedule.route]
        route.credentials.refresh(at: now) { [unowned self] isNew in
            let stateBefore = schedule.state
            schedule.credentialsRefreshed(isNew: isNew, jitter: jitter(), at: loop.now)
            stateMayHaveChanged(from: stateBefore, at: loop.now)
            step(at: loop.now)
        }
    }
}
