import CLinux
import Configuration
import Glibc
import Journal
import Logging
import Network
import Protocols
import Queue
import WaypostControl
import WaypostCore
import WaypostHost
import WaypostTracking

/// The daemon: puts the parts together, runs the loop, and takes the parts down in reverse.
package final class Agent {
    /// What may differ from one start to the next without the configuration changing.
    package struct Options: Sendable {
        /// Read a file source from its beginning, and track it as if for the first time, odometer included.
        package var fromStart = false
        /// After the end of a file, wait no longer than this for the queue to empty; nil waits as long as it takes.
        package var linger: Duration?
        /// Between two summaries in the log.
        package var summaryInterval = Duration.seconds(3600)
        /// Reads the configuration again; nil = a reload reads the secrets in files alone.
        package var reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?
        /// Where a configuration that works is kept; nil = nowhere.
        package var lastGood: LastGoodConfiguration?
        /// Settings from afar as they were stored; nil = there can be none.
        package var remote: RemoteStart?

        package init() {}
    }

    /// A host that runs for less has just started.
    private static let hostStart = Duration.seconds(300)

    let loop: EventLoop
    let recorder: Recorder
    let pipeline: Pipeline
    let orders: OrderHandler
    let flushes: FlushHandler
    private(set) lazy var tests = EndpointTestHandler(
        pipeline: pipeline, deliveries: endpoints.deliveries, uplink: uplink, loop: loop)
    let shutdown: Shutdown
    let configuration: ConfigurationInForce
    /// nil where the configuration allows nothing from afar.
    private(set) var remote: RemoteAccess?
    private let units: DisplayUnits
    private lazy var problemReports = ProblemReports(endpoints.deliveries, loop: loop) { [unowned self] in
        report(at: $0).problems
    }
    /// Made for the first command that needs it: it looks at each record.
    private(set) lazy var locating = LocateHandler(pipeline: pipeline, recorder: recorder, loop: loop)
    private let log: AgentLog
    private let uplink: any Uplink
    let endpoints: Endpoints
    private let channels: [ChannelDelivery]
    private let beacons: BeaconWatch
    private let networks: NetworkWatch
    private let places: PlaceLists
    let listRefreshes: ListRefreshHandler
    private let supervision: Supervision
    private let startedAt: EventTime
    /// nil where no process is around the agent, as in the simulated world.
    private var host: HostWatch?
    private var control: ControlServer?
    private var metrics: Metrics?

    /// A disk that refuses does not keep it from starting.
    ///
    /// - Throws: `StartupError`: the outbox is another program's or newer, another instance runs, the socket cannot be made.
    package convenience init(
        config: AgentConfig, effective: EffectiveConfiguration? = nil, environment: [String: String],
        logger: Logger, options: Options = Options()
    ) throws(StartupError) {
        // A peer that goes away while we write to it shows as EPIPE, a file above the limit of the process as EFBIG.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        let edges: Edges
        do throws(SystemError) { edges = try .linux(environment: environment) } catch { throw StartupError(error) }
        try self.init(
            config: config, effective: effective, environment: environment, logger: logger, options: options,
            edges: edges)
    }

    /// - Throws: `StartupError`, as above.
    package init(
        config: AgentConfig, effective: EffectiveConfiguration? = nil, environment: [String: String],
        logger: Logger, options: Options, edges: Edges
    ) throws(StartupError) {
        if let problem = config.tracking.problems.first { throw StartupError(problem, exitCode: 78) }
        let (log, loop) = (AgentLog(logger: logger, positions: config.log.positions), EventLoop(on: edges.host))
        (self.log, self.loop, startedAt) = (log, loop, loop.now)

        // The outbox before the receiver: no fix may arrive that has nowhere to go.
        let outbox = try Self.openOutbox(config, edges, log)
        let (current, inFlight, uuid) = (outbox.current, outbox.inFlight(), outbox.uuid)
        let memory = StoredMemory(
            outbox.parts, isFile: config.source.isFile, fromStart: options.fromStart, log)
        let unseen =
            config.channels.isEmpty
            ? [] : outbox.newest(LiveStream.rowsMax * config.tracking.trackables.count).map(\.location)
        let writer: any CommitWriter
        do throws(OutboxError) { writer = try edges.makeWriter(outbox) } catch { throw StartupError(error) }
        let recorder: Recorder
        do throws(SystemError) {
            recorder = try Recorder(
                settings: .init(
                    commitWindow: config.outbox.commitWindow, onFull: config.outbox.settings.onFull),
                writer: writer, current: current, log: log, loop: loop)
        } catch { throw StartupError(error) }
        let uplink = try edges.makeUplink(loop: loop)
        let receiverClock = ReceiverClock()
        let makeCredentials = { (endpoint: EndpointConfig) in
            EndpointCredentials(
                endpoint, environment: environment, stateDirectory: config.outbox.directory, uplink: uplink,
                log: log, loop: loop, clock: .init(host: edges.host, receiver: receiverClock))
        }
        units = config.units
        let endpoints = Endpoints(
            config.endpoints, depths: current.depths, inFlight: inFlight, outbox: uuid, recorder: recorder,
            uplink: uplink, log: log, loop: loop, notes: ContactNotes(edges.contacts), makeCredentials: makeCredentials)
        uplink.listen { [weak endpoints] news in
            for delivery in endpoints?.deliveries ?? [] { delivery.heard(news) }
        }
        // The lists that were kept before the tracker: it knows from its last run in which of their fences the asset is.
        let places = PlaceLists(config, uplink: uplink, log: log, loop: loop, makeCredentials: makeCredentials)
        var tracking = config.tracking
        tracking.geofences.fences = places.fences.joined
        let pipeline = Pipeline(
            source: edges.source ?? config.source.makeSource(memory: memory.source),
            receiver: config.source.receiver, memory: memory.source,
            clock: receiverClock,
            run: TrackerRun(
                tracker: Tracker(settings: tracking, restored: memory.tracker), timetable: config.timetable),
            recorder: recorder, deliveries: endpoints.deliveries, log: log, loop: loop)
        (self.recorder, self.uplink, self.endpoints, self.pipeline) = (recorder, uplink, endpoints, pipeline)
        self.places = places
        channels = config.channels.map { channel in
            ChannelDelivery(
                channel, outbox: uuid,
                earlier: .init(seen: memory.channels.seen(on: channel.endpoint.settings.name), rows: unseen),
                uplink: uplink, log: log, loop: loop, makeCarrier: edges.makeCarrier,
                makeCredentials: makeCredentials)
        }

        beacons = BeaconWatch(
            places.joined(with: config.beacons), stored: memory.beacons, log: log, loop: loop
        ) { [unowned pipeline] in pipeline.handle($0, at: $1, stored: true) }
        networks = NetworkWatch(config.context, log: log, loop: loop)
        orders = OrderHandler(recorder: recorder, deliveries: endpoints.deliveries, loop: loop)
        flushes = FlushHandler(
            pipeline: pipeline, recorder: recorder, deliveries: endpoints.deliveries, uplink: uplink, loop: loop)
        listRefreshes = ListRefreshHandler(places: places, loop: loop)
        supervision = Supervision(environment, summaryInterval: options.summaryInterval, log: log, loop: loop)
        shutdown = Shutdown(
            linger: options.linger, pipeline: pipeline, recorder: recorder, deliveries: endpoints.deliveries,
            notifier: supervision.notifier, log: log, loop: loop)
        configuration = ConfigurationInForce(
            config, effective ?? EffectiveConfiguration(), reread: options.reread,
            keeper: LastGoodKeeper(options.lastGood, log: log, loop: loop), readsLater: edges.readsLater,
            pipeline: pipeline, recorder: recorder, endpoints: endpoints, channels: channels, beacons: beacons,
            networks: networks, places: places,
            shutdown: shutdown, supervision: supervision, log: log, loop: loop)
        connect(receiverClock)
        if let remote = config.remote, let start = options.remote {
            connect(remote, start, environment, edges.remoteFile, receiverClock)
        }
        if edges.isDaemon { try attach(to: config) }
        log.started(
            version: AgentVersion.current, source: pipeline.source.name,
            endpoints: (config.endpoints + config.channels.map(\.endpoint)).map(\.settings.name),
            waiting: current.rows)
    }

    /// Logs to where the supervisor wants it: the journal, or standard error.
    /// - Throws: `StartupError`, which has been logged.
    package convenience init(
        _ loaded: LoadedConfiguration, environment: [String: String], options: Options
    ) throws(StartupError) {
        let destination = LogDestination.detect(environment: environment)
        var logger = Logger(label: "waypost") { destination.makeHandler(label: $0) }
        logger.logLevel = loaded.config.log.level
        let log = AgentLog(logger: logger, positions: false)
        for warning in loaded.warnings { log.warning("\(warning)") }
        do throws(StartupError) {
            try self.init(
                config: loaded.config, effective: loaded.effective, environment: environment, logger: logger,
                options: options)
            configuration.started(loaded)
        } catch {
            log.startupFailed(error)
            throw error
        }
    }

    /// Logs why there is no configuration to run with, as entries that can be found by their severity and MESSAGE_ID.
    /// - Returns: false where standard error does not go to the journal: nothing was logged.
    package static func journal(_ problems: ConfigurationProblems, environment: [String: String]) -> Bool {
        let destination = LogDestination.detect(environment: environment)
        guard case .journal = destination else { return false }
        let log = AgentLog(logger: Logger(label: "waypost") { destination.makeHandler(label: $0) }, positions: false)
        for problem in problems.warnings { log.warning("\(problem)") }
        for problem in problems.problems { log.startupFailed(StartupError("\(problem)", exitCode: 78)) }
        return true
    }

    private static func openOutbox(
        _ config: AgentConfig, _ edges: Edges, _ log: AgentLog
    ) throws(StartupError) -> sending Outbox {
        let newUUID: [UInt8]
        do throws(SystemError) { newUUID = try edges.host.randomBytes(16) } catch { throw StartupError(error) }
        let outbox: Outbox
        do throws(OutboxError) {
            outbox = try Outbox(
                config.outbox.settings, endpoints: config.endpoints.map(\.settings),
                bootID: edges.bootID, newUUID: newUUID, worksWithoutDisk: true, locksExclusively: true,
                medium: edges.medium)
        } catch { throw StartupError(error) }
        let recovery = outbox.current.recovery
        if recovery.corruptRecovered > 0 { log.queueSetAside(recovery) }
        if let words = outbox.current.replacement.words { log.queueReplaced(words) }
        if !recovery.isSalvaging { log.queueMisses(recovery) }
        for removed in outbox.current.removed { log.keptForRemoved(endpoint: removed.name, removed.rows) }
        for depth in outbox.current.depths { log.moved(depth) }
        return outbox
    }

    private static func trustedTime(
        _ receiverClock: ReceiverClock, _ host: any Host, at now: EventTime
    ) -> ClosedRange<UTCTime>? {
        receiverClock.trustedTime(at: now, hostMs: synchronisedMs(host))
    }

    private static func synchronisedMs(_ host: any Host) -> Int64? {
        host.isClockSynchronised ? host.wallClockMs : nil
    }

    /// Lets a server do what the configuration allows it.
    private func connect(
        _ config: RemoteConfig, _ start: RemoteStart, _ environment: [String: String], _ file: StateFile?,
        _ receiverClock: ReceiverClock
    ) {
        guard let delivery = endpoints.deliveries.first(where: { $0.settings.name == config.endpoint }) else { return }
        remote = RemoteAccess(
            config, start, environment: environment, file: file, delivery: delivery, configuration: configuration,
            pipeline: pipeline, uplink: uplink, log: log, loop: loop,
            trustedTime: { [unowned self] now in Self.trustedTime(receiverClock, loop.host, at: now) },
            commandTime: { [unowned self] now in
                receiverClock.uncontradictedTime(at: now, hostMs: Self.synchronisedMs(loop.host))
            },
            carryOut: { [unowned self] in carryOut($0, at: $1, $2) })
    }

    /// Ties the parts' events together.
    private func connect(_ receiverClock: ReceiverClock) {
        recorder.snapshot = { [unowned self] in
            PartStates(
                tracker: pipeline.tracker.state.bytes, source: pipeline.memory.bytes,
                channels: ChannelMemory(channels)?.bytes, beacons: beacons.memory?.bytes)
        }
        recorder.beforeCommit = { [unowned self] now in
            for delivery in endpoints.deliveries { delivery.commitComes(at: now) }
        }
        recorder.trustedTime = { [unowned self] now in
            Self.trustedTime(receiverClock, loop.host, at: now)?.lowerBound
        }
        recorder.committed = { [unowned self] reply, forms, now in committed(reply, forms, at: now) }
        recorder.refused = { [unowned self] forms, now in
            for delivery in endpoints.deliveries { delivery.refused(forms, at: now) }
            statusChanged()
        }
        for delivery in endpoints.deliveries {
            delivery.positions = { [unowned self] in pipeline.positions }
            delivery.changed = { [unowned self] in
                flushes.uploadEnded(at: loop.now)
                statusChanged()
                shutdown.progressed(at: loop.now)
            }
        }
        pipeline.changed = { [unowned self] in
            statusChanged()
            let tracker = pipeline.tracker
            beacons.trackingChanged(isParked: !tracker.isMoving, isInHours: tracker.inHours, at: loop.now)
            for delivery in endpoints.deliveries {
                delivery.movementChanged(tracker.isMoving)
                delivery.hoursChanged(tracker.inHours)
            }
        }
        places.fences.itemsChanged = { [unowned self] in pipeline.handle(.fencesChanged($0), at: $1, stored: true) }
        places.beacons.itemsChanged = { [unowned self] in beacons.regionsChanged($0, at: $1) }
        places.changed = { [unowned self] in statusChanged() }
        for channel in channels {
            channel.changed = { [unowned self] in statusChanged() }
            channel.subscriberChanged = { [unowned self] in pipeline.handle(.subscriberChanged($0), at: $1) }
        }
        for channel in channels { pipeline.recorded.append { [unowned channel] in channel.recorded($0, at: $1) } }
        pipeline.heard = { [unowned self] fix, time, now in
            for channel in channels { channel.received(fix, time: time, at: now) }
        }
        pipeline.network = { [unowned self] in networks.context }
        pipeline.resolutionsChanged = { [unowned self] now in follow(at: now) }
        pipeline.ended = { [unowned self] now in shutdown.drain(at: now) }
        supervision.report = { [unowned self] now in report(at: now) }
        supervision.onWatchdogBeat = { [unowned self] now in host?.loopWoke(at: now) }
    }

    /// Listens on the control socket, and for what happens on this host.
    private func attach(to config: AgentConfig) throws(StartupError) {
        do throws(SystemError) {
            try listen(config.control)
            host = try HostWatch(
                power: config.powerSettings, wakeInterval: supervision.interval, log: log, loop: loop,
                handlers: .init(
                    signal: { [unowned self] in received(signal: $0, at: $1) },
                    device: { [unowned self] in pipeline.deviceChanged($0, at: $1) },
                    power: { [unowned self] in pipeline.powerRead($0, at: $1) },
                    links: { [unowned self] in linksChanged(at: $0) },
                    clock: { [unowned self] in clockWasSet(at: $0) }))
            configuration.host = host
            let metrics = Metrics(hostName: HostIdentity.hostName(), log: log, loop: loop) { [unowned self] in
                report(at: loop.now).status
            }
            metrics.reload(config.metrics, at: loop.now)
            (self.metrics, configuration.metrics) = (metrics, metrics)
        } catch {
            recorder.close(timeout: Shutdown.diskLimit)
            throw error.code == EADDRINUSE
                ? StartupError("\(error): another waypost uses it", exitCode: 75)
                : StartupError("\(error); set [control] socket to a path in a directory of this user", exitCode: 73)
        }
    }

    private func listen(_ settings: AgentConfig.ControlConfig) throws(SystemError) {
        var group: gid_t?
        if let name = settings.group {
            guard let entry = getgrnam(name) else { throw SystemError("group \(name) of [control]", code: ENOENT) }
            group = entry.pointee.gr_gid
        }
        control = try ControlServer(path: settings.socket, group: group, loop: loop) {
            [unowned self] request, ticket throws(ControlError) in try answer(request, ticket)
        }
    }

    /// Serves until SIGTERM, or with a file until it is read and the queue is empty.
    /// - Returns: how many locations the disk did not take in the end; they are lost.
    /// - Throws: `SystemError` when waiting for events fails.
    package func run() throws(SystemError) -> Int {
        start()
        // Most of what starting needs is not needed again: the memory is better used for something else.
        _ = waypost_unmap_code()
        waypost_trim_heap()
        try loop.run()
        return end()
    }

    package func start() {
        let now = loop.now
        supervision.start(at: now)
        // Before the receiver is opened: what is plugged in between would be missed.
        host?.watchDevices(at: now)
        pipeline.start(at: now)
        beacons.start(at: now)
        networks.start(at: now)
        host?.watchLinks()
        host?.watchClock()
        // The boot clock is the uptime: only just after boot may a whole fleet be starting.
        let sinceBoot = now < EventTime.zero + Self.hostStart
        for delivery in endpoints.deliveries { delivery.hoursChanged(pipeline.tracker.inHours) }
        endpoints.start(sinceBoot: sinceBoot, at: now)
        if sinceBoot { for channel in channels { channel.startedWithHost(at: now) } }
        for delivery in endpoints.deliveries { delivery.step(at: now) }
        places.start(sinceBoot: sinceBoot, at: now)
        remote?.start(at: now)
        follow(at: now)
    }

    /// Viewers see the trackables that there are.
    private func follow(at now: EventTime) {
        for channel in channels { channel.follow(pipeline.tracker.snapshot.trackables, at: now) }
    }

    /// Takes it down after the loop has stopped.
    /// - Returns: how many locations the disk did not take in the end; they are lost.
    package func end() -> Int {
        pipeline.close()
        remote?.close()
        host?.stop()
        beacons.stop()
        networks.stop()
        for channel in channels {
            // That nobody watches any more is no news about the asset.
            channel.subscriberChanged = { _, _ in }
            channel.close()
        }
        places.close()
        uplink.close()
        control?.close()
        metrics?.close()
        recorder.close(timeout: Shutdown.diskLimit / 2)
        log.stopped(waiting: max(0, recorder.latest.rows - recorder.latest.unstored))
        if recorder.held > 0 { log.lost(recorder.held, because: recorder.lastError?.description) }
        return recorder.held
    }

    private func received(signal: Int32, at now: EventTime) {
        switch signal {
        case SIGTERM: shutdown.stop("SIGTERM", at: now)
        case SIGINT: shutdown.stop("SIGINT", at: now)
        case SIGHUP:
            pipeline.retryNow(at: now)
            configuration.reloadSoon(at: now)
        default: break
        }
    }

    private func committed(_ reply: CommitReply, _ forms: [FormRequest], at now: EventTime) {
        for delivery in endpoints.deliveries {
            delivery.committed(reply, forms, at: now)
            let name = delivery.settings.name
            if reply.wasFoundLate || reply.released.contains(name),
                let depth = reply.depths.first(where: { $0.endpoint == name })
            {
                delivery.found(depth)
                log.moved(depth)
            }
        }
        // What was driven before this start counts as well.
        if let found = reply.foundState.flatMap(StoredState.init(bytes:)), found.odometer > 0 {
            let metres = found.odometer + pipeline.tracker.snapshot.odometer
            pipeline.handle(.odometerSet(metres: metres), at: now, stored: true)
        }
        pipeline.rowsStored(at: now)
        // A commit that formed no batch may end a flush too.
        flushes.uploadEnded(at: now)
        shutdown.progressed(at: now)
    }

    private func statusChanged() {
        guard shutdown.isServing else { return }
        supervision.statusChanged()
        problemReports.statusChanged()
    }

    func linksChanged(at now: EventTime) {
        // Before anybody uses what goes with them.
        uplink.linksChanged(at: now)
        endpoints.linksChanged(at: now)
        for channel in channels { channel.linksChanged(at: now) }
        networks.linksChanged(at: now)
        places.linksChanged(at: now)
        remote?.settings.linksChanged(at: now)
    }

    /// The wall clock of this host was set.
    func clockWasSet(at now: EventTime) { for delivery in endpoints.deliveries { delivery.clockWasSet(at: now) } }

    func report(at now: EventTime) -> StatusReport {
        StatusReport(
            now: now, startedAt: startedAt, wakeups: loop.wakeups,
            isClockSynchronised: loop.host.isClockSynchronised, units: units, pipeline: pipeline, recorder: recorder,
            deliveries: endpoints.deliveries, channels: channels, places: places,
            sent: (uplink as? LoopedUplink)?.counters ?? HTTPUplink.Counters(), supplies: host?.supplies,
            beacons: beacons.status(at: loop.now),
            configurationProblem: configuration.problem, configurationOrigin: configuration.origin,
            metricsProblems: metrics?.problems ?? [], remote: remote?.status(withKeys: false, at: now))
    }
}
