import DriveSimulation
import WaypostCore

/// When one device records rows: trips and stops of random length, as a tracker makes them.
///
/// Fixes are of whole seconds of UTC, which all devices share; a row is recorded a moment after the fix.
struct DevicePlan {
    struct Row {
        var at: EventTime
        /// Begin or end of a trip: sent at once.
        var isEvent: Bool
    }

    private(set) var next: Row
    private var random: SplitMix64
    private let interval: Int
    /// Rows are at multiples of the interval.
    private let isAligned: Bool
    private var isMoving: Bool
    /// In whole seconds, as all times of fixes.
    private var fix: Int
    private var periodEnd: Int
    /// From the fix to the row, in seconds.
    private let lag: Double

    private static let heartbeat = 600
    private static let trip = 600...4800
    private static let stop = 120...1680
    /// Share of time in trips, by the lengths above.
    private static let moving = 0.75

    /// - Parameters:
    ///   - interval: about so many seconds from row to row in a trip.
    ///   - isAligned: these rows are at multiples of the interval.
    ///   - isDriving: in one trip that does not end.
    init(interval: Int, isAligned: Bool = false, isDriving: Bool = false, random: SplitMix64) {
        self.random = random
        self.interval = max(1, interval)
        self.isAligned = isAligned
        isMoving = self.random.unit() < Self.moving || isDriving
        lag = 0.05 + 0.2 * self.random.unit()
        fix = 0
        next = Row(at: .zero, isEvent: false)
        let length = Double(Self.draw(isMoving ? Self.trip : Self.stop, &self.random))
        periodEnd = isDriving ? 1 << 40 : 1 + Int(length * self.random.unit())
        // Spread, so that the windows of the fleet do not begin together.
        plan(Self.draw(0...Self.heartbeat, &self.random))
    }

    /// Seconds from one row to the next, at least.
    var shortest: Int { isMoving ? max(1, interval / 2) : 1 }
    /// The next row that is an event comes no earlier.
    var eventAt: EventTime { .zero + .seconds(periodEnd) }

    /// The row of `next` was recorded.
    mutating func advance() {
        if fix == periodEnd {
            isMoving.toggle()
            periodEnd = fix + Self.draw(isMoving ? Self.trip : Self.stop, &random)
        }
        guard isMoving else { return plan(fix + Self.heartbeat) }
        if isAligned { return plan((fix / interval + 1) * interval) }
        plan(fix + Self.draw(shortest...(interval + interval / 2), &random))
    }

    /// No row is recorded before `instant`, then one.
    mutating func sleep(until instant: EventTime) {
        let second = Int((instant.seconds(since: .zero)).rounded(.up))
        while periodEnd <= second {
            isMoving.toggle()
            periodEnd += Self.draw(isMoving ? Self.trip : Self.stop, &random)
        }
        plan(second)
    }

    private mutating func plan(_ second: Int) {
        fix = min(second, periodEnd)
        let at = Double(fix) + lag + 0.03 * random.unit()
        next = Row(at: EventTime(nanoseconds: Int64(at * 1e9)), isEvent: fix == periodEnd)
    }

    private static func draw(_ range: ClosedRange<Int>, _ random: inout SplitMix64) -> Int {
        range.lowerBound + Int(random.unit() * Double(range.count))
    }
}
