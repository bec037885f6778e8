import Configuration
import ControlProtocol
import Delivery
import EventLoop
import JSON
import Positioning
import Remote
import Uplink

/// Fetches documents of settings, stores what the trial decides, and puts it in force.
final class SettingsFromAfar {
    /// Between two questions for a document: an answer to each batch may announce one.
    private static let requestPause = Duration.seconds(60)
    /// While nothing may be sent, the question waits this long.
    private static let heldPause = Duration.seconds(3600)
    private static let windowLeast = Duration.seconds(60)

    private let config: RemoteConfig
    private let environment: [String: String]
    private let lay: RemoteStart.Lay
    private let path: String
    private let delivery: EndpointDelivery
    private let configuration: ConfigurationInForce
    private let requests: SettingsRequests
    private let pipeline: Pipeline
    private let log: AgentLog
    private let loop: EventLoop
    private let writer: FileWriter
    private var alarm: EventLoop.Alarm?

    private let trustedTime: (EventTime) -> UTCTime?
    private var memory: RemoteMemory
    private var isWriting = false
    private var isChanged = false
    /// Wait until they are stored, which `writing` waits for already.
    private var waiting: [SettingsTrial.Action] = []
    private var writing: [SettingsTrial.Action] = []
    /// What the settings in force have changed last.
    private var lastChange: SettingsRecord?

    private var nextPoll = EventTime.zero
    private var isFetching = false
    /// When an announcement may be followed again.
    private var mayFetchAt = EventTime.zero
    /// Since the last question that was answered.
    private var failures = 0
    /// When what the disk refused is written again.
    private var rewriteAt: EventTime?
    /// The newest version that an answer has announced.
    private var announced: Int64 = 0
    /// The newest of them that was asked for since.
    private var askedFor: Int64 = 0
    /// A trial and its end are two reports; one that is not taken is repeated with the next batch.
    private var reportBudget = TokenBucket(burst: 4, refill: .seconds(60))
    private var isReportWanted = false
    private(set) var lastContact: EventTime?
    /// The last document that was not even judged, for people; nil = none since the start.
    private(set) var refusal: String?
    /// What keeps documents from being fetched; nil = nothing.
    private(set) var problem: String?

    /// - Parameters:
    ///   - environment: of the process, for the secret of signatures.
    ///   - delivery: to the endpoint that carries documents.
    init(
        _ config: RemoteConfig, _ start: RemoteStart, environment: [String: String], delivery: EndpointDelivery,
        configuration: ConfigurationInForce, pipeline: Pipeline, uplink: any Uplink, log: AgentLog, loop: EventLoop,
        trustedTime: @escaping (EventTime) -> UTCTime?
    ) {
        self.config = config
        self.environment = environment
        (path, lay, memory) = (start.path, start.lay, start.memory)
        self.trustedTime = trustedTime
        self.delivery = delivery
        self.configuration = configuration
        self.pipeline = pipeline
        self.log = log
        self.loop = loop
        requests = SettingsRequests(config, route: { delivery.routes[0] }, uplink: uplink, loop: loop)
        writer = FileWriter(mode: 0o600, isDurable: true, loop: loop)
        waiting = start.actions
        if let problem = start.problem { log.warning("settings from afar: \(problem)") }
        alarm = loop.alarm { [unowned self] now in due(at: now) }
        writer.done = { [unowned self] problem, _ in written(problem, at: loop.now) }
        configuration.base = start.base
        configuration.overlay = { [unowned self] in overlaid($0, at: loop.now) }
        delivery.attempted = { [unowned self] in attempted($0, at: $1) }
    }

    func start(at now: EventTime) {
        linksChanged(at: now)
        // A fleet that starts together asks at different times.
        nextPoll = now + window * loop.host.jitter
        // What the start has done was stored by it.
        let actions = waiting
        waiting = []
        for action in actions { carryOut(action, at: now) }
        arm()
    }

    func linksChanged(at now: EventTime) {
        routeChanged(at: now)
        arm()
    }

    private func routeChanged(at now: EventTime) {
        memory.settings.routeChanged(exists: delivery.link.egressRoute != nil, at: now)
    }

