import Configuration
import ControlProtocol
import Delivery
import EventLoop
import JSON
import Positioning
import Remote
import Systemd
import Tracking

/// What became of reading the configuration again.
enum ReloadOutcome: Hashable {
    /// Keys that are in force now, and keys that wait for the next start.
    case done(live: [String], atRestart: [String])
    /// What is wrong with it, one line each; nothing has changed.
    case refused([String])
}

/// The configuration in force, and how a new one replaces it: by SIGHUP or by request.
final class ConfigurationInForce {
    private var config: AgentConfig
    /// Its keys, as far as they are known.
    private var effective: EffectiveConfiguration
    /// Where what is in force comes from.
    enum Origin: String {
        /// The file, as it was when it was read last.
        case current
        /// The file as it was before; what it says now was refused.
        case refused
        /// The last good one, since the file was refused at the start.
        case lastGood = "last-good"
    }

    private(set) var origin = Origin.current
    /// Lays settings from afar over what was read.
    var overlay: (LoadedConfiguration) -> LoadedConfiguration = { $0 }
    /// Why the configuration in the file is not the one in force; nil = it is, or was not read since the start.
    private(set) var problem: String?
    private let keeper: LastGoodKeeper
    /// Reads the file again; nil = a reload reads the secrets in files alone.
    private let reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?
    /// Each reload reads files and compiles templates.
    private var budget = TokenBucket(burst: 5, refill: .seconds(1))
    /// What the journal says of the last reload. The group may ask for one each second; only who may write the file, or a secret,
    /// can make them say something else each time.
    private var said: (outcome: ReloadOutcome, warnings: [String])?
    private var repeatedLines = LineBudget.ofOthers
    private var alarm: EventLoop.Alarm?
    private let pipeline: Pipeline
    private let recorder: Recorder
    private let endpoints: Endpoints
    /// The file as it was read last, without anything from afar; nil where nothing can come from there.
    var base: LoadedConfiguration?
    private let channels: [ChannelDelivery]
    private let beacons: BeaconWatch
    private let networks: NetworkWatch
    private let places: PlaceLists
    /// nil where no process is around the agent.
    var host: HostWatch?
    /// The same.
    var metrics: Metrics?
    private let shutdown: Shutdown
    private let supervision: Supervision
    private let log: AgentLog

    init(
        _ config: AgentConfig, _ effective: EffectiveConfiguration,
        reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?, keeper: LastGoodKeeper,
        pipeline: Pipeline, recorder: Recorder, endpoints: Endpoints,
        channels: [ChannelDelivery], beacons: BeaconWatch, networks: NetworkWatch, places: PlaceLists,
        shutdown: Shutdown,
        supervision: Supervision, log: AgentLog, loop: EventLoop
    ) {
        self.config = config
        self.effective = effective
        self.reread = reread
        self.keeper = keeper
        self.pipeline = pipeline
        self.recorder = recorder
        self.endpoints = endpoints
        self.channels = channels
        self.beacons = beacons
        self.networks = networks
        self.places = places
        self.shutdown = shutdown
        self.supervision = supervision
        self.log = log
        alarm = loop.alarm { [unowned self] now in reloadSoon(at: now) }
    }

    /// The daemon runs with it.
    func started(_ loaded: LoadedConfiguration) {
        guard let refused = loaded.refused else { return keeper.keep(loaded) }
        let problems = refused.byWeight.map(\.description)
        refuse(problems, .lastGood, "running on the last good one")
        log.lastGoodInForce(problems)
    }

    private func refuse(_ problems: [String], _ origin: Origin, _ consequence: String) {
        self.origin = origin
        problem =
            "configuration refused, \(consequence): \(problems.first ?? "")"
            + (problems.count > 1 ? " and \(problems.count - 1) more" : "")
    }

    /// A signal cannot be answered with "later": those that come too soon become one reload, as soon as allowed.
    func reloadSoon(at now: EventTime) {
        alarm?.deadline = budget.take(at: now).map { now + $0 }
        if alarm?.deadline == nil { reload(at: now) }
    }

    /// Answers when the new configuration is in force.
    func reloadCommand(at now: EventTime) throws(ControlError) -> ReloadRequest.Reply {
        if let wait = budget.take(at: now) { throw .busy(for: wait, "too many reloads: at most one a second") }
        switch reload(at: now) {
        case .done(let live, let atRestart):
            var reply = ReloadRequest.Reply()
            reply.live = live
            reply.restart = atRestart
            return reply
        case .refused(let problems):
            throw ControlError(
                "refused", problems.prefix(20).map { $0.cut(toBytes: 1000) }.joined(separator: "\n"),
                hint: "nothing has changed; `waypost check` reports the same without a daemon")
        }
    }

