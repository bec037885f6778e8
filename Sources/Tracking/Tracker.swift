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
        public var sampling = LocationSampler.Settings()
        public var resolution = ResolutionSettings()
        /// At least one; ids are unique.
        public var trackables: [Trackable]
        /// Also record fixes that no trackable selected (`published` false, no trackable), for endpoints with
        /// `feed = "engine"`. The default is false.
        public var keepEngineFixes = false
        /// Record a summary (event `trip`) directly after each stop. The default is false.
        public var tripSummary = false

        public init(trackables: [Trackable]) { self.trackables = trackables }
    }

    /// What is kept for one trackable, in the order of the settings.
    struct Track: Sendable {
        var id: String
        var sampler: LocationSampler
        /// Time of the last record; nil before the first one.
        var recorded: UTCTime?
    }

    /// A gap that is going on, or just ended.
    struct Gap: Sendable {
        var isOpen = false
        var recordedAt: EventTime?
        var recordedTime: UTCTime?
        /// Epochs without a believed fix since the last one: sentences arrive, but there is no sky.
        var voidEpochs = 0
    }

    struct PendingPower: Sendable {
        var value: Bool
        var due: EventTime
    }

    var settings: Settings {
        didSet { (gapAfter, heartbeatEvery) = Self.times(settings) }
    }
    /// Seconds.
    var gapAfter: Double
    var heartbeatEvery: Nanoseconds
    var now = EventTime(nanoseconds: .min)
    var hasStarted = false
    var filter: FixFilter
    var motion: MotionDetector
    var board: ResolutionBoard
    var odometer: Odometer
    var ring: FixRing
    var interval = MeasuredInterval()
    var plane = LocalPlane(origin: Coordinate(latitudeE7: 0, longitudeE7: 0))
    var tracks: [Track]
    /// The last fix that was believed, in this run.
    var lastFix: Fix?
    var lastFixAt: EventTime?
    /// The same from the run before, until the first fix of this one.
    var restoredFix: StoredState.LastFix?
    var since: UTCTime?
    var trip: StoredState.Trip?
    var halt: MotionDetector.Moment?
    /// Seconds of the halt that ended last, as counted in the trip.
    var lastIdle = 0.0
    var gap = Gap()
    var power = PowerState()
    var pendingPower: PendingPower?
    var lastRecordAt: EventTime?
    var hasFixSinceRecord = false
    var pendingPace: Pace?
    var boostUntil: EventTime?
    var windowOpen = true
    var sourceState = SourceState.opening
    /// The next fix begins a segment: it is recorded whatever the sampler says.
    var segmentReason: String?

    public internal(set) var counters = TrackerCounters()

    /// - Parameter restored: what a former run stored with its last record; nil, or not usable = a first start.
    public init(settings: Settings, restored: StoredState?) {
        let restored = restored.flatMap { $0.isUsable ? $0 : nil }
        self.settings = settings
        (gapAfter, heartbeatEvery) = Self.times(settings)
        filter = FixFilter(settings: settings.admission)
        motion = MotionDetector(settings: settings.motion, restored: restored)
        board = ResolutionBoard(settings: settings.resolution, trackables: settings.trackables)
        odometer = Odometer(metres: restored?.odometer ?? 0, gapMetres: restored?.gapMetres ?? 0)
        ring = FixRing(span: settings.motion.ring)
        tracks = settings.trackables.map { trackable in
            let recorded = restored?.recorded.first { $0.trackable == trackable.id }
            return Track(
                id: trackable.id,
                sampler: LocationSampler(settings: settings.sampling, selected: recorded?.selected),
                recorded: recorded?.time)
        }
        if settings.motion.startMoving { pendingPace = .moving }
        guard let restored else { return }
        restoredFix = restored.lastFix
        since = restored.since
        trip = restored.trip
        power = restored.power
        gap.recordedTime = restored.lastGap
        motion.restoredStandstill = restored.stopping ?? restored.lastFix?.time
        board.powerChanged(power)
    }

    private static func times(_ settings: Settings) -> (Double, Nanoseconds) {
        (settings.motion.gapAfter.inSeconds, Nanoseconds(settings.motion.heartbeat))
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
        }
        switch event {
        case .fixReceived(let fix):
            fixReceived(fix, &effects)
        case .noFix:
            counters.voidEpochs += 1
            gap.voidEpochs += 1
        case .sourceStateChanged(let state):
            sourceState = state
        case .externalPowerChanged(let value):
            externalPowerChanged(value, &effects)
        case .batteryChanged(let percent, let charging):
            power.batteryPercent = percent.map { max(0, min(100, $0)) }
            power.charging = charging
            board.powerChanged(power)
            recompute(&effects)
        case .movementSourceChanged:
            // Evidence of the receiver decides alone: the word of another source neither starts nor ends a trip.
            break
        case .paceRequested(let pace):
            paceRequested(pace, &effects)
        case .panicRequested:
            panicRequested(&effects)
        case .fencesChanged:
            break
        case .subscriberChanged(let change):
            board.subscriberChanged(change)
            recompute(&effects)
        case .engineSet(let resolution):
            board.constantEngine = resolution
            recompute(&effects)
        case .profileChanged(let boost):
            board.boost = boost?.resolution
            boostUntil = boost.map { now + min(max(.zero, $0.duration), Boost.durationMax) }
            recompute(&effects)
        case .settingsReloaded(let settings):
            reload(settings, &effects)
        case .timeWindowChanged(.tracking, let open):
            timeWindowChanged(open: open, &effects)
        case .timeWindowChanged(.hours, _):
            break
        case .deadlineReached:
            deadlineReached(&effects)
        case .shutdown:
            break
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
        return next.nanoseconds == .max ? nil : next
    }

    /// The cap while parked.
    var publishedCap: Duration? {
        motion.isMoving || settings.motion.heartbeat <= .zero ? nil : settings.motion.heartbeat
    }

    mutating func recompute(_ effects: inout [Effect]) {
        board.recompute(cap: publishedCap, into: &effects)
    }

    private mutating func reload(_ settings: Settings, _ effects: inout [Effect]) {
        let before = tracks
        self.settings = settings
        filter.settings = settings.admission
        motion.settings = settings.motion
        ring.span = settings.motion.ring.inSeconds
        board.reload(settings: settings.resolution, trackables: settings.trackables)
        board.powerChanged(power)
        tracks = settings.trackables.map { trackable in
            var track =
                before.first { $0.id == trackable.id }
                ?? Track(id: trackable.id, sampler: LocationSampler(settings: settings.sampling), recorded: nil)
            track.sampler.settings = settings.sampling
            return track
        }
        recompute(&effects)
    }
}
