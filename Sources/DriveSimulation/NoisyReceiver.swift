import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// What a receiver makes of one instant of the truth.
package enum Reception: Hashable, Sendable {
    /// No power.
    case silent
    /// No position. A receiver that starts cold does not know the time either.
    case void(knowsTime: Bool)
    case fix(NoisyFix)
}

/// A solution with the errors of its preset.
package struct NoisyFix: Hashable, Sendable {
    /// Metres from the origin of the drive.
    package var place: PlanePoint
    /// m/s, 0 and above.
    package var speed: Double
    /// Degrees true of the same velocity vector as `speed`, so it is random while parked.
    package var course: Double
    package var hdop: Double
    package var satellites: Int
    /// Metres above mean sea level.
    package var altitude: Double
    /// Metres per axis (1 σ) that the receiver believes.
    package var sigma: Double

    package init(
        place: PlanePoint, speed: Double, course: Double, hdop: Double, satellites: Int, altitude: Double, sigma: Double
    ) {
        self.place = place
        self.speed = speed
        self.course = course
        self.hdop = hdop
        self.satellites = satellites
        self.altitude = altitude
        self.sigma = sigma
    }
}

/// A GNSS receiver with correlated errors. Parked errors wander for minutes: white noise would average out at once and
/// flatter every motion detector (Sensors 2020, 20(21), 6050).
struct NoisyReceiver: Sendable {
    private let preset: NoisePreset
    /// Seconds between epochs.
    private let dt: Double
    private var generator: SplitMix64
    private var fast: PlanarWander
    private var slow: PlanarWander
    private var velocityError: PlanarWander
    private var heightError: OrnsteinUhlenbeck
    private var hdopWander: OrnsteinUhlenbeck
    private var followedVelocity = PlanePoint.zero
    private var jumps = MultipathJumps()
    private var acquisition = Acquisition()

    init(preset: NoisePreset, seed: UInt64, period: Int) {
        self.preset = preset
        dt = Double(period) / 1000
        generator = SplitMix64(seed: seed)
        fast = PlanarWander(sigma: preset.fastSigma, &generator)
        slow = PlanarWander(sigma: preset.slowSigma, &generator)
        velocityError = PlanarWander(sigma: preset.velocitySigma, &generator)
        heightError = OrnsteinUhlenbeck(sigma: 1.7 * (preset.fastSigma + preset.slowSigma), &generator)
        hdopWander = OrnsteinUhlenbeck(sigma: 0.08, &generator)
    }

    mutating func measured(_ sample: DriveTruth.Sample) -> Reception {
        let isMoving = sample.speed > 0.3
        fast.advance(dt, time: isMoving ? 20 : 60, &generator)
        slow.advance(dt, time: isMoving ? 120 : 1800, &generator)
        velocityError.advance(dt, time: 4, &generator)
        heightError.advance(dt, time: 300, &generator)
        hdopWander.advance(dt, time: 120, &generator)
        followedVelocity = followedVelocity + (sample.velocity - followedVelocity) * (1 - exp(-dt))
        jumps.advance(dt, rate: preset.jumpsPerDay / 86_400 * (isMoving ? 6 : 1), &generator)

        switch acquisition.advance(dt, sky: sample.sky, &generator) {
        case .silent: return .silent
        case .void(let knowsTime): return .void(knowsTime: knowsTime)
        case .tracking(let error): return .fix(fix(of: sample, reacquisitionError: error))
        }
    }

    private mutating func fix(of sample: DriveTruth.Sample, reacquisitionError: PlanePoint) -> NoisyFix {
        let error =
            fast.value + slow.value + white(preset.whiteSigma) + jumps.offset + reacquisitionError
        let velocity = followedVelocity + velocityError.value + white(0.3 * preset.velocitySigma) + jumps.velocity
        var course = atan2(velocity.east, velocity.north) * 180 / .pi
        if course < 0 { course += 360 }
        // A user range error of 5 m makes the HDOP say what a poor first fix is worth. Multipath jumps do not show in it.
        let hdop = preset.hdop * max(0.7, 1 + hdopWander.value) + reacquisitionError.length / 5
        return NoisyFix(
            place: sample.place + error, speed: velocity.length, course: course, hdop: hdop,
            satellites: max(4, preset.satellites - Int(reacquisitionError.length / 12)),
            altitude: 34 + heightError.value, sigma: hdop * 5 / 2.0.squareRoot())
    }

    private mutating func white(_ sigma: Double) -> PlanePoint {
        PlanePoint(east: sigma * generator.gaussian(), north: sigma * generator.gaussian())
    }
}

extension PlanePoint {
    static func random(length: ClosedRange<Double>, _ generator: inout SplitMix64) -> PlanePoint {
        let metres = generator.uniform(length)
        let angle = generator.uniform(0...(2 * .pi))
        return PlanePoint(east: sin(angle), north: cos(angle)) * metres
    }
}
