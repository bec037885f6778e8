import Positioning

/// Finds out from the speed alone whether the asset walks, runs, rides a bicycle or drives.
///
/// Each way of travelling has speeds of its own, but a car has all of them: it creeps like a walker in a jam. So what only a
/// vehicle does (fast, or pulling away as no legs can) counts at once, and is remembered; it is left by standing, and then
/// walking on evenly for longer than a creep lasts. A cyclist is remembered likewise on a hill. Between a walk, a run and a
/// ride the pace decides, with a margin and a delay, so that the answer does not flap.
struct ActivityClassifier: Sendable {
    private var trend = SpeedTrend()
    /// How it travels when it does; nil = not known yet.
    private var mode: Activity.Kind?
    /// What a walk interrupted: a ride or a drive is gone on with, rather than left for another way.
    private var interrupted: Activity.Kind?
    /// It stands for long enough to be still.
    private var isStill = false
    private var restIsReported = false

    /// m/s, the present speed.
    private var speed = 0.0
    /// While it moves: of the last strides, and of the last minute.
    private var pace = MeanSpeed(memory: ActivityTuning.paceMemory)
    private var longPace = MeanSpeed(memory: ActivityTuning.longPaceMemory)

    /// Seconds that it stands.
    private var restFor = 0.0
    /// Seconds of movement without a standing pause, and of those at most at a walker's and at a runner's pace.
    private var movesFor = 0.0
    private var walksFor = 0.0
    private var runsFor = 0.0
    /// Metres at a walker's pace, likewise.
    private var walked = 0.0
    /// m²/s⁴, mean square of the acceleration, and the seconds that it has been that of a vehicle.
    private var roughness = 0.0
    private var roughFor = 0.0
    /// Seconds above the speed that a cyclist reaches only downhill.
    private var fastFor = 0.0
    /// Seconds of movement since it did what only a vehicle does.
    private var sinceVehicle = 0.0
    /// It stood, since it last moved faster than a runner.
    private var hasStood = false
    /// Another mode than the present one, and for how many seconds the pace has been that of it.
    private var challenger: Activity.Kind?
    private var challengedFor = 0.0
    /// Seconds of speeds that agreed with the mode, less those that did not.
    private var agreement = 0.0
    /// Seconds of movement in this mode.
    private var agedFor = 0.0

    /// nil before enough was seen.
    var activity: Activity? {
        if isStill { return Activity(kind: .still, confidence: min(95, 60 + Int(restFor))) }
        return mode.map { Activity(kind: $0, confidence: 50 + Int(1.5 * agreement)) }
    }

    /// How it went is over: what comes next may be something else.
    mutating func begin() { self = ActivityClassifier() }

    /// - Parameters:
    ///   - speed: m/s.
    ///   - noise: m/s that this receiver reports while the asset stands.
    ///   - halts: it stands within a trip, as far as motion detection knows.
    ///   - engineRuns: nil = nothing is known of an engine.
    ///   - interval: seconds between fixes, as measured.
    mutating func observe(
        _ speed: Double, noise: Double, halts: Bool, engineRuns: Bool?, at: EventTime, interval: Double
    ) {
        guard speed.isFinite, speed >= 0, let slot = trend.append(speed, at: at, interval: interval) else { return }
        self.speed += (slot.speed - self.speed) * (slot.seconds / (slot.seconds + ActivityTuning.smoothing))
        let restSpeed = min(
            ActivityTuning.restSpeedMax, max(ActivityTuning.restSpeed, ActivityTuning.restNoise * noise))
        if self.speed < restSpeed {
            stood(slot.seconds, engineRuns: engineRuns)
        } else {
            moved(slot, noise: noise, halts: halts, engineRuns: engineRuns)
        }
    }

    /// A movement source of the asset says that it rests, or moves again.
    mutating func movementReported(_ moving: Bool) { restIsReported = !moving }

    private mutating func stood(_ seconds: Double, engineRuns: Bool?) {
        restFor += seconds
        walked = 0
        if restFor >= ActivityTuning.pause {
            (movesFor, walksFor, runsFor, fastFor, roughness, roughFor) = (0, 0, 0, 0, 0, 0)
            pace.reset()
            challenger = nil
        }
        if restFor >= ActivityTuning.standstill { hasStood = true }
        if restFor >= stillAfter(engineRuns: engineRuns) { isStill = true }
    }

    /// Seconds of standing.
    private func stillAfter(engineRuns: Bool?) -> Double {
        if mode == .inVehicle, engineRuns != false { return ActivityTuning.stillInVehicleAfter }
        return restIsReported ? ActivityTuning.pause : ActivityTuning.stillAfter
    }

