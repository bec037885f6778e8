import CLinux
import Configuration
import ControlProtocol
import Delivery
import EventLoop
import Glibc
import Logging
import NMEA
import Outbox
import Positioning
import Sensors
import Systemd
import Tracking
import Uplink

/// The daemon: puts the parts together, runs the loop, and takes the parts down in reverse.
public final class Agent {
    /// What may differ from one start to the next without the configuration changing.
    public struct Options: Sendable {
        /// Read a file source from its beginning, and track it as if for the first time, odometer included.
        public var fromStart = false
        /// After the end of a file, wait no longer than this for the queue to drain; nil waits as long as it takes.
        public var linger: Duration?
        /// Between two lines that sum up.
        public var summaryInterval = Duration.seconds(3600)
        /// Reads the configuration anew; nil = a reload reads the secrets in files alone.
        public var reread: (@Sendable () throws(ConfigurationProblems) -> LoadedConfiguration)?

        public init() {}
    }

    /// Longest time between SIGTERM and exit that is spent on the network; the unit's TimeoutStopSec is longer.
    static let shutdownGrace = Duration.seconds(5)
    /// A host that runs for less has just started.
    static let hostStart = Duration.seconds(300)
    /// Longest time after that for a disk that is busy with the last commit.
    static let diskGrace = Duration.seconds(2)

    let log: AgentLog
    let loop: EventLoop
    let notifier: Notifier
    let recorder: Recorder
    let uplink: any CountingUplink
    let edges: Edges
    /// In the order of the endpoints of the configuration.
    var credentials: [EndpointCredentials]
    let makeCredentials: (EndpointConfig) -> EndpointCredentials
    let deliveries: [EndpointDelivery]
    let pipeline: Pipeline
    let orders: OperatorDesk
    let flushes: FlushDesk
    private var control: ControlServer?
    var links: LinkWatch?
    var devices: DeviceWatch?
    var power: PowerWatch?
    var watchdogAlarm: EventLoop.Alarm?
    var statusAlarm: EventLoop.Alarm?
    var summaryAlarm: EventLoop.Alarm?
    var limitAlarm: EventLoop.Alarm?
    var reloadAlarm: EventLoop.Alarm?
    var watchdog: Watchdog?
    private var signals: Int32 = -1
    let options: Options
    /// What is in force.
    var config: AgentConfig
    /// Its keys, as far as they are known.
    var effective = EffectiveConfiguration()
    var configurationProblem: String?
    /// Each reads files and compiles what stands in them.
    var reloads = TokenBucket(burst: 5, refill: .seconds(1))
    let startedAt: EventTime
    var statusSentAt = EventTime(nanoseconds: .min)
    var phase = Phase.running

    enum Phase {
        case running
        /// A file was read to its end; leaves to `stopping` when the queue is drained or lingering is over.
        case draining
        /// Everything is committed and the last attempt runs; leaves to `stopped`.
        case stopping
        case stopped
    }

    /// A disk that refuses does not keep it from starting.
    ///
    /// - Throws: `StartupError`: the outbox is another program's or newer, another instance runs, the socket cannot be made.
    public convenience init(
        config: AgentConfig, environment: [String: String], logger: Logger, options: Options = Options()
    ) throws(StartupError) {
        // A peer that goes away while we write to it shows as EPIPE, a file above the limit of the process as EFBIG.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        let edges: Edges
        do throws(SystemError) { edges = try .linux(environment: environment) } catch { throw StartupError(error) }
        try self.init(config: config, environment: environment, logger: logger, options: options, edges: edges)
    }

