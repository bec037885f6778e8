import WaypostCore

/// Decides whether the asset moves or is parked, from fixes, deadlines and requests of the user.
///
/// Deadlines run on event time: a receiver that falls silent while the asset stands does not delay the stop.
public struct MotionDetector: Sendable {
    /// What the asset does, with all that has a meaning in that state only.
    enum State: Sendable {
        /// No fix yet. Becomes settling with the first one.
        case waiting
        /// The first place is being found. Becomes stationary when half a minute of accurate fixes is seen, or moving
        /// by evidence.
        case settling(Boxed<Search>)
        /// Parked; the reported place does not move. Becomes moving when the fixes leave the fence with evidence, when
        /// they are beyond the backup radius, or by `pace` or power.
        case stationary(Boxed<Parked>)
        /// On a trip. Becomes stopping when the vector speed over 5 s is low, or stationary by `pace` or when no fix
        /// was believed for long.
        case moving(Boxed<Trip>)
        /// A halt within a trip, which is not announced. Becomes moving by evidence counted from its beginning, or
        /// stationary when it has lasted for the stop timeout.
        case stopping(Boxed<Halt>)
    }

    /// An instant on both clocks.
    public struct Moment: Hashable, Sendable {
        public var at: EventTime
        public var time: UTCTime
    }

    /// The result of an observation.
    enum Transition: Sendable {
        /// The first place was found.
        case settled(MotionReason, at: StoredState.Anchor)
        /// - Parameter from: nil = no place was known.
        case departed(MotionReason, from: StoredState.Anchor?)
        /// On a trip because someone says so: nothing before this instant belongs to it.
        case departedAtOnce(MotionReason, from: StoredState.Anchor?)
        /// moving → stopping.
        /// - Parameter noise: metres of path just before it that were none.
        case halted(since: Moment, noise: Double)
        /// Still stopping, but elsewhere: a jam crept on, and the halt counts from its last creep.
        case crept(since: Moment, metres: Double)
        /// stopping → moving.
        case resumed(since: Moment, from: StoredState.Anchor)
        /// Still stopping, and since before the last resumption, which was noise.
        case movementWasNoise(since: Moment)
        /// Parked as before, but elsewhere: it was moved in a silence.
        case moved(from: StoredState.Anchor, to: StoredState.Anchor)
        /// Parked since the standstill.
        case stopped(MotionReason, at: StoredState.Anchor, standstill: UTCTime)
        /// Parked and left again in a silence: both changes at once.
        case stoppedAndDeparted(from: StoredState.Anchor, standstill: UTCTime)
    }

    private var signals: MotionSignals
    private var state: State
    /// Another source reported movement while the asset was not on a trip: until then a little evidence suffices.
    private var hint: (reason: MotionReason, until: EventTime)?
    /// Beginning of the halt, or else the last fix, before a restart.
    private let restoredStandstill: UTCTime?

    init(settings: Settings, restored: StoredState?) {
        let last = restored.flatMap { $0.announced ? $0.lastFix : nil }
        signals = MotionSignals(settings: settings, lastCoordinate: last?.coordinate)
        restoredStandstill = restored?.stopping ?? restored?.lastFix?.time
        guard let restored, let last else {
            state = .waiting
            return
        }
        if restored.moving {
            state = .moving(Boxed(Trip(restoredPlace: restored.anchor)))
        } else if let place = restored.anchor {
            state = .stationary(Boxed(Parked(at: place, fenceCentre: restored.fenceCentre)))
        } else {
            let place = StoredState.Anchor(coordinate: last.coordinate, accuracy: last.accuracy)
            state = .stationary(Boxed(Parked(at: place)))
        }
    }

    mutating func reload(_ settings: Settings) { signals.settings = settings }

    // MARK: What it knows

    /// The first motion change was announced.
    var hasPlace: Bool { isMoving || isParked }

    var isMoving: Bool {
        switch state {
        case .moving, .stopping: true
        case .waiting, .settling, .stationary: false
        }
    }

    var isParked: Bool { if case .stationary = state { true } else { false } }

    /// The latest fixes may be the beginning of a trip, or of a stop.
    var isRestless: Bool {
        switch state {
        case .waiting, .settling, .moving: false
        case .stationary(let parked): parked.value.isRestless
        case .stopping: true
        }
    }

    /// After a silence it is far from where it was parked, and may stand there.
    var isElsewhere: Bool { if case .stationary(let parked) = state { parked.value.isElsewhere } else { false } }

    /// The parking place, or the place of the halt; on a trip only that of a halt in which the process ended.
    var place: StoredState.Anchor? {
        switch state {
        case .waiting, .settling: nil
        case .stationary(let parked): parked.value.place
        case .moving(let trip): trip.value.restoredPlace
        case .stopping(let halt): halt.value.place
        }
    }

