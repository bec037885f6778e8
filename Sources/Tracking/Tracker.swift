import Positioning

/// What a fix means: whether it is believed, whether the asset moves or is parked, and which fixes are kept.
///
/// Pure: it holds no clock, and the same events give the same effects, live and in replay. The caller feeds events in
/// order of event time, performs the effects in order, and sends `deadlineReached` when `nextDeadline` has come. In replay
/// and for a file each deadline that lies before the next epoch fires before it, and none after the last event.
public struct Tracker: Sendable {
    public struct Settings: Sendable {
        public var admission = FixFilter.Settings()
        public var motion = MotionDetector.Settings()
        public var receiver = ReceiverCycle.Settings()
        public var sampling = LocationSampler.Settings()
        public var resolution = ResolutionSettings()
        /// What is different while the asset moves; nil = nothing: as `sampling`, `resolution.default`,
        /// `admission.accuracyMax` and `motion.heartbeat` say.
        public var moving: MotionProfile?
        /// What is different while it is parked; nil = nothing: as while it moves.
        public var stationary: MotionProfile?
        /// A policy of the user's own; nil = the one that `resolution` describes. It stays in force when settings are
        /// reloaded, whatever the new ones say.
        public var policy: (any ResolutionPolicy)?
        public var geofences = GeofenceMonitor.Settings()
        /// At least one; ids are unique.
        public var trackables: [Trackable]
        /// Also record fixes that no trackable selected (`published` false, no trackable), for endpoints with
        /// `feed = "engine"`. The default is false.
        public var keepEngineFixes = false
        /// Record a summary (event `trip`) directly after each stop. The default is false.
        public var tripSummary = false
        /// When the battery is so low that somebody should hear of it.
        public var batteryAlarm = BatteryAlarm.Settings()

        public init(trackables: [Trackable]) { self.trackables = trackables }
    }

    /// What is kept for one trackable, in the order of the settings.
    struct Track: Sendable {
        var id: String
        var sampler: LocationSampler
        /// Time of the last record; nil before the first one.
        var recorded: UTCTime?
        /// What the sampler says to the fix at hand.
        var selection: LocationSampler.Selection?
    }

    /// A gap that is going on, or just ended.
    struct Gap: Sendable {
        var isOpen = false
        var recordedAt: EventTime?
        var recordedTime: UTCTime?
        /// Epochs without a believed fix since the last one.
        var voidEpochs = 0
        /// The newest of them: while they arrive there is a receiver, but no sky.
        var lastVoid: EventTime?
    }

    struct PendingPower: Sendable {
        var value: Bool
        var due: EventTime
    }

    var settings: Settings {
        didSet {
            profiles = Profiles(settings)
            (gapAfter, heartbeatEvery) = Self.times(settings, profiles)
        }
    }
    var profiles: Profiles
    /// nil before the first event.
    var profileChoice: ProfileChoice?
    /// Seconds.
    var gapAfter: Double
    var heartbeatEvery: Nanoseconds
    var now = EventTime(nanoseconds: .min)
    var hasStarted = false
    var filter: FixFilter
    var motion: MotionDetector
    var cycle: ReceiverCycle
    var board: ResolutionBoard
    var geofences: GeofenceMonitor
    var heldBack: [HeldBack] = []
    /// The odometer of the fix that is recorded, where that is not the last one.
    var pastOdometer: Double?
    /// Whether the asset moved when what is recorded now happened, where that is not as it is now.
    var pastMoving: Bool?
    /// What the last record told of the odometer.
    var recordedOdometer = 0.0
    var odometer: Odometer
    var ring: FixRing
    var interval = MeasuredInterval()
    var averageSpeed = AverageSpeed()
    var plane = LocalPlane(origin: Coordinate(latitudeE7: 0, longitudeE7: 0))
    var tracks: [Track]
    /// The last fix that was believed, in this run.
    var lastFix: Fix?
    var lastFixAt: EventTime?
    /// The same from the run before, until the first fix of this one.
    var restoredFix: StoredState.LastFix?
    var since: UTCTime?
    var trip: StoredState.Trip?
    /// Event time of the departure; after a restart not known before the first fix.
    var departedAt: EventTime?
    /// The receiver was released when the process before ended.
    var restoredRelease = false
    var halt: MotionDetector.Moment?
    /// Within the halt nothing was seen for so long that the way since is not known.
    var haltWasUnseen = false
    /// Seconds of the halt that ended last, as counted in the trip.
    var lastIdle = 0.0
    var gap = Gap()
    var power = PowerState()
    var pendingPower: PendingPower?
    var batteryAlarm: BatteryAlarm
    var lastRecordAt: EventTime?
    var hasFixSinceRecord = false
    var pendingPace: Pace?
    var boostUntil: EventTime?
    var windowOpen = true
    /// When its hours last began; nil = they did not in this run.
    var openedAt: EventTime?
    var sourceState = SourceState.opening
    /// The next fix begins a segment: it is recorded whatever the sampler says.
    var segmentReason: String?
    /// The last fix that the samplers took, while one of them may still keep it.
    var pending: PendingFix?
    /// When it must be kept even if no other one comes.
    var pendingDue: EventTime?
    /// Since when the samplers take the held position, and what waited then; nil while they take fixes as they come.
    var heldSince: UTCTime?
    var beforeHold: PendingFix?
    /// Time of the last fix that was recorded for `feed = "engine"` alone.
    var engineRecorded: UTCTime?
    /// What the samplers took, for a verification that does not trust them; nil, the default, = not told.
    package var samplingTrace: SamplingTrace?

