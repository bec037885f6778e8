import Configuration
import Network
import Profiles
import Queue
import Sensors
import WaypostControl
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// The daemon's health and counters at one instant, for `waypost status`, the service manager and the hourly summary.
struct StatusReport {
    /// The one word for all of it.
    enum Health: String {
        /// Everything works, or waits for nothing but time.
        case ok
        /// Something needs a look; nothing is lost.
        case degraded
    }

    let now: EventTime
    let startedAt: EventTime
    let wakeups: Int
    let isClockSynchronised: Bool
    let units: DisplayUnits
    let pipeline: Pipeline
    let recorder: Recorder
    let deliveries: [EndpointDelivery]
    let channels: [ChannelDelivery]
    /// nil = the configuration has none.
    let places: PlaceLists?
    let sent: HTTPUplink.Counters
    /// What power supplies said last, by name; nil = they are not read.
    let supplies: [(name: String, words: String)]?
    /// nil = none are looked for.
    let beacons: BeaconWatch.Status?
    let configurationOrigin: ConfigurationInForce.Origin
    /// nil where the configuration allows no settings from afar.
    let remote: RemoteStatus?
    /// In words.
    let problems: [String]

    /// - Parameters:
    ///   - configurationProblem: why the configuration in the file is not the one in force; nil = it is, or it was not read
    ///     since the start.
    ///   - metricsProblems: what keeps the metrics from being served or written.
    init(
        now: EventTime, startedAt: EventTime, wakeups: Int, isClockSynchronised: Bool, units: DisplayUnits = .metric,
        pipeline: Pipeline,
        recorder: Recorder, deliveries: [EndpointDelivery], channels: [ChannelDelivery] = [],
        places: PlaceLists? = nil, sent: HTTPUplink.Counters,
        supplies: [(name: String, words: String)]?, beacons: BeaconWatch.Status? = nil, configurationProblem: String?,
        configurationOrigin: ConfigurationInForce.Origin, metricsProblems: [String], remote: RemoteStatus? = nil
    ) {
        self.now = now
        self.startedAt = startedAt
        self.wakeups = wakeups
        self.isClockSynchronised = isClockSynchronised
        self.units = units
        self.pipeline = pipeline
        self.recorder = recorder
        self.deliveries = deliveries
        self.channels = channels
        self.places = places
        self.sent = sent
        self.supplies = supplies
        self.beacons = beacons
        self.configurationOrigin = configurationOrigin
        self.remote = remote
        problems =
            Self.problems(of: pipeline, at: now) + [configurationProblem].compactMap { $0 } + metricsProblems
            + [pipeline.source.remark.map { "receiver: \($0)" }, recorder.lastError?.description].compactMap { $0 }
            + [
                recorder.recovery.missingWords, recorder.loss(at: now),
                recorder.replacement(at: now).map { "queue: \($0)" },
                recorder.limitWords(at: now).map { "queue: \($0)" },
            ].compactMap { $0 }
            + recorder.latest.removed.map { Self.problem(of: $0, keeping: recorder.latest.unclaimed) }
            + deliveries.flatMap(Self.problems)
            + channels.flatMap(Self.problems) + [beacons?.problem.map { "beacons: \($0)" }].compactMap { $0 }
            + (places?.fetched ?? []).compactMap(Self.problem)
            + [remote?.problem.map { "settings from afar: \($0)" }].compactMap { $0 }
    }

    private static func problems(of pipeline: Pipeline, at now: EventTime) -> [String] {
        var problems: [String] = []
        switch pipeline.sourceState {
        case .receiving, .ended: if let stray = pipeline.source.stray { problems.append("receiver: \(stray)") }
        // A line that is closed on purpose is no problem.
        case _ where pipeline.receiverSleep != nil: break
        case .opening: problems.append("receiver: opening")
        case .silent: problems.append("receiver: silent" + (pipeline.source.silenceCause.map { ": \($0)" } ?? ""))
        case .unreadable: problems.append("receiver: \(pipeline.source.unreadableWords)")
        case .lost(let reason): problems.append("receiver: \(reason)")
        }
        problems += pipeline.trouble.problems(at: now)
        if let unbelieved = pipeline.reception.unbelieved, unbelieved.isLasting {
            problems.append("receiver: \(unbelieved.words)")
        }
        return problems
    }

