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

    /// What an observation came to.
    enum Transition: Sendable {
        /// The first place was found.
        case settled(MotionReason)
        case departed(MotionReason)
        /// On a trip because someone says so: nothing before this instant belongs to it.
        case departedAtOnce(MotionReason)
        /// moving → stopping.
        case halted
        /// stopping → moving.
        case resumed(from: Moment)
        /// Parked since the standstill.
        case stopped(MotionReason, standstill: UTCTime)
        /// Parked and left again while nobody looked: both changes at once.
        case stoppedAndDeparted(standstill: UTCTime)
    }

    var settings: Settings
    internal(set) public var state: State
    /// The parking place as recorded; while stopping the place of the halt.
    var anchor: StoredState.Anchor?
    /// Follows the slow component of the receiver's error, so that the fence stays around the fixes.
    var fenceCentre: Coordinate?
    var window = EvidenceWindow()
    /// The numbers of the last decision.
    private(set) var evidence = MotionEvidence()
    /// A fix of the last look was beyond the fence by more than its accuracy, or the window shows movement.
    private(set) var isRestless = false
    /// External power went off then, and nothing has moved since.
    var powerOff: EventTime?
    /// External power came on while parked: until then a little evidence suffices.
    var primedUntil: EventTime?

    var lastFix: Moment?
    var lastCoordinate: Coordinate?
    private var warmUntil = EventTime(nanoseconds: .min)
    private var firstSettling: EventTime?
    var place = PlaceEstimate(countMax: 64)
    private var outsidePlace = PlaceEstimate(countMax: 128)
    private var beyondFence = Persistence()
    private var outsideFence = Persistence()
    private var beyondBackup = Persistence()
    private var outsideOnly = Persistence()
    private var outsideWithHint = Persistence()
    private var settlingFixes = 0

    /// Seconds without a fix after which a receiver starts anew and is first off the place.
    private static let coldAfter = 60.0
    /// Seconds for which it is.
    private static let warmUp = 30.0
    /// Metres of agreed movement that a parked receiver seldom shows.
    private static let restlessEvidence = 3.0
    /// Metres beyond the radius that a first fix after a gap may be off.
    static let gapMargin = 20.0

    init(settings: Settings, restored: StoredState?) {
        self.settings = settings
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

    // A look at one fix.

    /// - Parameter silence: seconds since the last believed fix, across a restart too; nil for the first one ever.
    mutating func observe(
        _ fix: Fix, time: UTCTime, at: EventTime, plane: LocalPlane, interval: Double, silence: Double?
    ) -> Transition? {
        let previous = lastFix
        let previousCoordinate = lastCoordinate
        if silence ?? .infinity >= Self.coldAfter { warmUntil = at + .seconds(Self.warmUp) }
        window.append(fix, time: time, at: at, plane: plane, interval: interval)
        lastFix = Moment(at: at, time: time)
        lastCoordinate = fix.coordinate
        evidence = MotionEvidence(
            evidence: window.evidence, distance: 0, speed: window.vectorSpeed, accuracy: fix.horizontalAccuracy)

        if isMoving, let silence, let previousCoordinate, silence >= settings.stopTimeout.inSeconds,
            silence >= Self.coldAfter, !settings.disableStopDetection,
            let transition = judgeGap(
                fix, time: time, silence: silence, from: previousCoordinate, previous: previous, plane: plane)
        {
            return transition
        }
        switch state {
        case .waiting, .settling:
            return settle(fix, at: at)
        case .stationary:
            return watchFence(fix, at: at, plane: plane)
        case .moving:
            return watchSpeed(fix, at: at)
        case .stopping(let since):
            return watchHalt(since, fix, at: at, silence: silence ?? 0, plane: plane)
        }
    }

    /// Evidence from before does not count any more: the asset is elsewhere, or the clock is.
    mutating func forgetEvidence() {
        window.clear()
        resetPersistence()
    }

    // settling

    private mutating func settle(_ fix: Fix, at: EventTime) -> Transition? {
        state = .settling
        let start = firstSettling ?? at
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
        guard accurate, waited >= 60 || calm else { return nil }
        anchor = place.median()
        return settled(.start)
    }

    mutating func settled(_ reason: MotionReason) -> Transition {
        park()
        return .settled(reason)
    }

    // stationary

    private mutating func watchFence(_ fix: Fix, at: EventTime, plane: LocalPlane) -> Transition? {
        guard let anchor, let fenceCentre else { return nil }
        let point = plane.point(fix.coordinate)
        let offset = point - plane.point(fenceCentre)
        let distance = offset.length
        let fromAnchor = (point - plane.point(anchor.coordinate)).length
        let outside = isOutside(distance, fix)
        evidence.distance = distance
        isRestless = outside || window.evidence >= Self.restlessEvidence

        beyondFence.observe(
            distance > settings.stationaryRadius && window.evidence >= settings.startEvidence, at: at)
        outsideFence.observe(outside && window.evidence >= settings.outsideEvidence, at: at)
        beyondBackup.observe(fromAnchor > settings.backupRadius, at: at)
        let delay = settings.motionTriggerDelay
        if beyondFence.holds(settings.consecutiveFixes, for: delay) { return depart(.speed) }
        if outsideFence.holds(settings.consecutiveFixes, for: delay) { return depart(.fence) }
        if beyondBackup.holds(3, for: delay) { return depart(.backupFence) }
        if let primedUntil, at <= primedUntil, window.evidence >= settings.outsideEvidence { return depart(.power) }

        followDrift(fix, outside: outside, distance: distance, fromAnchor: fromAnchor, at: at, plane: plane)
        return nil
    }

    private func isOutside(_ distance: Double, _ fix: Fix) -> Bool {
        distance - min(fix.horizontalAccuracy ?? FixFilter.unknownAccuracy, 20) > settings.stationaryRadius
    }

    private static let driftTimeConstant = 1000.0
    /// Fixes outside without evidence after which the fence follows them.
    private static let outsideMax = 90

    private mutating func followDrift(
        _ fix: Fix, outside: Bool, distance: Double, fromAnchor: Double, at: EventTime, plane: LocalPlane
    ) {
        guard let anchor, let centre = fenceCentre else { return }
        let astray =
            outside && window.evidence < settings.outsideEvidence && fromAnchor <= settings.backupRadius
        outsideOnly.observe(astray, at: at)
        if astray {
            outsidePlace.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
            if outsideOnly.holds(Self.outsideMax) {
                fenceCentre = outsidePlace.median()?.coordinate ?? centre
                outsideOnly.reset()
                outsidePlace.reset()
            }
            return
        }
        if outsidePlace.count > 0 { outsidePlace.reset() }

        let elapsed = min(10, lastDrift.map { at.seconds(since: $0) } ?? 1)
        lastDrift = at
        guard window.evidence < Self.restlessEvidence, distance <= settings.stationaryRadius else { return }
        drift = drift + (plane.point(fix.coordinate) - plane.point(centre)) * (elapsed / Self.driftTimeConstant)
        // Below the resolution of a coordinate nothing is moved yet, so that small steps add up.
        guard drift.length >= 0.1 else { return }
        let moved = plane.point(centre) + drift
        let anchorPoint = plane.point(anchor.coordinate)
        if (moved - anchorPoint).length <= max(settings.stationaryRadius, (plane.point(centre) - anchorPoint).length) {
            fenceCentre = plane.coordinate(moved)
        }
        drift = .zero
    }

    private var lastDrift: EventTime?
    private var drift = PlanePoint.zero

    mutating func departAtOnce(_ reason: MotionReason) -> Transition {
        _ = depart(reason)
        window.clear()
        return .departedAtOnce(reason)
    }

    private mutating func depart(_ reason: MotionReason) -> Transition {
        state = .moving
        powerOff = nil
        primedUntil = nil
        isRestless = false
        resetPersistence()
        return .departed(reason)
    }

    // moving

    private mutating func watchSpeed(_ fix: Fix, at: EventTime) -> Transition? {
        guard !settings.disableStopDetection, let speed = window.vectorSpeed, speed < settings.stillSpeed else {
            return nil
        }
        let run = window.quietRun(below: 0.7, back: 6)
        guard let first = run.first else { return nil }
        state = .stopping(since: Moment(at: first.at, time: first.time))
        place.reset()
        for entry in run where isAnchorable(entry.accuracy, at: entry.at) {
            place.add(entry.coordinate, accuracy: entry.accuracy, at: entry.at)
        }
        anchor =
            place.median() ?? StoredState.Anchor(coordinate: first.coordinate, accuracy: first.accuracy)
        window.forget(before: first.at)
        resetPersistence()
        return .halted
    }

    private func isAnchorable(_ accuracy: Double?, at: EventTime) -> Bool {
        (accuracy ?? 0) <= min(50, settings.anchorAccuracy) && at >= warmUntil
    }

    // stopping

    /// Seconds of fixes from which the place of a halt is made. A later median would follow a jam that creeps.
    private static let placeSpan = 30.0
    /// Seconds of a halt that must have been seen before silence may count as standing: a car crawls into a tunnel.
    private static let seenBeforeSilence = 10.0

    private mutating func watchHalt(
        _ since: Moment, _ fix: Fix, at: EventTime, silence: Double, plane: LocalPlane
    ) -> Transition? {
        let placeEnd = max(since.at, warmUntil) + .seconds(Self.placeSpan)
        if at <= placeEnd, isAnchorable(fix.horizontalAccuracy, at: at),
            place.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        {
            anchor = place.median()
        }
        guard let anchor else { return nil }
        let distance = (plane.point(fix.coordinate) - plane.point(anchor.coordinate)).length
        let outside = isOutside(distance, fix)
        evidence.distance = distance
        outsideWithHint.observe(outside && window.evidence >= 4, at: at)
        outsideOnly.observe(outside, at: at)
        if window.evidence >= settings.resumeEvidence || outsideWithHint.holds(3) || outsideOnly.holds(30) {
            return resume(since)
        }
        guard at >= stopDue(since) else { return nil }
        // Overdue, because too little of the halt was seen before a silence: where the asset is now decides.
        if silence > Self.seenBeforeSilence, distance > settings.stationaryRadius + Self.gapMargin {
            return resume(since)
        }
        return stop(standsByPower(since) ? .power : .stopTimeout, standstill: since.time)
    }

    mutating func resume(_ since: Moment) -> Transition {
        state = .moving
        powerOff = nil
        resetPersistence()
        return .resumed(from: since)
    }

    mutating func stop(_ reason: MotionReason, standstill: UTCTime) -> Transition {
        park()
        return .stopped(reason, standstill: standstill)
    }

    private mutating func park() {
        state = .stationary
        fenceCentre = anchor?.coordinate
        powerOff = nil
        isRestless = false
        lastDrift = nil
        drift = .zero
        place.reset()
        outsidePlace.reset()
        resetPersistence()
    }

    private mutating func resetPersistence() {
        beyondFence.reset()
        outsideFence.reset()
        beyondBackup.reset()
        outsideOnly.reset()
        outsideWithHint.reset()
    }

    // Gaps and deadlines.

    /// A long silence that ends near where it began was a stop that nobody saw.
    private mutating func judgeGap(
        _ fix: Fix, time: UTCTime, silence: Double, from before: Coordinate, previous: Moment?, plane: LocalPlane
    ) -> Transition? {
        var standstill = previous?.time ?? restoredStandstill ?? time
        var stood = StoredState.Anchor(coordinate: before, accuracy: nil)
        if case .stopping(let since) = state {
            standstill = since.time
            stood = anchor ?? stood
        }
        let distance = (plane.point(fix.coordinate) - plane.point(stood.coordinate)).length
        guard distance / silence < settings.stillSpeed else { return nil }
        evidence.distance = distance
        anchor = stood
        park()
        if distance > settings.stationaryRadius + Self.gapMargin {
            state = .moving
            return .stoppedAndDeparted(standstill: standstill)
        }
        return .stopped(.gap, standstill: standstill)
    }

    /// Beginning of the halt, or else the last fix, before a restart.
    var restoredStandstill: UTCTime?

    private func stopDue(_ since: Moment) -> EventTime {
        let normal = since.at + settings.stopTimeout
        guard let powerOff else { return normal }
        return min(normal, max(powerOff, since.at) + settings.powerOffStop)
    }

    private func standsByPower(_ since: Moment) -> Bool {
        powerOff != nil && stopDue(since) < since.at + settings.stopTimeout
    }

    var nextDeadline: EventTime? {
        guard let lastFix else { return nil }
        switch state {
        case .waiting, .settling, .stationary:
            return nil
        case .moving:
            return lastFix.at + settings.noFixTimeout
        case .stopping(let since):
            let silent = lastFix.at + settings.noFixTimeout
            if settings.disableStopDetection || lastFix.at.seconds(since: since.at) < Self.seenBeforeSilence {
                return silent
            }
            return min(silent, stopDue(since))
        }
    }

    mutating func deadlineReached(at: EventTime) -> Transition? {
        guard let nextDeadline, nextDeadline <= at, let lastFix else { return nil }
        evidence.evidence = 0
        evidence.speed = nil
        switch state {
        case .waiting, .settling, .stationary:
            return nil
        case .moving:
            anchor = lastCoordinate.map { StoredState.Anchor(coordinate: $0, accuracy: evidence.accuracy) }
            return stop(.noFix, standstill: lastFix.time)
        case .stopping(let since):
            let silent = lastFix.at + settings.noFixTimeout <= at && stopDue(since) > at
            if silent || lastFix.at.seconds(since: since.at) < Self.seenBeforeSilence {
                return stop(.noFix, standstill: since.time)
            }
            return stop(standsByPower(since) ? .power : .stopTimeout, standstill: since.time)
        }
    }
}
