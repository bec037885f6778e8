/// How much speed the receiver reports while the asset stands: what counts as movement is measured against it.
///
/// A receiver between towers invents half a metre per second, one under the open sky a twentieth. With thresholds for the
/// former the latter would see starts late; with those for the latter the former would see them all day.
struct SpeedNoise: Sendable {
    private var meanSquare = 0.0
    private var seconds = 0.0

    /// m/s, root mean square of the velocity vector; 0 until known.
    private(set) var speed = 0.0

    /// Metres of path that the noise alone makes in the evidence window, root mean square.
    var path: Double { Tuning.noiseWindowSeconds * speed }

    /// - Parameters:
    ///   - velocity: of a fix at which the asset stood, m/s.
    ///   - elapsed: seconds since the fix before.
    mutating func observe(_ velocity: Double, elapsed: Double) {
        guard velocity <= Tuning.noiseVelocityMax, elapsed > 0 else { return }
        let step = min(elapsed, 5)
        seconds = min(Tuning.noiseMemory, seconds + step)
        meanSquare += (velocity * velocity - meanSquare) * (step / seconds)
        speed = seconds < Tuning.noiseKnownAfter ? 0 : min(Tuning.noiseSpeedLimit, meanSquare.squareRoot())
    }
}
