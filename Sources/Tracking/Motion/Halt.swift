import WaypostCore

/// A halt within a trip, which is not announced: it ends with movement, or becomes a stop.
struct Halt: Sendable {
    enum Outcome {
        /// It counts since before the last movement, which was noise.
        case movementWasNoise
        /// It counts from the last creep of a jam, and at another place.
        case crept(from: StoredState.Anchor)
        case resumed
        case stopped(MotionReason, standstill: UTCTime)
    }

    private(set) var since: MotionDetector.Moment
    private(set) var place: StoredState.Anchor
    /// The trip that it is part of.
    private(set) var trip: Trip
    private var positions = PlaceEstimate(countMax: 64)
    /// The creeps within the halt, and where the asset has stood since the last one.
    private var creep = CreepLog()
    private var positionsAfterCreep = PlaceEstimate(countMax: 64)
    /// Metres; the longest path in the window lately, whatever the positions say: since an instant, and for as long before.
    private var path: (before: Double, now: Double, since: EventTime)
    /// It was due to become a stop in a silence, but the last fix was on its way elsewhere.
    private(set) var isLeft = false
    private var outsidePositions = PlaceEstimate(countMax: 128)
    private var outside = Persistence()
    private var awayWithHint = Persistence()

    /// - Parameters:
    ///   - run: the fixes that stood already.
    ///   - seen: when the halt was recognised.
    init(
        _ run: [EvidenceWindow.Entry], from first: EvidenceWindow.Entry, seen: EventTime, within trip: Trip,
        _ signals: MotionSignals
    ) {
        var positions = PlaceEstimate(countMax: 64)
        for entry in run where signals.isAnchorable(entry.accuracy, at: entry.at) {
            positions.add(entry.coordinate, accuracy: entry.accuracy, at: entry.at)
        }
        let place = positions.median() ?? StoredState.Anchor(coordinate: first.coordinate, accuracy: first.accuracy)
        let since = MotionDetector.Moment(at: first.at, time: first.time)
        self.init(since: since, at: place, seen: seen, within: trip, signals)
        self.positions = positions
    }

    /// A halt that began in a silence.
    init(
        since: MotionDetector.Moment, at place: StoredState.Anchor, seen: EventTime, within trip: Trip,
        _ signals: MotionSignals
    ) {
        self.since = since
        self.place = place
        path = (before: 0, now: 0, since: seen)
        creep.begin(at: place.coordinate)
        self.trip = trip
        self.trip.haltBegan(since: since, at: place, timeout: signals.settings.stopTimeout.inSeconds)
    }

    /// nil = it goes on.
    mutating func observe(_ sighting: Sighting, _ signals: inout MotionSignals) -> Outcome? {
        trip.note(sighting)
        isLeft = false
        let (fix, at, plane) = (sighting.fix, sighting.at, sighting.plane)
        let settings = signals.settings
        if findPlace(sighting, signals) { return .movementWasNoise }
        noteCreep(sighting, signals)
        let distance = (plane.point(fix.coordinate) - plane.point(place.coordinate)).length
        let isOutside = signals.isOutside(distance, accuracy: fix.horizontalAccuracy)
        signals.decision.distance = distance
        if signals.window.evidence < Tuning.restlessEvidence, at.seconds(since: since.at) > Tuning.quietSeconds {
            signals.noteNoise(at: at)
        }
        let (evidence, noise) = (signals.window.evidence, signals.noise)
        let isAway = distance - min(signals.accuracyNow, Tuning.fenceAccuracyMax) > Tuning.heldSlack
        awayWithHint.observe(
            isAway && evidence >= max(Tuning.creepEvidence, Tuning.hintNoise * noise.path), at: at)
        outside.observe(isOutside, at: at)
        if evidence >= Self.evidenceNeeded(signals)
            || awayWithHint.holds(Tuning.hintFixes)
        {
            return .resumed
        }
        notePath(signals.window.path, at: at)
        if isOutside {
            outsidePositions.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        } else if outsidePositions.count > 0 {
            outsidePositions.reset()
        }
        if outside.holds(Tuning.outsideFixes) {
            // Without Doppler, or after a creep, this is movement. Else the first place was in a multipath jump.
            guard signals.window.hasDoppler, !hasCrept(signals, plane),
                max(path.now, path.before)
                    < max(Tuning.jumpPath, Tuning.jumpNoise * noise.path, Tuning.jumpShare * distance),
                let median = outsidePositions.median()
            else { return .resumed }
            place = median
            outside.reset()
            outsidePositions.reset()
        }
        guard !settings.disableStopDetection else { return nil }
        if let stop = endChain(at: at, signals, plane) { return stop }
        guard at >= stopDue(signals) else { return nil }
        // Overdue, because too little of the halt was seen before a silence: where the asset is now decides.
        if sighting.silence ?? 0 > Tuning.seenBeforeSilence, distance > settings.stationaryRadius + Tuning.gapMargin {
            return .resumed
        }
        return isOnItsWay(distance, isOutside: isOutside, signals) ? .resumed : end(signals, plane)
    }