    /// - Throws: `StartupError`, as above.
    package init(
        config: AgentConfig, environment: [String: String], logger: Logger, options: Options, edges: Edges
    ) throws(StartupError) {
        self.edges = edges
        self.options = options
        self.config = config
        if let problem = config.tracking.problems.first { throw StartupError(problem, exitCode: 78) }
        log = AgentLog(logger: logger, positions: config.log.positions)
        notifier = Notifier(environment: environment)
        loop = EventLoop(on: edges.host)
        let now = loop.now
        startedAt = now

        // The outbox before the receiver: no fix may arrive that has nowhere to go.
        let outbox: Outbox
        let newUUID: [UInt8]
        do throws(SystemError) { newUUID = try edges.host.randomBytes(16) } catch { throw StartupError(error) }
        let inFlight: [Batch]
        do throws(OutboxError) {
            outbox = try Outbox(
                config.outbox.settings, endpoints: config.endpoints.map(\.settings),
                bootID: edges.bootID, newUUID: newUUID, worksWithoutDisk: true, isAlone: true, medium: edges.medium)
            inFlight = outbox.inFlight()
        } catch { throw StartupError(error) }
        let current = outbox.current
        if current.recovery.corruptRecovered > 0 { log.queueSetAside(current.recovery) }
        for (name, rows) in outbox.removedEndpoints where rows > 0 { log.keptForRemoved(endpoint: name, rows) }
        // A file that is read again is news to a tracker that has seen its end.
        let restored =
            options.fromStart && config.source.isFile
            ? nil : Self.decode(outbox.trackerState, "tracker state", log, StoredState.init(bytes:))
        let memory =
            options.fromStart
            ? nil : Self.decode(outbox.sourceState, "state of the source", log, SourceMemory.init(bytes:))

        let loop = self.loop
        do {
            let writer = try edges.makeWriter(outbox)
            recorder = try Recorder(
                settings: .init(
                    commitWindow: config.outbox.commitWindow, onFull: config.outbox.settings.onFull),
                writer: writer, current: current, log: log, loop: loop)
        } catch let error as OutboxError {
            throw StartupError(error)
        } catch let error as SystemError {
            throw StartupError(error)
        } catch {
            throw StartupError("\(error)", exitCode: 70)
        }

        do throws(HTTPUplink.SetupError) {
            uplink = try edges.makeUplink(loop: loop)
        } catch { throw StartupError(error.description, exitCode: 70) }

        let (recorder, uplink, log) = (self.recorder, self.uplink, self.log)
        let stateDirectory = config.outbox.directory
        let makeCredentials = { (endpoint: EndpointConfig) in
            EndpointCredentials(
                endpoint, environment: environment, stateDirectory: stateDirectory, uplink: uplink, log: log, loop: loop
            )
        }
        self.makeCredentials = makeCredentials
        let credentials = config.endpoints.map(makeCredentials)
        self.credentials = credentials
        let routes = zip(config.endpoints, credentials).map {
            EndpointDelivery.Route(settings: $0.settings, credentials: $1)
        }
        deliveries = routes.filter { $0.settings.backupFor == nil }.map { primary in
            let spares = routes.filter { $0.settings.backupFor == primary.settings.name }
            return EndpointDelivery(
                routes: [primary] + spares, depth: current.depths.first { $0.endpoint == primary.settings.name },
                batches: inFlight, uplink: uplink, recorder: recorder, log: log, loop: loop,
                jitter: { edges.host.jitter })
        }
        pipeline = Pipeline(
            source: edges.source ?? config.source.makeSource(memory: memory), memory: memory,
            run: TrackerRun(
                tracker: Tracker(settings: config.tracking, restored: restored), timetable: config.timetable),
            recorder: recorder, deliveries: deliveries, log: log, loop: loop)

        orders = OperatorDesk(recorder: recorder, deliveries: deliveries, loop: loop)
        flushes = FlushDesk(
            pipeline: pipeline, recorder: recorder, deliveries: deliveries, uplink: uplink, loop: loop)

        do throws(SystemError) {
            if edges.isDaemon {
                try listen(config.control)
                try watchSignals()
            }
        } catch {
            recorder.close(timeout: Self.diskGrace)
            throw error.code == EADDRINUSE
                ? StartupError("\(error): another waypost listens there", exitCode: 75)
                : StartupError("\(error); set [control] socket to a path in a directory of this user", exitCode: 73)
        }
        connect()
        watchdog = Watchdog(environment: environment, at: now.nanoseconds)
        if edges.isDaemon { power = makePowerWatch(config) }
        log.started(
            version: AgentVersion.current, source: pipeline.source.name,
            endpoints: config.endpoints.map { $0.settings.name }, waiting: current.rows)
    }

    /// Logs to where the supervisor wants it: the journal, or standard error.
    /// - Throws: `StartupError`, which has been logged.
    public convenience init(
        _ loaded: LoadedConfiguration, environment: [String: String], options: Options
    ) throws(StartupError) {
        let destination = LogDestination.detect(environment: environment)
        var logger = Logger(label: "waypost") { destination.makeHandler(label: $0) }
        logger.logLevel = loaded.config.log.level
        let log = AgentLog(logger: logger, positions: false)
        for warning in loaded.warnings { log.warning("\(warning)") }
        do throws(StartupError) {
            try self.init(config: loaded.config, environment: environment, logger: logger, options: options)
            effective = loaded.effective
        } catch {
            log.refused(error)
            throw error
        }
    }

    /// Logs why there is no configuration to run with, as entries that can be found by their severity and MESSAGE_ID.
    /// - Returns: false where standard error does not go to the journal: nothing was logged.
    public static func journal(_ problems: ConfigurationProblems, environment: [String: String]) -> Bool {
        let destination = LogDestination.detect(environment: environment)
        guard case .journal = destination else { return false }
        let log = AgentLog(logger: Logger(label: "waypost") { destination.makeHandler(label: $0) }, positions: false)
        for problem in problems.warnings { log.warning("\(problem)") }
        for problem in problems.problems { log.refused(StartupError("\(problem)", exitCode: 78)) }
        return true
    }