    /// - Parameter kept: rows that no configured endpoint waits for.
    static func problem(of removed: RemovedEndpoint, keeping kept: Int) -> String {
        let others = kept - removed.rows
        return "queue: \(InWords.count(removed.rows, "location")) for endpoint \(removed.name), which is no longer "
            + "configured" + (others > 0 ? ", and \(others) recorded since that are kept with them: " : ": ")
            + "configure it again, or give them up with `waypost queue forget \(removed.name)`"
    }

    private static func problems(of delivery: EndpointDelivery) -> [String] {
        var problems: [String] = []
        let name = delivery.settings.name
        if let other = delivery.settings.clientIDSharedWith {
            problems.append("\(name): \(EndpointSettings.words(clientIDSharedWith: other))")
        }
        // What to do is the advice of the endpoint.
        if let problem = delivery.lastProblem {
            problems.append("\(name): \(problem)")
        } else if delivery.schedule.state != .active {
            let state = delivery.schedule.state
            problems.append("\(name): \(state.word)\(state.reason.map { " (\($0))" } ?? ""), nothing is sent")
        }
        return problems
    }

    /// `until 2026-03-01T08:00:00.000Z`; nil when the receiver is awake.
    private var sleep: String? {
        switch pipeline.receiverSleep {
        case nil: nil
        case .released: "until waypost pace moving"
        case .until(let until):
            if let time = pipeline.tracker.utc(at: until) {
                "until \(time.iso8601)"
            } else {
                "for another \(InWords.span(seconds: until.seconds(since: now)))"
            }
        }
    }

    var health: Health { problems.isEmpty ? .ok : .degraded }

    private var waiting: Int { deliveries.map(\.waiting).max() ?? recorder.depth }

    /// `moving, last fix 1 s ago, 12 waiting, last upload 40 s ago`
    var line: String {
        let snapshot = pipeline.tracker.snapshot
        var parts = [snapshot.motion.rawValue]
        if !snapshot.inHours { parts.append("outside the schedule") }
        parts.append(pipeline.reception.lastFixAt.map { "last fix \(age($0)) ago" } ?? "no fix yet")
        if let sleep { parts.append("receiver asleep \(sleep)") }
        parts.append("\(waiting) waiting")
        if let last = deliveries.compactMap(\.lastSuccess).max() { parts.append("last upload \(age(last)) ago") }
        return (parts + problems).joined(separator: ", ")
    }

    var summary: String {
        let tracked = pipeline.tracker.counters
        return "\(line); \(pipeline.source.counters.fixes) fixes, \(tracked.records) kept, "
            + "\(deliveries.map(\.counters.accepted).reduce(0, +)) accepted, "
            + "\(sent.bytesSent) bytes sent since start"
    }

    var fields: [String: String] {
        [
            "fixes": String(pipeline.source.counters.fixes), "kept": String(pipeline.tracker.counters.records),
            "queue_depth": String(waiting), "bytes_sent": String(sent.bytesSent),
            "trips": String(pipeline.tracker.counters.trips),
        ]
    }

    private func age(_ then: EventTime) -> String { InWords.span(seconds: now.seconds(since: then)) }

    private func seconds(_ then: EventTime?) -> Double? { then.map { now.seconds(since: $0) } }
}

// The reply to `status`.
extension StatusReport {
    private static let problemsMax = 20
    /// Names of many fences would fill the frame.
    private static let insideMax = 32
    /// The same of devices of gpsd.
    private static let devicesMax = 8

    var status: Status {
        var status = Status()
        status.version = AgentVersion.current
        status.units = units.rawValue
        status.health = health.rawValue
        status.line = line
        status.problems = problems.prefix(Self.problemsMax).map(Self.shortened)
        status.configuration = configurationOrigin.rawValue
        status.uptime = seconds(startedAt)
        status.wakeups = wakeups
        status.repeatedOnFreshConnection = sent.repeatedOnFreshConnection
        status.unaskedAnswers = sent.unaskedAnswers
        status.motion = motion
        status.source = source
        status.power = power
        status.beacons = beacons.map { BeaconStatus($0, sources: beaconSources) }
        status.queue = queue
        status.channels = channelStatus
        status.remote = remote
        status.endpoints = endpoints()
        return status
    }

