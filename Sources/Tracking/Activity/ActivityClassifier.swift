import WaypostCore

/// Finds out from the speed whether the asset walks, runs, rides a bicycle or drives.
///
/// Each answer follows from the movement of the last seconds and from measures of this trip that fade within ten minutes
/// (`TravelStatistics`). Answers are no evidence: one is kept while the movement agrees, left once another has been the better
/// one for a few seconds, and forgotten after two minutes in which nothing confirmed it.
///
/// At a walker's pace only the way it is held tells a walk from a creep, and only the sequence of creeps tells a queue; faster
/// than that, a run, a ride and a drive are weighed against each other.
struct ActivityClassifier: Sendable {
    private var trend = SpeedTrend()
    private var trip = TravelStatistics()
    /// How it travels when it does; nil = not known.
    private var mode: Activity.Kind?
    /// When the movement last agreed with it.
    private var confirmedAt: EventTime?
    /// How much better it is than the next: logarithm of the odds.
    private var margin = 0.0
    /// It stands for long enough to be still.
    private var isStill = false
    private var restIsReported = false

    /// m/s, the present speed.
    private var speed = 0.0
    /// While it moves, of the last strides.
    private var pace = MeanSpeed()

    /// Seconds that it stands.
    private var restFor = 0.0
    /// Seconds of movement without a standing pause, and of those at a walker's pace.
    private var movesFor = 0.0
    private var walksFor = 0.0
    /// Metres at a walker's pace, likewise.
    private var walked = 0.0
    /// Seconds since it moved faster than people walk.
    private var slowFor = 0.0
    /// It stood, since it last was fast.
    private var hasStood = false
    /// Another mode than the present one, and for how many seconds it has been the better one.
    private var challenger: Activity.Kind?
    private var challengedFor = 0.0

    /// nil before enough was seen, and where nothing speaks for any answer.
    var activity: Activity? {
        if isStill { return Activity(kind: .still, confidence: min(95, 60 + Int(restFor))) }
        return mode.map { Activity(kind: $0, confidence: 50 + Int(50 * margin / (1 + abs(margin)))) }
    }

    /// How it went is over: what comes next may be something else.
    mutating func begin() { self = ActivityClassifier() }

    /// - Parameters:
    ///   - speed: m/s.
    ///   - velocity: the vector of that speed, m/s; nil = not known.
    ///   - isMean: it is made from positions, and covers ten seconds at least.
    ///   - altitude: metres; nil = not known.
    ///   - noise: m/s that this receiver reports while the asset stands.
    ///   - halts: it stands within a trip, as far as motion detection knows.
    ///   - engineRuns: nil = nothing is known of an engine.
    ///   - interval: seconds between fixes, as measured.
    mutating func observe(
        _ speed: Double, velocity: PlanePoint?, isMean: Bool, altitude: Double?, noise: Double, halts: Bool,
        engineRuns: Bool?, at: EventTime, interval: Double
    ) {
        if let confirmedAt, at.seconds(since: confirmedAt) > ActivityTuning.memory { mode = nil }
        guard speed >= 0, speed <= ActivityTuning.speedMax,
            let slot = trend.append(speed, at: at, interval: interval)
        else { return }
        self.speed += (slot.speed - self.speed) * (slot.seconds / (slot.seconds + ActivityTuning.smoothing))
        slowFor = self.speed > ActivityTuning.wheels ? 0 : slowFor + slot.seconds
        let restSpeed = min(
            ActivityTuning.restSpeedMax, max(ActivityTuning.restSpeed, ActivityTuning.restNoise * noise))
        let span = isMean ? max(ActivityTuning.positionSpan, interval) : max(ActivityTuning.accelerationSpan, interval)
        let areMeans = span > ActivityTuning.meanSpan
        guard self.speed >= restSpeed else {
            return stood(slot.seconds, areMeans: areMeans, engineRuns: engineRuns, at: at)
        }

        trip.moved(slot, acceleration: trend.acceleration, span: span, noise: noise, altitude: altitude, at: at)
        if !areMeans, let velocity { trip.went(velocity, speed, slot.seconds) }
        moved(slot, areMeans: areMeans, halts: halts)
        if engineRuns == true {
            become(.inVehicle, at: at)
        } else {
            judge(slot.seconds, areMeans: areMeans, noise: noise, at: at)
        }
    }

