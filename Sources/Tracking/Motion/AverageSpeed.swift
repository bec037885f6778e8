import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The speed of the believed fixes, exponentially smoothed: a red light is not the end of the drive.
struct AverageSpeed: Sendable {
    private static let timeConstant = 30.0
    /// Below this, m/s, distance divided by speed says nothing.
    private static let movingMin = 0.5

    private var value = 0.0
    private var at: EventTime?

    /// - Parameter speed: m/s; nil = the fix has none.
    mutating func observe(_ speed: Double?, at now: EventTime) {
        guard let speed, speed.isFinite, speed >= 0 else { return }
        if let at {
            value += (speed - value) * (1 - exp(-max(0, now.seconds(since: at)) / Self.timeConstant))
        } else {
            value = speed
        }
        at = now
    }

    /// m/s; nil = unknown, also when no fix had one for the time constant.
    func value(at now: EventTime) -> Double? {
        guard let at, now.seconds(since: at) <= Self.timeConstant else { return nil }
        return value
    }

    /// Seconds to a place at a distance in metres; nil = unknown, or too slow for an estimate.
    static func remaining(_ distance: Double, at speed: Double?) -> Double? {
        guard let speed, speed >= movingMin else { return nil }
        return distance / speed
    }
}
