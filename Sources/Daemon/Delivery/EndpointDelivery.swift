import Delivery
import Journal
import Network
import Profiles
import Protocols
import Queue
import WaypostCore
import WaypostHost

/// Delivers to one endpoint: does what its schedule decides, forms batches through the recorder, sends them, and reports answers back.
final class EndpointDelivery {
    /// An endpoint that can send what waits for this cursor.
    struct Route {
        var settings: EndpointSettings
        var credentials: EndpointCredentials
    }

    private(set) var settings: EndpointSettings
    /// The endpoint itself, and those that stand in for it.
    private(set) var routes: [Route]
    private let uplink: any Uplink
    private let recorder: Recorder
    private let log: AgentLog
    let loop: EventLoop
    private let share: Double
    /// 0 ≤ x < 1, from the system's random source.
    private let jitter: () -> Double
    private var alarm: EventLoop.Alarm?
    private(set) var schedule: DeliverySchedule
    private(set) var link: EndpointLink
    private(set) var counters = EndpointCounters()
    private(set) var lastSuccess: EventTime?
    private var batches: BatchesInFlight
    /// Batches in flight whose rows have not come although they were asked for.
    private var withheld: Set<String> = []
    private var problem = UploadProblem()
    private var unasked = RepeatGate()
    private var suspected = RepeatGate()
    /// An answer that no request had asked for is a problem for an hour.
    private var unaskedUntil: EventTime?
    /// Which of the routes was logged as the present one.
    private var loggedRoute: Int
    /// The request of the attempt that is under way; nil before it is sent.
    private var transfer: UplinkTransfer?
    /// The connection to the broker is to be made again once the request under way has ended.
    private var connectsAfterwards = false
    /// For which an operator waits.
    private(set) var binding: BindRequest?
    private let presence: BrokerPresence
    let contact: EndpointContact
    /// The hours of tracking are open: outside of them no server is contacted that gets no locations.
    private var isInHours = true
    /// On which the broker does not allow what is published with each connection.
    private var refusedTopics: [String] = []
    private var collision = CollisionHandling()
    private var feed = PositionFeed()
    private let outbox: [UInt8]
    /// The newest position of each trackable on its way, from memory.
    var positions: () -> [Location] = { [] }
    /// Something about this endpoint changed that the status line shows.
    var changed: () -> Void = {}
    /// An attempt to send a batch has ended.
    var attempted: (BatchAttempt, EventTime) -> Void = { _, _ in }
    /// Attempts to send a batch that have begun.
    private(set) var attempts = 0
    /// It is about to form a batch: others may join.
    var willForm: (_ now: EventTime, _ sendsAt: EventTime?) -> Void = { _, _ in }

    /// - Parameters:
    ///   - depth: of its cursor, as the outbox was opened; nil when it has none yet.
    ///   - batches: those in flight of all endpoints.
    ///   - outbox: the uuid of the queue.
    ///   - share: 0 ≤ share < 1, of this device and endpoint in a fleet.
    ///   - notes: of contacts to servers in this boot.
    init(
        routes: [Route], depth: EndpointDepth?, batches: [Batch], outbox: [UInt8] = [], uplink: any Uplink,
        recorder: Recorder, log: AgentLog, loop: EventLoop, share: Double = 0,
        notes: ContactNotes = ContactNotes(.none), jitter: @escaping () -> Double
    ) {
        let settings = routes[0].settings
        let names = routes.map(\.settings.name)
        let own = batches.filter { names.contains($0.endpoint) }
        self.settings = settings
        self.routes = routes
        self.batches = BatchesInFlight(own)
        self.outbox = outbox
        self.uplink = uplink
        self.recorder = recorder
        self.log = log
        self.loop = loop
        self.share = share
        self.jitter = jitter
        presence = BrokerPresence(uplink: uplink, loop: loop)
        contact = EndpointContact(of: routes[0], notes: notes, uplink: uplink, loop: loop)
        schedule = DeliverySchedule(
            settings: settings, state: depth?.state ?? .active, waiting: depth?.waiting ?? 0,
            inFlight: own.map { .init($0, among: names) },
            unlisted: max(0, (depth?.inFlight ?? 0) - own.reduce(0) { $0 + $1.rows.count }), routes: routes.count,
            acceptedBefore: depth?.acceptedBefore ?? false, share: share, at: loop.now)
        loggedRoute = schedule.route
        link = EndpointLink(settings, host: loop.host)
        alarm = loop.alarm { [unowned self] now in step(at: now) }
        presence.started = { [unowned self] in connect() }
        presence.answered = { [unowned self] in presenceAnswered($0) }
        contact.due = { [unowned self] in contactDue(at: $0) }
    }

