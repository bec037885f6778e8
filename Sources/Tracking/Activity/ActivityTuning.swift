/// The numbers by which a walk, a run, a ride and a drive are distinguished. `waypost-score activity` measures what a change of
/// one costs.
enum ActivityTuning {
    // MARK: Speed

    /// Seconds of a slot: a receiver of 10 Hz says no more about a walk than one of 1 Hz.
    static let slot = 0.95
    /// Seconds between the speeds that make an acceleration: over one second it would be noise.
    static let accelerationSpan = 1.9
    /// Seconds within which the power of an engine shows: three when it overtakes, four when it starts.
    static let powerSpanMin = 2.8
    static let powerSpanMax = 3.8
    /// Seconds that the present speed covers: a stride and the noise of one fix are not a change.
    static let smoothing = 2.0
    /// Seconds that the pace covers: a walker slows for a kerb, a cyclist for a bend.
    static let paceMemory = 8.0
    /// Seconds of movement that say whether the asset has a pace of its own, or goes with the traffic.
    static let longPaceMemory = 60.0

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
    /// The same in a vehicle, unless its engine is known to be off or tracking parks it before: it stands at lights and in
    /// jams, and is still on its way.
    static let stillInVehicleAfter = 90.0

    /// m/s with which a halt is over before motion detection is sure.
    static let goesOnSpeed = 1.0

    // MARK: Pace

    /// Seconds of movement after which a pace says something: a cyclist has pulled away by then.
    static let knownAfter = 10.0
    /// m/s between a walk (people walk at 0.8 to 2) and a run, and how far the pace must go beyond.
    static let runningPace = 2.1
    static let runningMargin = 0.15
    /// m/s between a run (most train at 2.3 to 4) and a ride (4 to 7), and how far the pace must go beyond.
    static let ridingPace = 4.05
    static let ridingMargin = 0.25
    /// m/s for two seconds that few people run at.
    static let ridingPeak = 5.6
    /// Seconds for which another pace must last: a sprint to the bus is no run.
    static let otherPaceFor = 6.0

    // MARK: Bicycle

    /// Seconds of a walker's pace without a break after which a cyclist walks: steep hills are climbed at that pace, too.
    static let dismountedAfter = 20.0
    /// Seconds of a runner's pace after a standstill after which a cyclist runs; without a standstill it is a hill.
    static let runsAfter = 60.0

    // MARK: Vehicle

    /// m/s for two seconds that no cyclist reaches in a town.
    static let vehiclePeak = 12.5
    /// m/s that a cyclist reaches only downhill, and seconds for which no hill in a town lasts.
    static let downhillSpeed = 9.5
    static let downhillMax = 40.0
    /// W/kg, and m/s to be had with it: legs give 2 to 4 for longer than a moment.
    static let enginePower = 5.5
    static let engineSpeed = 4.0
    /// The same for each m/s of noise and of speed.
    static let engineNoise = 0.25
    /// m/s², root mean square over half a minute of movement: who steers with two pedals, in a car park or in dense traffic,
    /// has 0.6 and more; who rides a bicycle has 0.2 to 0.45, and keeps the speed that he has paid for.
    static let roughness = 0.55
    static let roughnessMemory = 30.0
    /// What the noise of the receiver adds to it for each m/s.
    static let roughnessNoise = 0.35
    /// Seconds of movement that pulling away takes, which is rough for everybody, and seconds of roughness after that.
    static let pullingAway = 8.0
    static let roughFor = 12.0
    /// m/s; slower than this, steps are rough.
    static let roughSpeed = 2.5
    /// Metres of an even walker's pace, without a break and after a standstill, with which a person has left the vehicle: a
    /// creep in a jam is shorter, or uneven.
    static let leftVehicleAfter = 42.0
    /// Seconds of walking after which what follows is not the ride or drive from before.
    static let interruptionMax = 600.0
    /// m/s; slower is a creep.
    static let walkingPaceMin = 0.8
    /// Deviation of the speed as a share of the pace that is even.
    static let evenShare = 0.25
    /// Seconds of movement after a standstill without anything that only a vehicle does after which it was left for a bicycle,
    /// or for a run: dense traffic is slow as well, but pulls away again.
    static let otherThanVehicleAfter = 240.0

    // MARK: Confidence

    /// Seconds of speeds that agree with the answer, until the confidence is full.
    static let agreementMax = 30.0
    /// What disagrees counts this much in a vehicle: every speed is one that cars have.
    static let vehicleDoubt = 0.25
}
