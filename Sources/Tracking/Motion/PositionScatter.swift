/// The accuracy of a receiver that reports none, by how far its positions lie apart while the asset stands.
struct PositionScatter: Sendable {
    /// Seconds of standing that the mean covers, and before which nothing is known.
    private static let memory = 300.0
    private static let knownAfter = 60.0
    /// Metres: a receiver that reports the same position again and again is not that good, and one that is worse would not
    /// see a start.
    private static let accuracyRange = 5.0...15.0

    private var meanSquare = 0.0
    private var seconds = 0.0

    /// Metres within which nearly all positions are.
    var accuracy: Double {
        guard seconds >= Self.knownAfter else { return FixFilter.unknownAccuracy }
        return max(Self.accuracyRange.lowerBound, min(Self.accuracyRange.upperBound, 2 * meanSquare.squareRoot()))
    }

    /// - Parameters:
    ///   - distance: metres of a fix from the place where the asset stands.
    ///   - elapsed: seconds since the fix before.
    mutating func observe(_ distance: Double, elapsed: Double) {
        guard elapsed > 0 else { return }
        let step = min(elapsed, 10)
        seconds = min(Self.memory, seconds + step)
        meanSquare += (distance * distance - meanSquare) * (step / seconds)
    }
}