    /// Where the last failure was; nil = the server has answered, or nothing has failed.
    var problemLayer: String? { problem.layer }

    /// What helps, as `lastProblem` says; nil = nothing is known.
    var problemCure: String? { problem.cure }

    /// What is wrong with it, for people; nil = nothing.
    var lastProblem: String? {
        let text = problem.words(schedule, at: loop.now)
        // The last failure may be that of a row which is tried last.
        guard schedule.state == .active, text == nil || schedule.failures == 0 && !schedule.suspects.isEmpty else {
            return text
        }
        let rest = [
            suspicion,
            schedule.rowsNotTooLarge.map { UploadProblem.tooLarge(rows: $0.rows, status: $0.status) },
            schedule.rowsInTime.map { UploadProblem.tooSlow(rows: $0, isLinkSlow: schedule.isLinkSlow) },
            schedule.isCompressionOff(at: loop.now) ? UploadProblem.compressionOff : nil,
            unaskedUntil.map { $0 > loop.now } == true ? UploadProblem.unasked : nil,
            refusedTopics.isEmpty ? nil : UploadProblem.refusedTopics(refusedTopics),
            contact.problem,
        ].compactMap { $0 }
        return rest.isEmpty ? nil : rest.joined(separator: "; ")
    }

    /// What is the matter with rows that fail alone; nil = there are none.
    private var suspicion: String? {
        schedule.suspects.first.map {
            UploadProblem.suspects(schedule.suspects.count, batches.history(of: $0)?.answer.reason ?? "")
        }
    }

    /// When something is tried next; nil as for the schedule.
    func nextAttempt(at now: EventTime) -> EventTime? {
        let reconnects = waiting > 0 ? problem.reconnectsAt.flatMap { $0 > now ? $0 : nil } : nil
        return [schedule.nextAttemptAt, reconnects].compactMap { $0 }.max()
    }

    /// Rows that this endpoint has not accepted, in memory, on disk and in flight.
    var waiting: Int { schedule.waiting + schedule.inFlight }

    /// One of the routes has something to prove who this device is.
    var hasCredential: Bool { routes.contains { $0.credentials.isAny } }

    /// Nothing is sent until a person does something about it.
    var awaitsOperator: Bool {
        switch schedule.state {
        case .stopped, .taken, .rebind: true
        case .active, .paused: false
        }
    }

    func recorded(_ location: Location, at now: EventTime) {
        guard location.published || settings.feed == .engine else { return }
        schedule.rowsRecorded(1, at: now)
    }

    /// Continues with new pace settings and new credentials.
    ///
    /// - Parameter routes: the same endpoints in the same order.
    func reload(_ routes: [Route], at now: EventTime) {
        let replaced = zip(self.routes, routes).filter { $0.credentials !== $1.credentials }
        self.routes = routes
        settings = routes[0].settings
        schedule.reloaded(settings, at: now)
        if !replaced.isEmpty {
            credentialsReplaced(areFewer: replaced.contains { $1.credentials.lacksOne(of: $0.credentials) })
        }
        // Another session ends the connection that carries the request.
        if transfer == nil { connect() } else { connectsAfterwards = true }
        step(at: now)
    }

    /// Secrets in files are others: a pause for the former ones is over.
    func secretsChanged(at now: EventTime) {
        credentialsReplaced()
        if schedule.state == .paused(reason: "auth") { resumed(at: now) } else { step(at: now) }
    }

    /// A request that is under way ends with those that it has; what still waits for them is begun again.
    ///
    /// - Parameter areFewer: the request may not end with them.
    private func credentialsReplaced(areFewer: Bool = false) {
        schedule.credentialsReplaced()
        if transfer == nil || areFewer { abandonAttempt(because: "its credentials were replaced meanwhile") }
    }

    /// Makes the connection to a broker on which others see that this device is there. What goes wrong is told with the first
    /// rows.
    func connect() {
        guard settings.profile.isForBroker, schedule.state == .active, maySend(at: loop.now) else { return }
        presence.connect(over: routes[0])
    }

    /// What a broker says without being asked may be about the connection of this endpoint.
    func heard(_ news: BrokerNews) {
        switch news {
        case .keepAliveShortened(let interval, let owners) where owners.contains(settings.name):
            log.remark(endpoint: settings.name, UploadProblem.keepAliveShortened(to: interval))
        case .birthsAnswered(let refused, let owners) where owners.contains(settings.name):
            guard refused != refusedTopics else { return }
            refusedTopics = refused
            if !refused.isEmpty { log.remark(endpoint: settings.name, UploadProblem.refusedTopics(refused)) }
            changed()
        case .connected(let owners) where owners.contains(settings.name):
            contact.heard(isAcceptance: false, at: loop.now)
            changed()
        case .connected, .keepAliveShortened, .birthsAnswered, .message, .subscribed: break
        }
    }