    /// The place that a standing asset reports; nil while it moves, and in the first moments of a halt.
    func heldPlace(at: EventTime) -> StoredState.Anchor? {
        switch state {
        case .waiting, .settling, .moving: nil
        case .stationary(let parked): parked.value.place
        case .stopping(let halt):
            at.seconds(since: halt.value.since.at) > Tuning.holdAfter ? halt.value.place : nil
        }
    }

    /// nil unless parked.
    private var fenceCentre: Coordinate? {
        if case .stationary(let parked) = state { parked.value.fenceCentre } else { nil }
    }

    /// What `waypost status` shows.
    var phase: TrackerSnapshot.Motion {
        switch state {
        case .waiting: .waiting
        case .settling: .settling
        case .stationary: .stationary
        case .moving: .moving
        case .stopping: .stopping
        }
    }

    /// The numbers of the last decision.
    var evidence: MotionEvidence { signals.decision }

    /// What the present state waits for.
    var outlook: MotionOutlook {
        let settings = signals.settings
        var outlook = MotionOutlook()
        switch state {
        case .waiting: break
        case .settling: outlook.evidenceNeeded = settings.startEvidence
        case .stationary:
            let isOutside = signals.isOutside(evidence.distance, accuracy: evidence.accuracy)
            outlook.evidenceNeeded = Parked.evidenceNeeded(outside: isOutside, signals)
            outlook.radius = settings.stationaryRadius
        case .moving:
            outlook.stillSpeed = settings.disableStopDetection ? nil : settings.stillSpeed
            outlook.parksAt = nextDeadline
            outlook.parksBecause = .noFix
        case .stopping(let halt):
            outlook.evidenceNeeded = Halt.evidenceNeeded(signals)
            outlook.radius = settings.stationaryRadius
            outlook.standsSince = halt.value.since.at
            outlook.parksAt = nextDeadline
            let isTimeout = nextDeadline == halt.value.stopDue(signals)
            outlook.parksBecause = isTimeout ? halt.value.stopReason(settings) : .noFix
        }
        return outlook
    }

    /// m/s, root mean square: the speed that this receiver reports while the asset stands.
    var noiseSpeed: Double { signals.noise.speed }

    /// m/s over 5 s by the receiver's own speed; nil where it reports none.
    var dopplerSpeed: Double? { signals.window.hasDoppler ? signals.window.vectorSpeed : nil }

    /// Of the last fix by the receiver's own speed, m/s; nil where it reports none.
    var velocity: PlanePoint? { signals.window.newestVelocity }

    func store(in state: inout StoredState) {
        state.moving = isMoving
        state.announced = hasPlace
        state.anchor = place
        state.fenceCentre = fenceCentre
    }

    // MARK: Fixes

    mutating func observe(_ sighting: Sighting) -> Transition? {
        let previous = (moment: signals.lastFix, coordinate: signals.lastCoordinate)
        signals.append(sighting)
        if let transition = judgeGap(sighting, previous.moment, previous.coordinate) { return transition }
        switch moveOutState() {
        case .waiting:
            return observe(sighting, Search(since: sighting.at))
        case .settling(let search):
            return observe(sighting, search.value)
        case .stationary(var parked):
            let hint = hint.flatMap { sighting.at <= $0.until ? $0.reason : nil }
            let outcome = parked.value.observe(sighting, &signals, hint: hint)
            state = .stationary(parked)
            switch outcome {
            case nil: return nil
            case .departed(let reason): return depart(reason)
            case .moved(let place):
                state = .stationary(Boxed(Parked(at: place)))
                return .moved(from: parked.value.place, to: place)
            }
        case .moving(var trip):
            guard let halt = trip.value.observe(sighting, &signals) else {
                state = .moving(trip)
                return nil
            }
            state = .stopping(halt)
            return .halted(
                since: halt.value.since, noise: signals.window.travelledBeforeNewest(below: Tuning.noiseSpeedMax))
        case .stopping(var halt):
            let outcome = halt.value.observe(sighting, &signals)
            state = .stopping(halt)
            return outcome.map { perform($0, halt.value, sighting.plane) }
        }
    }

    /// The speeds so far meant nothing.
    mutating func forgetSpeeds() { signals.clearWindow() }

    /// Evidence from before does not count any more: the asset is elsewhere, or the clock is.
    mutating func forgetEvidence() {
        signals.clearWindow()
        change(
            settling: { $0.forgetEvidence() }, stationary: { $0.forgetEvidence() }, stopping: { $0.forgetEvidence() })
    }