    private mutating func moved(_ slot: SpeedTrend.Slot, noise: Double, halts: Bool, engineRuns: Bool?) {
        let seconds = slot.seconds
        restFor = 0
        movesFor += seconds
        // In a halt it may be noise, or a creep that ends at once.
        if movesFor > ActivityTuning.pause, !halts || speed > ActivityTuning.goesOnSpeed { isStill = false }
        pace.observe(slot.speed, seconds)
        longPace.observe(slot.speed, seconds)

        walksFor = speed < ActivityTuning.runningPace + ActivityTuning.runningMargin ? walksFor + seconds : 0
        walked = walksFor > 0 ? walked + slot.speed * seconds : 0
        runsFor = speed < ActivityTuning.ridingPace + ActivityTuning.ridingMargin ? runsFor + seconds : 0
        fastFor = trend.sustained >= ActivityTuning.downhillSpeed ? fastFor + seconds : 0
        if runsFor == 0 { hasStood = false }
        feelRoughness(seconds, noise: noise)
        sinceVehicle += seconds
        agedFor += seconds
        if engineRuns == true || drives(noise: noise) {
            sinceVehicle = 0
            become(.inVehicle)
        } else if let other = challengingMode(noise: noise) {
            challenged(by: other, seconds)
        } else {
            challenger = nil
        }
        agree(seconds)
    }

    /// It does what only a vehicle does.
    private func drives(noise: Double) -> Bool {
        trend.sustained >= ActivityTuning.vehiclePeak
            || fastFor >= ActivityTuning.downhillMax
            || roughFor >= ActivityTuning.roughFor
            || (speed >= ActivityTuning.engineSpeed
                && trend.power >= ActivityTuning.enginePower + ActivityTuning.engineNoise * noise * speed)
    }

    private mutating func feelRoughness(_ seconds: Double, noise: Double) {
        guard movesFor > ActivityTuning.pullingAway else { return }
        let memory = min(ActivityTuning.roughnessMemory, movesFor - ActivityTuning.pullingAway)
        let square = trend.acceleration * trend.acceleration
        roughness += (square - roughness) * min(1, seconds / memory)
        let limit = ActivityTuning.roughness
        let ofNoise = ActivityTuning.roughnessNoise * noise
        let isRough = longPace.mean >= ActivityTuning.roughSpeed && roughness > limit * limit + ofNoise * ofNoise
        roughFor = isRough ? roughFor + seconds : 0
    }

    /// What the pace says where nothing is remembered.
    private var modeOfPace: Activity.Kind {
        if pace.mean < ActivityTuning.runningPace { return .onFoot }
        return pace.mean < ActivityTuning.ridingPace ? .running : .onBicycle
    }

    /// The mode that the movement speaks for against the present one; nil = it may be the present one.
    private func challengingMode(noise: Double) -> Activity.Kind? {
        guard movesFor >= ActivityTuning.knownAfter else { return nil }
        switch mode {
        case nil, .still:
            return modeOfPace
        case .onFoot:
            guard pace.mean > ActivityTuning.runningPace + ActivityTuning.runningMargin else { return nil }
            return agedFor < ActivityTuning.interruptionMax ? interrupted ?? modeOfPace : modeOfPace
        case .running:
            if pace.mean < ActivityTuning.runningPace - ActivityTuning.runningMargin { return .onFoot }
            let rides =
                pace.mean > ActivityTuning.ridingPace + ActivityTuning.ridingMargin
                || trend.sustained > ActivityTuning.ridingPeak + noise
            return rides ? .onBicycle : nil
        case .onBicycle:
            if walksFor >= ActivityTuning.dismountedAfter { return .onFoot }
            let runs =
                hasStood && runsFor >= ActivityTuning.runsAfter
                && longPace.mean < ActivityTuning.ridingPace - ActivityTuning.ridingMargin
            return runs ? modeOfPace : nil
        case .inVehicle:
            guard hasStood else { return nil }
            if walked >= ActivityTuning.leftVehicleAfter, pace.isEven(noise: noise) { return .onFoot }
            let isOther =
                sinceVehicle >= ActivityTuning.otherThanVehicleAfter && longPace.mean > ActivityTuning.runningPace
                && longPace.isEven(noise: noise)
            return isOther ? modeOfPace : nil
        }
    }

    private mutating func challenged(by other: Activity.Kind, _ seconds: Double) {
        guard mode != nil else { return become(other) }
        challengedFor = challenger == other ? challengedFor + seconds : 0
        challenger = other
        if challengedFor >= ActivityTuning.otherPaceFor { become(other) }
    }

    private mutating func become(_ kind: Activity.Kind) {
        guard mode != kind else { return }
        interrupted = kind == .onFoot && mode != .running ? mode : nil
        mode = kind
        challenger = nil
        (agreement, agedFor) = (0, 0)
    }

    private mutating func agree(_ seconds: Double) {
        guard let mode else { return }
        let agrees = mode == .inVehicle ? sinceVehicle == 0 || speed > ActivityTuning.downhillSpeed : mode == modeOfPace
        let change = agrees ? seconds : -seconds * (mode == .inVehicle ? ActivityTuning.vehicleDoubt : 1)
        agreement = min(ActivityTuning.agreementMax, max(0, agreement + change))
    }
}

/// Mean and spread of a speed over a memory in which the past fades.
private struct MeanSpeed {
    /// Seconds.
    let memory: Double
    /// m/s.
    private(set) var mean = 0.0
    /// m²/s².
    private var variance = 0.0
    private var seconds = 0.0

    init(memory: Double) { self.memory = memory }

    mutating func reset() { seconds = 0 }

    mutating func observe(_ speed: Double, _ elapsed: Double) {
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