    /// Over the connection that carries the rows, beside them.
    /// - Parameter done: called once: with a failure at once where rows would not be sent either.
    func publish(_ message: MQTTMessage, _ done: @escaping (UplinkOutcome.Result) -> Void) {
        guard schedule.state == .active, maySend(at: loop.now), presence.hasStarted else {
            return done(.failed(.broken("nothing is sent to \(settings.name) now")))
        }
        presence.publish([message], over: routes[0], done)
    }

    /// - Parameter byOperator: a person waits for it.
    func flush(byOperator: Bool = false, at now: EventTime) {
        link.gate.flushRequested(waiting: waiting)
        schedule.flushRequested(byOperator: byOperator, at: now)
        if byOperator { problem.reconnectsAt = nil }
        uplink.reconnect(byOperator ? .operatorFlush : .event, at: now)
        step(at: now)
    }

    /// For what may happen to a whole fleet at once: sends at the time of this device, within a window.
    func flushWithFleet(at now: EventTime) {
        link.gate.sharedFlushRequested(waiting: waiting)
        schedule.sharedFlushRequested(at: now)
        step(at: now)
    }

    func shutdown(grace: Duration, at now: EventTime) {
        contact.stop()
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
    private func abandonAttempt(because reason: String) {
        guard let attempt = schedule.abandonAttempt() else { return }
        if let transfer {
            uplink.cancel(transfer)
            if case .batch(let id) = attempt.purpose { batches.abandoned(id) }
        }
        transfer = nil
        if attempt.purpose == .bind { endBinding(reason) }
    }

    /// Does what is due, and arms the alarm for what is due later.
    func step(at now: EventTime) {
        while true {
            let next = schedule.next(at: now)
            // An operator's request goes out even over a metered link.
            if next != .bind, case .shut(let until) = link.gate.opening(at: now) {
                alarm?.deadline = until
                return
            }
            switch next {
            case .bind: sendBind(at: now)
            case .form(let limit), .reform(let limit):
                invariant(limit == 0 || !awaitsParts, "a batch is formed before what was taken apart is written")
                form(limit, at: now)
            case .send(let id):
                invariant(!awaitsParts, "\(id) is sent before what was taken apart is written")
                invariant(batches[id] != nil, "\(id) is to be sent, and the queue does not list it")
                guard let batch = batches[id] else { return }
                send(batch, at: now)
            case .preview: preview(at: now)
            case .position: sendPosition(at: now)
            case .refreshCredentials: refreshCredentials(at: now)
            case .wait(let until):
                alarm?.deadline = until
                return
            }
        }
    }

    /// An answer has left parts of a batch, which the queue has not written.
    private var awaitsParts: Bool {
        recorder.answers(by: routes.map(\.settings.name)).values.contains { answer in
            switch answer {
            case .split: true
            case .partly(_, let again): !again.isEmpty
            case .accepted, .refused: false
            }
        }
    }

    /// A commit is made now anyway: a batch that would be formed soon shares it.
    /// - Parameter other: see `DeliverySchedule.commitComes`.
    func commitComes(joining other: EventTime? = nil, at now: EventTime) {
        guard case .open = link.gate.opening(at: now), let batch = schedule.commitComes(joining: other, at: now)
        else { return }
        form(batch.limit, sendsAt: batch.sendsAt, at: now)
    }

    private func form(_ limit: Int, sendsAt: EventTime? = nil, at now: EventTime) {
        let number = schedule.formRequested(limit, sendsAt: sendsAt, at: now)
        logRoute()
        if limit > 0 { willForm(now, sendsAt) }
        recorder.form(
            FormRequest(
                endpoint: settings.name, route: schedule.route > 0 ? routes[schedule.route].settings.name : nil,
                limit: limit, isProbe: !batches.isEmpty, sentMs: loop.host.wallClockMs,
                shown: schedule.isMoving ? feed.shown : [:], number: number), at: now)
    }

    private func logRoute() {
        guard schedule.route != loggedRoute else { return }
        loggedRoute = schedule.route
        log.routeChanged(endpoint: settings.name, to: routes[loggedRoute].settings.name)
    }

    /// A commit succeeded, which says what is in flight and what waits.
    func committed(_ reply: CommitReply, _ forms: [FormRequest], at now: EventTime) {
        guard let depth = reply.depths.first(where: { $0.endpoint == settings.name }) else { return step(at: now) }
        let numbers = forms.filter { $0.endpoint == settings.name }.map(\.number)
        let names = routes.map(\.settings.name)
        // What an answer has settled since is in the queue still.
        let answers = recorder.answers(by: names)
        let ids = depth.batches.map(\.id).filter { answers[$0] == nil }
        batches.update(ids, reply.formed.filter { ids.contains($0.id) })
        let view = view(depth, answers)
        let isAwaited = schedule.committed(view, answering: numbers, at: now)
        invariant(
            schedule.waiting == depth.waiting + recorder.uncommitted(for: settings) + view.unlisted,
            "\(schedule.waiting) rows wait for \(settings.name), not \(depth.waiting) and those since the commit")
        // What has not come although it was asked for cannot be read, or is not for this binding.
        if isAwaited { withheld = Set(ids.filter { batches[$0] == nil }) }
        invariant(schedule.inFlight + view.unlisted <= depth.inFlight, "more rows are in flight than the queue has")
        invariant(view.batches.allSatisfy { routes.indices.contains($0.route) }, "a batch of an unknown sender")
        invariant(answers.isEmpty == view.hasAllAnswers, "an answer is on its way to the queue and counts as written")
        link.gate.waitingCorrected(to: waiting)
        if schedule.state == .taken, depth.waiting + depth.inFlight > 0 { handleCollision(at: now) }
        step(at: now)
    }

    /// - Parameter answers: those that wait for the next commit, by the id of their batch.
    private func view(_ depth: EndpointDepth, _ answers: [String: BatchAnswer.Outcome]) -> DeliverySchedule.View {
        invariant(
            depth.batches.reduce(0) { $0 + $1.rows } == depth.inFlight,
            "\(depth.inFlight) rows of \(settings.name) in \(depth.batches)")
        var view = DeliverySchedule.View(
            waiting: depth.waiting + recorder.uncommitted(for: settings), hasAllAnswers: answers.isEmpty)
        for header in depth.batches {
            switch answers[header.id] {
            case nil where batches[header.id] != nil:
                let route = routes.firstIndex { $0.settings.name == header.sender } ?? 0
                view.batches.append(.init(id: header.id, rows: header.rows, route: route))
            case nil:
                view.unlisted += header.rows
                view.lacksRows = view.lacksRows || !withheld.contains(header.id)
            case .split: view.unlisted += header.rows
            case .partly(_, let again): view.unlisted += again.count
            case .accepted, .refused: break
            }
        }
        return view
    }

    /// A commit was not made.
    func refused(_ forms: [FormRequest], at now: EventTime) {
        let numbers = forms.filter { $0.endpoint == settings.name }.map(\.number)
        guard !numbers.isEmpty else { return }
        for number in numbers { schedule.notFormed(number, at: now) }
        step(at: now)
    }

    /// The way for which a batch was formed.
    private func route(of batch: Batch) -> Route {
        routes.first { $0.settings.name == batch.endpoint } ?? routes[0]
    }

    private func send(_ batch: Batch, at now: EventTime) {
        let attempt = schedule.attemptStarted(batch.id, at: now)
        attempts += 1
        logRoute()
        transmit(batch, attempt) { [unowned self] in
            guard let history = batches.history(of: batch.id) else { return }
            if history.attempts > 0 { counters.retries += 1 }
            if history.mayBeStored { counters.batchesRepeated += 1 }
        } answered: { [unowned self] outcome, request in
            finished(outcome, attempt, batch, wasCompressed: request.gzip)
        } withheld: { [unowned self] problem in
            let failure: TransportFailure = problem.isClock ? .clock(problem.message) : .credential(problem.message)
            answered(
                attempt,
                problem.isClock || problem.isTransient
                    ? .retry(.transport(failure), after: nil) : .authStop(status: 401),
                UplinkOutcome(.failed(failure), written: .nothing), batch, at: loop.now)
        }
    }

    /// The newest position, whether or not a row of it exists: its answer shows how the server is, and settles nothing.
    private func sendPosition(at now: EventTime) {
        let sender = routes[schedule.route].settings
        let (batch, hasMore) = feed.next(positions(), sender, outbox: outbox, sentMs: loop.host.wallClockMs)
        schedule.positionSought(hasMore: hasMore, at: now)
        guard let batch else { return }
        counters.previewSent += 1
        send(batch, at: now)
    }

    /// The newest row alone: its answer finishes nothing.
    private func preview(at now: EventTime) {
        let head = batches.first
        let newest = head?.newest.flatMap { $0.seq > (head?.rows.last?.seq ?? .max) ? $0 : nil }
        guard let attempt = schedule.previewStarted(newest?.seq, at: now), let head, let newest else { return }
        // This id must always mean the same bytes: all but the row comes from the batch on disk, whose id it contains.
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
                    identify: RecordID.make, secrets: try result.get(),
                    gzip: schedule.compresses(batch.id, at: loop.now))
                var request = RequestRenderer(route.settings, in: context).request(for: batch)
                if schedule.awaitsSubscriber, request.broker?.subscriber == .required {
                    request.broker?.subscriber = .awaited
                }
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
            guard connectsAfterwards else { return }
            connectsAfterwards = false
            connect()
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
        route.credentials.refresh(at: now) { [unowned self, weak credentials = route.credentials] renewal in
            guard receives(attempt) else { return }
            let stateBefore = schedule.state
            schedule.credentialsRefreshed(attempt, renewal, jitter: jitter(), at: loop.now)
            let isNews = stateMayHaveChanged(from: stateBefore, at: loop.now)
            if renewal != .new {
                let refusal =
                    (credentials?.tokenLife(at: loop.now).problem
                    ?? (renewal == .later ? "no other credential is available now" : nil)).map {
                        CredentialRefusal(words: $0)
                    } ?? refusal(credentials)
                let answer = batches.first.flatMap { batches.history(of: $0.id)?.answer }
                let cure = answer.flatMap { FailureCure.words(status: $0.status ?? 0, $0.reply, settings) }
                failed(refusalWords + refusal.words, cure: cure ?? refusal.cure, isNews: isNews, at: loop.now)
            }
            step(at: loop.now)
        }
    }
}