    /// The first place is sought from the beginning; one that was found stays.
    mutating func beginAgain() { if case .settling = state { state = .waiting } }

    // MARK: Deadlines

    /// When silence alone changes the state; nil = never.
    var nextDeadline: EventTime? {
        guard let lastFix = signals.lastFix else { return nil }
        switch state {
        case .waiting, .settling, .stationary:
            return nil
        case .moving(let trip):
            return max(lastFix.at, trip.value.reported?.at ?? lastFix.at) + signals.settings.noFixTimeout
        case .stopping(let halt):
            let silent = lastFix.at + signals.settings.noFixTimeout
            if signals.settings.disableStopDetection || !wasSeen(halt.value, until: lastFix) { return silent }
            return min(silent, halt.value.stopDue(signals))
        }
    }

    mutating func deadlineReached(at: EventTime, plane: LocalPlane) -> Transition? {
        guard let nextDeadline, nextDeadline <= at, let lastFix = signals.lastFix else { return nil }
        signals.decision.evidence = 0
        signals.decision.speed = nil
        switch moveOutState() {
        case .moving(let trip):
            guard let place = signals.lastPlace else {
                state = .moving(trip)
                return nil
            }
            let last = trip.value.reported.map { $0.at > lastFix.at ? $0 : lastFix } ?? lastFix
            return park(.noFix, at: place, standstill: last.time)
        case .stopping(var halt):
            let isSilent = lastFix.at + signals.settings.noFixTimeout <= at && halt.value.stopDue(signals) > at
            if halt.value.isLeft, let place = signals.lastPlace {
                return park(.noFix, at: place, standstill: lastFix.time)
            }
            if isSilent || !wasSeen(halt.value, until: lastFix) {
                return park(.noFix, at: halt.value.place, standstill: halt.value.since.time)
            }
            let outcome = halt.value.endInSilence(signals, plane)
            state = .stopping(halt)
            guard let outcome else { return nil }
            return perform(outcome, halt.value, plane)
        case let other:
            state = other
            return nil
        }
    }

    /// Enough of the halt was seen for silence to count as standing.
    private func wasSeen(_ halt: Halt, until lastFix: Moment) -> Bool {
        lastFix.at.seconds(since: halt.since.at) >= Tuning.seenBeforeSilence && !halt.isLeft
    }

    // MARK: Requests and other sources

    /// Parked, whatever the fixes say.
    mutating func park(_ reason: MotionReason, at place: StoredState.Anchor, standstill: UTCTime) -> Transition {
        state = .stationary(Boxed(Parked(at: place)))
        return .stopped(reason, at: place, standstill: standstill)
    }

    /// Parked where it was last seen, or where it halts, because its hours have ended.
    /// - Parameters:
    ///   - halt: its beginning; nil = it moves.
    ///   - lastFix: the time of a fix that was not observed.
    mutating func parkOutsideHours(since halt: UTCTime?, lastFix time: UTCTime) -> Transition? {
        guard let seen = signals.lastPlace else { return nil }
        var place = seen
        var standstill = restoredStandstill ?? time
        if let lastFix = signals.lastFix {
            standstill = halt ?? lastFix.time
        } else {
            place.accuracy = nil
        }
        if halt != nil || signals.lastFix == nil { place = self.place ?? place }
        // No fixes decided this.
        signals.decision = MotionEvidence(accuracy: place.accuracy)
        return park(.schedule, at: place, standstill: standstill)
    }

    /// The user, or external power, says that the asset moves; nil = it is on a trip and does.
    /// - Parameter now: nil = the time is not known.
    mutating func moveAtOnce(_ reason: MotionReason, now: Moment?) -> Transition? {
        switch state {
        case .waiting, .settling, .stationary:
            let from = place
            _ = depart(reason, reported: now)
            signals.clearWindow()
            return .departedAtOnce(reason, from: from)
        case .moving:
            return nil
        case .stopping(let halt):
            signals.clearWindow()
            guard let lastFix = signals.lastFix else { return nil }
            var trip = halt.value.resumed(at: lastFix.at)
            // What follows is another halt.
            trip.forgetHalts()
            state = .moving(Boxed(trip))
            return .resumed(since: halt.value.since, from: halt.value.place)
        }
    }

    /// Another source reported movement: while the asset is not on a trip a little evidence suffices.
    mutating func expectDeparture(_ reason: MotionReason, until: EventTime) { hint = (reason, until) }

    mutating func externalPowerCame() { change(moving: { $0.powerCame() }, stopping: { $0.powerCame() }) }

