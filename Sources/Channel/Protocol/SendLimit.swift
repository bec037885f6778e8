import WaypostCore

/// How many frames may go out in any second. The service cuts off whoever sends more than 50.
struct SendLimit: Sendable {
    private static let countMax = 40
    private static let window = Duration.seconds(1)

    /// When the last ones were sent, oldest first.
    private var sent: ArraySlice<EventTime> = []

    /// When the next one may go out.
    var next: EventTime {
        guard sent.count >= Self.countMax, let oldest = sent.first else { return EventTime(nanoseconds: .min) }
        return oldest + Self.window
    }

    mutating func sent(at now: EventTime) {
        sent.append(now)
        if sent.count > Self.countMax { sent.removeFirst() }
        invariant(sent.count <= Self.countMax, "\(sent.count) frames are remembered")
    }
}
