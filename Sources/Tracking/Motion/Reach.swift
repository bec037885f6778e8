/// How far an asset can have come in a time: what is farther is a jump of the position, and a jump is no movement.
enum Reach {
    /// m/s²: no vehicle on wheels pulls away faster.
    private static let acceleration = 4.0
    /// m/s: faster is no drive.
    static let speedMax = 60.0

    /// Metres from one fix to the next.
    /// - Parameters:
    ///   - seconds: between them.
    ///   - speed: m/s at the first of them.
    ///   - accuracy: metres of both together.
    static func metres(in seconds: Double, from speed: Double, accuracy: Double) -> Double {
        min(speed * seconds + acceleration / 2 * seconds * seconds, speedMax * seconds) + accuracy
    }
}
