import WaypostCore

/// One admitted fix as the motion detector sees it.
struct Sighting: Sendable {
    let fix: Fix
    let time: UTCTime
    let at: EventTime
    /// Around the asset.
    let plane: LocalPlane
    /// Seconds between fixes, as measured.
    let interval: Double
    /// Seconds since the last believed fix, across a restart too; nil for the first one ever.
    let silence: Double?

    var moment: MotionDetector.Moment { MotionDetector.Moment(at: at, time: time) }
}

/// What the fixes so far say of movement, whatever the asset does.
struct MotionSignals: Sendable {
    var settings: MotionDetector.Settings
    private(set) var window = EvidenceWindow()
    private(set) var noise = SpeedNoise()
    private var scatter = PositionScatter()
    /// The numbers of the last decision.
    var decision = MotionEvidence()
    /// The last fix of this run.
    private(set) var lastFix: MotionDetector.Moment?
    /// Of the last fix, across a restart too.
    private(set) var lastCoordinate: Coordinate?
    /// Until then the positions of a cold-started receiver are off.
    private(set) var warmUntil = EventTime(nanoseconds: .min)
    private var lastNoise: EventTime?

    init(settings: MotionDetector.Settings, lastCoordinate: Coordinate?) {
        self.settings = settings
        self.lastCoordinate = lastCoordinate
    }

    mutating func append(_ sighting: Sighting) {
        let (fix, at) = (sighting.fix, sighting.at)
        if sighting.silence ?? .infinity >= Tuning.coldAfter { warmUntil = at + .seconds(Tuning.warmUp) }
        window.append(
            fix, time: sighting.time, at: at, plane: sighting.plane, interval: sighting.interval,
            assumed: scatter.accuracy)
        lastFix = sighting.moment
        lastCoordinate = fix.coordinate
        decision = MotionEvidence(
            evidence: window.evidence, distance: 0, speed: window.vectorSpeed, accuracy: fix.horizontalAccuracy)
    }

    /// Evidence from before does not count any more.
    mutating func clearWindow() { window.clear() }
    mutating func forget(before instant: EventTime) { window.forget(before: instant) }

    /// The asset stands: what the receiver says of its speed is noise.
    mutating func noteNoise(at: EventTime) {
        let elapsed = lastNoise.map { at.seconds(since: $0) } ?? 0
        lastNoise = at
        guard at >= warmUntil, let velocity = window.newestVelocity else { return }
        noise.observe(velocity.length, elapsed: elapsed)
    }

    /// The asset stands, and the position is so many metres from where: what that says of the receiver's accuracy.
    mutating func noteScatter(_ distance: Double, elapsed: Double) { scatter.observe(distance, elapsed: elapsed) }

    /// Metres; for a fix that reports none as its positions scatter.
    func accuracy(of fix: Fix) -> Double { fix.horizontalAccuracy ?? scatter.accuracy }

    /// A position with this accuracy may become part of a place.
    func isAnchorable(_ accuracy: Double?, at: EventTime) -> Bool {
        (accuracy ?? 0) <= min(50, settings.anchorAccuracy) && at >= warmUntil
    }

    /// A position this many metres from the centre of the fence is outside by more than its accuracy.
    func isOutside(_ distance: Double, accuracy: Double?) -> Bool {
        distance - min(accuracy ?? scatter.accuracy, Tuning.fenceAccuracyMax) > settings.stationaryRadius
    }

    /// The place of the last fix, with its accuracy; nil before the first one.
    var lastPlace: StoredState.Anchor? {
        lastCoordinate.map { StoredState.Anchor(coordinate: $0, accuracy: decision.accuracy) }
    }

    /// Metres; the accuracy of the last fix as far as it limits a distance.
    var accuracyNow: Double { min(30, decision.accuracy ?? scatter.accuracy) }
}
