/// The numbers of motion detection that are not settings. `make score` measures what a change of one costs: starts, stops and
/// odometer on simulated drives under an open sky, in a street, between towers and in a jam.
enum Tuning {
    // MARK: Receiver

    /// Seconds without a fix after which a receiver starts cold: its positions are off at first.
    static let coldAfter = 60.0
    /// Seconds for which they are off.
    static let warmUp = 30.0
    /// Metres at which the accuracy of a position is capped when it is compared with the fence.
    static let fenceAccuracyMax = 20.0

    // MARK: Search for the first place

    /// Seconds and fixes of little movement after which the place is found.
    static let calmSeconds = 24.0
    static let calmFixes = 30
    /// Seconds and fixes after which it is found in any case.
    static let searchSeconds = 60.0
    static let searchFixes = 3
    /// Seconds after which a receiver that is not accurate has a place too.
    static let searchMax = 300.0
    /// Positions without speeds that are judged together, at least and at most, and the seconds between two of them.
    static let leadPositionsMin = 4
    static let leadPositions = 5
    static let leadSpacing = 4.5
    /// The last of their steps is this fast, as a share of the mean speed: the error of a cold start fades.
    static let leadSpeedShare = 0.8

    // MARK: Parked

    /// Metres of agreed movement that a parked receiver seldom shows.
    static let restlessEvidence = 3.0
    /// m/s over 3 s that no receiver invents, if its positions agree: the fence need not be left first.
    static let surgeSpeed = 3.5
    /// The same as a multiple of the speed that this receiver reports while parked.
    static let surgeNoise = 6.0
    /// Evidence as a multiple of what noise alone makes of it: to leave the radius, and to be outside of it.
    static let startNoise = 3.0
    static let outsideNoise = 2.4
    /// Fixes beyond the backup radius that are a departure.
    static let backupFixes = 3
    /// m/s with which they are one after a silence too: slower the asset may stand there.
    static let elsewhereSpeed = 1.5
    /// Fixes, and the time that they span, outside the fence that are a departure without any speed, if they were driven to.
    static let awayFixes = 3
    /// The same where they lead on from each other.
    static let awayFixesOnTheWay = 2
    static let awaySpan = Duration.seconds(8)
    /// Accuracies beyond the radius from which on they count where they stand.
    static let awayAccuracies = 3.0
    /// They may come back by this share of the way: an error that fades comes back by more.
    static let awayReturn = 0.1
    /// Seconds in which the fence follows the slow component of the receiver's error.
    static let driftTimeConstant = 1000.0
    /// Metres of drift below which the fence is not moved: the resolution of a coordinate.
    static let driftStep = 0.1
    /// Fixes outside without evidence after which the fence is moved to them.
    static let strayFixes = 90

    // MARK: Beginning of a halt

    /// m/s of a single fix with which a halt begins: a speed that is filtered over a second has not come to rest with the
    /// wheels.
    static let quietSpeed = 0.9
    /// Seconds that a halt may have begun before it is seen.
    static let quietSeconds = 6.0
    /// m/s of a single fix below which the metres before a halt was seen were noise; above, it was coming to rest.
    static let noiseSpeedMax = 0.6
    /// Seconds into a halt from which records carry its place.
    static let holdAfter = 2.0
    /// Seconds of fixes from which the place of a halt is made. A later median would follow a jam that creeps.
    static let placeSpan = 30.0

    // MARK: End of a halt

