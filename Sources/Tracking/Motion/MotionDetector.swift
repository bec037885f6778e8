import Positioning

/// Decides whether the asset moves or is parked, from fixes, deadlines and the word of the user.
///
/// Deadlines run on event time: a receiver that falls silent while the asset stands does not delay the stop.
public struct MotionDetector: Sendable {
    public enum State: Hashable, Sendable {
        /// No fix yet. Leaves to settling with the first one.
        case waiting
        /// The first place is being found; a cold start is 30–130 m off. Leaves to stationary when half a minute of
        /// accurate fixes is seen, to moving on evidence.
        case settling
        /// Parked; the reported anchor does not move. Leaves to moving when the fixes leave the fence with evidence, when
        /// they are beyond the backup radius, or by `pace` or power.
        case stationary
        /// On a trip. Leaves to stopping when the vector speed over 5 s is still, to stationary by `pace` or when no fix
        /// was believed for a long time.
        case moving
        /// A halt within a trip, announced to nobody. Leaves to moving on evidence counted from its beginning, to
        /// stationary when it has lasted for the stop timeout.
        case stopping(since: Moment)
    }

    /// An instant on both clocks.
    public struct Moment: Hashable, Sendable {
        public var at: EventTime
        public var time: UTCTime
    }

    struct Primed: Sendable {
        var until: EventTime
        var reason: MotionReason
    }

    /// A halt that was thought to have ended.
    struct Former: Sendable {
        var since: Moment
        var anchor: StoredState.Anchor
        var creep: CreepLog
        var resumed: EventTime
    }

    /// What an observation came to.
    enum Transition: Sendable {
        /// The first place was found.
        case settled(MotionReason)
        case departed(MotionReason)
        /// On a trip because someone says so: nothing before this instant belongs to it.
        case departedAtOnce(MotionReason)
        /// moving → stopping.
        case halted
        /// Still stopping, but elsewhere: a jam crept on, and the halt counts from its last creep.
        case crept(from: StoredState.Anchor)
        /// stopping → moving.
        case resumed(from: Moment)
        /// Still stopping, and since before the last resumption, which was noise.
        case stoodOn
        /// Parked since the standstill.
        case stopped(MotionReason, standstill: UTCTime)
        /// Parked and left again while nobody looked: both changes at once.
        case stoppedAndDeparted(standstill: UTCTime)
    }

    var settings: Settings {
        didSet { noFixTimeout = Nanoseconds(settings.noFixTimeout) }
    }
    var noFixTimeout: Nanoseconds
    internal(set) public var state: State
    /// The parking place as recorded; while stopping the place of the halt.
    var anchor: StoredState.Anchor?
    /// Follows the slow component of the receiver's error, so that the fence stays around the fixes.
    var fenceCentre: Coordinate?
    var window = EvidenceWindow()
    var noise = SpeedNoise()
    /// The numbers of the last decision.
    var evidence = MotionEvidence()
    /// A fix of the last look was beyond the fence by more than its accuracy, or the window shows movement.
    var isRestless = false
    /// External power went off then, and nothing has moved since.
    var powerOff: EventTime?
    /// Another source told movement while parked: until then a little evidence suffices.
    var primed: Primed?
    /// The last departure that was told and not seen: silence before it is none of the trip's.
    var toldDeparture: Moment?

    var lastFix: Moment?
    var lastCoordinate: Coordinate?
    var warmUntil = EventTime(nanoseconds: .min)
    private var firstSettling: EventTime?
    var place = PlaceEstimate(countMax: 64)
    /// The creeps within the halt, and where the asset has stood since the last one.
    var creep = CreepLog()
    var placeAfterCreep = PlaceEstimate(countMax: 64)
    var former: Former?
    var chain = HaltChain()
    /// Halts in a row that lie a few metres apart.
    var queueing = 0
    /// Metres; the longest path in the window lately, whatever the positions say: since an instant, and for as long before.
    var path = (before: 0.0, now: 0.0, since: EventTime.zero)
    var outsidePlace = PlaceEstimate(countMax: 128)
    var surging = Persistence()
    var beyondFence = Persistence()
    var outsideFence = Persistence()
    var beyondBackup = Persistence()
    var outsideOnly = Persistence()
    var outsideWithHint = Persistence()
    private var settlingFixes = 0
    var lastDrift: EventTime?
    private var lastNoise: EventTime?
    var drift = PlanePoint.zero
    /// Beginning of the halt, or else the last fix, before a restart.
    var restoredStandstill: UTCTime?