// What an answer means, and what is done about it.
extension EndpointDelivery {
    /// What the server has answered to the batch that is next, with a separator; empty where it has answered nothing.
    private var refusalWords: String {
        guard let answer = batches.first.flatMap({ batches.history(of: $0.id)?.answer }) else { return "" }
        guard let status = answer.status else {
            return settings.profile.isForBroker && !answer.reason.isEmpty ? answer.reason + ", " : ""
        }
        return Verdict.words(ofStatus: status) + UploadProblem.said(status, answer.reply) + ", "
    }

    /// What a refusal means for whoever has to mend it, as no credential is new.
    private func refusal(_ credentials: EndpointCredentials?) -> CredentialRefusal {
        let isMessage = batches.first.flatMap { batches.history(of: $0.id)?.isMessageRefused } == true
        guard !isMessage, let credentials else {
            return CredentialRefusal(
                words: isMessage ? "by the access rules (ACL) of the broker: allow this device the topic there" : "")
        }
        return credentials.refusal
    }

    private func judge(of batch: Batch) -> AnswerJudge {
        AnswerJudge(route(of: batch).settings, in: RenderContext(identify: RecordID.make))
    }

    private func finished(_ outcome: UplinkOutcome, _ attempt: Attempt, _ sent: Batch, wasCompressed: Bool) {
        link.reached(outcome.peerAddress)
        if outcome.followsUnasked { followedUnasked(at: loop.now) }
        let judge = judge(of: sent)
        let verdict = judge.verdict(for: outcome, of: sent)
        counters.count(outcome, verdict)
        batches.answered(sent.id, verdict, outcome)
        if verdict == .accepted, let stored = judge.stored(outcome) {
            counters.stored = (counters.stored ?? 0) + min(stored, sent.rows.count)
        }
        answered(attempt, verdict, outcome, sent, wasCompressed: wasCompressed, at: loop.now)
    }