    public internal(set) var counters = TrackerCounters()
    /// What external power will be said to be unless it changes back within moments; nil = it is as it was.
    public var awaitedPower: Bool? { pendingPower?.value }

    /// - Parameter restored: what a former run stored with its last record; nil, or not usable = a first start.
    public init(settings: Settings, restored: StoredState?) {
        let restored = restored.flatMap { $0.isUsable ? $0 : nil }
        self.settings = settings
        profiles = Profiles(settings)
        (gapAfter, heartbeatEvery) = Self.times(settings, profiles)
        filter = FixFilter(settings: settings.admission)
        motion = MotionDetector(settings: settings.motion, restored: restored)
        cycle = ReceiverCycle(settings: settings.receiver)
        board = ResolutionBoard(
            settings: settings.resolution, policy: settings.policy, trackables: settings.trackables)
        geofences = GeofenceMonitor(settings: settings.geofences, restored: restored)
        odometer = Odometer(metres: restored?.odometer ?? 0, gapMetres: restored?.gapMetres ?? 0)
        ring = FixRing(span: settings.motion.ring)
        tracks = settings.trackables.map { trackable in
            let recorded = restored?.recorded.first { $0.trackable == trackable.id }
            return Track(
                id: trackable.id,
                sampler: LocationSampler(settings: settings.sampling, selected: recorded?.selected),
                recorded: recorded?.time)
        }
        batteryAlarm = BatteryAlarm(isTold: restored?.batteryTold ?? false)
        if settings.motion.startMoving { pendingPace = .moving }
        guard let restored else { return }
        restoredFix = restored.lastFix
        since = restored.since
        trip = restored.trip
        restoredRelease = restored.released
        power = restored.power
        gap.recordedTime = restored.lastGap
        board.powerChanged(power)
        restoreProximity(restored)
    }

    private static func times(_ settings: Settings, _ profiles: Profiles) -> (Double, Nanoseconds) {
        (settings.motion.gapAfter.inSeconds, Nanoseconds(profiles.stationary.heartbeat))
    }