    /// A movement source of the asset says that it rests, or moves again.
    mutating func movementReported(_ moving: Bool) { restIsReported = !moving }

    private mutating func stood(_ seconds: Double, areMeans: Bool, engineRuns: Bool?, at: EventTime) {
        trip.stood(seconds, at: at)
        if restFor < ActivityTuning.pause, restFor + seconds >= ActivityTuning.pause { trip.halted() }
        restFor += seconds
        walked = 0
        if restFor >= ActivityTuning.pause {
            (movesFor, walksFor) = (0, 0)
            pace.reset()
            challenger = nil
        }
        if restFor >= ActivityTuning.standstill { hasStood = true }
        if mode == .inVehicle, engineRuns != false {
            isStill = isStill || isStillInVehicle(areMeans: areMeans)
        } else if restFor >= (restIsReported ? ActivityTuning.pause : ActivityTuning.stillAfter) {
            isStill = true
        }
    }

    /// It has stood for longer than vehicles do within a trip.
    private func isStillInVehicle(areMeans: Bool) -> Bool {
        if trip.isQueue { return restFor >= ActivityTuning.stillInQueueAfter }
        let limit = areMeans ? ActivityTuning.stillInVehicleByMeans : ActivityTuning.stillInVehicleAfter
        return restFor >= ActivityTuning.pause && slowFor >= limit
    }

    private mutating func moved(_ slot: SpeedTrend.Slot, areMeans: Bool, halts: Bool) {
        restFor = 0
        movesFor += slot.seconds
        // In a halt it may be noise, or a creep that ends at once; in a queue creeps are all there is.
        let goesOn = !halts || speed > ActivityTuning.goesOnSpeed || trip.isQueue
        if movesFor > ActivityTuning.pause && goesOn || speed > ActivityTuning.pulledAwaySpeed { isStill = false }
        pace.observe(
            slot.speed, slot.seconds,
            memory: areMeans ? ActivityTuning.paceMemoryOfMeans : ActivityTuning.paceMemory)
        walksFor = speed < ActivityTuning.runningPace + ActivityTuning.runningMargin ? walksFor + slot.seconds : 0
        walked = walksFor > 0 ? walked + slot.speed * slot.seconds : 0
        if speed > ActivityTuning.onItsWay { hasStood = false }
    }

    // MARK: Answer

    private mutating func judge(_ seconds: Double, areMeans: Bool, noise: Double, at: EventTime) {
        guard movesFor >= ActivityTuning.knownSoonerAfter else { return }
        let isKnown = trip.moving > ActivityTuning.tripKnownAfter
        guard let best = isWalk ? slowKind(areMeans: areMeans, noise: noise) : fastKind() else { return }
        if best == mode {
            challenger = nil
            confirmedAt = at
        } else if mode == nil {
            let needed =
                movesFor < ActivityTuning.knownAfter ? ActivityTuning.earlyMargin : ActivityTuning.firstMargin
            if isKnown || margin >= needed { become(best, at: at) }
        } else {
            challengedFor = challenger == best ? challengedFor + seconds : 0
            challenger = best
            if areMeans || challengedFor >= ActivityTuning.otherFor { become(best, at: at) }
        }
    }

    /// The pace is that of a walk, with a margin for the present answer.
    private var isWalk: Bool {
        switch mode {
        case .onFoot: pace.mean < ActivityTuning.runningPace + ActivityTuning.runningMargin
        case .running: pace.mean < ActivityTuning.runningPace - ActivityTuning.runningMargin
        default: pace.mean < ActivityTuning.runningPace
        }
    }