    private func followedUnasked(at now: EventTime) {
        unaskedUntil = now + .seconds(3600)
        let repeats = unasked.occurred(at: now.nanoseconds)
        if repeats != .suppressed { log.remark(endpoint: settings.name, UploadProblem.unasked + repeats.words) }
    }

    private func answered(
        _ attempt: Attempt, _ verdict: Verdict, _ outcome: UplinkOutcome, _ sent: Batch, wasCompressed: Bool = false,
        at now: EventTime
    ) {
        let stateBefore = schedule.state
        let failuresBefore = schedule.failures
        let wasOff = schedule.isCompressionOff(at: now)
        let suspectsBefore = schedule.suspects.count
        let transmission = DeliverySchedule.Transmission(
            wasCompressed: wasCompressed, blame: verdict.blame(in: outcome), wasWhole: outcome.written == .whole)
        guard let settled = schedule.attemptFinished(attempt, verdict, transmission, jitter: jitter(), at: now) else {
            return
        }
        problem.reconnectsAt = outcome.reconnectsAt
        for batch in settled { finish(batch, at: now) }
        if !wasOff, schedule.isCompressionOff(at: now) {
            log.remark(endpoint: settings.name, UploadProblem.compressionOff)
        }
        if schedule.suspects.count > suspectsBefore, let text = suspicion {
            let verdict = suspected.occurred(at: now.nanoseconds)
            if verdict != .suppressed { log.remark(endpoint: settings.name, text) }
        } else if schedule.suspects.isEmpty {
            _ = suspected.ended(at: now.nanoseconds)
        }
        if outcome.isOfServer(verdict) { contact.heard(isAcceptance: verdict.isAcceptance, at: now) }
        switch verdict {
        case .accepted, .partlyAccepted: succeeded(sent, failures: failuresBefore, at: now)
        default: counters.failed[verdict.word, default: 0] += 1
        }
        logRoute()
        let isNews = stateMayHaveChanged(from: stateBefore, at: now)
        if verdict != .accepted {
            let (text, isAlarm) = UploadProblem.words(verdict, outcome)
            failed(
                text, layer: UploadProblem.layer(outcome),
                cure: UploadProblem.cure(
                    outcome, settings, credential: route(of: sent).credentials.refusal.cure,
                    hasWorked: lastSuccess != nil),
                isAlarm: isAlarm, isNews: isNews, at: now)
        }
        if schedule.state == .taken, stateBefore != .taken { collided(at: now) }
        attempted(BatchAttempt(sent, verdict, outcome, number: attempts), now)
        changed()
        step(at: now)
    }