    /// The rest of a trial's clock is kept over a restart.
    func close() {
        alarm?.deadline = nil
        guard !isWriting, isChanged || memory.settings.trial != nil else { return }
        try? replaceFile(path, with: memory.bytes(at: loop.now), mode: 0o600)
    }

    /// A person wants the file alone.
    func clear(at now: EventTime) { perform(memory.settings.cleared(), at: now) }

    private var window: Duration { max(Self.windowLeast, delivery.settings.batchWindow) }

    private func due(at now: EventTime) {
        perform(memory.settings.deadlineReached(at: now), at: now)
        if now >= nextPoll { poll(at: now) }
        if let due = rewriteAt, due <= now {
            rewriteAt = nil
            write(at: now)
        }
        arm()
    }

    private func arm() {
        alarm?.deadline = [nextPoll, rewriteAt, memory.settings.nextDeadline].compactMap { $0 }.min()
    }

    private func poll(at now: EventTime) {
        guard delivery.maySend(at: now) else {
            nextPoll = now + Self.heldPause
            return
        }
        nextPoll = now + config.poll + window * loop.host.jitter
        fetch(at: now)
    }

    /// An attempt to send a batch has ended.
    private func attempted(_ attempt: BatchAttempt, at now: EventTime) {
        // Where links cannot be watched, this is what finds the route.
        routeChanged(at: now)
        guard attempt.wasAccepted else {
            memory.settings.attemptFailed(at: now)
            return arm()
        }
        lastContact = now
        perform(memory.settings.batchAccepted(by: attempt.way, sentAt: attempt.startedAt, at: now), at: now)
        guard attempt.way == config.endpoint else { return arm() }
        if let version = attempt.announced, version <= DesiredDocument.versionMax {
            announced = max(announced, version)
        }
        if announced > max(memory.settings.seen, askedFor) {
            if mayFetchAt <= now { fetch(at: now) } else { nextPoll = min(nextPoll, mayFetchAt) }
        }
        if isReportWanted { report(at: now) }
        arm()
    }
}

// From a server to the settings in force.
extension SettingsFromAfar {
    private func fetch(at now: EventTime) {
        guard !isFetching else { return }
        isFetching = true
        // A server that announces and does not give is asked ever more rarely.
        mayFetchAt = now + min(config.poll, Self.requestPause * (1 << min(failures, 12)))
        let announced = announced
        requests.fetch(known: memory.settings.seen) { [weak self] answer in
            guard let self else { return }
            isFetching = false
            received(answer, for: announced, at: loop.now)
        }
    }

    private func received(_ answer: SettingsRequests.Answer, for announced: Int64, at now: EventTime) {
        problem = nil
        switch answer {
        case .failed(let reason):
            failures += 1
            problem = "cannot be fetched: \(reason)"
            // Another server that does not answer says nothing about the one that takes the rows.
            if requests.isOfEndpoint { memory.settings.attemptFailed(at: now) }
        case .nothing:
            lastContact = now
            (askedFor, failures) = (announced, 0)
        case .document(let bytes, let signature):
            lastContact = now
            (askedFor, failures) = (announced, 0)
            if isAuthentic(bytes, signature) { judge(bytes, at: now) }
        }
        arm()
    }

    private func isAuthentic(_ bytes: [UInt8], _ signature: String?) -> Bool {
        guard let key = config.key else { return true }
        guard let key = messageKey(key) else {
            refuse("the secret of its signature cannot be read")
            return false
        }
        guard let signature, key.verifies(bytes, signature: signature) else {
            refuse(signature == nil ? "it is not signed" : "its signature is wrong")
            return false
        }
        return true
    }

    /// Read each time: a secret in a file may have been replaced.
    private func messageKey(_ key: RemoteConfig.Key) -> MessageKey? {
        switch key {
        case .publicKey(let key): return .publicKey(key)
        case .secret(let reference):
            let environment = ConfigurationEnvironment(
                variables: environment, hostname: { nil }, machineID: { nil })
            guard case .success(let value?) = Secret.value(of: reference, environment) else { return nil }
            return .secret(Array(value.utf8))
        }
    }

