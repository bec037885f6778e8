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
            place.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at), let median = place.median()
        {
            // Viewers see the anchor: it does not follow the median by centimetres.
            let step = anchor.map { $0.coordinate.distance(to: median.coordinate) } ?? .infinity
            if step > max(1, (median.accuracy ?? 0) / 4) { anchor = median }
            if let former, stoodOn(former, since, median, at: at) { return takeUp(former) }
        }
        guard let anchor else { return nil }
        noteCreep(fix, time: time, at: at, plane: plane)
        let distance = (plane.point(fix.coordinate) - plane.point(anchor.coordinate)).length
        let outside = isOutside(distance, fix)
        evidence.distance = distance
        if window.evidence < Self.restlessEvidence, at.seconds(since: since.at) > 6 { noteNoise(at: at) }
        outsideWithHint.observe(outside && window.evidence >= max(Self.creepLeast, Self.hintNoise * noise.path), at: at)
        outsideOnly.observe(outside, at: at)
        if window.evidence >= max(settings.resumeEvidence, Self.resumeNoise * noise.path) || outsideWithHint.holds(3) {
            return resume(since)
        }
        notePath(at: at)
        if outside {
            outsidePlace.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        } else if outsidePlace.count > 0 {
            outsidePlace.reset()
        }
        if outsideOnly.holds(30) {
            // Without Doppler, or after a creep, this is movement. Else the first place was in a multipath jump.
            guard window.hasDoppler, !hasCrept(plane: plane),
                max(path.now, path.before) < max(6, Self.jumpNoise * noise.path, Self.jumpShare * distance),
                let place = outsidePlace.median()
            else { return resume(since) }
            self.anchor = place
            outsideOnly.reset()
            outsidePlace.reset()
        }
        if let stop = endChain(since, at: at, plane: plane) { return stop }
        guard at >= stopDue(since), !settings.disableStopDetection else { return nil }
        // Overdue, because too little of the halt was seen before a silence: where the asset is now decides.
        if silence > Self.seenBeforeSilence, distance > settings.stationaryRadius + Self.gapMargin {
            return resume(since)
        }
        if isOnItsWay(distance, isOutside: outside) { return resume(since) }
        return endHalt(since, plane: plane)
    }

    /// Seconds over the stop timeout after which halts that were interrupted are looked at as one, and of the present halt.
    private static let chainDelay = Duration.seconds(20)
    private static let chainRest = 15.0
    /// m/s; a receiver with less noise does not invent movements.
    private static let chainNoise = 0.3

    /// Halts with short movements between them that led nowhere are one stop, due since the first of them.
    private mutating func endChain(_ since: Moment, at: EventTime, plane: LocalPlane) -> Transition? {
        guard let began = chain.began, began.at < since.at, noise.speed >= Self.chainNoise,
            !settings.disableStopDetection,
            at >= began.at + settings.stopTimeout + Self.chainDelay, at.seconds(since: since.at) >= Self.chainRest,
            window.evidence < Self.restlessEvidence,
            let place = chain.place(tolerance: max(6, min(12, 0.8 * accuracyNow)), plane: plane)
        else { return nil }
        anchor = StoredState.Anchor(coordinate: place, accuracy: anchor?.accuracy)
        return stop(.stopTimeout, standstill: began.time)
    }

    /// What moves beyond the radius when a stop is due is none, whatever its own slow speed was taken for before.
    private func isOnItsWay(_ distance: Double, isOutside: Bool) -> Bool {
        guard distance > settings.stationaryRadius else { return false }
        if window.evidence >= settings.resumeEvidence { return true }
        return isOutside && window.path >= max(10, 1.8 * noise.path)
    }

    /// Metres of agreed movement that may be a creep, and metres of creeping that are one for certain.
    private static let creepLeast = 4.0
    private static let creepDistance = 8.0
    /// Evidence as a multiple of what noise alone makes of it.
    private static let resumeNoise = 1.4
    private static let hintNoise = 1.4
    /// Path, whatever the positions say, above which a place that moved may be movement rather than multipath.
    private static let jumpNoise = 1.6
    /// And as a share of the way that the positions say.
    private static let jumpShare = 0.5

    private mutating func noteCreep(_ fix: Fix, time: UTCTime, at: EventTime, plane: LocalPlane) {
        let creeps = window.evidence >= Self.creepLeast
        creep.observe(
            fix.coordinate, creeps: creeps, rolls: window.surge >= max(settings.stillSpeed, 1.2 * noise.speed),
            step: max(3, accuracyNow / 2), at: Moment(at: at, time: time), plane: plane)
        if creeps {
            placeAfterCreep.reset()
        } else if isAnchorable(fix.horizontalAccuracy, at: at), placeAfterCreep.count < 30 {
            placeAfterCreep.add(fix.coordinate, accuracy: fix.horizontalAccuracy, at: at)
        }
    }

    /// Seconds within which a movement shows in the positions.
    private static let pathMemory = 30.0

    private mutating func notePath(at: EventTime) {
        if at.seconds(since: path.since) >= Self.pathMemory { path = (before: path.now, now: 0, since: at) }
        path.now = max(path.now, window.path)
    }

    private var accuracyNow: Double { min(30, evidence.accuracy ?? FixFilter.unknownAccuracy) }

    /// The creeps of this halt led somewhere.
    private func hasCrept(plane: LocalPlane) -> Bool {
        guard let lastCoordinate else { return false }
        return creep.distance(lastCoordinate, plane: plane) > max(Self.creepDistance, 0.7 * accuracyNow)
    }

    /// A halt is due to become a stop; one that a jam moved on meanwhile is dated anew, from its last creep.
    private mutating func endHalt(_ since: Moment, plane: LocalPlane) -> Transition {
        if powerOff == nil, hasCrept(plane: plane), let last = creep.standsSince, last.at > since.at, let from = anchor,
            let place = placeAfterCreep.median() ?? lastPlace
        {
            state = .stopping(since: last)
            anchor = place
            self.place = placeAfterCreep
            placeAfterCreep.reset()
            creep.begin(at: place.coordinate)
            return .crept(from: from)
        }
        return stop(standsByPower(since) ? .power : .stopTimeout, standstill: since.time)
    }

    /// Where the asset is by the last fix alone: it creeps right now.
    private var lastPlace: StoredState.Anchor? {
        lastCoordinate.map { StoredState.Anchor(coordinate: $0, accuracy: evidence.accuracy) }
    }

    /// Seconds that a movement may last and be noise.
    private static let noiseMax = 30.0
    /// Seconds of the new halt after which its place is good enough to be compared.
    private static let comparedAfter = 10.0

    /// The movement between two halts led nowhere: it was noise, and the asset has stood since the first of them.
    private func stoodOn(_ former: Former, _ since: Moment, _ place: StoredState.Anchor, at: EventTime) -> Bool {
        guard at.seconds(since: since.at) >= Self.comparedAfter,
            since.at.seconds(since: former.resumed) <= Self.noiseMax
        else { return false }
        let same = max(5, 0.7 * (place.accuracy ?? FixFilter.unknownAccuracy))
        return former.anchor.coordinate.distance(to: place.coordinate) <= same
    }

    private mutating func takeUp(_ former: Former) -> Transition {
        state = .stopping(since: former.since)
        anchor = former.anchor
        creep = former.creep
        self.former = nil
        queueing = max(0, queueing - 1)
        return .stoodOn
    }

    mutating func resume(_ since: Moment) -> Transition {
        former = anchor.flatMap { anchor in
            lastFix.map { Former(since: since, anchor: anchor, creep: creep, resumed: $0.at) }
        }
        lastFix.map { chain.ended(at: $0.at) }
        state = .moving
        powerOff = nil
        resetPersistence()
        return .resumed(from: since)
    }

    /// The user says that the halt is over: what follows is another one.
    mutating func resumeAtOnce(_ since: Moment) -> Transition {
        let transition = resume(since)
        former = nil
        chain.clear()
        return transition
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
        chain.clear()
        resetPersistence()
    }

    mutating func resetPersistence() {
        surging.reset()
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

    /// m/s of noise with which a receiver does not see every creep of a few metres.
    private static let noisySpeed = 0.3
    /// In a queue such a receiver waits so much longer: a stop that is late there costs less than a trip cut in two.
    private static let queuePatience = Duration.seconds(120)
    /// Seconds of a halt in a queue, and seconds and metres between two of them.
    private static let queueHalt = 200.0
    private static let queueSeconds = 90.0
    private static let queueMetres = 40.0

    /// A halt has begun: is it the next one of a queue?
    mutating func noteQueue(since: EventTime) {
        guard let former, let anchor, since.seconds(since: former.resumed) <= Self.queueSeconds,
            former.resumed.seconds(since: former.since.at) <= Self.queueHalt,
            former.anchor.coordinate.distance(to: anchor.coordinate) <= Self.queueMetres
        else {
            queueing = 0
            return
        }
        queueing += 1
    }

    private func stopDue(_ since: Moment) -> EventTime {
        var due = since.at + settings.stopTimeout
        if queueing >= 2, noise.speed >= Self.noisySpeed { due = due + Self.queuePatience }
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

    mutating func deadlineReached(at: EventTime, plane: LocalPlane) -> Transition? {
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
            return endHalt(since, plane: plane)
        }
    }
}