    /// Seconds without a fix after which a receiver starts anew and is first off the place.
    static let coldAfter = 60.0
    /// Seconds for which it is.
    private static let warmUp = 30.0
    /// m/s of a single fix with which a halt begins: a speed that is filtered over a second has not come to rest with the
    /// wheels.
    private static let quietSpeed = 0.9
    /// m/s of a single fix below which the metres before a halt was seen were noise; above, it was coming to rest.
    static let noiseSpeedMax = 0.6
    /// Seconds into a halt from which records carry its place.
    static let holdAfter = 2.0
    /// Metres of agreed movement that a parked receiver seldom shows.
    static let restlessEvidence = 3.0
    /// Metres beyond the radius that a first fix after a gap may be off.
    static let gapMargin = 20.0

    init(settings: Settings, restored: StoredState?) {
        self.settings = settings
        noFixTimeout = Nanoseconds(settings.noFixTimeout)
        state = .waiting
        guard let restored, restored.announced, let last = restored.lastFix else { return }
        state = restored.moving ? .moving : .stationary
        anchor = restored.anchor
        fenceCentre = restored.fenceCentre ?? restored.anchor?.coordinate
        lastCoordinate = last.coordinate
        if state == .stationary, anchor == nil {
            anchor = StoredState.Anchor(coordinate: last.coordinate, accuracy: last.accuracy)
            fenceCentre = last.coordinate
        }
    }

    /// The first motion change was announced.
    var hasPlace: Bool { state != .waiting && state != .settling }

    var isMoving: Bool {
        switch state {
        case .moving, .stopping: true
        case .waiting, .settling, .stationary: false
        }
    }

    /// - Parameter silence: seconds since the last believed fix, across a restart too; nil for the first one ever.
    mutating func observe(
        _ fix: Fix, time: UTCTime, at: EventTime, plane: LocalPlane, interval: Double, silence: Double?
    ) -> Transition? {
        let previous = lastFix
        let previousCoordinate = lastCoordinate
        let unseen = toldDeparture.flatMap { told in silence.map { min($0, at.seconds(since: told.at)) } } ?? silence
        if silence ?? .infinity >= Self.coldAfter { warmUntil = at + .seconds(Self.warmUp) }
        window.append(fix, time: time, at: at, plane: plane, interval: interval)
        lastFix = Moment(at: at, time: time)
        lastCoordinate = fix.coordinate
        chain.note(fix.coordinate, at: at)
        evidence = MotionEvidence(
            evidence: window.evidence, distance: 0, speed: window.vectorSpeed, accuracy: fix.horizontalAccuracy)

        if isMoving, let silence = unseen, let previousCoordinate, silence >= Self.coldAfter,
            silence >= settings.stopTimeout.inSeconds, !settings.disableStopDetection,
            let transition = judgeGap(
                fix, time: time, silence: silence, from: previousCoordinate, previous: previous, plane: plane)
        {
            return transition
        }
        switch state {
        case .waiting, .settling:
            return settle(fix, at: at, silence: silence ?? 0, interval: interval)
        case .stationary:
            return watchFence(fix, at: at, plane: plane)
        case .moving:
            return watchSpeed(fix, at: at)
        case .stopping(let since):
            return watchHalt(since, fix, time: time, at: at, silence: silence ?? 0, plane: plane)
        }
    }

