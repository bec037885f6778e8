import WaypostCore

/// An asset that is parked, and the fence around it.
struct Parked: Sendable {
    /// The parking place as it is recorded; it does not move.
    let place: StoredState.Anchor
    /// Follows the slow component of the receiver's error, so that the fence stays around the fixes.
    private(set) var fenceCentre: Coordinate
    /// The last fix was beyond the fence by more than its accuracy, or the window shows movement.
    private(set) var isRestless = false
    private var surging = Persistence()
    private var beyondFence = Persistence()
    private var outsideFence = Persistence()
    private var beyondBackup = Persistence()
    /// Fixes outside that can have been driven to, and that no speed denies.
    private var away = Persistence()
    /// The first of them, and metres from the centre of the farthest.
    private var awaySince: Coordinate?
    /// Metres of it from the centre.
    private var firstAway = 0.0
    private var farthest = 0.0
    /// The position left the fence by a jump, or while the receiver reported that it stands.
    private var hasStrayed = false
    /// The fix before.
    private var before: (at: EventTime, coordinate: Coordinate)?
    /// The asset may have left in a short silence.
    private var wasUnseen = false
    /// The position is another one after a jump that was believed in the end.
    private var hasJumped = false
    private var elsewhere: Elsewhere?
    /// Fixes outside without evidence, and where they are.
    private var astray = Persistence()
    private var strayPositions = PlaceEstimate(countMax: 128)
    /// Metres that the fence has to follow, and when that was last reckoned.
    private var drift = PlanePoint.zero
    private var lastDrift: EventTime?

    enum Outcome {
        case departed(MotionReason)
        /// It stands elsewhere, moved in a silence.
        case moved(to: StoredState.Anchor)
    }

    /// Fixes after a silence, far from the place: either it stands there or it drives.
    private struct Elsewhere {
        let from: Coordinate
        var search: Search
        /// The receiver says that it drives.
        var rolling = Persistence()
    }

    /// - Parameter fenceCentre: nil = the place.
    init(at place: StoredState.Anchor, fenceCentre: Coordinate? = nil) {
        self.place = place
        self.fenceCentre = fenceCentre ?? place.coordinate
    }

    /// What has become of it; nil = it is parked where it was.
    /// - Parameter hint: why a little evidence suffices now; nil = it does not.
    mutating func observe(
        _ sighting: Sighting, _ signals: inout MotionSignals, hint: MotionReason?
    ) -> Outcome? {
        let (fix, at, plane) = (sighting.fix, sighting.at, sighting.plane)
        let (settings, window) = (signals.settings, signals.window)
        let point = plane.point(fix.coordinate)
        let distance = (point - plane.point(fenceCentre)).length
        let fromPlace = (point - plane.point(place.coordinate)).length
        let isOutside = signals.isOutside(distance, accuracy: fix.horizontalAccuracy)
        signals.decision.distance = distance
        isRestless = isOutside || window.evidence >= Tuning.restlessEvidence

        if !isRestless { signals.noteNoise(at: at) }
        if !isRestless, at >= signals.warmUntil, let before {
            signals.noteScatter(distance, elapsed: at.seconds(since: before.at))
        }
        let noise = signals.noise
        let outsideEvidence = Self.evidenceNeeded(outside: true, signals)
        let insideEvidence = Self.evidenceNeeded(outside: false, signals)
        let accuracy = signals.accuracy(of: fix)
        noteAway(sighting, distance, isOutside: isOutside, signals)
        // Without Doppler an error that fades would pass for movement.
        let isReal = window.hasDoppler || !hasStrayed
        surging.observe(
            window.surge >= max(Tuning.surgeSpeed, Tuning.surgeNoise * noise.speed)
                && window.evidence >= outsideEvidence, at: at)
        beyondFence.observe(
            isReal && distance > settings.stationaryRadius
                && window.evidence >= insideEvidence, at: at)
        outsideFence.observe(isReal && isOutside && window.evidence >= outsideEvidence, at: at)
        let isMovedUnseen = noteElsewhere(sighting, fromPlace, signals)
        beyondBackup.observe(fromPlace > settings.backupRadius && !isMovedUnseen, at: at)
        let delay = settings.motionTriggerDelay
        func departed(_ reason: MotionReason, with evidence: Double?) -> Outcome {
            signals.decision.needed = evidence
            return .departed(reason)
        }
        if surging.holds(settings.consecutiveFixes, for: delay) { return departed(.speed, with: outsideEvidence) }
        if beyondFence.holds(settings.consecutiveFixes, for: delay) { return departed(.speed, with: insideEvidence) }
        if outsideFence.holds(settings.consecutiveFixes, for: delay) { return departed(.fence, with: outsideEvidence) }
        if beyondBackup.holds(Tuning.backupFixes, for: delay) { return departed(.backupFence, with: nil) }
        if var found = elsewhere {
            found.rolling.observe(window.newestSpeed ?? 0 >= Tuning.elsewhereSpeed, at: at)
            if found.from.distance(to: fix.coordinate) > settings.backupRadius
                || found.rolling.holds(Tuning.backupFixes, for: delay)
            {
                return departed(.backupFence, with: nil)
            }
            let finding = found.search.observe(sighting, signals)
            elsewhere = found
            switch finding {
            case .place(let place): return .moved(to: place)
            // Noise considered, the evidence was judged above.
            case .departed, nil: return nil
            }
        }
        // Those that stand where they are may be off together, and must be farther than those that go on.
        if let awaySince, away.holds(Tuning.awayFixesOnTheWay, for: max(delay, Tuning.awaySpan)) {
            let way = awaySince.distance(to: fix.coordinate)
            // A receiver that reports a few times a minute has shown most of the way by its second fix.
            let isOnTheWay = way > settings.stationaryRadius + accuracy && distance >= firstAway + way / 2
            let isOut = way > accuracy || distance > settings.stationaryRadius + Tuning.awayAccuracies * accuracy
            if isOnTheWay || isOut && away.count >= Tuning.awayFixes { return departed(.fence, with: nil) }
        }
        if let hint, window.evidence >= settings.outsideEvidence {
            return departed(hint, with: settings.outsideEvidence)
        }

        let isAstray =
            isOutside && window.evidence < settings.outsideEvidence && fromPlace <= settings.backupRadius
        if isAstray {
            followStray(fix, at: at)
        } else {
            if strayPositions.count > 0 { strayPositions.reset() }
            astray.reset()
            let isCalm = window.evidence < Tuning.restlessEvidence && distance <= settings.stationaryRadius
            followDrift(to: isCalm ? point : nil, at: at, plane: plane, radius: settings.stationaryRadius)
        }
        return nil
    }