    /// Nothing is remembered of it, so that it is logged once for as long as the same is wrong.
    private func refuse(_ reason: String) {
        if refusal != reason { log.warning("settings from afar: a document was refused: \(reason)") }
        refusal = reason
    }

    private func judge(_ bytes: [UInt8], at now: EventTime) {
        let document: DesiredDocument
        do throws(DocumentProblems) { document = try DesiredDocument(bytes) } catch {
            return refuse(error.problems.map { "\($0.path): \($0.reason)" }.joined(separator: "; "))
        }
        let time = trustedTime(now)
        switch memory.settings.offered(document, policy: config.policy, at: now, time: time) {
        case .known: return
        case .refused(let problem): return refuse("\(problem.path): \(problem.reason)")
        case .postponed(let pause): return nextPoll = min(nextPoll, now + pause + .seconds(1))
        case .judge: break
        }
        guard let file = configuration.base else { return }
        let judgement: SettingsTrial.Judgement =
            switch lay(document.settings, document.version, file) {
            case .accepted(_, let settings, let clamped): .accepted(settings, clamped: clamped)
            case .rejected(let problems): .rejected(problems)
            }
        refusal = nil
        perform(
            memory.settings.judged(document, judgement, way: config.endpoint, at: now, time: time), at: now)
    }

    /// The configuration was read again, by a person or for new settings.
    private func overlaid(_ file: LoadedConfiguration, at now: EventTime) -> LoadedConfiguration {
        guard let version = memory.settings.inForce else { return file }
        switch lay(version.settings, version.version, file) {
        case .accepted(let whole, _, _): return whole
        case .rejected(let problems):
            let actions = memory.settings.refusedByFile(problems)
            // The file is about to be in force alone.
            perform(actions.filter { $0 != .apply(nil) }, at: now)
            return file
        }
    }
}

// What the trial has decided: first to the disk.
extension SettingsFromAfar {
    private func perform(_ actions: [SettingsTrial.Action], at now: EventTime) {
        guard !actions.isEmpty else { return }
        waiting += actions
        isChanged = true
        write(at: now)
    }

    private func write(at now: EventTime) {
        guard isChanged, !isWriting else { return }
        (isWriting, isChanged) = (true, false)
        writing = waiting
        waiting = []
        writer.write(memory.bytes(at: now), to: path)
    }

    private func written(_ failure: String?, at now: EventTime) {
        isWriting = false
        let actions = writing
        writing = []
        if let failure {
            log.warning("settings from afar: \(failure)")
            problem = failure
        }
        // What the disk has is older than what is in force from here on.
        if failure != nil {
            isChanged = true
            rewriteAt = now + Self.requestPause
        }
        // What is not stored would not survive its own trial: only the way back is taken without.
        let isNew = actions.contains { if case .applied = $0 { true } else { false } }
        for action in failure != nil && isNew ? memory.settings.notStored() : actions { carryOut(action, at: now) }
        if rewriteAt == nil { write(at: now) }
        arm()
    }

    private func carryOut(_ action: SettingsTrial.Action, at now: EventTime) {
        switch action {
        case .apply:
            let before = effective
            configuration.reloadForRemote(at: now)
            memory.settings.putInForce(at: now)
            lastChange = SettingsRecord(from: before, to: effective)
        case .applied(let version):
            log.remoteApplied(version: version.version, clamped: version.clamped.map(\.key))
            record("applied", version, at: now)
        case .rejected(let version, let problems):
            log.remoteRejected(version: version, problems.map { "\($0.path): \($0.reason)" })
        case .reverted(let version, let former, let reason):
            log.remoteReverted(version: version.version, to: former?.version, because: reason)
            record("reverted", version, at: now)
        case .report:
            isReportWanted = true
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
        guard config.reportedURL != nil, delivery.maySend(at: now), reportBudget.take(at: now) == nil else { return }
        isReportWanted = false
        requests.report(state.json) { [weak self] wasTaken in
            // With the next batch that is accepted.
            if !wasTaken { self?.isReportWanted = true }
        }
    }

    var state: ReportedState {
        ReportedState(
            memory.settings, device: config.policy.device, effective: effective,
            software: "waypost \(AgentVersion.current)")
    }

    var settings: SettingsTrial { memory.settings }
}
