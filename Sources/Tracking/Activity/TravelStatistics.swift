import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How the asset travelled in the last minutes of this trip: running sums in which the past fades, so that after ten minutes
/// three per cent of it are left.
///
/// It holds measures and no answer. A ride and a drive have the same speeds for minutes; they differ in how hard the speed is
/// gained, how steadily it is held, how much of the time the asset stands, and how much power the movement takes. A run
/// differs from both in the regularity of its pace.
struct TravelStatistics: Sendable {
    /// When it was last told something.
    private var at: EventTime?
    /// Seconds in all, and of those at rest.
    private var time = 0.0
    private var rest = 0.0
    /// Seconds of movement, which the sums below weigh.
    private(set) var moving = 0.0
    /// Of speed³, of acceleration⁴ while it speeds up, and of seconds at an even speed that legs can hold.
    private var cubes = 0.0
    private var pulls = 0.0
    private var steady = 0.0
    /// Standstills, and the way between them by velocities: its length and where it led, metres.
    private var halts = 0.0
    private var metres = 0.0
    private var way = PlanePoint.zero
    /// Seconds faster than a brisk walk, with the speed and its square: a runner who walks for a moment keeps the pace of the run.
    private var fast = 0.0
    private var speeds = 0.0
    private var squares = 0.0
    /// J/kg, of motion and height; nil = the altitude of the fix before is not known.
    private var energy: Double?
    /// J/kg gained, and lost to air and tyres, in so many of the last seconds.
    private var gained = 0.0
    private var lost = 0.0
    private var powered = 0.0

    /// Before the first movement it is not on a trip.
    /// - Parameter seconds: of standing.
    mutating func stood(_ seconds: Double, at: EventTime) {
        guard moving > 0 else { return }
        fade(to: at)
        time += seconds
        rest += seconds
        energy = nil
    }

    /// - Parameters:
    ///   - slot: a mean speed, and its seconds.
    ///   - acceleration: m/s².
    ///   - span: seconds that the speeds are means of, or apart: it smooths accelerations away.
    ///   - noise: m/s that this receiver reports while the asset stands.
    ///   - altitude: metres; nil = not known.
    mutating func moved(
        _ slot: SpeedTrend.Slot, acceleration: Double, span: Double, noise: Double, altitude: Double?, at: EventTime
    ) {
        fade(to: at)
        let (speed, seconds) = (slot.speed, slot.seconds)
        time += seconds
        moving += seconds
        let square = speed * speed
        cubes += square * speed * seconds
        if speed > ActivityTuning.briskWalk {
            fast += seconds
            speeds += speed * seconds
            squares += square * seconds
        }
        let pull = acceleration - ActivityTuning.accelerationNoise * noise
        if pull > 0 {
            let whole = pull * (1 + span / ActivityTuning.smoothingSpan)
            pulls += whole * whole * whole * whole * seconds
        }
        if abs(acceleration) < ActivityTuning.steadyAcceleration, ActivityTuning.steadySpeeds.contains(speed) {
            steady += seconds
        }
        observePower(speed, seconds, altitude: altitude)
    }

    /// Without altitude a descent looks like an engine: then nothing is said of power.
    private mutating func observePower(_ speed: Double, _ seconds: Double, altitude: Double?) {
        guard let altitude, abs(altitude) <= ActivityTuning.altitudeMax else {
            energy = nil
            (gained, lost, powered) = (0, 0, 0)
            return
        }
        let share = ActivityTuning.powerMemory / (ActivityTuning.powerMemory + seconds)
        gained *= share
        lost =
            lost * share
            + (ActivityTuning.airDrag * speed * speed * speed + ActivityTuning.rollingDrag * speed) * seconds
        powered = powered * share + seconds
        let now = speed * speed / 2 + ActivityTuning.gravity * altitude
        if let energy {
            let limit = ActivityTuning.powerLimit * seconds
            gained += max(-limit, min(limit, now - energy))
        }
        energy = now
    }

