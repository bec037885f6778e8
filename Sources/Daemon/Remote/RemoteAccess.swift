import Configuration
import Protocols
import Remote
import WaypostControl
import WaypostCore
import WaypostHost

/// What a server may do with this device from afar: settings and commands, over the way of one endpoint.
final class RemoteAccess {
    let settings: SettingsFromAfar
    let commands: CommandsFromAfar
    private let endpoint: String
    private let policy: () -> RemotePolicy
    private let store: RemoteStore
    private let loop: EventLoop

    /// - Parameters:
    ///   - environment: of the process, for the secret of signatures.
    ///   - file: nil = beside the queue.
    ///   - delivery: to the endpoint whose server or broker it is.
    init(
        _ config: RemoteConfig, _ start: RemoteStart, environment: [String: String], file: StateFile?,
        delivery: EndpointDelivery, configuration: ConfigurationInForce, pipeline: Pipeline, uplink: any Uplink,
        log: AgentLog, loop: EventLoop, trustedTime: @escaping (EventTime) -> ClosedRange<UTCTime>?,
        commandTime: @escaping (EventTime) -> UTCTime?,
        carryOut: @escaping (RemoteCommand.Task, EventTime, @escaping (CommandsFromAfar.Outcome) -> Void) -> Void
    ) {
        self.loop = loop
        endpoint = config.endpoint
        // What the file has ceased to allow is over with a reload.
        let policy = { [config] in
            var policy = config.policy
            policy.commands.formIntersection(configuration.base?.config.remote?.policy.commands ?? [])
            return policy
        }
        self.policy = policy
        store = RemoteStore(
            start.memory, problem: start.problem, file: file ?? StateFile(path: start.path, loop: loop),
            seenFile: file == nil ? StateFile(path: RemoteFile(path: start.path).seenPath, loop: loop) : nil,
            isSeenBehind: start.isSeenBehind, loop: loop)
        let signatures = SignatureCheck(config.key, environment: environment)
        let way: any RemoteWay =
            switch config.way {
            case .http(let settings, let reported):
                HTTPWay(settingsURL: settings, reportedURL: reported, delivery: delivery, uplink: uplink, loop: loop)
            case .mqtt(let topic):
                BrokerWay(topic: topic, isSigned: config.key != nil, delivery: delivery, uplink: uplink, loop: loop)
            }
        settings = SettingsFromAfar(
            config, start, way: way, signatures: signatures, store: store, delivery: delivery,
            configuration: configuration, pipeline: pipeline, log: log, loop: loop, trustedTime: trustedTime)
        commands = CommandsFromAfar(
            policy, signatures: signatures, store: store, way: way, log: log, loop: loop, time: commandTime,
            trustedTime: { trustedTime($0)?.lowerBound }, carryOut: carryOut)
        way.hear = { [unowned self] in heard($0) }
        delivery.attempted = { [unowned self] in attempted($0, at: $1) }
    }

    /// - Parameter withKeys: also what a server may set.
    func status(withKeys: Bool, at now: EventTime) -> RemoteStatus {
        var status = settings.status(withKeys: withKeys, at: now)
        guard !policy().commands.isEmpty else { return status }
        status.commandsRun = commands.ran
        status.commandsRefused = commands.refused
        status.lastCommand = commands.last?.words.visible(bytesMax: 500)
        status.lastCommandAge = commands.last.map { now.seconds(since: $0.at) }
        status.lastRefusal = commands.lastRefusal.map {
            "\($0.code ?? "")\($0.id.isEmpty ? "" : " (\($0.id))"): \($0.message)".visible(bytesMax: 500)
        }
        return status
    }

    /// What was decided is on disk and in force.
    var isSettled: Bool { store.isIdle && settings.laidVersion == settings.trial.inForce?.version }

    func start(at now: EventTime) { settings.start(at: now) }

    func close() {
        settings.stop()
        store.close()
    }

    private func attempted(_ attempt: BatchAttempt, at now: EventTime) {
        settings.attempted(attempt, at: now)
        // A backup has no say.
        if attempt.way == endpoint, let command = attempt.command {
            commands.received(Array(command.utf8), signature: attempt.signature, isRetained: false, at: now)
        }
    }

    private func heard(_ message: RemoteMessage) {
        let now = loop.now
        switch message {
        case .document(let bytes, let signature): settings.received(bytes, signature: signature, at: now)
        case .command(let bytes, let signature, let isRetained):
            commands.received(bytes, signature: signature, isRetained: isRetained, at: now)
        case .noDocument: settings.withdrawn(at: now)
        case .problem(let problem): settings.heard(problem: problem, at: now)
        }
    }
}
