import Configuration
import Network
import Remote
import WaypostControl
import WaypostCore
import WaypostHost

/// Judges documents of settings, stores what their trial decides, and puts it in force.
final class SettingsFromAfar {
    /// While nothing may be sent, a question is put off by this long.
    private static let heldPause = Duration.seconds(3600)
    private static let windowLeast = Duration.seconds(60)
    /// A document that expires waits this long before the clock is looked at again: at first, and at most.
    private static let clockPauseLeast = Duration.seconds(30)
    private static let clockPauseMost = Duration.seconds(600)

    private struct Postponed {
        var bytes: [UInt8]
        var signature: String?
        var until: EventTime
    }

    private let config: RemoteConfig
    private let lay: RemoteStart.Lay
    private let delivery: EndpointDelivery
    private let configuration: ConfigurationInForce
    private let way: any RemoteWay
    private let signatures: SignatureCheck
    private let store: RemoteStore
    private let pipeline: Pipeline
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private let trustedTime: (EventTime) -> ClosedRange<UTCTime>?
    /// What the start has done to them, and stored.
    private var startActions: [SettingsTrial.Action]
    /// What the settings in force have changed last.
    private var lastChange: SettingsRecord?

    /// What is over the file; nil = nothing.
    private(set) var laidVersion: Int64?
    private var questions: DocumentPoll
    private var reports = ReportPace()
    /// The newest document that came too soon after another.
    private var postponed: Postponed?
    /// How long the next document whose end cannot be judged waits.
    private var clockPause = clockPauseLeast
    /// Documents that come by themselves are judged so often; the newest of more waits.
    private var arrivals = TokenBucket(burst: 4, refill: .seconds(15))
    private var refusalLines = LineBudget.ofOthers
    private var fetchProblem: String?
    private var subscriptionProblem: String?
    private(set) var lastContact: EventTime?
    /// The last document that was not even judged, for people; nil = none since the start.
    private(set) var refusal: String?
    /// What keeps documents and commands from arriving or being stored; nil = nothing.
    var problem: String? { store.problem ?? lostSeen ?? fetchProblem ?? subscriptionProblem }
    /// It is not known which versions were accepted: see `RemoteStart.lostSeen`.
    private var lostSeen: String? { trial.seen > 0 ? nil : startedWithoutSeen }
    private let startedWithoutSeen: String?

    /// - Parameters:
    ///   - delivery: to the endpoint that carries documents.
    init(
        _ config: RemoteConfig, _ start: RemoteStart, way: any RemoteWay, signatures: SignatureCheck,
        store: RemoteStore, delivery: EndpointDelivery, configuration: ConfigurationInForce, pipeline: Pipeline,
        log: AgentLog, loop: EventLoop, trustedTime: @escaping (EventTime) -> ClosedRange<UTCTime>?
    ) {
        self.config = config
        self.way = way
        self.signatures = signatures
        self.store = store
        self.trustedTime = trustedTime
        self.delivery = delivery
        self.configuration = configuration
        self.pipeline = pipeline
        self.log = log
        self.loop = loop
        questions = DocumentPoll(every: config.poll)
        (lay, startActions, laidVersion) = (start.lay, start.actions, start.memory.settings.inForce?.version)
        startedWithoutSeen = start.lostSeen
        if let problem = start.problem { log.warning("settings from afar: \(problem)") }
        alarm = loop.alarm { [unowned self] now in due(at: now) }
        configuration.base = start.base
        configuration.overlay = { [unowned self] in overlaid($0, at: loop.now) }
    }

    func start(at now: EventTime) {
        linksChanged(at: now)
        // A fleet that starts together asks at different times.
        if way.isAsked { questions.schedule(at: now + window * loop.host.jitter) }
        for action in startActions where action != .report { carryOut(action, at: now) }
        // With the first sign of the server: a whole fleet may start at once.
        if startActions.contains(.report) { reports.wanted() }
        startActions = []
        arm()
    }

    func linksChanged(at now: EventTime) {
        routeChanged(at: now)
        arm()
    }

    private func routeChanged(at now: EventTime) {
        trial.routeChanged(exists: delivery.link.egressRoute != nil, at: now)
    }

    func stop() { alarm?.deadline = nil }

    /// A person wants the file alone.
    /// - Parameter done: called once that is stored and in force; takes why it could not be stored, nil = it was.
    func clear(at now: EventTime, _ done: @escaping (String?) -> Void = { _ in }) {
        let actions = trial.cleared()
        if actions.isEmpty, store.isIdle { done(nil) } else { save(actions, at: now, done) }
    }