    /// Metres of agreed movement with which a trip begins.
    /// - Parameter outside: the fixes are outside the fence by more than their accuracy.
    static func evidenceNeeded(outside: Bool, _ signals: MotionSignals) -> Double {
        let (settings, noise) = (signals.settings, signals.noise.path)
        return outside
            ? max(settings.outsideEvidence, Tuning.outsideNoise * noise)
            : max(settings.startEvidence, Tuning.startNoise * noise)
    }

    /// Whether it is parked here or elsewhere is being found.
    var isElsewhere: Bool { elsewhere != nil }

    mutating func forgetEvidence() {
        hasJumped = true
        before = nil
        away.reset()
        surging.reset()
        beyondFence.reset()
        outsideFence.reset()
        beyondBackup.reset()
        astray.reset()
    }

    /// Fixes outside that agree are a departure where no speed denies it, as without Doppler or after a silence; a jump and
    /// an error that fades are none.
    private mutating func noteAway(
        _ sighting: Sighting, _ distance: Double, isOutside: Bool, _ signals: MotionSignals
    ) {
        let (fix, at) = (sighting.fix, sighting.at)
        let previous = before
        before = (at, fix.coordinate)
        let silence = max(5, 3 * sighting.interval)
        if sighting.silence ?? 0 > silence {
            wasUnseen = sighting.silence ?? 0 < Tuning.coldAfter
            if away.count == 0 { hasStrayed = false }
        }
        guard isOutside else {
            away.reset()
            // An error that fades is within the accuracy before it is gone.
            if distance <= signals.settings.stationaryRadius { hasStrayed = false }
            // The first position after a silence may be in the wake of the old one.
            if sighting.silence ?? 0 <= silence { wasUnseen = false }
            return
        }
        guard at >= signals.warmUntil, let previous, !hasStrayed else { return away.reset() }
        let seconds = at.seconds(since: previous.at)
        let step = previous.coordinate.distance(to: fix.coordinate)
        let accuracy = 2 * signals.accuracy(of: fix)
        if away.count == 0 {
            let isDenied = signals.window.hasDoppler && !wasUnseen
            // Of a silence the end is known only: it need not have been standing for all of it.
            let reach =
                seconds > silence
                ? Reach.speedMax * seconds + accuracy : Reach.metres(in: seconds, from: 0, accuracy: accuracy)
            hasStrayed = isDenied || step > reach
            farthest = 0
        } else if step > Reach.speedMax * seconds + accuracy {
            hasStrayed = true
        }
        if hasStrayed || distance < (1 - Tuning.awayReturn) * farthest {
            farthest = hasStrayed ? 0 : distance
            return away.reset()
        }
        farthest = max(farthest, distance)
        if away.count == 0 { (awaySince, firstAway) = (fix.coordinate, distance) }
        away.observe(true, at: at)
    }

    /// - Returns: whether the asset has been moved while nobody saw it, and may stand where it is now.
    private mutating func noteElsewhere(
        _ sighting: Sighting, _ fromPlace: Double, _ signals: MotionSignals
    ) -> Bool {
        defer { hasJumped = false }
        guard fromPlace > signals.settings.backupRadius else {
            elsewhere = nil
            return false
        }
        if elsewhere != nil { return true }
        guard hasJumped || sighting.silence ?? 0 >= max(Tuning.coldAfter, 3 * sighting.interval) else { return false }
        elsewhere = Elsewhere(from: sighting.fix.coordinate, search: Search(since: sighting.at))
        return true
    }

    /// The fence is where no fix has been for a while: its centre was in a multipath jump.
    private mutating func followStray(_ fix: Fix, at: EventTime) {
        astray.observe(true, at: at)
        strayPositions.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        guard astray.holds(Tuning.strayFixes) else { return }
        fenceCentre = strayPositions.median()?.coordinate ?? fenceCentre
        astray.reset()
        strayPositions.reset()
    }

    /// - Parameter point: where the asset is by a calm fix within the radius; nil = the fix is not one.
    private mutating func followDrift(to point: PlanePoint?, at: EventTime, plane: LocalPlane, radius: Double) {
        let elapsed = min(10, lastDrift.map { at.seconds(since: $0) } ?? 1)
        lastDrift = at
        guard let point else { return }
        let centre = plane.point(fenceCentre)
        drift = drift + (point - centre) * (elapsed / Tuning.driftTimeConstant)
        // Small steps add up.
        guard drift.length >= Tuning.driftStep else { return }
        let moved = centre + drift
        let anchor = plane.point(place.coordinate)
        if (moved - anchor).length <= max(radius, (centre - anchor).length) { fenceCentre = plane.coordinate(moved) }
        drift = .zero
    }
}
