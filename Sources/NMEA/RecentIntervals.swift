/// The last eight intervals between epochs, and their median.
struct RecentIntervals: Hashable, Sendable, Codable {
    private var slots = SIMD8<Int64>()
    private var count = 0
    private var next = 0

    /// Longer pauses are gaps, not intervals.
    static let longestMilliseconds: Int64 = 3_600_000

    mutating func add(_ milliseconds: Int64) {
        guard milliseconds > 0, milliseconds <= Self.longestMilliseconds else { return }
        slots[next & 7] = milliseconds
        next = (next & 7) + 1
        count = min(count &+ 1, 8)
    }

    /// Milliseconds; the lower of the middle two when there are an even number of them. nil without any.
    var median: Int64? {
        // Both numbers may come from a stored state.
        let used = max(0, min(count, 8))
        guard used > 0 else { return nil }
        var sorted = slots
        for i in 1..<max(1, used) {
            var j = i
            while j > 0, sorted[j - 1] > sorted[j] {
                (sorted[j - 1], sorted[j]) = (sorted[j], sorted[j - 1])
                j -= 1
            }
        }
        return sorted[(used - 1) / 2]
    }
}