    /// The same, and nothing is remembered of what was refused. Where documents are not signed, the versions that were
    /// accepted are forgotten as well: whoever can replay them can also write them.
    /// - Parameter done: as of `clear`.
    func forget(acceptsOlder: Bool, at now: EventTime, _ done: @escaping (String?) -> Void = { _ in }) {
        if acceptsOlder, trial.seen > 0 {
            log.warning("settings from afar: versions up to \(trial.seen) are accepted again, by request")
        }
        refusal = nil
        save(trial.forgotten(acceptsOlder: acceptsOlder || config.key == nil), at: now, done)
        guard let next = questions.next else { return }
        questions = DocumentPoll(every: config.poll)
        questions.schedule(at: next)
    }

    /// Those in force, and their trial.
    private(set) var trial: SettingsTrial {
        get { store.memory.settings }
        set { store.memory.settings = newValue }
    }

    /// The broker has answered the subscriptions.
    func heard(problem: String?, at now: EventTime) {
        subscriptionProblem = problem
        report(at: now)
    }

    /// The server has no document for this device any more.
    func withdrawn(at now: EventTime) {
        postponed = nil
        arm()
    }

    private var window: Duration { max(Self.windowLeast, delivery.settings.batchWindow) }

    private func due(at now: EventTime) {
        perform(trial.deadlineReached(at: now), at: now)
        if let next = questions.next, next <= now { poll(at: now) }
        if let due = postponed, due.until <= now {
            postponed = nil
            judge(due.bytes, due.signature, at: now)
        }
        arm()
    }

    private func arm() {
        alarm?.deadline = [questions.next, postponed?.until, trial.nextDeadline].compactMap { $0 }.min()
    }

    private func poll(at now: EventTime) {
        guard delivery.maySend(at: now) else { return questions.schedule(at: now + Self.heldPause) }
        questions.schedule(at: now + config.poll + window * loop.host.jitter)
        fetch(at: now)
    }

    /// An attempt to send a batch has ended.
    func attempted(_ attempt: BatchAttempt, at now: EventTime) {
        // Where links cannot be watched, this is what finds the route.
        routeChanged(at: now)
        guard attempt.wasAccepted else {
            trial.attemptFailed(attempt.number, at: now)
            return arm()
        }
        perform(trial.batchAccepted(by: attempt.way, attempt: attempt.number), at: now)
        guard attempt.way == config.endpoint else { return arm() }
        lastContact = now
        let announced = attempt.announced.flatMap { $0 <= DesiredDocument.versionMax ? $0 : nil }
        if questions.heard(announced, at: now, isWanted: trial.wants) { fetch(at: now) }
        report(at: now)
        arm()
    }
}

// From a server to the settings in force.
extension SettingsFromAfar {
    private func fetch(at now: EventTime) {
        guard questions.begin(at: now) else { return }
        way.fetch(known: trial.seen) { [weak self] answer in
            guard let self else { return }
            received(answer, at: loop.now)
        }
    }

    private func received(_ answer: RemoteFetch, at now: EventTime) {
        fetchProblem = nil
        switch answer {
        case .failed(let reason):
            questions.ended(isAnswered: false)
            fetchProblem = "cannot be fetched: \(reason)"
            // Another server that does not answer says nothing about the one that takes the rows.
            if way.isOfEndpoint { trial.attemptFailed(at: now) }
        case .nothing:
            postponed = nil
            answered(at: now)
        case .document(let bytes, let signature):
            answered(at: now)
            judge(bytes, signature, at: now)
        }
        arm()
    }

    private func answered(at now: EventTime) {
        lastContact = now
        questions.ended(isAnswered: true)
        report(at: now)
    }

    /// A document has come by itself.
    func received(_ bytes: [UInt8], signature: String?, at now: EventTime) {
        lastContact = now
        if let wait = arrivals.take(at: now) {
            postponed = Postponed(bytes: bytes, signature: signature, until: now + wait)
        } else {
            judge(bytes, signature, at: now)
        }
        arm()
    }

    /// Nothing is remembered of it, so that it is logged once for as long as the same is wrong.
    private func refuse(_ reason: String, at now: EventTime) {
        let reason = reason.visible(bytesMax: 500)
        if refusal != reason, case .write(let withheld) = refusalLines.spend(at: now) {
            let more = withheld > 0 ? " (\(withheld) before this one were not logged)" : ""
            log.warning("settings from afar: a document was refused: \(reason)\(more)")
        }
        refusal = reason
    }

