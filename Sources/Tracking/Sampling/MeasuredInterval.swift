import WaypostCore

/// Time between two epochs of the receiver: the median of the last five, so that a gap does not count.
struct MeasuredInterval: Sendable {
    private var recent: (Double, Double, Double, Double, Double) = (1, 1, 1, 1, 1)
    private var position = 0
    /// Seconds; 1 until measured.
    private(set) var seconds = 1.0

    mutating func observe(_ elapsed: Double) {
        guard elapsed > 0.01 else { return }
        switch position {
        case 0: recent.0 = elapsed
        case 1: recent.1 = elapsed
        case 2: recent.2 = elapsed
        case 3: recent.3 = elapsed
        default: recent.4 = elapsed
        }
        position = position == 4 ? 0 : position + 1
        // A steady receiver needs no sorting.
        if abs(elapsed - seconds) > 0.01 * seconds { seconds = median() }
    }

    private func median() -> Double {
        let (a, b, c, d, e) = recent
        let low = max(min(a, b), min(c, d))
        let high = min(max(a, b), max(c, d))
        return max(min(e, max(low, high)), min(low, high))
    }
}
