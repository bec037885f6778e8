import Positioning

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
    /// Fixes outside without evidence, and where they are.
    private var astray = Persistence()
    private var strayPositions = PlaceEstimate(countMax: 128)
    /// Metres that the fence has to follow, and when that was last reckoned.
    private var drift = PlanePoint.zero
    private var lastDrift: EventTime?

    /// - Parameter fenceCentre: nil = the place.
    init(at place: StoredState.Anchor, fenceCentre: Coordinate? = nil) {
        self.place = place
        self.fenceCentre = fenceCentre ?? place.coordinate
    }

    /// Why the asset has departed; nil = it has not.
    /// - Parameter hint: why a little evidence suffices now; nil = it does not.
    mutating func observe(
        _ sighting: Sighting, _ signals: inout MotionSignals, hint: MotionReason?
    ) -> MotionReason? {
        let (fix, at, plane) = (sighting.fix, sighting.at, sighting.plane)
        let (settings, window) = (signals.settings, signals.window)
        let point = plane.point(fix.coordinate)
        let distance = (point - plane.point(fenceCentre)).length
        let fromPlace = (point - plane.point(place.coordinate)).length
        let isOutside = signals.isOutside(distance, accuracy: fix.horizontalAccuracy)
        signals.decision.distance = distance
        isRestless = isOutside || window.evidence >= Tuning.restlessEvidence

        if !isRestless { signals.noteNoise(at: at) }
        let noise = signals.noise
        let outsideEvidence = Self.evidenceNeeded(outside: true, signals)
        let insideEvidence = Self.evidenceNeeded(outside: false, signals)
        surging.observe(
            window.surge >= max(Tuning.surgeSpeed, Tuning.surgeNoise * noise.speed)
                && window.evidence >= outsideEvidence, at: at)
        beyondFence.observe(
            distance > settings.stationaryRadius
                && window.evidence >= insideEvidence, at: at)
        outsideFence.observe(isOutside && window.evidence >= outsideEvidence, at: at)
        beyondBackup.observe(fromPlace > settings.backupRadius, at: at)
        let delay = settings.motionTriggerDelay
        func departed(_ reason: MotionReason, with evidence: Double?) -> MotionReason {
            signals.decision.needed = evidence
            return reason
        }
        if surging.holds(settings.consecutiveFixes, for: delay) { return departed(.speed, with: outsideEvidence) }
        if beyondFence.holds(settings.consecutiveFixes, for: delay) { return departed(.speed, with: insideEvidence) }
        if outsideFence.holds(settings.consecutiveFixes, for: delay) { return departed(.fence, with: outsideEvidence) }
        if beyondBackup.holds(Tuning.backupFixes, for: delay) { return departed(.backupFence, with: nil) }
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

    mutating func forgetEvidence() {
        surging.reset()
        beyondFence.reset()
        outsideFence.reset()
        beyondBackup.reset()
        astray.reset()
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
