import WaypostCore

/// Counts how long a condition has held without a break.
struct Persistence: Sendable {
    private(set) var count = 0
    private var first = EventTime.zero
    private var last = EventTime.zero

    mutating func reset() { count = 0 }

    mutating func observe(_ condition: Bool, at: EventTime) {
        guard condition else {
            count = 0
            return
        }
        if count == 0 { first = at }
        count += 1
        last = at
    }

    /// Held by this many fixes at 1 Hz: by a faster receiver for as long, by a slower one for as many fixes.
    func holds(_ fixes: Int, for delay: Duration = .zero) -> Bool {
        count >= fixes && last.seconds(since: first) >= 0.8 * Double(fixes - 1) + delay.inSeconds
    }
}
