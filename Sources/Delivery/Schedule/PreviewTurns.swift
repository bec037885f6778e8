import WaypostCore

/// When the newest row goes out ahead of its turn.
struct PreviewTurns: Sendable {
    private var last = EventTime.min
    private var newest = Int64.min

    func isDue(every window: Duration, at now: EventTime) -> Bool { last + max(window, .seconds(1)) <= now }

    /// - Parameter newest: sequence number; nil = no row is newer than what is in flight.
    /// - Returns: the row to send; nil = none, since no row goes out ahead of its turn twice.
    mutating func begin(_ newest: Int64?, at now: EventTime) -> Int64? {
        last = now
        guard let newest, newest > self.newest else { return nil }
        self.newest = newest
        return newest
    }
}