    /// Metres of agreed movement that may be a creep, and metres of creeping that are one for certain.
    static let creepEvidence = 4.0
    static let creepDistance = 8.0
    /// Evidence as a multiple of what noise alone makes of it: to resume, and to resume where the position is outside.
    static let resumeNoise = 1.4
    static let hintNoise = 1.4
    /// Fixes after which a halt has ended: away from its place, with some evidence; and outside the radius, without any.
    static let hintFixes = 3
    static let outsideFixes = 30
    /// Metres beyond its accuracy from which on a fix is away from the place of a halt.
    static let heldSlack = 3.0
    /// A halt takes a position of a receiver that warms up for its place if its accuracy is this share of that of the place.
    static let warmerAccuracy = 0.7
    /// Path above which a place that moved may be movement rather than multipath: metres, a multiple of the noise, and a share
    /// of the distance between the positions.
    static let jumpPath = 6.0
    static let jumpNoise = 1.6
    static let jumpShare = 0.5
    /// Seconds within which a movement shows in the positions.
    static let pathMemory = 30.0
    /// Path beyond the radius that is movement when the stop is due: metres, and a multiple of the noise.
    static let onItsWayPath = 10.0
    static let onItsWayNoise = 1.8
    /// Seconds of a halt that must have been seen before silence may count as standing: a car crawls into a tunnel.
    static let seenBeforeSilence = 10.0
    /// Metres beyond the radius that a first fix after a gap may be off.
    static let gapMargin = 20.0
    /// m/s of a single fix at which an asset that stood may be pulling away.
    static let rollingSpeed = 0.7
    /// Then a stop that is due waits for the evidence: a halt that ends just before the timeout is a halt.
    static let rollingDelay = Duration.seconds(10)

    /// Seconds for which it must have been there: an asset that has just come is on its way.
    static let arrivalRest = 60.0
    /// Metres, at least and at most, beyond which a position was not yet where a receiver without speeds stopped in the end.
    static let arrivalMetres = 10.0
    static let arrivalMetresMax = 20.0

    // MARK: Halts that follow each other

    /// Seconds of movement after which what comes is another chain.
    static let chainMovementMax = 60.0
    /// Seconds that a movement may last and be noise.
    static let noiseMax = 30.0
    /// Seconds of the new halt after which its place is good enough to be compared.
    static let comparedAfter = 10.0
    /// Time over the stop timeout after which halts that were interrupted count as one, and seconds of the present halt.
    static let chainDelay = Duration.seconds(20)
    static let chainRest = 15.0
    /// m/s of noise above which a receiver invents movements, and does not see every creep of a few metres.
    static let noisySpeed = 0.3
    /// In a queue such a receiver gets this much longer: a stop that is late there costs less than a trip cut in two.
    static let queueDelay = Duration.seconds(120)
    /// Halts that make a queue; seconds of a halt in one; seconds and metres between two of them.
    static let queueHalts = 2
    static let queueHalt = 200.0
    static let queueSeconds = 90.0
    static let queueMetres = 40.0

    // MARK: Evidence

    /// Metres by which path and displacement may always differ.
    static let windowAgreement = 3.0
    /// Seconds by which the velocity of a receiver may lag behind its position: it is filtered more.
    static let velocityLagMax = 1.0
    /// Fixes in a row that a receiver without Doppler must be displaced; two suffice if they are so far apart.
    static let displacedFixes = 3
    static let displacedSpan = Duration.seconds(4)
    /// Seconds of the briefest mean velocity.
    static let surgeSpan = 3.0

    // MARK: Noise of the receiver

    /// Seconds of standing that the mean covers.
    static let noiseMemory = 300.0
    /// Seconds of standing before which nothing is known.
    static let noiseKnownAfter = 10.0
    /// m/s; a mooring that swings is no noise, and must not make the detector deaf.
    static let noiseSpeedLimit = 0.8
    /// m/s; a faster asset is pulling away.
    static let noiseVelocityMax = 2.0
    /// Seconds; times the noise this is the path that noise makes in the 15 s of the evidence window, correlated over about 4 s.
    static let noiseWindowSeconds = 9.5

    // MARK: Departure

    /// Metres per second over three fixes at which the asset still moves.
    static let departureSpeed = 0.6
    /// The same as a multiple of the speed that this receiver reports while parked.
    static let departureNoise = 2.0
    /// Seconds that a pause within the departure may last (reversing out, then forward).
    static let departurePauseMax = 20.0
    /// Seconds of a pause within the movement before that.
    static let departureFalter = 5.0
    /// Metres of movement before a pause that make it part of the departure.
    static let departureEvidence = 8.0
    /// Seconds; no departure is older.
    static let departureBackMax = 180.0

    // MARK: Creeping jams

    /// Seconds over which the place before a creep is averaged.
    static let creepCalmMemory = 8.0
    /// Seconds of calm after which a creep is over and its step is known.
    static let creepCalmAfter = 8.0
}