    /// Evidence from before does not count any more: the asset is elsewhere, or the clock is.
    mutating func forgetEvidence() {
        window.clear()
        resetPersistence()
    }

    /// The first place is sought again; one that was found stays.
    mutating func beginAnew() {
        if state == .settling { state = .waiting }
        firstSettling = nil
    }

    private mutating func settle(_ fix: Fix, at: EventTime, silence: Double, interval: Double) -> Transition? {
        state = .settling
        // After a gap the receiver starts anew, and so does the search for the place.
        let start = silence <= max(Self.coldAfter, 3 * interval) ? firstSettling ?? at : at
        if start == at {
            place.reset()
            settlingFixes = 0
        }
        firstSettling = start
        beyondFence.observe(window.evidence >= settings.startEvidence, at: at)
        if beyondFence.holds(settings.consecutiveFixes, for: settings.motionTriggerDelay) { return depart(.speed) }

        let waited = at.seconds(since: start)
        let accuracy = fix.horizontalAccuracy ?? 0
        place.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        settlingFixes += 1
        // A receiver that never gets accurate has a place too, in the end.
        let accurate = accuracy <= min(50, settings.anchorAccuracy) || waited >= 300
        let calm = settlingFixes >= 30 && waited >= 24 && window.evidence < Self.restlessEvidence
        guard accurate, calm || (settlingFixes >= 3 && waited >= 60) else { return nil }
        anchor = place.median()
        return settled(.start)
    }

    mutating func settled(_ reason: MotionReason) -> Transition {
        park()
        return .settled(reason)
    }

    /// - Parameter told: now.
    mutating func departAtOnce(_ reason: MotionReason, told: Moment?) -> Transition {
        _ = depart(reason)
        toldDeparture = told
        window.clear()
        return .departedAtOnce(reason)
    }

    mutating func depart(_ reason: MotionReason) -> Transition {
        state = .moving
        powerOff = nil
        primed = nil
        toldDeparture = nil
        isRestless = false
        former = nil
        chain.clear()
        resetPersistence()
        return .departed(reason)
    }

    private mutating func watchSpeed(_ fix: Fix, at: EventTime) -> Transition? {
        // What was lost in a halt and then driven without is no sign at the next one.
        if window.evidence >= settings.resumeEvidence { powerOff = nil }
        guard !settings.disableStopDetection, let speed = window.vectorSpeed, speed < settings.stillSpeed else {
            return nil
        }
        let run = window.quietRun(below: Self.quietSpeed, back: 6)
        guard let first = run.first else { return nil }
        state = .stopping(since: Moment(at: first.at, time: first.time))
        outsidePlace.reset()
        path = (before: 0, now: 0, since: at)
        placeAfterCreep.reset()
        place.reset()
        for entry in run where isAnchorable(entry.accuracy, at: entry.at) {
            place.add(entry.coordinate, accuracy: entry.accuracy, at: entry.at)
        }
        anchor =
            place.median() ?? StoredState.Anchor(coordinate: first.coordinate, accuracy: first.accuracy)
        creep.begin(at: anchor?.coordinate ?? first.coordinate)
        noteQueue(since: first.at)
        chain.halted(since: Moment(at: first.at, time: first.time), timeout: settings.stopTimeout.inSeconds)
        window.forget(before: first.at)
        resetPersistence()
        return .halted
    }

    /// The asset stands: what the receiver says of its speed is noise.
    mutating func noteNoise(at: EventTime) {
        let elapsed = lastNoise.map { at.seconds(since: $0) } ?? 0
        lastNoise = at
        guard at >= warmUntil, let velocity = window.newestVelocity else { return }
        noise.observe(velocity.length, elapsed: elapsed)
    }

    func isAnchorable(_ accuracy: Double?, at: EventTime) -> Bool {
        (accuracy ?? 0) <= min(50, settings.anchorAccuracy) && at >= warmUntil
    }
}
