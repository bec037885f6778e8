import Positioning

extension MotionDetector {
    /// Seconds of fixes from which the place of a halt is made. A later median would follow a jam that creeps.
    private static let placeSpan = 30.0
    /// Seconds of a halt that must have been seen before silence may count as standing: a car crawls into a tunnel.
    private static let seenBeforeSilence = 10.0

    mutating func watchHalt(
        _ since: Moment, _ fix: Fix, time: UTCTime, at: EventTime, silence: Double, plane: LocalPlane
    ) -> Transition? {
        let placeEnd = max(since.at, warmUntil) + .seconds(Self.placeSpan)
        if at <= placeEnd, isAnchorable(fix.horizontalAccuracy, at: at),
            place.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        {
            anchor = place.median()
        }
        guard let anchor else { return nil }
        noteCreep(fix, time: time, at: at)
        let distance = (plane.point(fix.coordinate) - plane.point(anchor.coordinate)).length
        let outside = isOutside(distance, fix)
        evidence.distance = distance
        outsideWithHint.observe(outside && window.evidence >= Self.creepEvidence, at: at)
        outsideOnly.observe(outside, at: at)
        if window.evidence >= settings.resumeEvidence || outsideWithHint.holds(3) || outsideOnly.holds(30) {
            return resume(since)
        }
        guard at >= stopDue(since), !settings.disableStopDetection else { return nil }
        // Overdue, because too little of the halt was seen before a silence: where the asset is now decides.
        if silence > Self.seenBeforeSilence, distance > settings.stationaryRadius + Self.gapMargin {
            return resume(since)
        }
        return endHalt(since)
    }

    /// Metres of agreed movement that are a creep, and metres of displacement (or twice the accuracy) that prove one.
    private static let creepEvidence = 4.0
    private static let creepDistance = 10.0

    private mutating func noteCreep(_ fix: Fix, time: UTCTime, at: EventTime) {
        if window.evidence >= Self.creepEvidence {
            creep = Moment(at: at, time: time)
            placeAfterCreep.reset()
        } else if creep != nil, isAnchorable(fix.horizontalAccuracy, at: at), placeAfterCreep.count < 30 {
            placeAfterCreep.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        }
    }

    /// A halt is due to become a stop; one that a jam moved on meanwhile is dated anew, from its last creep.
    private mutating func endHalt(_ since: Moment) -> Transition {
        let proof = max(Self.creepDistance, 2 * (evidence.accuracy ?? FixFilter.unknownAccuracy))
        if powerOff == nil, let creep, let from = anchor, let place = placeAfterCreep.median(),
            from.coordinate.distance(to: place.coordinate) > proof
        {
            state = .stopping(since: creep)
            anchor = place
            self.place = placeAfterCreep
            self.creep = nil
            placeAfterCreep.reset()
            return .crept(from: from)
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

    mutating func park() {
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

    mutating func resetPersistence() {
        beyondFence.reset()
        outsideFence.reset()
        beyondBackup.reset()
        outsideOnly.reset()
        outsideWithHint.reset()
    }

    /// A long silence that ends near where it began was a stop that nobody saw.
    mutating func judgeGap(
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

    /// Metres per second of a single fix at which an asset that stood may be pulling away.
    private static let rollingSpeed = 0.7
    /// A due stop waits so long for the evidence of a departure that shows in the last fix: a halt that ends just before
    /// the timeout is a halt.
    private static let rollingDelay = Duration.seconds(10)

    private func stopDue(_ since: Moment) -> EventTime {
        var due = since.at + settings.stopTimeout
        if let powerOff { due = min(due, max(powerOff, since.at) + settings.powerOffStop) }
        return window.newestSpeed ?? 0 >= Self.rollingSpeed ? due + Self.rollingDelay : due
    }

    private func standsByPower(_ since: Moment) -> Bool {
        powerOff.map { max($0, since.at) + settings.powerOffStop < since.at + settings.stopTimeout } ?? false
    }

    var nextDeadline: EventTime? {
        guard let lastFix else { return nil }
        switch state {
        case .waiting, .settling, .stationary:
            return nil
        case .moving:
            return max(lastFix.at, toldDeparture?.at ?? lastFix.at) + noFixTimeout
        case .stopping(let since):
            let silent = lastFix.at + noFixTimeout
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
            let last = toldDeparture.map { $0.at > lastFix.at ? $0 : lastFix } ?? lastFix
            return stop(.noFix, standstill: last.time)
        case .stopping(let since):
            let silent = lastFix.at + noFixTimeout <= at && stopDue(since) > at
            if silent || lastFix.at.seconds(since: since.at) < Self.seenBeforeSilence {
                return stop(.noFix, standstill: since.time)
            }
            return endHalt(since)
        }
    }
}