    /// Metres of agreed movement with which the trip goes on.
    static func evidenceNeeded(_ signals: MotionSignals) -> Double {
        max(signals.settings.resumeEvidence, Tuning.resumeNoise * signals.noise.path)
    }

    mutating func forgetEvidence() {
        outside.reset()
        awayWithHint.reset()
    }

    mutating func powerWentOff(at: EventTime) { trip.powerWentOff(at: at) }
    mutating func powerCame() { trip.powerCame() }

    /// The trip goes on.
    func resumed(at: EventTime) -> Trip {
        var trip = trip
        trip.haltEnded(Trip.FormerHalt(since: since, place: place, creep: creep, resumed: at))
        return trip
    }

    // MARK: Place

    /// - Returns: whether the halt before goes on instead of this one.
    private mutating func findPlace(_ sighting: Sighting, _ signals: MotionSignals) -> Bool {
        let (fix, at) = (sighting.fix, sighting.at)
        if at < signals.warmUntil, let accuracy = fix.horizontalAccuracy, let former = place.accuracy,
            accuracy < Tuning.warmerAccuracy * former
        {
            place = StoredState.Anchor(coordinate: fix.coordinate, accuracy: accuracy)
            creep.begin(at: place.coordinate)
        }
        guard at <= max(since.at, signals.warmUntil) + .seconds(Tuning.placeSpan),
            signals.isAnchorable(fix.horizontalAccuracy, at: at),
            positions.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at), let median = positions.median()
        else { return false }
        // Viewers see the place: it does not follow the median by centimetres.
        if place.coordinate.distance(to: median.coordinate) > max(1, (median.accuracy ?? 0) / 4) { place = median }
        guard let former = trip.former, movementWasNoise(former, median, at: at) else { return false }
        since = former.since
        place = former.place
        creep = former.creep
        trip.formerGoesOn()
        return true
    }

    /// The movement between two halts led nowhere: it was noise, and the asset has stood since the first of them.
    private func movementWasNoise(_ former: Trip.FormerHalt, _ place: StoredState.Anchor, at: EventTime) -> Bool {
        guard at.seconds(since: since.at) >= Tuning.comparedAfter,
            since.at.seconds(since: former.resumed) <= Tuning.noiseMax
        else { return false }
        let same = max(5, 0.7 * (place.accuracy ?? FixFilter.unknownAccuracy))
        return former.place.coordinate.distance(to: place.coordinate) <= same
    }

    // MARK: Creep

    private mutating func noteCreep(_ sighting: Sighting, _ signals: MotionSignals) {
        let (fix, at) = (sighting.fix, sighting.at)
        let creeps = signals.window.evidence >= Tuning.creepEvidence
        creep.observe(
            fix.coordinate, creeps: creeps,
            rolls: signals.window.surge >= max(signals.settings.stillSpeed, 1.2 * signals.noise.speed),
            step: max(3, signals.accuracyNow / 2), at: sighting.moment, plane: sighting.plane)
        if creeps {
            positionsAfterCreep.reset()
        } else if signals.isAnchorable(fix.horizontalAccuracy, at: at), positionsAfterCreep.count < 30 {
            positionsAfterCreep.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        }
    }

    /// The creeps of this halt led somewhere.
    private func hasCrept(_ signals: MotionSignals, _ plane: LocalPlane) -> Bool {
        guard let coordinate = signals.lastCoordinate else { return false }
        return creep.distance(coordinate, plane: plane) > max(Tuning.creepDistance, 0.7 * signals.accuracyNow)
    }

    private mutating func notePath(_ metres: Double, at: EventTime) {
        if at.seconds(since: path.since) >= Tuning.pathMemory { path = (before: path.now, now: 0, since: at) }
        path.now = max(path.now, metres)
    }

    /// Movement beyond the radius when a stop is due is no standstill, however slow it was.
    private func isOnItsWay(_ distance: Double, isOutside: Bool, _ signals: MotionSignals) -> Bool {
        guard distance > signals.settings.stationaryRadius else { return false }
        if signals.window.evidence >= signals.settings.resumeEvidence { return true }
        return isOutside
            && signals.window.path >= max(Tuning.onItsWayPath, Tuning.onItsWayNoise * signals.noise.path)
    }

    // MARK: Stop

    /// Halts with short movements between them that led nowhere are one stop, due since the first of them.
    private mutating func endChain(at: EventTime, _ signals: MotionSignals, _ plane: LocalPlane) -> Outcome? {
        guard let began = trip.chain.began, began.at < since.at, signals.noise.speed >= Tuning.noisySpeed,
            at >= began.at + signals.settings.stopTimeout + Tuning.chainDelay,
            at.seconds(since: since.at) >= Tuning.chainRest, signals.window.evidence < Tuning.restlessEvidence,
            let chained = trip.chain.place(tolerance: max(6, min(12, 0.8 * signals.accuracyNow)), plane: plane)
        else { return nil }
        place = StoredState.Anchor(coordinate: chained, accuracy: place.accuracy)
        return .stopped(.stopTimeout, standstill: began.time)
    }

    func stopDue(_ signals: MotionSignals) -> EventTime {
        let settings = signals.settings
        var due = since.at + settings.stopTimeout
        if trip.queueing >= Tuning.queueHalts, signals.noise.speed >= Tuning.noisySpeed {
            due = due + Tuning.queueDelay
        }
        if let powerOff = trip.powerOff { due = min(due, max(powerOff, since.at) + settings.powerOffStop) }
        return signals.window.newestSpeed ?? 0 >= Tuning.rollingSpeed ? due + Tuning.rollingDelay : due
    }

    /// Due to become a stop; a halt that a jam moved on meanwhile counts from its last creep instead.
    mutating func end(_ signals: MotionSignals, _ plane: LocalPlane) -> Outcome {
        if trip.powerOff == nil, hasCrept(signals, plane), let last = creep.standsSince, last.at > since.at,
            let now = positionsAfterCreep.median() ?? signals.lastPlace
        {
            let from = place
            since = last
            place = now
            positions = positionsAfterCreep
            positionsAfterCreep.reset()
            creep.begin(at: place.coordinate)
            return .crept(from: from)
        }
        guard !signals.window.hasDoppler else { return .stopped(stopReason(signals.settings), standstill: since.time) }
        return endByPositions(signals, plane)
    }

    /// The same, when no fix has come for a while. The last ones may have been the first of the way on; no speed says so.
    /// - Returns: nil = it is no stop, and what has become of it will be seen.
    mutating func endInSilence(_ signals: MotionSignals, _ plane: LocalPlane) -> Outcome? {
        let outcome = end(signals, plane)
        guard case .stopped = outcome, trip.powerOff == nil, !signals.window.hasDoppler, let last = signals.lastPlace,
            signals.isOutside(last.coordinate.distance(to: place.coordinate), accuracy: last.accuracy)
        else { return outcome }
        isLeft = true
        return nil
    }

    /// Without speeds no creep is seen: where the positions are by now says whether it stood.
    private mutating func endByPositions(_ signals: MotionSignals, _ plane: LocalPlane) -> Outcome {
        let accuracy = signals.accuracyNow
        let tolerance = max(Tuning.arrivalMetres, min(Tuning.arrivalMetresMax, 1.5 * accuracy))
        guard let (here, at) = trip.chain.arrival(since: since.at, tolerance: tolerance, plane: plane) else {
            return .stopped(stopReason(signals.settings), standstill: since.time)
        }
        let arrived = MotionDetector.Moment(at: at, time: since.time + at.duration(since: since.at))
        let moved = here.distance(to: place.coordinate)
        let hasJustCome = (signals.lastFix?.at ?? at).seconds(since: at) < Tuning.arrivalRest
        guard trip.powerOff == nil, at > since.at, hasJustCome || signals.isOutside(moved, accuracy: accuracy) else {
            return .stopped(stopReason(signals.settings), standstill: arrived.time)
        }
        let from = place
        since = arrived
        place = StoredState.Anchor(coordinate: here, accuracy: place.accuracy)
        positions.reset()
        positionsAfterCreep.reset()
        creep.begin(at: place.coordinate)
        return .crept(from: from)
    }

    /// What the positions of a halt that has become a stop say of the receiver.
    func noteScatter(_ signals: inout MotionSignals, _ plane: LocalPlane) {
        for (distance, elapsed) in trip.chain.scatter(around: place.coordinate, since: since.at, plane: plane) {
            signals.noteScatter(distance, elapsed: elapsed)
        }
    }

    /// Why it becomes a stop when it is due to.
    func stopReason(_ settings: MotionDetector.Settings) -> MotionReason {
        guard let powerOff = trip.powerOff else { return .stopTimeout }
        return max(powerOff, since.at) + settings.powerOffStop < since.at + settings.stopTimeout
            ? .power : .stopTimeout
    }
}
