import WaypostCore

/// The rule for all years to come at the end of a time zone file, such as `CET-1CEST,M3.5.0,M10.5.0/3`.
///
/// Format: POSIX.1-2017, Base Definitions 8.3, `TZ`, with the hours of RFC 9636 §3.3.1 (-167 to 167).
struct PosixZone: Hashable, Sendable {
    /// The day and time at which the clock changes, by the clock before the change.
    struct Change: Hashable, Sendable {
        enum Day: Hashable, Sendable {
            /// `Mm.w.d`: weekday 0 (Sunday)…6 of week 1…5 of the month; 5 = the last one.
            case weekday(month: Int, week: Int, day: Int)
            /// `Jn`: day 1…365 of the year, 29 February never counted.
            case julian(Int)
            /// `n`: day 0…365 of the year.
            case ordinal(Int)
        }

        var day: Day
        /// Seconds after midnight.
        var time: Int64
    }

    /// The other time of a zone that has two, and when it holds.
    struct Daylight: Hashable, Sendable {
        /// Seconds east of UTC.
        var offset: Int64
        var begin: Change
        var end: Change
    }

    /// Seconds east of UTC.
    var offset: Int64
    var daylight: Daylight?

    /// nil when the text is not of this form.
    init?(_ text: some Collection<UInt8>) {
        var reader = Reader(rest: ArraySlice(text))
        guard reader.skipName(), let west = reader.time(hoursMax: 24) else { return nil }
        offset = -west
        if reader.rest.isEmpty { return }
        guard reader.skipName() else { return nil }
        var summer = offset + 3600
        if reader.rest.first != UInt8(ascii: ",") {
            guard let west = reader.time(hoursMax: 24) else { return nil }
            summer = -west
        }
        guard let begin = reader.change(), let end = reader.change(), reader.rest.isEmpty else { return nil }
        daylight = Daylight(offset: summer, begin: begin, end: end)
    }

    /// The changes of a year: Unix time, and seconds east of UTC from then on.
    func changes(year: Int) -> [(at: Int64, offset: Int64)] {
        guard let daylight else { return [] }
        let begin = (at: daylight.begin.localTime(year: year) - offset, offset: daylight.offset)
        let end = (at: daylight.end.localTime(year: year) - daylight.offset, offset: offset)
        return [begin, end]
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func skip(_ character: Character) -> Bool {
            guard rest.first == character.asciiValue else { return false }
            rest.removeFirst()
            return true
        }

        /// `CET`, or in angle brackets `<+0330>`.
        mutating func skipName() -> Bool {
            if skip("<") {
                guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
                rest = rest[(end + 1)...]
                return true
            }
            let name = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") }
            rest = rest.dropFirst(name.count)
            return name.count >= 3
        }

        mutating func number(_ limits: ClosedRange<Int64>) -> Int64? {
            let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
            guard (1...3).contains(digits.count) else { return nil }
            rest = rest.dropFirst(digits.count)
            let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
            return limits.contains(value) ? value : nil
        }

        /// `[+-]h[:m[:s]]` in seconds.
        mutating func time(hoursMax: Int64) -> Int64? {
            let negative = skip("-")
            if !negative { _ = skip("+") }
            guard var seconds = number(0...hoursMax).map({ $0 * 3600 }) else { return nil }
            for unit in [Int64(60), 1] where skip(":") {
                guard let part = number(0...59) else { return nil }
                seconds += part * unit
            }
            return negative ? -seconds : seconds
        }

        /// `,Mm.w.d[/time]`, `,Jn[/time]`, `,n[/time]`; two o'clock by default.
        mutating func change() -> Change? {
            guard skip(",") else { return nil }
            let day: Change.Day
            if skip("M") {
                guard let month = number(1...12), skip("."), let week = number(1...5), skip("."),
                    let weekday = number(0...6)
                else { return nil }
                day = .weekday(month: Int(month), week: Int(week), day: Int(weekday))
            } else if skip("J") {
                guard let number = number(1...365) else { return nil }
                day = .julian(Int(number))
            } else {
                guard let number = number(0...365) else { return nil }
                day = .ordinal(Int(number))
            }
            guard skip("/") else { return Change(day: day, time: 7200) }
            return time(hoursMax: 167).map { Change(day: day, time: $0) }
        }
    }
}

extension PosixZone.Change {
    /// Seconds from 1970 to the change, both by the clock before it.
    fileprivate func localTime(year: Int) -> Int64 {
        func first(of month: Int, _ year: Int) -> Int {
            CivilDate(year: year, month: month, day: 1)?.daysSince1970 ?? 0
        }
        let days: Int
        switch day {
        case .weekday(let month, let week, let weekday):
            let start = first(of: month, year)
            let end = month == 12 ? first(of: 1, year + 1) : first(of: month + 1, year)
            // 1970-01-01 was a Thursday.
            let firstWeekday = ((start + 4) % 7 + 7) % 7
            var day = start + (weekday - firstWeekday + 7) % 7 + 7 * (week - 1)
            while day >= end { day -= 7 }
            days = day
        case .julian(let number):
            let isLeap = first(of: 3, year) - first(of: 2, year) == 29
            days = first(of: 1, year) + number - 1 + (isLeap && number >= 60 ? 1 : 0)
        case .ordinal(let number):
            days = first(of: 1, year) + number
        }
        return Int64(days) * 86_400 + time
    }
}
