import WaypostCore

/// The speeds of the last seconds in slots of a second, whatever the rate of the receiver.
struct SpeedTrend: Sendable {
    struct Slot: Sendable {
        /// m/s, mean.
        var speed: Double
        /// Since the slot before.
        var seconds: Double
    }

    /// Before the newest one, newest first; without seconds = none. In the struct itself: this is asked at every fix.
    private var past = InlineArray<2, Slot>(repeating: Slot(speed: 0, seconds: 0))
    private var sum = 0.0
    private var count = 0.0
    private var closedAt: EventTime?

    /// m/s², over two seconds; 0 before.
    private(set) var acceleration = 0.0

    /// - Parameters:
    ///   - speed: m/s.
    ///   - interval: seconds between fixes, as measured.
    /// - Returns: the slot that is full with it. After a silence there is none: nothing is known of the time before.
    mutating func append(_ speed: Double, at: EventTime, interval: Double) -> Slot? {
        guard let closedAt else {
            self.closedAt = at
            return nil
        }
        let seconds = at.seconds(since: closedAt)
        guard seconds <= max(5, 3 * interval) else {
            self = SpeedTrend()
            self.closedAt = at
            return nil
        }
        sum += speed
        count += 1
        guard seconds >= ActivityTuning.slot else { return nil }
        let slot = Slot(speed: sum / count, seconds: seconds)
        (sum, count) = (0, 0)
        self.closedAt = at
        judge(slot)
        past[1] = past[0]
        past[0] = slot
        return slot
    }

    private mutating func judge(_ newest: Slot) {
        acceleration = 0
        var age = newest.seconds
        for index in 0..<2 where past[index].seconds > 0 {
            if age >= ActivityTuning.accelerationSpan {
                acceleration = (newest.speed - past[index].speed) / age
                return
            }
            age += past[index].seconds
        }
    }
}