    /// Ties the parts' events together.
    private func connect() {
        recorder.snapshot = { [unowned self] in
            (pipeline.tracker.state.bytes, pipeline.memory.bytes)
        }
        recorder.trustedTime = { [unowned self] now in
            pipeline.trustedTime.time(
                at: now, hostMs: loop.host.isClockSynchronised ? loop.host.wallClockMs : nil)
        }
        recorder.committed = { [unowned self] reply, forms, now in
            for delivery in deliveries {
                delivery.committed(reply, forms, at: now)
                let name = delivery.settings.name
                if reply.wasFoundLate || reply.released.contains(name),
                    let depth = reply.depths.first(where: { $0.endpoint == name })
                {
                    delivery.found(depth)
                }
            }
            // What was driven before this start counts as well.
            if let found = reply.foundState.flatMap(StoredState.init(bytes:)), found.odometer > 0 {
                let metres = found.odometer + pipeline.tracker.snapshot.odometer
                pipeline.handle(.odometerSet(metres: metres), at: now, stored: true)
            }
            pipeline.recorderAdvanced(at: now)
            // A list without a batch ends a flush as well.
            flushes.uploadEnded(at: now)
            progress(at: now)
        }
        recorder.refused = { [unowned self] forms, now in
            for delivery in deliveries { delivery.refused(forms, at: now) }
            statusChanged()
        }
        for delivery in deliveries {
            delivery.changed = { [unowned self] in
                flushes.uploadEnded(at: loop.now)
                statusChanged()
                progress(at: loop.now)
            }
        }
        for (index, delivery) in deliveries.enumerated() {
            delivery.willForm = { [unowned self] now in
                for (other, joining) in deliveries.enumerated() where other != index { joining.mayJoin(at: now) }
            }
        }
        for credentials in credentials { connect(credentials) }
        pipeline.changed = { [unowned self] in statusChanged() }
        pipeline.ended = { [unowned self] now in drain(at: now) }
        watchdogAlarm = loop.alarm { [unowned self] now in beat(at: now) }
        statusAlarm = loop.alarm { [unowned self] now in sendStatus(at: now) }
        summaryAlarm = loop.alarm { [unowned self] now in summarise(at: now) }
        limitAlarm = loop.alarm { [unowned self] now in limitReached(at: now) }
        reloadAlarm = loop.alarm { [unowned self] now in reloadSoon(at: now) }
    }

    /// Serves until SIGTERM, or with a file until it is read and the queue is drained.
    /// - Returns: how many locations the disk did not take in the end; they are lost.
    /// - Throws: `SystemError` when the loop cannot wait any more.
    public func run() throws(SystemError) -> Int {
        start()
        // Most of what starting needs is not needed again: the memory is better used for something else.
        _ = waypost_unmap_code()
        try loop.run()
        return end()
    }

    package func start() {
        let now = loop.now
        notifier.ready(status: "starting")
        beat(at: now)
        summaryAlarm?.deadline = now + options.summaryInterval
        // Before the receiver is opened: what is plugged in between would be missed.
        if edges.isDaemon { watchDevices(at: now) }
        pipeline.start(at: now)
        watchLinks(at: now)
        for delivery in deliveries { delivery.step(at: now) }
    }

    /// Takes it down after the loop has stopped.
    /// - Returns: how many locations the disk did not take in the end; they are lost.
    package func end() -> Int {
        pipeline.close()
        power?.stop()
        devices?.stop()
        links?.stop()
        uplink.close()
        control?.close()
        recorder.close(timeout: Self.diskGrace / 2)
        if signals >= 0 { close(signals) }
        log.stopped(waiting: recorder.latest.rows)
        if recorder.held > 0 { log.lost(recorder.held, because: recorder.lastError?.description) }
        return recorder.held
    }

    func connect(_ credentials: EndpointCredentials) {
        credentials.receiverMs = { [unowned self] now in pipeline.receiverTime(at: now)?.milliseconds }
    }

    private func listen(_ settings: AgentConfig.ControlConfig) throws(SystemError) {
        var group: gid_t?
        if let name = settings.group {
            guard let entry = getgrnam(name) else { throw SystemError("group \(name) of [control]", code: ENOENT) }
            group = entry.pointee.gr_gid
        }
        control = try ControlServer(path: settings.socket, group: group, loop: loop) {
            [unowned self] request, ticket, writer throws(ControlError) in
            try answer(request, ticket, &writer)
        }
    }

    private func watchSignals() throws(SystemError) {
        signals = waypost_signalfd()
        guard signals >= 0 else { throw SystemError("signalfd") }
        try loop.watch(signals) { [unowned self] _, now in
            switch waypost_signalfd_read(signals) {
            case SIGTERM: stop("SIGTERM", at: now)
            case SIGINT: stop("SIGINT", at: now)
            case SIGHUP:
                pipeline.hurry(at: now)
                reloadSoon(at: now)
            default: break
            }
        }
    }

    // A value that cannot be read was written by another version; the queue itself is good, so go on without it.
    private static func decode<Value>(
        _ bytes: [UInt8]?, _ what: String, _ log: AgentLog, _ decode: ([UInt8]) -> Value?
    ) -> Value? {
        guard let bytes else { return nil }
        let value = decode(bytes)
        if value == nil { log.warning("the stored \(what) cannot be read and is begun anew") }
        return value
    }
}