    /// The answer at a walker's pace; nil = nothing speaks for one.
    private mutating func slowKind(areMeans: Bool, noise: Double) -> Activity.Kind? {
        let isQueue = trip.isQueue
        let odds = isQueue ? ActivityTuning.queueOdds : trip.odds.vehicle
        let drove = odds > 0 && trip.moving > ActivityTuning.tripKnownAfter && (isQueue || trip.wasFast)
        margin = max(0, ActivityTuning.runningPace - pace.mean) / ActivityTuning.paceOfOdds
        switch mode {
        case .onBicycle:
            margin = 0
            return walksFor >= ActivityTuning.dismountedAfter ? .onFoot : .onBicycle
        case .inVehicle where !(hasStood && hasLeft(areMeans: areMeans, noise: noise)),
            nil where drove && !areMeans && !hasLeft(areMeans: areMeans, noise: noise),
            .onFoot where drove && isQueue && !hasLeft(areMeans: areMeans, noise: noise),
            .running where drove && isQueue && !hasLeft(areMeans: areMeans, noise: noise):
            // A creep says nothing, but the way before it may, and so may a row of creeps.
            margin = min(margin, odds)
            return drove ? .inVehicle : nil
        default:
            return .onFoot
        }
    }

    /// It walks as someone who has got out.
    private func hasLeft(areMeans: Bool, noise: Double) -> Bool {
        if areMeans, slowFor >= ActivityTuning.stillInVehicleByMeans, walked > ActivityTuning.leftVehicleByMeans {
            return true
        }
        return walked >= ActivityTuning.leftVehicleAfter && pace.isEven(noise: noise)
    }

    /// The answer above a walker's pace.
    private mutating func fastKind() -> Activity.Kind {
        var rides = 0.0
        var (drives, runs) = trip.odds
        if trip.isQueue { drives = max(drives, 0) + ActivityTuning.queueOdds }
        switch mode {
        case .onBicycle: rides += ActivityTuning.preference
        case .inVehicle: drives += ActivityTuning.preference
        case .running: runs += ActivityTuning.preference
        default: break
        }
        if drives >= max(rides, runs) {
            margin = drives - max(rides, runs)
            return .inVehicle
        }
        if runs > rides {
            margin = runs - max(rides, drives)
            return .running
        }
        margin = rides - max(runs, drives)
        return .onBicycle
    }

    private mutating func become(_ kind: Activity.Kind, at: EventTime) {
        mode = kind
        confirmedAt = at
        challenger = nil
    }
}

/// Mean and spread of a speed over a memory in which the past fades.
private struct MeanSpeed {
    /// m/s.
    private(set) var mean = 0.0
    /// m²/s².
    private var variance = 0.0
    private var seconds = 0.0

    mutating func reset() { seconds = 0 }

    /// - Parameter memory: seconds.
    mutating func observe(_ speed: Double, _ elapsed: Double, memory: Double) {
        seconds = min(memory, seconds + elapsed)
        let share = min(1, elapsed / seconds)
        let difference = speed - mean
        mean += difference * share
        variance = share == 1 ? 0 : (variance + difference * difference * share) * (1 - share)
    }

    /// The speed changes no more than that of someone who keeps a pace of his own.
    func isEven(noise: Double) -> Bool {
        let deviation = ActivityTuning.evenShare * mean
        return mean >= ActivityTuning.walkingPaceMin && variance <= deviation * deviation + noise * noise / 2
    }
}

extension ActivityClassifier {
    /// What holds between two calls.
    func checkInvariants() {
        trip.checkInvariants()
        invariant(
            [margin, speed, restFor, movesFor, walksFor, walked, slowFor, challengedFor].allSatisfy(\.isFinite),
            "a measure that is no number")
        invariant(restFor >= 0 && movesFor >= 0 && walksFor >= 0 && slowFor >= 0, "a negative time")
        invariant(challenger == nil || challenger != mode, "\(String(describing: mode)) is questioned by itself")
    }
}