    /// - Parameter at: when it happened. Slightly older than the call before (an epoch is stamped with the arrival of its
    ///   first byte) counts as the same instant.
    /// - Returns: what should happen, in order: an announcement, then its location, then the fixes after it.
    public mutating func handle(_ event: TrackerEvent, at: EventTime) -> [Effect] {
        var effects: [Effect] = []
        now = max(now, at)
        if !hasStarted {
            hasStarted = true
            recompute(&effects)
            resumeReceiver(&effects)
        }
        if let boostUntil, boostUntil <= now { boostChanged(nil, &effects) }
        switch event {
        case .fixReceived(let fix):
            fixReceived(fix, &effects)
        case .noFix:
            counters.voidEpochs += 1
            noteVoid()
        case .sourceStateChanged(let state):
            sourceState = state
        case .externalPowerChanged(let value):
            externalPowerChanged(value, &effects)
        case .batteryChanged(let percent, let charging):
            batteryChanged(percent: percent, charging: charging, &effects)
        case .movementSourceChanged(_, let moving):
            movementSourceChanged(moving: moving, &effects)
        case .paceRequested(let pace):
            paceRequested(pace, &effects)
        case .panicRequested:
            panicRequested(&effects)
        case .fencesChanged(let fences):
            var changed = self.settings.geofences
            changed.fences = fences
            fencesChanged(changed, &effects)
        case .subscriberChanged(let change):
            subscriberChanged(change, &effects)
        case .engineSet(let resolution):
            board.constantEngine = resolution
            recompute(&effects)
        case .profileChanged(let boost):
            closeSegments(&effects)
            boostChanged(boost, &effects)
        case .settingsReloaded(let settings):
            reload(settings, &effects)
        case .timeWindowChanged(.tracking, let open):
            timeWindowChanged(open: open, &effects)
        case .timeWindowChanged(.hours(let hours), let open):
            board.hoursChanged(hours, open: open)
            recompute(&effects)
        case .refreshRequested:
            board.refresh()
            recompute(&effects)
        case .odometerSet(let metres):
            odometerSet(metres)
        case .deadlineReached:
            deadlineReached(&effects)
        case .shutdown:
            closeSegments(&effects)
        }
        return effects
    }

    /// UTC of an event time: the last dated fix plus the event time elapsed since. nil before the first dated fix of
    /// this run.
    public func utc(at: EventTime) -> UTCTime? {
        guard let lastFixAt, let time = lastFix?.time else { return nil }
        return time + at.duration(since: lastFixAt)
    }

    /// The earliest event time at which something is due without any event; nil = nothing is.
    public var nextDeadline: EventTime? {
        var next = EventTime(nanoseconds: .max)
        if let due = motion.nextDeadline, windowOpen { next = min(next, due) }
        if let due = gapDue { next = min(next, due) }
        if let due = heartbeatDue { next = min(next, due) }
        if let pendingPower { next = min(next, pendingPower.due) }
        if let boostUntil { next = min(next, boostUntil) }
        if let due = towDue { next = min(next, due) }
        if let due = cycle.nextDeadline { next = min(next, due) }
        if let due = board.nextDeadline { next = min(next, due) }
        if let pendingDue { next = min(next, pendingDue) }
        if let due = heldBackDue { next = min(next, due) }
        if !geofences.watches.isEmpty, let due = dwellDue { next = min(next, due) }
        return next.nanoseconds == .max ? nil : next
    }

    /// The cap while parked.
    var publishedCap: Duration? {
        let heartbeat = profiles.stationary.heartbeat
        return motion.isMoving || board.boost != nil || heartbeat <= .zero ? nil : heartbeat
    }

    mutating func recompute(_ effects: inout [Effect]) {
        chooseProfile(&effects)
        board.insideFencesChanged(Set(geofences.inside))
        board.motionChanged(motion.phase, speed: averageSpeed.value(at: now))
        board.recompute(cap: publishedCap, into: &effects)
        guard settings.receiver.sleepMoving, let engine = board.engine else { return }
        let interval = Duration.milliseconds(engine.intervalMs)
        perform(
            cycle.intervalChanged(interval, sleepMax: settings.motion.noFixTimeout / 2, at: now), &effects)
    }

    private mutating func reload(_ settings: Settings, _ effects: inout [Effect]) {
        closeSegments(&effects)
        let before = tracks
        self.settings = settings
        filter.settings = settings.admission
        motion.reload(settings.motion)
        reloadReceiver(&effects)
        ring.span = settings.motion.ring.inSeconds
        board.reload(settings: settings.resolution, trackables: settings.trackables)
        judgeProximity()
        tracks = settings.trackables.map { trackable in
            before.first { $0.id == trackable.id }
                ?? Track(id: trackable.id, sampler: LocationSampler(settings: settings.sampling), recorded: nil)
        }
        profileChoice = nil
        fencesChanged(settings.geofences, &effects)
        recompute(&effects)
    }
}