    private func finish(_ settled: DeliverySchedule.Settled, at now: EventTime) {
        guard let (batch, history) = batches.finish(settled.batch) else { return }
        var how = BatchAnswer.Outcome.accepted
        var gone = batch.rows.count
        switch settled.how {
        case .accepted:
            counters.accepted += batch.rows.count
        case .split:
            how = .split
            gone = 0
        case .refused:
            how = .refused(history.refusal(history.answer.reason))
            quarantined(batch.rows.map(\.seq), history.answer.reason)
        case .partly(let items):
            how = .partly(refused: items.refused.mapValues { history.refusal($0) }, again: items.again)
            gone -= items.again.count
            counters.accepted += gone - items.refused.count
            if !items.refused.isEmpty {
                quarantined(items.refused.keys.sorted(), items.refused.values.sorted().first ?? "")
            }
        }
        link.gate.settled(gone)
        let isFinal = settled.how == .accepted || settled.how == .split
        // What was set aside is committed at once; a split is committed with the list of its parts.
        recorder.acknowledge(
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
        feed.accepted(sent.id)
        lastSuccess = now
        log.uploaded(endpoint: settings.name, batch: sent.id, count: sent.rows.count)
        if problem.ended(isActive: schedule.state == .active, at: now) {
            log.uploadRecovered(endpoint: settings.name, failures: failures)
        }
    }

    /// - Returns: whether it has changed.
    @discardableResult
    private func stateMayHaveChanged(from before: EndpointState, at now: EventTime) -> Bool {
        guard schedule.state != before else { return false }
        recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        changed()
        return true
    }

    /// - Parameter text: what has gone wrong; what is done about it is added.
    /// - Parameter layer: where, unless the server has answered.
    private func failed(
        _ text: String, layer: String? = nil, cure: String? = nil, isAlarm: Bool = false, isNews: Bool,
        at now: EventTime
    ) {
        let news = problem.occurred(text, layer: layer, cure: cure, schedule, isNews: isNews, at: now)
        guard let text = news else { return }
        log.uploadProblem(endpoint: settings.name, text, failures: schedule.failures, isAlarm: isAlarm)
    }
}

// Another device reports this asset.
extension EndpointDelivery {
    /// The broker may say so while no batch is under way.
    private func presenceAnswered(_ outcome: UplinkOutcome) {
        counters.count(outcome, nil)
        problem.reconnectsAt = outcome.reconnectsAt
        contactEnded(contact.saw(outcome, over: routes[0], at: loop.now))
        guard case .published(let reply) = outcome.result, reply.ending?.meaning == .taken, !awaitsOperator else {
            return
        }
        let (stateBefore, now) = (schedule.state, loop.now)
        schedule.takenOver(jitter: jitter(), at: now)
        let isNews = stateMayHaveChanged(from: stateBefore, at: now)
        failed(UploadProblem.words(.collision, outcome).text, isNews: isNews, at: now)
        if schedule.state == .taken { collided(at: now) }
        step(at: now)
    }

    private func collided(at now: EventTime) {
        log.collision(endpoint: settings.name, CollisionHandling.words(settings))
        collision.reset()
        handleCollision(at: now)
    }

