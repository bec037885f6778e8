import Delivery
import EventLoop
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
    /// Which of the routes the journal has as the present one.
    private var route: Int
    var link: EndpointLink
    var counters = Counters()
    var lastSuccess: EventTime?
    var lastProblem: String?
    /// The request of the attempt that is under way; nil before it is sent.
    private var transfer: UplinkTransfer?
    /// What an operator waits for.
    var binding: Binding?
    private(set) var bindAlarm: EventLoop.Alarm?
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
            inFlight: own.map { .init($0, among: names) },
            unlisted: max(0, (depth?.inFlight ?? 0) - own.reduce(0) { $0 + $1.rows.count }), routes: routes.count,
            acceptedBefore: depth?.acceptedBefore ?? false, at: loop.now)
        route = schedule.route
        for batch in own { histories[batch.id] = BatchHistory(mayBeStored: true) }
        link = EndpointLink(settings, host: loop.host)
        alarm = loop.alarm { [unowned self] now in step(at: now) }
        bindAlarm = loop.alarm { [unowned self] _ in bindTimedOut() }
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
        let areReplaced = zip(self.routes, routes).contains { $0.credentials !== $1.credentials }
        self.routes = routes
        settings = routes[0].settings
        schedule.reloaded(settings, at: now)
        if areReplaced {
            // What was begun with the old ones is not waited for: its answer would be held against the others.
            abandonAttempt(because: "its credentials were replaced meanwhile")
            schedule.credentialsReplaced()
        }
        step(at: now)
    }

    func flush(at now: EventTime) {
        link.gate.flushRequested(waiting: waiting)
        schedule.flushRequested(at: now)
        step(at: now)
    }

    func shutdown(grace: Duration, at now: EventTime) {
        if schedule.attempt?.purpose != .bind { endBinding("waypost is stopping") }
        schedule.shutdownRequested(at: now, grace: grace)
        step(at: now)
    }

    /// The time for the last attempt is over.
    func end(at now: EventTime) {
        schedule.shutdownRequested(at: now, grace: .zero)
        abandonAttempt(because: "waypost is stopping")
        step(at: now)
    }

    /// Gives up what is under way with the server, if anything is: nothing of it is sent any more, and no answer to it acts.
    ///
    /// - Parameter reason: for an operator who waits for it.
    func abandonAttempt(because reason: String) {
        guard let attempt = schedule.abandonAttempt() else { return }
        if let transfer {
            uplink.cancel(transfer)
            if case .batch(let id) = attempt.purpose, batches.contains(where: { $0.id == id }) {
                histories[id, default: BatchHistory()].attempts += 1
                histories[id]?.mayBeStored = true
            }
        }
        transfer = nil
        if attempt.purpose == .bind { endBinding(reason) }
    }

    /// Does what is due, and arms the alarm for what is due later.
    func step(at now: EventTime) {
        while true {
            let next = schedule.next(at: now)
            // What an operator asks for is worth the price of the link.
            if next != .bind, case .shut(let until) = link.gate.opening(at: now) {
                alarm?.deadline = until
                return
            }
            switch next {
            case .bind: sendBind(at: now)
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
        let number = schedule.formRequested(at: now)
        noteRoute()
        if limit > 0 { willForm(now) }
        recorder.form(
            FormRequest(
                endpoint: settings.name, route: schedule.route > 0 ? routes[schedule.route].settings.name : nil,
                limit: limit, isProbe: !batches.isEmpty, sentMs: loop.host.wallClockMs, number: number), at: now)
    }

    func noteRoute() {
        guard schedule.route != route else { return }
        route = schedule.route
        log.routeChanged(endpoint: settings.name, to: routes[route].settings.name)
    }

    /// A commit succeeded: take over the batches in flight, and the truth about what waits.
    func committed(_ reply: CommitReply, _ forms: [FormRequest], at now: EventTime) {
        let depth = reply.depths.first { $0.endpoint == settings.name }
        let uncommitted = recorder.uncommitted(for: settings)
        let names = routes.map(\.settings.name)
        if !reply.dissolved.isEmpty {
            schedule.batchesDissolved(reply.dissolved)
            batches.removeAll { reply.dissolved.contains($0.id) }
            for id in reply.dissolved { histories[id] = nil }
        }
        for request in forms where request.endpoint == settings.name {
            let listed = reply.formed.filter { names.contains($0.endpoint) }
            let isAwaited = schedule.batchesFormed(
                listed.map { .init($0, among: names) }, of: request.number,
                left: depth.map { $0.waiting + uncommitted },
                unlisted: max(0, (depth?.inFlight ?? 0) - listed.reduce(0) { $0 + $1.rows.count }), at: now)
            guard isAwaited else { continue }
            batches = listed
            let known = Set(batches.map(\.id))
            histories = histories.filter { known.contains($0.key) }
        }
        // Retention removes rows, and a commit that was reported as failed may have formed a batch all the same. While
        // another request to form is on its way its batch is counted on neither side.
        if !schedule.isForming, let depth {
            schedule.waitingCorrected(
                to: depth.waiting + uncommitted, inFlight: depth.inFlight, mayBeUnlisted: reply.hasReturned)
            link.gate.waitingCorrected(to: waiting)
            if schedule.state == .taken, depth.waiting + depth.inFlight > 0 { handleCollision(at: now) }
        }
        step(at: now)
    }

    /// A commit was not made.
    func refused(_ forms: [FormRequest], at now: EventTime) {
        let numbers = forms.filter { $0.endpoint == settings.name }.map(\.number)
        guard !numbers.isEmpty else { return }
        for number in numbers { schedule.batchNotFormed(number, at: now) }
        step(at: now)
    }

    /// The way by which a batch was formed to go.
    func route(of batch: Batch) -> Route {
        routes.first { $0.settings.name == batch.endpoint } ?? routes[0]
    }

    private func send(_ batch: Batch, at now: EventTime) {
        let attempt = schedule.attemptStarted(batch.id, at: now)
        noteRoute()
        transmit(batch, attempt) { [unowned self] in
            guard let history = histories[batch.id] else { return }
            if history.attempts > 0 { counters.retries += 1 }
            if history.mayBeStored { counters.batchesRepeated += 1 }
        } answered: { [unowned self] outcome, request in
            finished(outcome, attempt, batch, wasCompressed: request.gzip)
        } withheld: { [unowned self] problem in
            let failure: TransportFailure = problem.isClock ? .clock(problem.message) : .broken(problem.message)
            answered(
                attempt,
                problem.isClock || problem.mayPass
                    ? .retry(.transport(failure), after: nil) : .authStop(status: 401),
                UplinkOutcome(.failed(failure)), batch, at: loop.now)
        }
    }

    /// The newest row alone: what becomes of it settles nothing.
    private func preview(at now: EventTime) {
        let head = batches.first
        let newest = head?.newest.flatMap { $0.seq > (head?.rows.last?.seq ?? .max) ? $0 : nil }
        guard let attempt = schedule.previewStarted(newest?.seq, at: now), let head, let newest else { return }
        // Its bytes are those of this id for ever: what is not of the row is of the batch on disk, whose id is in it.
        let batch = Batch(
            endpoint: head.endpoint, id: "\(head.id)-preview-\(newest.seq)", rows: [newest], sentMs: head.sentMs,
            generation: head.generation, outbox: head.outbox)
        transmit(batch, attempt) { [unowned self] in
            counters.previewSent += 1
        } answered: { [unowned self] outcome, _ in
            let verdict = judge(of: batch).verdict(for: outcome, of: batch)
            counters.count(outcome, verdict)
            schedule.previewFinished(attempt, verdict, jitter: jitter(), at: loop.now)
            step(at: loop.now)
        } withheld: { [unowned self] _ in
            schedule.previewFinished(attempt, nil, jitter: 0, at: loop.now)
            step(at: loop.now)
        }
    }

    /// - Parameters:
    ///   - sent: the request is about to go out.
    ///   - answered: not called once the attempt was given up.
    ///   - withheld: it cannot be made.
    private func transmit(
        _ batch: Batch, _ attempt: Attempt, sent: @escaping () -> Void,
        answered: @escaping (UplinkOutcome, UplinkRequest) -> Void, withheld: @escaping (CredentialProblem) -> Void
    ) {
        let route = route(of: batch)
        route.credentials.obtain(at: loop.now) { [unowned self] result in
            guard receives(attempt) else { return }
            do throws(CredentialProblem) {
                let context = RenderContext(
                    identify: RecordID.make, secrets: try result.get(), gzip: schedule.gzip)
                var request = RequestRenderer(route.settings, in: context).request(for: batch)
                try route.credentials.complete(&request, batchID: batch.id, at: loop.now)
                sent()
                send(request, of: attempt) { answered($0, request) }
            } catch {
                withheld(error)
            }
        }
    }

    /// Hands the request of the attempt that is under way to the uplink.
    func send(_ request: UplinkRequest, of attempt: Attempt, answered: @escaping (UplinkOutcome) -> Void) {
        counters.requests += 1
        transfer = uplink.send(request) { [unowned self] outcome in
            guard receives(attempt) else { return }
            transfer = nil
            answered(outcome)
        }
    }

    /// Whether something that comes late is for the attempt that is under way.
    func receives(_ attempt: Attempt) -> Bool {
        if schedule.receives(attempt) { return true }
        changed()
        return false
    }

    private func refreshCredentials(at now: EventTime) {
        let attempt = schedule.refreshStarted(at: now)
        let route = batches.first.map(route(of:)) ?? routes[schedule.route]
        route.credentials.refresh(at: now) { [unowned self] renewal in
            guard receives(attempt) else { return }
            let stateBefore = schedule.state
            schedule.credentialsRefreshed(attempt, renewal, jitter: jitter(), at: loop.now)
            let isNews = stateMayHaveChanged(from: stateBefore, at: loop.now)
            if renewal != .new {
                let status = batches.first.flatMap { histories[$0.id]?.answer.status }.map { "status \($0), " } ?? ""
                let why = renewal == .later ? "no other credential can be had now" : "the credential is refused"
                complain(status + why, isNews: isNews, at: loop.now)
            }
            step(at: loop.now)
        }
    }
}

extension DeliverySchedule.InFlight {
    /// - Parameter names: of the endpoint itself and of those that stand in for it.
    fileprivate init(_ batch: Batch, among names: [String]) {
        self.init(id: batch.id, rows: batch.rows.count, route: names.firstIndex(of: batch.endpoint) ?? 0)
    }
}