    private var motion: MotionStatus {
        let snapshot = pipeline.tracker.snapshot
        let counters = pipeline.tracker.counters
        var motion = MotionStatus()
        motion.state = snapshot.motion.rawValue
        motion.since = snapshot.since?.iso8601
        motion.activity = snapshot.activity?.kind.rawValue
        motion.activityConfidence = snapshot.activity?.confidence
        motion.lastFix = snapshot.lastFixTime?.iso8601
        motion.lastFixAge = seconds(pipeline.reception.lastFixAt)
        motion.odometer = snapshot.odometer
        motion.gapMetres = snapshot.gapMetres
        motion.trips = counters.trips
        motion.stops = counters.stops
        motion.gaps = counters.gaps
        motion.admitted = counters.admitted
        motion.rejected = Named(
            FixFilter.Rejection.allCases.map { ($0.rawValue, counters.rejected($0)) }.filter { $0.1 > 0 })
        motion.kept = counters.records
        motion.subscribersRefused = counters.subscribersRefused
        motion.engine = snapshot.engineStatus
        motion.rule = snapshot.rule.rawValue
        motion.ruleBecause = snapshot.ruleReason.words
        motion.geofences = geofences(snapshot, counters)
        motion.trackables = snapshot.trackables.count
        motion.resolutions = Named(snapshot.trackables.lazy.map { ($0.id, $0.status) })
        if let boost = snapshot.boost {
            var status = BoostStatus()
            status.intervalMs = boost.intervalMs
            status.displacement = boost.displacement
            status.until = snapshot.boostUntil?.iso8601
            motion.boost = status
        }
        if let schedule = pipeline.schedule {
            var status = ScheduleStatus()
            status.open = snapshot.inHours
            status.until = schedule.until?.iso8601
            motion.schedule = status
        }
        return motion
    }

    private func geofences(_ snapshot: TrackerSnapshot, _ counters: TrackerCounters) -> GeofencesStatus {
        var geofences = GeofencesStatus()
        geofences.fences = snapshot.fences
        geofences.inside = snapshot.inside.count
        geofences.ids = Array(snapshot.inside.prefix(Self.insideMax))
        geofences.crossings = counters.crossings
        geofences.refused = snapshot.fencesRefused
        geofences.staysUntold = snapshot.staysUnrecorded
        geofences.sources = fenceSources
        return geofences
    }

    private var source: SourceStatus {
        let counters = pipeline.source.counters
        var source = SourceStatus()
        source.name = pipeline.source.name
        switch pipeline.sourceState {
        case _ where sleep != nil: (source.state, source.reason) = ("asleep", sleep)
        case .opening: source.state = "opening"
        case .receiving: source.state = "receiving"
        case .silent: source.state = "silent"
        case .unreadable: source.state = "unreadable"
        case .lost(let reason): (source.state, source.reason) = ("lost", reason)
        case .ended: source.state = "ended"
        }
        if let rate = pipeline.source.rate {
            var status = RateStatus()
            status.wanted = rate.wanted
            status.measured = rate.measured
            status.honoured = rate.isHonoured
            source.rate = status
        }
        source.lastEpochAge = seconds(pipeline.reception.lastEpochAt)
        source.bytes = counters.bytes
        source.sentences = counters.sentences
        source.fixes = counters.fixes
        source.voidEpochs = counters.voidEpochs
        source.checksumErrors = counters.checksumErrors
        source.tooLong = counters.tooLong
        source.badBytes = counters.badBytes
        source.strayBytes = counters.strayBytes
        source.stray = pipeline.source.stray
        source.badFields = counters.badFields
        source.late = counters.late
        source.dateless = counters.dateless
        source.repeats = counters.repeats
        source.disagreeing = counters.disagreeing
        source.datesRefused = counters.datesRefused
        source.fault = pipeline.trouble.fault
        source.dateFault = pipeline.trouble.dateFault
        source.baud = (pipeline.source as? SerialSource)?.foundSpeed?.baud
        source.unbelieved = pipeline.reception.unbelieved.flatMap { $0.isLasting ? $0.words : nil }
        // Those of a line that has fallen silent are no longer in the sky.
        if source.state == "receiving" {
            let satellites = pipeline.source.satellites
            source.satellitesUsed = pipeline.reception.satellitesUsed
            source.satellitesInView = satellites?.inView
            source.satellitesStrong = satellites?.strong
            source.bestCN0 = satellites?.best
            source.medianCN0 = satellites?.median
        }
        source.antenna = pipeline.source.antenna?.rawValue
        source.gpsd = (pipeline.source as? GPSDSource).flatMap(Self.gpsd)
        return source
    }

