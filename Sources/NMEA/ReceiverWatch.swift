import WaypostCore

/// Watches the fixes of a receiver for what no receiver in order reports: an epoch for ever, a clock or a position that
/// stands.
public struct ReceiverWatch: Sendable {
    public enum Fault: Hashable, Sendable {
        /// Time and position stand. Milliseconds since midnight.
        case repeats(timeOfDay: Int)
        /// Time stands, the position does not.
        case clockStands(timeOfDay: Int)
        /// Several fixes have the same whole minute, and the next ones the next.
        case wholeMinutes
        /// The position stands at this speed, metres per second.
        case positionStands(speed: Double)

        /// A sentence, without the stop.
        public var words: String {
            switch self {
            case .repeats(let timeOfDay): "the receiver repeats the fix of \(Self.clock(timeOfDay))"
            case .clockStands(let timeOfDay): "the receiver's clock stands at \(Self.clock(timeOfDay))"
            case .wholeMinutes: "the receiver's clock shows whole minutes only"
            case .positionStands(let speed): "the position stands while the speed is \(Int(speed.rounded())) m/s"
            }
        }

        /// What to do about it.
        public var advice: String {
            switch self {
            case .repeats, .clockStands: "restart the receiver, or what passes its sentences on"
            case .wholeMinutes: "let it send times with seconds"
            case .positionStands: "switch its position hold off, or restart it"
            }
        }

        private static func clock(_ timeOfDay: Int) -> Substring { UTCTime.clock(timeOfDay).prefix(8) }
    }

    /// The same time counts as standing after so many more fixes over so long, or after many where time is that of a log.
    private static let repeatsMin = 5
    private static let repeatsOfLog = 20
    private static let standMin = Duration.seconds(10)
    private static let minute = 60_000
    /// A receiver at rest may report this much, metres per second.
    private static let speedMin = 2.0
    /// Metres around the first of the positions that stand.
    private static let radius = 15.0
    /// Metres that the asset would have gone by its speed.
    private static let wayMin = 300.0
    private static let fixesMin = 10
    private static let pauseMax = 10.0
    /// Metres of 1e-7 degree of latitude.
    private static let metresPerUnit = 0.0111

    /// What is wrong at present.
    public private(set) var fault: Fault?

    private struct Shown {
        var time: UTCTime
        var coordinate: Coordinate
        var at: EventTime
        var repeats = 0
        var hasMoved = false
    }

    private var shown: Shown?
    /// The time before the one that is shown was the whole minute before it, for several fixes.
    private var isMinuteLater = false
    private var stand: (coordinate: Coordinate, metres: Double, fixes: Int)?

    public init() {}

    /// - Parameter at: event time; in a log it stands with the time of the fixes.
    public mutating func received(_ fix: Fix, at: EventTime) {
        // Without a date the time may be unknown as well, and that is reported.
        guard let time = fix.time else { return }
        guard var shown, shown.time == time else { return timeAdvanced(to: time, fix, at: at) }
        shown.repeats += 1
        if shown.coordinate != fix.coordinate { shown.hasMoved = true }
        self.shown = shown
        let lasts = shown.repeats >= Self.repeatsMin && at.duration(since: shown.at) >= Self.standMin
        guard lasts || shown.repeats >= Self.repeatsOfLog else { return }
        if isMinuteLater || fault == .wholeMinutes && fix.timeOfDay % Self.minute == 0 {
            fault = .wholeMinutes
        } else {
            fault = shown.hasMoved ? .clockStands(timeOfDay: fix.timeOfDay) : .repeats(timeOfDay: fix.timeOfDay)
        }
    }

    @inline(__always)
    private mutating func timeAdvanced(to time: UTCTime, _ fix: Fix, at: EventTime) {
        let isWhole = fix.timeOfDay % Self.minute == 0
        var seconds = 0.0
        isMinuteLater = false
        if let shown {
            let elapsed = time.milliseconds(since: shown.time)
            seconds = max(0, Double(elapsed) / 1000)
            isMinuteLater = isWhole && elapsed == Int64(Self.minute) && shown.repeats >= Self.repeatsMin
        }
        switch fault {
        case .wholeMinutes where isWhole, .positionStands, nil: break
        default: fault = nil
        }
        shown = Shown(time: time, coordinate: fix.coordinate, at: at)
        positionReported(fix, seconds: seconds)
    }

    @inline(__always)
    private mutating func positionReported(_ fix: Fix, seconds: Double) {
        if let speed = fix.speed, speed >= Self.speedMin {
            if let before = stand, Self.isNear(before.coordinate, fix.coordinate) {
                let metres = before.metres + speed * min(seconds, Self.pauseMax)
                stand = (before.coordinate, metres, before.fixes + 1)
                if fault == nil, metres >= Self.wayMin, before.fixes + 1 >= Self.fixesMin {
                    fault = .positionStands(speed: speed)
                }
                return
            }
            stand = (fix.coordinate, 0, 0)
        } else {
            stand = nil
        }
        if case .positionStands = fault { fault = nil }
    }

    @inline(__always)
    private static func isNear(_ a: Coordinate, _ b: Coordinate) -> Bool {
        let north = abs(Int64(a.latitudeE7) - Int64(b.latitudeE7))
        let east = abs(Int64(a.longitudeE7) - Int64(b.longitudeE7))
        return Double(north + east) * metresPerUnit <= radius
    }
}
