import Positioning

/// The search for the first place: a cold start is 30–130 m off.
struct Search: Sendable {
    enum Finding {
        case place(StoredState.Anchor)
        /// The asset moves already.
        case departed
    }

    private var since: EventTime
    private var positions = PlaceEstimate(countMax: 64)
    private var fixes = 0
    private var moving = Persistence()

    init(since: EventTime) { self.since = since }

    /// nil = the search goes on.
    mutating func observe(_ sighting: Sighting, _ signals: MotionSignals) -> Finding? {
        let (fix, at) = (sighting.fix, sighting.at)
        // After a gap the receiver starts cold, and so does the search.
        if (sighting.silence ?? 0) > max(Tuning.coldAfter, 3 * sighting.interval) { since = at }
        if since == at {
            positions.reset()
            fixes = 0
        }
        let settings = signals.settings
        moving.observe(signals.window.evidence >= settings.startEvidence, at: at)
        if moving.holds(settings.consecutiveFixes, for: settings.motionTriggerDelay) { return .departed }

        let waited = at.seconds(since: since)
        positions.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        fixes += 1
        // A receiver that never gets accurate has a place too, in the end.
        let isAccurate =
            fix.horizontalAccuracy ?? 0 <= min(50, settings.anchorAccuracy) || waited >= Tuning.searchMax
        let isCalm =
            fixes >= Tuning.calmFixes && waited >= Tuning.calmSeconds
            && signals.window.evidence < Tuning.restlessEvidence
        guard isAccurate, isCalm || (fixes >= Tuning.searchFixes && waited >= Tuning.searchSeconds) else { return nil }
        return positions.median().map { .place($0) }
    }

    mutating func forgetEvidence() { moving.reset() }
}
