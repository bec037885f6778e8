/// How much speed the receiver reports while the asset stands: what counts as movement is measured against it.
///
/// A receiver between towers invents half a metre per second, one under the open sky a twentieth. With thresholds for the
/// former the latter would see starts late; with those for the latter the former would see them all day.
struct SpeedNoise: Sendable {
    /// Seconds of standing that the mean covers.
    private static let memory = 300.0
    /// Seconds of standing before which nothing is known.
    private static let enough = 10.0
    /// m/s; a mooring that swings is no noise, and must not make the detector deaf.
    private static let most = 0.8
    /// m/s; so fast is an asset that pulls away.
    private static let velocityMax = 2.0
    /// Seconds: so much of the noise adds up to a path over the 15 s of the evidence window, if it forgets itself in about 4 s.
    static let windowSeconds = 9.5

    private var meanSquare = 0.0
    private var seconds = 0.0

    /// m/s, root mean square of the velocity vector; 0 until known.
    private(set) var speed = 0.0

    /// Metres of path that the noise alone makes in the evidence window, root mean square.
    var path: Double { Self.windowSeconds * speed }

    /// - Parameters:
    ///   - velocity: of a fix at which the asset stood, m/s.
    ///   - elapsed: seconds since the fix before.
    mutating func observe(_ velocity: Double, elapsed: Double) {
        guard velocity <= Self.velocityMax, elapsed > 0 else { return }
        let step = min(elapsed, 5)
        seconds = min(Self.memory, seconds + step)
        meanSquare += (velocity * velocity - meanSquare) * (step / seconds)
        speed = seconds < Self.enough ? 0 : min(Self.most, meanSquare.squareRoot())
    }
}