    /// nil unless connected.
    private static func gpsd(_ source: GPSDSource) -> GPSDStatus? {
        guard let version = source.version else { return nil }
        var gpsd = GPSDStatus()
        gpsd.release = version.release
        gpsd.protocolVersion = version.protocolVersion
        gpsd.device = source.device
        gpsd.devices = source.devices.prefix(devicesMax).map { device in
            var status = GPSDStatus.Device()
            status.path = device.path
            status.driver = device.driver
            status.active = device.isActive
            return status
        }
        return gpsd
    }

    private var power: PowerStatus {
        let snapshot = pipeline.tracker.snapshot
        var power = PowerStatus()
        power.battery = snapshot.power.batteryPercent
        power.charging = snapshot.power.charging
        power.external = snapshot.power.externalPower
        power.low = snapshot.batteryLow
        power.supplies = supplies.map { Named($0.map { ($0.name, $0.words) }) }
        return power
    }

    private var queue: QueueStatus {
        var queue = QueueStatus()
        queue.depth = recorder.depth
        queue.held = recorder.held
        queue.heldDropped = recorder.ringDropped
        queue.sentFromMemory = recorder.sentFromRAM
        queue.bytes = Int64(recorder.bytesOnDisk)
        queue.commits = recorder.counters.commits
        queue.commitLatency = recorder.counters.slowestCommit
        queue.commitsFailed = recorder.counters.commitsFailed
        queue.droppedOldest = recorder.counters.dropped.oldest
        queue.droppedNewest = recorder.counters.dropped.newest
        queue.thinned = recorder.counters.dropped.thinned
        queue.expired = recorder.counters.dropped.expired
        queue.eventsDropped = recorder.counters.dropped.events
        queue.corruptRecovered = recorder.recovery.corruptRecovered
        queue.salvaged = recorder.recovery.salvaged
        queue.salvageInversions = recorder.recovery.inversions
        queue.lostRows = recorder.recovery.lostRows
        queue.filesReplaced = recorder.latest.replacement.count
        queue.lastSeq = recorder.latest.lastSeq
        queue.clockUntrusted = isClockSynchronised ? 0 : 1
        queue.diskError = recorder.lastError?.description
        return queue
    }
}

extension CommitReply {
    /// Rows that no configured endpoint waits for.
    fileprivate var unclaimed: Int { max(0, rows - (depths.map { $0.waiting + $0.inFlight }.max() ?? 0)) }
}

extension Pipeline.Unbelieved {
    fileprivate var words: String { "none of the last \(fixes) fixes was believed: \(reason.advice)" }
}

extension FixFilter.Rejection {
    /// What is wrong with a receiver all of whose fixes are refused for this reason, and what to do.
    fileprivate var advice: String {
        switch self {
        case .position: "they have no valid position: give the antenna a view of the sky"
        case .simulated: "the receiver calls them simulated: set allow_simulated in [tracking] if that is meant"
        case .dateless: "the receiver gives no date: let it send RMC or ZDA sentences"
        case .duplicate: "they are all the same: restart the receiver"
        case .age: "their time does not advance: restart the receiver"
        case .accuracy:
            "they are less accurate than accuracy_limit in [tracking]: give the antenna a view of the sky, or raise it"
        case .impliedSpeed:
            "they jump farther than speed_limit in [tracking] allows: look for interference, or raise it"
        }
    }
}
