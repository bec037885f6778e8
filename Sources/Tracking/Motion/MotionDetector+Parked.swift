import Positioning

extension MotionDetector {
    mutating func watchFence(_ fix: Fix, at: EventTime, plane: LocalPlane) -> Transition? {
        guard let anchor, let fenceCentre else { return nil }
        let point = plane.point(fix.coordinate)
        let offset = point - plane.point(fenceCentre)
        let distance = offset.length
        let fromAnchor = (point - plane.point(anchor.coordinate)).length
        let outside = isOutside(distance, fix)
        evidence.distance = distance
        isRestless = outside || window.evidence >= Self.restlessEvidence

        if !isRestless { noteNoise(at: at) }
        let outsideEvidence = max(settings.outsideEvidence, Self.outsideNoise * noise.path)
        surging.observe(
            window.surge >= max(Self.surgeSpeed, Self.surgeNoise * noise.speed) && window.evidence >= outsideEvidence,
            at: at)
        beyondFence.observe(
            distance > settings.stationaryRadius
                && window.evidence >= max(settings.startEvidence, Self.startNoise * noise.path), at: at)
        outsideFence.observe(outside && window.evidence >= outsideEvidence, at: at)
        beyondBackup.observe(fromAnchor > settings.backupRadius, at: at)
        let delay = settings.motionTriggerDelay
        if surging.holds(settings.consecutiveFixes, for: delay) { return depart(.speed) }
        if beyondFence.holds(settings.consecutiveFixes, for: delay) { return depart(.speed) }
        if outsideFence.holds(settings.consecutiveFixes, for: delay) { return depart(.fence) }
        if beyondBackup.holds(3, for: delay) { return depart(.backupFence) }
        if let primed, at <= primed.until, window.evidence >= settings.outsideEvidence { return depart(primed.reason) }

        followDrift(fix, outside: outside, distance: distance, fromAnchor: fromAnchor, at: at, plane: plane)
        return nil
    }

    /// m/s over 3 s that no receiver invents, if its positions agree: the fence need not be left first.
    private static let surgeSpeed = 3.5
    /// The same as a multiple of the speed that this receiver reports while parked.
    private static let surgeNoise = 6.0
    /// Evidence as a multiple of what noise alone makes of it.
    private static let startNoise = 3.0
    private static let outsideNoise = 2.4

    func isOutside(_ distance: Double, _ fix: Fix) -> Bool {
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
}