    private mutating func fade(to at: EventTime) {
        let elapsed = self.at.map { max(0, at.seconds(since: $0)) } ?? 0
        self.at = at
        let share = ActivityTuning.tripMemory / (ActivityTuning.tripMemory + elapsed)
        time *= share
        rest *= share
        moving *= share
        cubes *= share
        pulls *= share
        steady *= share
        fast *= share
        speeds *= share
        squares *= share
        halts *= share
        metres *= share
        way = way * share
    }

    /// It has come to a standstill.
    mutating func halted() {
        if moving > 0 { halts += 1 }
    }

    /// - Parameters:
    ///   - velocity: m/s, while it moves.
    ///   - speed: its length.
    mutating func went(_ velocity: PlanePoint, _ speed: Double, _ seconds: Double) {
        metres += speed * seconds
        way = way + velocity * seconds
    }

    // MARK: Scores

    /// Some of the movement was too fast for a walk.
    var wasFast: Bool { fast > ActivityTuning.fastMin }

    /// It creeps from one standstill to the next, all of them in one direction: who walks from door to door comes back.
    var isQueue: Bool {
        let straight = ActivityTuning.queueStraightness * metres
        return halts >= ActivityTuning.queueHalts && metres < ActivityTuning.queueMetres * halts
            && rest > ActivityTuning.queueRestShare * time
            && way.east * way.east + way.north * way.north > straight * straight
    }

    /// What speaks for a vehicle, and for a run, rather than a bicycle: logarithm of the odds.
    var odds: (vehicle: Double, run: Double) {
        guard moving > 0 else { return (0, 0) }
        let speed = cbrt(cubes / moving)
        return (vehicle(speed), run(speed))
    }

    /// - Parameter speed: m/s, the cubic mean.
    private func vehicle(_ speed: Double) -> Double {
        let pull = max(ActivityTuning.pullMin, pulls / moving)
        let rested = min(ActivityTuning.restShareMax, rest / time)
        var score = ActivityTuning.pullWeight * log(pull / ActivityTuning.pull)
        score += ActivityTuning.descentWeight * max(0, speed - ActivityTuning.descent)
        score += ActivityTuning.restWeight * rested - ActivityTuning.steadyWeight * steady / moving
        score += ActivityTuning.vehicleOdds
        guard powered >= ActivityTuning.powerKnownAfter else { return score - ActivityTuning.powerUnknown }
        let power = max(ActivityTuning.powerMin, min(ActivityTuning.powerMax, (gained + lost) / powered))
        // A vehicle that crawls needs no power either.
        let share = max(0, min(1, (speed - ActivityTuning.crawl) / ActivityTuning.crawlRange))
        return score + share * ActivityTuning.powerWeight * (power - ActivityTuning.legPower)
    }

    /// Who runs keeps a pace, whatever it is; who rides does not.
    private func run(_ speed: Double) -> Double {
        guard fast > 1 else { return 0 }
        let mean = speeds / fast
        let swing = max(0, squares / fast - mean * mean).squareRoot() / mean
        return ActivityTuning.runnerOdds - ActivityTuning.swingWeight * swing - ActivityTuning.runnerSpeedWeight * speed
            - ActivityTuning.sprintWeight * max(0, speed - ActivityTuning.sprint)
    }
}

extension TravelStatistics {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(time.isFinite && time >= 0, "\(time) s")
        invariant(rest.isFinite && rest >= 0, "\(rest) s at rest")
        invariant(moving.isFinite && moving >= 0, "\(moving) s in motion")
        invariant(metres.isFinite && metres >= 0, "\(metres) m")
        invariant(halts.isFinite && halts >= 0, "\(halts) halts")
        invariant(
            [cubes, pulls, steady, fast, speeds, squares, gained, lost, powered].allSatisfy(\.isFinite),
            "a sum that is no number")
    }
}