    /// All or nothing: either every key that can change in a running daemon does, or none.
    @discardableResult
    private func reload(at now: EventTime) -> ReloadOutcome {
        guard shutdown.isServing else { return .refused(["waypost is stopping"]) }
        supervision.notifier.reloading()
        var warnings: [String] = []
        let outcome = readAgain(&warnings, at: now)
        switch outcome {
        case .done: (problem, origin) = (nil, .current)
        case .refused(let problems):
            if origin == .lastGood {
                refuse(problems, .lastGood, "running on the last good one")
            } else {
                refuse(problems, .refused, "the previous one stays in force")
            }
        }
        say(outcome, warnings, at: now)
        supervision.reloaded(at: now)
        return outcome
    }

    private func say(_ outcome: ReloadOutcome, _ warnings: [String], at now: EventTime) {
        var withheld = 0
        if let said, said == (outcome, warnings) {
            guard case .write(let count) = repeatedLines.spend(at: now) else { return }
            withheld = count
        }
        said = (outcome, warnings)
        for warning in warnings { log.warning(warning) }
        switch outcome {
        case .done(let live, let atRestart): log.reloaded(live: live, atRestart: atRestart, withheld: withheld)
        case .refused(let problems): log.reloadRefused(problems, withheld: withheld)
        }
    }

    /// - Parameter warnings: of the file that was read, for the journal.
    private func readAgain(_ warnings: inout [String], at now: EventTime) -> ReloadOutcome {
        guard let reread else {
            renewSecrets(at: now)
            return .done(live: [], atRestart: [])
        }
        let new: LoadedConfiguration
        do throws(ConfigurationProblems) { new = try reread() } catch {
            return .refused(error.byWeight.map(\.description))
        }
        warnings = new.warnings.map(\.description)
        if base != nil { base = new }
        let plan = ReloadPlan(from: config, effective, to: overlay(new))
        apply(plan, at: now)
        renewSecrets(at: now)
        // One that waits for a restart in part has not been in force as it is written.
        if plan.atRestart.isEmpty { keeper.keep(new) }
        return .done(live: plan.live, atRestart: plan.atRestart)
    }

    /// Settings from afar have changed: puts what the overlay makes of the file in force, as it was read last. A file that
    /// somebody is editing, or that cannot be read any more, is no reason to keep them, and not theirs to bring in.
    func reloadForRemote(at now: EventTime) {
        guard let base else { return }
        apply(ReloadPlan(from: config, effective, to: overlay(base)), at: now)
    }

    /// Keys with their values, as documents name them: those without a value are left out, but for a rule, which is decided
    /// where it is not set.
    func settings(where isWanted: (String) -> Bool) -> [RemoteSetting] {
        effective.entries.compactMap { entry in
            guard !entry.table.hasPrefix("[[") else { return nil }
            let key = "\(entry.table.dropFirst().dropLast()).\(entry.key)"
            guard isWanted(key) else { return nil }
            guard let value = entry.value else {
                return config.tracking.rule(of: key).map { RemoteSetting(key, .string($0.rawValue)) }
            }
            // What TOML and JSON write alike is read; the rest is shown as it is written.
            return RemoteSetting(key, JSONReader.read(Array(value.utf8)) ?? .string(value))
        }
    }

    private func apply(_ plan: ReloadPlan, at now: EventTime) {
        var (tracking, old) = (plan.config.tracking, config.tracking)
        old.geofences.fences = places.fences.joined
        tracking.geofences.fences = places.fences.reload(
            plan.config.fenceSources, own: tracking.geofences.fences, at: now)
        config = plan.config
        effective = plan.effective
        log.set(level: config.log.level, positions: config.log.positions)
        recorder.reload(commitWindow: config.outbox.commitWindow, config.endpoints.map(\.settings), at: now)
        endpoints.reload(config.endpoints, renewed: plan.newCredentials, at: now)
        host?.reload(config.powerSettings, at: now)
        metrics?.reload(config.metrics, at: now)
        _ = places.beacons.reload(config.beaconSources, own: config.beacons.regions, at: now)
        beacons.reload(places.joined(with: config.beacons), at: now)
        networks.reload(config.context, at: now)
        pipeline.reload(
            tracking.isSame(as: old) ? nil : tracking, config.timetable, at: now)
        // What an operator has set gives way to what the file says.
        pipeline.handle(.engineSet(config.tracking.resolution.constantEngine), at: now)
    }

    /// Reads again what may have changed outside the file.
    private func renewSecrets(at now: EventTime) {
        endpoints.rereadSecrets()
        for channel in channels {
            channel.reload(
                config.channels.first { $0.endpoint.settings.name == channel.config.endpoint.settings.name }, at: now)
        }
        host?.readPower(at: now)
    }
}

extension Tracker.Settings {
    /// nil where the key is no rule.
    fileprivate func rule(of key: String) -> LocationSampler.Rule? {
        switch key {
        case "sampling.rule": sampling.rule
        case "tracking.moving.rule": (moving ?? profile).sampling.rule
        case "tracking.stationary.rule": (stationary ?? moving ?? profile).sampling.rule
        default: nil
        }
    }
}

extension AgentConfig {
    var powerSettings: PowerWatch.Settings {
        .init(supplies: battery.supplies, low: tracking.batteryAlarm.low)
    }
}
