import Positioning

/// Turns times of day into UTC: by the date of the epoch itself, else by the newest dated fix before it.
struct DateKeeper: Sendable {
    /// Time of the newest dated fix; nil = no date known yet.
    private(set) var newest: UTCTime?
    /// The date of `newest` was moved by whole rollovers.
    private var rollover = false
    /// Days since 1970-01-01 before which no date can be; nil = every date is accepted.
    private let buildDay: Int?

    struct Dating {
        var time: UTCTime?
        var rollover = false
    }

    private static let daysOfRollover = 1024 * 7
    private static let plausibleDays = 5479  // 15 years
    private static let halfDay = 43_200_000
    private static let day = 86_400_000

    init(newest: UTCTime?, rollover: NMEADecoder.Rollover) {
        self.newest = newest
        switch rollover {
        case .off: buildDay = nil
        case .repair(let buildDate): buildDay = buildDate.daysSince1970
        }
    }

    mutating func forget() { newest = nil }

    /// - Parameter day: the date of the epoch itself in days since 1970-01-01; nil when it has none.
    mutating func fixReceived(timeOfDay: Int, day: Int?) -> Dating {
        guard let day else {
            guard let time = counted(timeOfDay: timeOfDay) else { return Dating() }
            newest = time
            return Dating(time: time, rollover: rollover)
        }
        guard let repaired = repaired(day) else { return Dating() }
        rollover = repaired != day
        let time = Self.time(day: repaired, timeOfDay: timeOfDay)
        newest = time
        return Dating(time: time, rollover: rollover)
    }

    /// The time of a void epoch, by the date known before. It changes nothing: before a fix even the time of day of a
    /// receiver may be that of its own clock, and would count a day too many.
    func counted(timeOfDay: Int) -> UTCTime? {
        guard let newest else { return nil }
        let (day, before) = (newest.daysSince1970, newest.timeOfDay)
        // A leap second (23:59:60) is in the next day of Unix time already; more of it must not count another.
        if timeOfDay >= Self.day, before < 1000 { return Self.time(day: day - 1, timeOfDay: timeOfDay) }
        // Only a fall by more than half a day is midnight: a smaller one is a receiver that repeats or sets its clock.
        return Self.time(day: before - timeOfDay > Self.halfDay ? day + 1 : day, timeOfDay: timeOfDay)
    }

    private func repaired(_ day: Int) -> Int? {
        guard let buildDay else { return day }
        var repaired = day
        if day < buildDay {
            let rollovers = (buildDay - day + Self.daysOfRollover - 1) / Self.daysOfRollover
            repaired += rollovers * Self.daysOfRollover
        }
        return repaired <= buildDay + Self.plausibleDays ? repaired : nil
    }

    private static func time(day: Int, timeOfDay: Int) -> UTCTime {
        UTCTime(milliseconds: Int64(day) * UTCTime.millisecondsPerDay + Int64(timeOfDay))
    }
}