    private func judge(_ bytes: [UInt8], _ signature: String?, at now: EventTime) {
        if let problem = signatures.problem(of: bytes, for: .settings, signature) { return refuse(problem, at: now) }
        let document: DesiredDocument
        do throws(DocumentProblems) { document = try DesiredDocument(bytes) } catch {
            return refuse(error.problems.map(\.description).joined(separator: "; "), at: now)
        }
        let time = trustedTime(now)
        switch trial.offered(document, policy: config.policy, at: now, time: time) {
        case .known: return
        case .refused(let problem): return refuse(problem.description, at: now)
        case .undecided(let problem):
            postponed = Postponed(bytes: bytes, signature: signature, until: now + clockPause)
            clockPause = min(clockPause * 2, Self.clockPauseMost)
            return refuse(problem.description, at: now)
        case .postponed(let pause):
            postponed = Postponed(bytes: bytes, signature: signature, until: now + pause + .seconds(1))
            return
        case .judge: break
        }
        clockPause = Self.clockPauseLeast
        guard let file = configuration.base else { return }
        let judgement: SettingsTrial.Judgement =
            switch lay(document.settings, document.version, file) {
            case .accepted(_, let settings, let clamped): .accepted(settings, clamped: clamped)
            case .rejected(let problems): .rejected(problems)
            }
        refusal = nil
        perform(trial.judged(document, judgement, way: config.endpoint, at: now, time: time?.lowerBound), at: now)
    }

    /// The configuration was read again, by a person or for new settings.
    private func overlaid(_ file: LoadedConfiguration, at now: EventTime) -> LoadedConfiguration {
        laidVersion = nil
        guard let version = trial.inForce else { return file }
        switch lay(version.settings, version.version, file) {
        case .accepted(let whole, _, _):
            laidVersion = version.version
            return whole
        case .rejected(let problems):
            let actions = trial.refusedByFile(problems)
            // The file is about to be in force alone.
            perform(actions.filter { $0 != .apply(nil) }, at: now)
            return file
        }
    }
}

// What the trial has decided: first to the disk.
extension SettingsFromAfar {
    private func perform(_ actions: [SettingsTrial.Action], at now: EventTime) {
        if !actions.isEmpty { save(actions, at: now) { _ in } }
    }

    private func save(_ actions: [SettingsTrial.Action], at now: EventTime, _ done: @escaping (String?) -> Void) {
        store.save(at: now) { [weak self] failure in
            self?.stored(actions, failure)
            done(failure)
        }
    }

    private func stored(_ actions: [SettingsTrial.Action], _ failure: String?) {
        let now = loop.now
        if let failure { log.warning("settings from afar: \(failure)") }
        // What is not stored would not survive its own trial: only the way back is taken without.
        let new = actions.compactMap { if case .applied(let version) = $0 { version } else { nil } }.first
        if failure != nil, let new {
            for action in trial.notStored(new) { carryOut(action, at: now) }
        } else {
            for action in actions { carryOut(action, at: now) }
        }
        arm()
    }

    private func carryOut(_ action: SettingsTrial.Action, at now: EventTime) {
        switch action {
        case .apply:
            let before = effective
            configuration.reloadForRemote(at: now)
            trial.putInForce(attempts: delivery.attempts)
            // A device that has no rows to send hears of what is wrong with them even so.
            if let rest = trial.trial?.rest(at: now) { questions.hurry(by: now + rest) }
            lastChange = SettingsRecord(from: before, to: effective)
        case .applied(let version):
            log.remoteApplied(version: version.version, clamped: version.clamped.map(\.key))
            record("applied", version, at: now)
        case .rejected(let version, let problems):
            log.remoteRejected(version: version, problems.map(\.description))
        case .reverted(let version, let former, let reason):
            log.remoteReverted(version: version.version, to: former?.version, because: reason)
            record("reverted", version, at: now)
        case .store: break
        case .report:
            reports.wanted()
            report(at: now)
        }
    }

    private func record(_ state: String, _ version: RemoteVersion, at now: EventTime) {
        let change = lastChange ?? SettingsRecord(from: [], to: [])
        lastChange = nil
        pipeline.recordSettings(change.json(state, version: version.version, way: version.way), at: now)
    }

    /// The keys that a document may set, as they are now.
    private var effective: [RemoteSetting] { configuration.settings { config.policy.allows($0) } }

    private func report(at now: EventTime) {
        guard delivery.maySend(at: now), reports.begin(at: now) else { return }
        way.report(state.json) { [weak self] outcome in
            guard let self else { return }
            reports.ended(outcome, at: loop.now)
        }
    }

    var state: ReportedState {
        ReportedState(
            trial, device: config.policy.device, effective: effective, software: "waypost \(AgentVersion.current)")
    }
}
