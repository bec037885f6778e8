import WaypostCore

/// Measures the interval of a receiver by its own times, and judges whether it keeps the commanded one.
///
/// Replies are ignored: receivers and gpsd confirm rates that they do not keep.
struct RateJudge {
    /// Number of intervals whose median counts.
    private static let intervals = 3
    /// Longer ones are gaps.
    private static let longest = 3_600_000

    /// Median of the last three intervals in milliseconds; nil before the third, and from a command on until the third
    /// after it.
    private(set) var measured: Int?
    private var recent: [Int] = []
    private var last: Int?
    private var wanted: Int64?

    /// What comes between the last epoch and the first after the command says nothing of either rate.
    mutating func commanded(_ interval: Int64) {
        wanted = interval
        forget()
    }

    /// The stream was broken: intervals over the break mean nothing.
    mutating func forget() {
        measured = nil
        recent.removeAll(keepingCapacity: true)
        last = nil
    }

    /// - Parameter timeOfDay: milliseconds since midnight, as the receiver reports it.
    /// - Returns: whether the command is kept, once after each command; nil = not known yet, or known before.
    mutating func epochReceived(timeOfDay: Int) -> Bool? {
        defer { last = timeOfDay }
        guard let last, last != timeOfDay else { return nil }
        let day = 86_400_000
        let interval = ((timeOfDay - last) % day + day) % day
        guard interval <= Self.longest else {
            recent.removeAll(keepingCapacity: true)
            return nil
        }
        if recent.count == Self.intervals { recent.removeFirst() }
        recent.append(interval)
        guard recent.count == Self.intervals else { return nil }
        let median = recent.sorted()[Self.intervals / 2]
        measured = median
        guard let wanted else { return nil }
        self.wanted = nil
        return Self.isKept(wanted, median)
    }

    /// Within a fifth.
    static func isKept(_ wanted: Int64, _ measured: Int) -> Bool {
        abs(Int64(measured) - wanted) * 5 <= wanted
    }
}