    mutating func externalPowerWentOff(at: EventTime) {
        if hint?.reason == .power { hint = nil }
        // Lost in full motion it is a fuse, a plug or a tow, not a stop.
        guard signals.window.evidence < signals.settings.resumeEvidence else { return }
        change(moving: { $0.powerWentOff(at: at) }, stopping: { $0.powerWentOff(at: at) })
    }

    // MARK: Changes

    /// The state, moved out so that what it holds changes in place. The caller puts one back.
    private mutating func moveOutState() -> State {
        var moved = State.waiting
        swap(&moved, &state)
        return moved
    }

    /// Changes what the present state holds.
    private mutating func change(
        settling: (inout Search) -> Void = { _ in }, stationary: (inout Parked) -> Void = { _ in },
        moving: (inout Trip) -> Void = { _ in }, stopping: (inout Halt) -> Void
    ) {
        switch moveOutState() {
        case .waiting:
            break
        case .settling(var search):
            settling(&search.value)
            state = .settling(search)
        case .stationary(var parked):
            stationary(&parked.value)
            state = .stationary(parked)
        case .moving(var trip):
            moving(&trip.value)
            state = .moving(trip)
        case .stopping(var halt):
            stopping(&halt.value)
            state = .stopping(halt)
        }
    }

    private mutating func observe(_ sighting: Sighting, _ search: Search) -> Transition? {
        var search = search
        let finding = search.observe(sighting, signals)
        state = .settling(Boxed(search))
        switch finding {
        case nil: return nil
        case .departed:
            signals.decision.needed = signals.settings.startEvidence
            return depart(.speed)
        case .place(let place):
            state = .stationary(Boxed(Parked(at: place)))
            return .settled(.start, at: place)
        }
    }

    private mutating func depart(_ reason: MotionReason, reported: Moment? = nil) -> Transition {
        let from = place
        state = .moving(Boxed(Trip(reported: reported)))
        hint = nil
        return .departed(reason, from: from)
    }

    /// - Parameter halt: as it is after the outcome.
    private mutating func perform(_ outcome: Halt.Outcome, _ halt: Halt, _ plane: LocalPlane) -> Transition {
        switch outcome {
        case .movementWasNoise:
            return .movementWasNoise(since: halt.since)
        case .crept(let from):
            return .crept(since: halt.since, metres: from.coordinate.distance(to: halt.place.coordinate))
        case .resumed:
            state = .moving(Boxed(halt.resumed(at: signals.lastFix?.at ?? halt.since.at)))
            return .resumed(since: halt.since, from: halt.place)
        case .stopped(let reason, let standstill):
            signals.decision.needed = Halt.evidenceNeeded(signals)
            halt.noteScatter(&signals, plane)
            return park(reason, at: halt.place, standstill: standstill)
        }
    }

    /// A long silence that ends near where it began was a stop that was not seen, and a shorter one part of a halt.
    /// - Parameters:
    ///   - previous: the fix before the silence; nil = it was before a restart.
    ///   - before: where that was.
    private mutating func judgeGap(_ sighting: Sighting, _ previous: Moment?, _ before: Coordinate?) -> Transition? {
        let settings = signals.settings
        guard let silence = sighting.silence, silence >= Tuning.coldAfter, let before, !settings.disableStopDetection
        else { return nil }
        var standstill = previous?.time ?? restoredStandstill ?? sighting.time
        var stood = StoredState.Anchor(coordinate: before, accuracy: nil)
        let reported: Moment?
        switch state {
        case .waiting, .settling, .stationary:
            return nil
        case .moving(let trip):
            reported = trip.value.reported
        case .stopping(let halt):
            reported = halt.value.trip.reported
            if !halt.value.isLeft { (standstill, stood) = (halt.value.since.time, halt.value.place) }
        }
        let unseen = reported.map { min(silence, sighting.at.seconds(since: $0.at)) } ?? silence
        guard unseen >= Tuning.coldAfter else { return nil }
        let distance = (sighting.plane.point(sighting.fix.coordinate) - sighting.plane.point(stood.coordinate)).length
        guard distance / unseen < settings.stillSpeed else { return nil }
        guard unseen >= settings.stopTimeout.inSeconds else {
            guard case .moving(let trip) = state, let previous, distance <= settings.stationaryRadius else {
                return nil
            }
            let halt = Halt(since: previous, at: stood, seen: sighting.at, within: trip.value, signals)
            state = .stopping(Boxed(halt))
            return .halted(since: halt.since, noise: 0)
        }
        signals.decision.distance = distance
        guard distance > settings.stationaryRadius + Tuning.gapMargin else {
            return park(.gap, at: stood, standstill: standstill)
        }
        state = .moving(Boxed(Trip()))
        return .stoppedAndDeparted(from: stood, standstill: standstill)
    }
}
