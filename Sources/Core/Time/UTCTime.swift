/// A point in civil time as the receiver reports it: Unix time in whole milliseconds, without leap seconds.
///
/// It is data. It may jump, repeat or be weeks off; no timer runs on it.
public struct UTCTime: Hashable, Comparable, Sendable, Codable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    public static func < (lhs: UTCTime, rhs: UTCTime) -> Bool { lhs.milliseconds < rhs.milliseconds }

    /// Saturates instead of overflowing.
    public static func + (lhs: UTCTime, rhs: Duration) -> UTCTime {
        let more = rhs.milliseconds
        let (sum, overflow) = lhs.milliseconds.addingReportingOverflow(more)
        return UTCTime(milliseconds: overflow ? (more > 0 ? .max : .min) : sum)
    }

    /// Milliseconds from `earlier` to this time. Saturates as `+` does.
    public func milliseconds(since earlier: UTCTime) -> Int64 {
        let (difference, overflow) = milliseconds.subtractingReportingOverflow(earlier.milliseconds)
        return overflow ? (milliseconds > 0 ? .max : .min) : difference
    }
}

/// A day of the proleptic Gregorian calendar.
public struct CivilDate: Hashable, Sendable, Codable {
    public var year: Int
    /// 1…12.
    public var month: Int
    /// 1…31.
    public var day: Int

    /// nil unless the day exists in the calendar.
    public init?(year: Int, month: Int, day: Int) {
        guard (1...12).contains(month), day >= 1, day <= Self.days(inMonth: month, of: year) else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    private static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970-01-01. Algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    public var daysSince1970: Int {
        let y = month <= 2 ? year - 1 : year
        let era = (y >= 0 ? y : y - 399) / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    public init(daysSince1970 days: Int) {
        let z = days + 719_468
        let era = (z >= 0 ? z : z - 146_096) / 146_097
        let dayOfEra = z - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let mp = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * mp + 2) / 5 + 1
        month = mp < 10 ? mp + 3 : mp - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}

extension UTCTime {
    public static let millisecondsPerDay: Int64 = 86_400_000

    /// - Parameter timeOfDay: milliseconds since midnight; a leap second (86 400 000 and more) runs into the next day.
    public init(date: CivilDate, timeOfDay: Int) {
        self.init(milliseconds: Int64(date.daysSince1970) * Self.millisecondsPerDay + Int64(timeOfDay))
    }

    /// Whole days since 1970-01-01, rounded down.
    public var daysSince1970: Int {
        let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: Self.millisecondsPerDay)
        return Int(rest < 0 ? days - 1 : days)
    }

    /// Milliseconds since midnight, 0…86 399 999.
    public var timeOfDay: Int {
        let rest = milliseconds % Self.millisecondsPerDay
        return Int(rest < 0 ? rest + Self.millisecondsPerDay : rest)
    }

    /// `2020-02-06T18:14:34.000Z` (ISO 8601, always with milliseconds).
    public var iso8601: String {
        let date = CivilDate(daysSince1970: daysSince1970)
        return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T\(Self.clock(timeOfDay))Z"
    }

    /// `18:14:34.000` for milliseconds since midnight.
    public static func clock(_ timeOfDay: Int) -> String {
        let (seconds, ms) = (timeOfDay / 1000, timeOfDay % 1000)
        let (minutes, hours) = (seconds / 60, seconds / 3600)
        return "\(padded(hours, 2)):\(padded(minutes % 60, 2)):\(padded(seconds % 60, 2)).\(padded(ms, 3))"
    }
}

/// Digits padded with zeros; up to a width of 15 nothing is allocated. For values that are not negative.
package func padded(_ value: Int, _ width: Int) -> String {
    var digits = String(value)
    while digits.utf8.count < width { digits = "0" + digits }
    return digits
}