    /// Handles what waits as `on_collision` says. What the quarantine cannot hold stays where it is.
    private func handleCollision(at now: EventTime) {
        guard let order = collision.order(settings, at: now) else { return }
        recorder.order(order, at: now) { [unowned self] result in
            switch result {
            case .refused(let why): log.collision(endpoint: settings.name, "what waits is kept: \(why)")
            case .done(let rows, let first, let last):
                guard rows > 0, let depth = recorder.latest.depths.first(where: { $0.endpoint == settings.name }) else {
                    return
                }
                startOver(from: depth, because: "its rows were given up meanwhile")
                if settings.onCollision == .quarantine { counters.quarantined += rows }
                log.collision(
                    endpoint: settings.name,
                    CollisionHandling.words(settings, rows: rows, first: first, last: last))
            }
        }
    }
}

// The links of this host, other endpoints, and what an operator did.
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
        // This is not the route that failed.
        if link.egressRoute != nil {
            let stateBefore = schedule.state
            schedule.linkChanged(at: now)
            stateMayHaveChanged(from: stateBefore, at: now)
            problem.reconnectsAt = nil
            uplink.reconnect(.linkChanged, at: now)
            connect()
        }
        contact.linkChanged(settings.backoff, at: now)
        changed()
        step(at: now)
    }

    /// The wall clock of this host was set.
    func clockWasSet(at now: EventTime) {
        schedule.clockWasSet(at: now)
        contact.linkChanged(settings.backoff, at: now)
        step(at: now)
    }

    func movementChanged(_ isMoving: Bool) { schedule.movementChanged(isMoving) }

    /// This host has just started, perhaps together with a fleet: what waits from before goes out a moment later, the first
    /// window is shorter, and a broker sees it at a time of its own.
    func startedWithHost(at now: EventTime) {
        schedule.startedWithHost(at: now)
        presence.postpone(to: now + FleetShare.part(share, of: ReconnectDelay.spread))
        if waiting > 0 { link.gate.startedWithBacklog(window: settings.batchWindow, share: share, at: now) }
    }

    /// Another endpoint forms a batch: forms one too when its own window ends soon.
    func mayJoin(at now: EventTime) {
        guard batches.isEmpty, waiting > 0, !schedule.isForming, schedule.state == .active, maySend(at: now),
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
        contact.arm()
        uplink.reconnect(.operatorFlush, at: now)
        recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        problem.clear()
        changed()
        step(at: now)
    }

    /// Why what waits is not tried at once, and for how many seconds as far as that is known; nil = it is, or nothing waits.
    func postponement(at now: EventTime) -> (seconds: Double?, reason: String)? {
        guard waiting > 0 else { return nil }
        if let rest = schedule.rest(at: now) { return (rest, "the server has asked for that") }
        return link.holdReason.map { (nil, $0) }
    }

    /// Asks the server to bind the asset to this device, where the profile has a request for that.
    ///
    /// It waits for the attempt that is under way, and nothing else is sent from its start until `rebound` or
    /// `orderRefused` says what became of the order that follows it.
    ///
    /// - Parameter done: with what went wrong, in words for people; nil = bound, or nothing to ask.
    func bind(at now: EventTime, _ done: @escaping (String?) -> Void) {
        guard settings.profile.canBind else { return done(nil) }
        if schedule.isShuttingDown { return done("waypost is stopping") }
        if binding != nil || schedule.attempt?.purpose == .bind { return done("another request to bind is under way") }
        let rests = schedule.bindRestsUntil
        if rests >= now + BindRequest.limit {
            return done("the server asked to wait another \(Int(rests.seconds(since: now).rounded(.up))) s")
        }
        binding = BindRequest(on: loop, at: now, done: done) { [unowned self] in bindTimedOut() }
        schedule.bindRequested()
        step(at: now)
    }

    private func sendBind(at now: EventTime) {
        let attempt = schedule.bindStarted(at: now)
        binding?.send(attempt, over: routes[0], by: self)
    }

    /// The server has answered to a request to bind.
    ///
    /// - Parameter asked: the rest that it asks for.
    /// - Returns: whether it may be asked once more now.
    func bindAnswered(asked: Duration?) -> Bool {
        schedule.bindAnswered(asked: asked, at: loop.now)
        return schedule.bindRestsUntil <= loop.now
    }

    /// Answers the operator, if one waits.
    ///
    /// - Parameter problem: nil = the server has bound it, and the order that follows is next.
    func endBinding(_ problem: String?) {
        guard let request = binding else { return }
        binding = nil
        // It may live on, where a token for it is still awaited.
        request.alarm.deadline = nil
        schedule.bindWithdrawn()
        if problem != nil { schedule.bindEnded() }
        request.done(problem)
    }

    func bindRefused(_ problem: String) {
        endBinding(problem)
        step(at: loop.now)
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

    /// The order that follows a bind was refused.
    func orderRefused() {
        schedule.bindEnded()
        step(at: loop.now)
    }

    /// An operator gave its rows another binding, or none: the state in the queue applies now.
    func rebound(_ depth: EndpointDepth) {
        let now = loop.now
        startOver(from: depth, because: "its rows have another binding meanwhile")
        collision.reset()
        schedule.stateChanged(to: depth.state, acceptedBefore: depth.acceptedBefore)
        if depth.state == .active { schedule.resumed(at: now) }
        problem.clear()
        changed()
        step(at: now)
    }

    /// The queue was read at last, or released what it held back while damaged pages were read. That says nothing about the
    /// server: a back-off goes on, and so does a pause or a stop.
    func found(_ depth: EndpointDepth) {
        startOver(from: depth, because: "its queue was read meanwhile")
        let state = depth.state == .active && schedule.state != .rebind ? schedule.state : depth.state
        schedule.stateChanged(to: state, acceptedBefore: depth.acceptedBefore)
        stateMayHaveChanged(from: depth.state, at: loop.now)
        changed()
        step(at: loop.now)
    }

    /// What was in flight is gone, or has another binding.
    ///
    /// - Parameter reason: for an operator who waits for what is under way.
    private func startOver(from depth: EndpointDepth, because reason: String) {
        abandonAttempt(because: reason)
        // Their rows are asked for again.
        batches.removeAll()
        withheld = []
        invariant(schedule.attempt == nil, "an attempt outlives the binding of its rows")
        schedule.committed(view(depth, recorder.answers(by: routes.map(\.settings.name))), at: loop.now)
    }
}

