import Configuration
import Journal
import Remote
import WaypostControl
import WaypostCore
import WaypostHost
import WaypostTracking

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
    /// Why the configuration in the file is not the one in force, or not all of it; nil = it is, or was not read since the start.
    private(set) var problem: String?
    private let keeper: LastGoodKeeper
    /// Reads the file again; nil = a reload reads the secrets in files alone.
    private let reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?
    /// Nil: the file is read on a thread of its own.
    private let readsLater: ((_ read: @escaping () -> Void) -> Void)?
    /// Who waits for the reading that is under way; nil = none is.
    private var readers: [(ReloadOutcome) -> Void]?
    /// Who came since it began: the file may have changed meanwhile.
    private var nextReaders: [(ReloadOutcome) -> Void] = []
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
    private let loop: EventLoop

    init(
        _ config: AgentConfig, _ effective: EffectiveConfiguration,
        reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?, keeper: LastGoodKeeper,
        readsLater: ((_ read: @escaping () -> Void) -> Void)?, pipeline: Pipeline, recorder: Recorder,
        endpoints: Endpoints,
        channels: [ChannelDelivery], beacons: BeaconWatch, networks: NetworkWatch, places: PlaceLists,
        shutdown: Shutdown,
        supervision: Supervision, log: AgentLog, loop: EventLoop
    ) {
        self.config = config
        self.effective = effective
        self.reread = reread
        self.keeper = keeper
        self.readsLater = readsLater
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
        self.loop = loop
        alarm = loop.alarm { [unowned self] now in reloadSoon(at: now) }
    }

    /// The daemon runs with it.
    func started(_ loaded: LoadedConfiguration) {
        guard let refused = loaded.refused else { return keeper.keep(keeper.copy(loaded)) }
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
        if alarm?.deadline == nil { reload(at: now) { _ in } }
    }

    /// Answers when the new configuration is in force.
    func reloadCommand(_ ticket: ControlTicket, at now: EventTime) throws(ControlError) -> any ControlMessage {
        if let wait = budget.take(at: now) { throw .busy(for: wait, "too many reloads: at most one a second") }
        ticket.postpone()
        reload(at: now) { outcome in
            switch outcome {
            case .done(let live, let atRestart):
                var reply = ReloadRequest.Reply()
                reply.live = live
                reply.restart = atRestart
                ticket.finish(.success(reply))
            case .refused(let problems):
                ticket.finish(
                    .failure(
                        ControlError(
                            "refused", problems.prefix(20).map { $0.cut(toBytes: 1000) }.joined(separator: "\n"),
                            hint: "nothing has changed; `waypost check` reports the same without a daemon")))
            }
        }
        return Acknowledgement()
    }

    /// All or nothing: either every key that can change in a running daemon does, or none.
    private func reload(at now: EventTime, done: @escaping (ReloadOutcome) -> Void) {
        guard shutdown.isServing else { return done(.refused(["waypost is stopping"])) }
        guard readers == nil else { return nextReaders.append(done) }
        readers = [done]
        supervision.notifier.reloading()
        guard let reread else {
            renewSecrets(at: now)
            return ended(.done(live: [], atRestart: []), at: now)
        }
        // Settings from afar lie over the file, and may change meanwhile.
        let copy = keeper.copy
        let inForce = base == nil ? (config, effective) : nil
        let read = { @Sendable in Reading(reread, over: inForce, copy: copy) }
        if let readsLater { return readsLater { [weak self] in self?.read(read()) } }
        do {
            try loop.inBackground("cannot read the configuration", read) { [weak self] in self?.read($0) }
        } catch { ended(.refused(["\(error)"]), at: now) }
    }

    /// What takes the loop too long where there are thousands of trackables, templates or corners of geofences.
    private struct Reading: Sendable {
        let loaded: Result<LoadedConfiguration, ConfigurationProblems>
        /// nil where settings from afar may lie over it.
        var plan: ReloadPlan?
        var copy: LastGoodKeeper.Copy?

        init(
            _ reread: () throws(ConfigurationProblems) -> LoadedConfiguration,
            over inForce: (AgentConfig, EffectiveConfiguration)?,
            copy: (LoadedConfiguration) -> LastGoodKeeper.Copy?
        ) {
            loaded = Result { () throws(ConfigurationProblems) in try reread() }
            guard case .success(let new) = loaded else { return }
            plan = inForce.map { ReloadPlan(from: $0.0, $0.1, to: new) }
            self.copy = copy(new)
        }
    }

    private func read(_ reading: Reading) {
        let now = loop.now
        guard shutdown.isServing else { return ended(.refused(["waypost is stopping"]), at: now) }
        let new: LoadedConfiguration
        switch reading.loaded {
        case .failure(let problems): return ended(.refused(problems.byWeight.map(\.description)), at: now)
        case .success(let loaded): new = loaded
        }
        if base != nil { base = new }
        let plan = reading.plan ?? ReloadPlan(from: config, effective, to: overlay(new))
        apply(plan, at: now)
        renewSecrets(at: now)
        // One that waits for a restart in part has not been in force as it is written.
        if plan.atRestart.isEmpty { keeper.keep(reading.copy) }
        ended(
            .done(live: plan.live, atRestart: plan.atRestart), warnings: new.warnings.map(\.description), at: now)
    }

    /// - Parameter warnings: of the file that was read, for the journal.
    private func ended(_ outcome: ReloadOutcome, warnings: [String] = [], at now: EventTime) {
        switch outcome {
        case .done(_, let atRestart): (problem, origin) = (Self.restartNeeded(for: atRestart), .current)
        case .refused(let problems):
            if origin == .lastGood {
                refuse(problems, .lastGood, "running on the last good one")
            } else {
                refuse(problems, .refused, "the previous one stays in force")
            }
        }
        say(outcome, warnings, at: now)
        supervision.reloaded(at: now)
        let waited = readers ?? []
        let waiting = nextReaders
        (readers, nextReaders) = (nil, [])
        for done in waited { done(outcome) }
        guard !waiting.isEmpty else { return }
        reload(at: now) { outcome in for done in waiting { done(outcome) } }
    }

    private static func restartNeeded(for keys: [String]) -> String? {
        guard !keys.isEmpty else { return nil }
        let more = keys.count > 3 ? " and \(keys.count - 3) more" : ""
        return "configuration: \(keys.prefix(3).joined(separator: ", "))\(more) will take effect at a restart: "
            + "sudo systemctl restart waypost"
    }

    private func say(_ outcome: ReloadOutcome, _ warnings: [String], at now: EventTime) {
        var withheld = 0
        let isNews = if case .done(let live, _) = outcome { !live.isEmpty } else { false }
        if !isNews, let said, said == (outcome, warnings) {
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
        endpoints.rereadSecrets(at: now)
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
