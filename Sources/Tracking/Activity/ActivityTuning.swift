/// The numbers by which a walk, a run, a ride and a drive are distinguished. `waypost-score activity` measures what a change of
/// one costs on simulated ways, `scripts/score-truth` on recorded ones.
enum ActivityTuning {
    // MARK: Speed

    /// m/s and metres; what is beyond is no speed of an asset and no height of one.
    static let speedMax = 350.0
    static let altitudeMax = 20_000.0
    /// Seconds of a slot: a receiver of 10 Hz says no more about a walk than one of 1 Hz.
    static let slot = 0.95
    /// Seconds between the speeds that make an acceleration: over one second it would be noise.
    static let accelerationSpan = 1.9
    /// Seconds that the present speed covers: a stride and the noise of one fix are not a change.
    static let smoothing = 2.0
    /// Seconds that the pace covers: a walker slows for a kerb, a cyclist for a bend. Speeds that are means over a long span
    /// are even already.
    static let paceMemory = 8.0
    static let paceMemoryOfMeans = 3.0
    /// Seconds that a speed from positions covers at least, as motion detection makes it; longer ones are called means here.
    static let positionSpan = 10.0
    static let meanSpan = 5.0

    // MARK: Standing

    /// m/s below which it stands: half a slow walk.
    static let restSpeed = 0.5
    /// The same as a multiple of the speed that this receiver reports while the asset stands, and its limit: between towers
    /// a walk must not count as noise.
    static let restNoise = 1.4
    static let restSpeedMax = 0.8
    /// Seconds of standing that end a movement; briefer ones are a step aside, or noise.
    static let pause = 3.0
    /// Seconds of standing in which a person may get out of a car, or off a bicycle.
    static let standstill = 5.0
    /// Seconds of standing after which someone on foot or on a bicycle is still: a kerb is passed, a red light is not.
    static let stillAfter = 12.0
    /// Seconds since a vehicle moved as only wheels do after which it is still, if it stands: half of the red lights are shorter. And
    /// where speeds are means, which do not show the steps of a carrier who is at a door by then.
    static let stillInVehicleAfter = 40.0
    static let stillInVehicleByMeans = 20.0
    /// Seconds of standing after which it is still in a queue, which moves on later than a red light.
    static let stillInQueueAfter = 90.0
    /// m/s of wheels: people who walk are slower.
    static let wheels = 2.5

    /// m/s with which a halt is over before motion detection is sure.
    static let goesOnSpeed = 1.0
    /// The same without those seconds: noise is never that fast.
    static let pulledAwaySpeed = 1.3

    // MARK: Pace

    /// Seconds of movement after which a pace says something: a cyclist has pulled away by then.
    static let knownAfter = 10.0
    /// The same where the movement of this trip is known already, or nothing else has such a movement; and seconds of
    /// movement that make the trip known.
    static let knownSoonerAfter = 4.0
    static let tripKnownAfter = 30.0
    /// m/s between a walk (people walk at 0.8 to 2) and a run, and how far the pace must go beyond.
    static let runningPace = 2.1
    static let runningMargin = 0.15
    /// Seconds for which another way of travelling must be the better one: a sprint to the bus is no run.
    static let otherFor = 6.0
    /// Seconds of a walker's pace without a break after which a cyclist walks: steep hills are climbed at that pace, too.
    static let dismountedAfter = 20.0
    /// Metres of an even walker's pace, without a break and after a standstill, with which a person has left the vehicle: a
    /// creep in a jam is shorter, or uneven. And metres where speeds are means, of which evenness says nothing.
    static let leftVehicleAfter = 42.0
    static let leftVehicleByMeans = 8.0
    /// m/s; slower is a creep.
    static let walkingPaceMin = 0.8
    /// Deviation of the speed as a share of the pace that is even.
    static let evenShare = 0.25
    /// m/s above which a standstill from before is no occasion to have got out.
    static let onItsWay = 4.0

    // MARK: Memory

    /// Seconds after which an answer that nothing has confirmed is forgotten.
    static let memory = 120.0
    /// Seconds in which the statistics of a trip fade to 1/e; after ten minutes 3 % are left.
    static let tripMemory = 170.0