// Before there is anything to send.
extension EndpointDelivery {
    private static let spreadOfRestart = Duration.seconds(10)

    /// - Parameter sinceBoot: the host has just started, perhaps with a whole fleet.
    func startContact(sinceBoot: Bool, at now: EventTime) {
        let spread = sinceBoot ? ReconnectDelay.spread : Self.spreadOfRestart
        contact.start(after: FleetShare.part(share, of: spread), at: now)
    }

    /// The hours of tracking have begun or ended.
    func hoursChanged(_ isInHours: Bool) {
        guard self.isInHours != isInHours else { return }
        self.isInHours = isInHours
        if isInHours { contact.arm() }
    }

    /// A person had a request sent to it, which no batch knows of.
    func tested(_ outcome: UplinkOutcome, isWell: Bool, at now: EventTime) {
        counters.count(outcome, nil)
        link.reached(outcome.peerAddress)
        if isWell { contact.heard(isAcceptance: false, at: now) }
        changed()
    }

    private func contactDue(at now: EventTime) {
        guard let due = contact.state.dueAt, due <= now else { return contact.arm() }
        guard isInHours, schedule.state == .active else { return contact.rest() }
        // A network that comes up is worth a wait; a name may lead to a server without any route to the world.
        let patience = due + FirstContact.waitForRoute
        if link.egressRoute == nil, now < patience { return contact.arm(patience) }
        if case .shut(let until) = link.gate.opening(at: now) { return until.map(contact.arm) ?? contact.rest() }
        if schedule.restsUntil > now { return contact.arm(schedule.restsUntil) }
        // What is in flight shows more, and its failures have a back-off of their own.
        if schedule.inFlight > 0 || schedule.failures > 0 { return contact.arm(now + FirstContact.pause) }
        if let later = FirstContact.postponed(for: schedule.next(at: now), at: now) { return contact.arm(later) }
        contact.attempt(over: routes[0], at: now) { [unowned self] outcome, news in
            counters.count(outcome, nil)
            link.reached(outcome.peerAddress)
            contactEnded(news)
        }
    }

    private func contactEnded(_ news: String?) {
        if let news { log.uploadProblem(endpoint: settings.name, news, failures: 0) }
        if contact.isFirstReach { log.reached(endpoint: settings.name) }
        changed()
    }
}

extension UplinkOutcome {
    /// Whether the server that was asked has said something, whatever it was.
    fileprivate func isOfServer(_ verdict: Verdict) -> Bool {
        switch (result, verdict) {
        case (.reply, .retry(.redirected, _)), (.reply, .retry(.page, _)): false
        case (.reply, _): true
        case (.published(let reply), _): reply.reasons.contains { $0 != nil }
        case (.connected, _), (.failed, _): false
        }
    }
}

extension DeliverySchedule.InFlight {
    /// - Parameter names: of the endpoint itself and of those that stand in for it.
    fileprivate init(_ batch: Batch, among names: [String]) {
        self.init(id: batch.id, rows: batch.rows.count, route: names.firstIndex(of: batch.endpoint) ?? 0)
    }
}
