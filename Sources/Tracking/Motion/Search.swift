import WaypostCore

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
    /// The last positions, a few seconds apart, of a receiver without speeds.
    private var trail = RingBuffer<(at: EventTime, coordinate: Coordinate)>(countMax: Tuning.leadPositions)
    private var leading = Persistence()

    init(since: EventTime) { self.since = since }

    /// nil = the search goes on.
    mutating func observe(_ sighting: Sighting, _ signals: MotionSignals) -> Finding? {
        let (fix, at) = (sighting.fix, sighting.at)
        // After a gap the receiver starts cold, and so does the search.
        if (sighting.silence ?? 0) > max(Tuning.coldAfter, 3 * sighting.interval) { since = at }
        if since == at {
            positions.reset()
            fixes = 0
            forgetEvidence()
        }
        let settings = signals.settings
        moving.observe(signals.window.evidence >= settings.startEvidence, at: at)
        leading.observe(leads(sighting, signals), at: at)
        if moving.holds(settings.consecutiveFixes, for: settings.motionTriggerDelay)
            || leading.holds(1, for: settings.motionTriggerDelay)
        {
            return .departed
        }

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

    mutating func forgetEvidence() {
        moving.reset()
        leading.reset()
        trail.removeAll()
    }

    /// Without speeds: whether the positions lead away steadily. The error of a cold start fades, and one of multipath is a
    /// single step.
    private mutating func leads(_ sighting: Sighting, _ signals: MotionSignals) -> Bool {
        guard !signals.window.hasDoppler else {
            if trail.count > 0 { trail.removeAll() }
            return false
        }
        if let last = trail.last, sighting.at.seconds(since: last.at) < Tuning.leadSpacing { return leading.count > 0 }
        trail.append((sighting.at, sighting.fix.coordinate))
        guard trail.count >= Tuning.leadPositionsMin else { return false }
        var way = Advance(from: trail[0].coordinate)
        var speed = 0.0
        for index in 1..<trail.count {
            let (before, now) = (trail[index - 1], trail[index])
            speed = before.coordinate.distance(to: now.coordinate) / now.at.seconds(since: before.at)
            guard speed <= Reach.speedMax else { return false }
            way.add(now.coordinate)
        }
        return way.leads(over: 3 * max(5, signals.accuracy(of: sighting.fix)))
            && speed >= Tuning.leadSpeedShare * way.net / sighting.at.seconds(since: trail[0].at)
    }
}
