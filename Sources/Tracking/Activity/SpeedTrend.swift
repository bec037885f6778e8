import Positioning

/// The speeds of the last seconds in slots of a second, whatever the rate of the receiver.
struct SpeedTrend: Sendable {
    struct Slot: Sendable {
        /// m/s, mean.
        var speed: Double
        /// Since the slot before.
        var seconds: Double
    }

    /// Before the newest one, newest first; without seconds = none. In the struct itself: this is asked at every fix.
    private var past = InlineArray<4, Slot>(repeating: Slot(speed: 0, seconds: 0))
    private var sum = 0.0
    private var count = 0.0
    private var closedAt: EventTime?

    /// m/s that it had for two seconds; 0 before.
    private(set) var sustained = 0.0
    /// m/s², over two seconds; 0 before.
    private(set) var acceleration = 0.0
    /// W/kg that it took to gain this speed within three or four seconds, as kinetic energy alone; 0 before.
    private(set) var power = 0.0

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
        for index in (1..<4).reversed() { past[index] = past[index - 1] }
        past[0] = slot
        return slot
    }

    private mutating func judge(_ newest: Slot) {
        (sustained, acceleration, power) = (0, 0, 0)
        let square = newest.speed * newest.speed
        var slowest = newest.speed
        var age = newest.seconds
        var isFirst = true
        for index in 0..<4 {
            let slot = past[index]
            if slot.seconds == 0 { break }
            slowest = min(slowest, slot.speed)
            if isFirst, age >= ActivityTuning.accelerationSpan {
                isFirst = false
                sustained = slowest
                acceleration = (newest.speed - slot.speed) / age
            }
            if age >= ActivityTuning.powerSpanMin {
                let energy = (square - slot.speed * slot.speed) / 2
                if energy > power * age { power = energy / age }
                // One of a slow receiver may be older.
                if age >= ActivityTuning.powerSpanMax { break }
            }
            age += slot.seconds
        }
    }
}
