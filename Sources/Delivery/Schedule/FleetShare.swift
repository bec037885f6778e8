import WaypostCore

/// The place of one device in its fleet, for times that are spread so that not all devices send at once.
///
/// It belongs to the queue, so that it stays the same over restarts. Two endpoints of one device have different places.
package enum FleetShare {
    /// The longest time over which anything is spread.
    static let longest = Duration.seconds(300)

    /// - Parameter outbox: the uuid of the queue.
    /// - Returns: 0 ≤ share < 1, evenly distributed among devices.
    package static func of(outbox: [UInt8], endpoint: String) -> Double {
        var hash = FNV1a()
        for byte in outbox { hash.add(byte) }
        for byte in endpoint.utf8 { hash.add(byte) }
        // Names that differ at their end alone differ little in the high bits.
        var mixed = hash.value ^ (hash.value >> 32)
        mixed = mixed &* 0xD6E8_FEB8_6659_FD93
        mixed ^= mixed >> 32
        return Double(mixed >> 11) * 0x1p-53
    }

    /// The first turn of a device at or after `now`: one in each window, or in each longest time if that is shorter.
    ///
    /// - Parameter start: when something happened to all devices.
    static func turn(_ share: Double, of window: Duration, since start: EventTime, at now: EventTime) -> EventTime {
        let first = start + part(share, of: window)
        let whole = min(window, longest).nanoseconds
        guard first < now, whole > 0 else { return max(first, now) }
        let late = now.duration(since: first).nanoseconds % whole
        return late == 0 ? now : now.advanced(byNanoseconds: whole - late)
    }

    /// The part of a window, or of the longest time if that is shorter.
    ///
    /// - Parameter share: anything but 0 ≤ share < 1 is clamped.
    package static func part(_ share: Double, of window: Duration) -> Duration {
        let whole = Double(max(0, min(window, longest).nanoseconds))
        return .nanoseconds(Int64(whole * (share > 0 ? min(share, 1) : 0)))
    }
}