    // MARK: Vehicle or bicycle

    /// What an acceleration loses by the noise of the receiver, for each m/s of it.
    static let accelerationNoise = 0.35
    /// Seconds of span by which accelerations are halved, about: recorded cars and rides, thinned from 1 Hz to 0.03 Hz.
    static let smoothingSpan = 12.0
    /// m⁴/s⁸: the mean fourth power of what the asset speeds up with, at which neither is likelier: that of 0.46 m/s²; and the
    /// odds for its logarithm. Recorded rides have at most 0.52 in 90 % of the time (by speeds from their positions over 2 s),
    /// simulated ones 0.31, recorded cars in towns 0.7 to 1.3. And a floor, that of 0.2 m/s²: on a motorway, or uphill, nobody
    /// speeds up.
    static let pull = 0.0448
    static let pullMin = 0.0016
    static let pullWeight = 1.1
    /// m/s that no ride holds for minutes, even downhill, and the odds for each m/s beyond.
    static let descent = 11.0
    static let descentWeight = 1.25
    /// m/s, and m/s²: a cyclist holds such speeds for minutes, a vehicle in a town does not.
    static let steadySpeeds = 2.4..<6.5
    static let steadyAcceleration = 0.25
    static let steadyWeight = 2.2
    /// Vehicles stand for a fifth to half of a trip through a town, cyclists for a twentieth: more than a tenth says no more.
    static let restShareMax = 0.1
    static let restWeight = 23.0
    /// The rest of the odds.
    static let vehicleOdds = 0.2

    /// Seconds that the power covers, and that it must have been seen.
    static let powerMemory = 40.0
    static let powerKnownAfter = 15.0
    /// m/s².
    static let gravity = 9.81
    /// W/kg at 1 m/s of a cyclist with bicycle: of air, which goes with the cube of the speed, and of tyres.
    static let airDrag = 0.0025
    static let rollingDrag = 0.05
    /// W/kg; more, either way, is an altitude that jumped.
    static let powerLimit = 70.0
    /// W/kg that legs give for a while, and the range beyond which more says no more.
    static let legPower = 4.0
    static let powerMin = -2.0
    static let powerMax = 12.0
    static let powerWeight = 0.35
    /// Where no altitude is known, a descent may be what looks like an engine.
    static let powerUnknown = 0.5
    /// m/s below which power says nothing, and above that until it says all.
    static let crawl = 4.0
    static let crawlRange = 3.0

    // MARK: Queue

    /// Standstills, as they fade, and metres between them; more are a street with lights, or a walk.
    static let queueHalts = 1.5
    static let queueMetres = 30.0
    /// The share of the time that it stands: a slow walk between towers falters, too.
    static let queueRestShare = 0.5
    /// The distance that the way led as a share of its length.
    static let queueStraightness = 0.75
    /// The odds of a vehicle that it is.
    static let queueOdds = 2.0

    // MARK: Run or bicycle

    /// m/s; slower is walked.
    static let briskWalk = 2.0
    /// Seconds above that, as they fade, without which nothing speaks for a drive.
    static let fastMin = 5.0
    /// The odds of a run fall with the deviation of the pace as a share of it (runs 0.02 to 0.2, rides 0.15 to 0.5), with the
    /// speed, and more so from a speed on that is held for minutes by few.
    static let runnerOdds = 14.8
    static let swingWeight = 40.0
    static let runnerSpeedWeight = 2.0
    static let sprint = 5.0
    static let sprintWeight = 4.0

    // MARK: Answer

    /// By how much the present answer is preferred: logarithm of the odds.
    static let preference = 1.0
    /// The first answer of a trip must be better than the next by this much, unless the trip is known by then.
    static let firstMargin = 0.5
    /// The same in the first seconds of a movement: who pulls away as no legs can.
    static let earlyMargin = 4.0
    /// m/s of pace beyond the limit of a walk that count as much as the odds 1 : e.
    static let paceOfOdds = 0.25
}
