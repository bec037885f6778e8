import Testing

@testable import WaypostTracking

@Suite struct WeeklyHoursTests {
    /// Minutes of the week, Monday first, in which the hours are open, as ranges.
    private func open(_ texts: [String]) throws -> [ClosedRange<Int64>] {
        let hours = try WeeklyHours(parsing: texts)
        var ranges: [ClosedRange<Int64>] = []
        for minute in 0..<WeeklyHours.minutesPerWeek {
            // 1970-01-05 was a Monday.
            guard hours.isOpen(atLocal: 4 * 86_400 + minute * 60 + 59) else { continue }
            if let last = ranges.last, last.upperBound == minute - 1 {
                ranges[ranges.count - 1] = last.lowerBound...minute
            } else {
                ranges.append(minute...minute)
            }
        }
        return ranges
    }

    static let readings: [([String], [ClosedRange<Int64>])] = [
        (["mon 08:00-18:00"], [480...1079]), (["MON 8:00 - 18:00"], [480...1079]),
        (["mon,wed 08:00-09:00"], [480...539, 3360...3419]), (["sat-sun"], [7200...10_079]),
        (["tue 08:00-10:00,11:00-12:00"], [1920...2039, 2100...2159]), (["tue 22:00-06:00"], [2760...3239]),
        // Over midnight at the end of the week.
        (["sun 22:00-06:00"], [0...359, 9960...10_079]), (["fri-mon 00:00-24:00"], [0...1439, 5760...10_079]),
        (["sun-mon"], [0...1439, 8640...10_079]), (["mon 18:00-00:00"], [1080...1439]), (["mon 00:00-00:01"], [0...0]),
        (["mon,mon 08:00-09:00,08:30-10:00"], [480...599]), (["mon-sun"], [0...10_079]),
        (["mon,tue 00:00-24:00"], [0...2879]),
        // Times alone are of each day.
        (["12:00-13:00"], (0..<7).map { $0 * 1440 + 720...$0 * 1440 + 779 }),
        // One of several is enough.
        (["mon 08:00-12:00", "mon 11:00-13:00", "tue 08:00-09:00"], [480...779, 1920...1979]),
    ]

    @Test(arguments: readings)
    func readsDaysAndTimes(texts: [String], expected: [ClosedRange<Int64>]) throws {
        #expect(try open(texts) == expected)
    }

    @Test(
        arguments: [
            ("", 0, "", "days, times"), ("   ", 3, "", "days, times"),
            ("mon-fry 08:00-18:00", 4, "fry", "a day"), ("mon- 08:00-18:00", 5, "08:00", "a day"),
            ("mon 08:00", 9, "", "\"-\" and the time"), ("mon 08:00-", 10, "", "a time"),
            ("mon 08:00-25:00", 10, "25:00", "a time"), ("mon 08:00-24:01", 10, "24:01", "a time"),
            ("mon 08:60-09:00", 4, "08:60", "a time"), ("mon 8-18", 4, "8", "a time"),
            ("mon 24:00-08:00", 4, "24:00", "a time before 24:00"), ("mon 08:00-08:00", 10, "08:00", "another time"),
            ("mon 08:00-09:00 tue", 16, "tue", "\",\" or the end"), ("mon 08:00-09:00,", 16, "", "a time"),
            ("mon, 08:00-09:00", 5, "08:00", "a day"), ("08:00-09:00 mon", 12, "mon", "\",\" or the end"),
            ("-", 0, "-", "a day"), ("mon\u{00A0}08:00-09:00", 3, "\u{00A0}08:00", "a time"),
            ("mon 08:00-٠٩:00", 10, "٠٩:00", "a time"),
        ] as [(String, Int, String, String)])
    func namesWhatItCannotReadAndWhere(text: String, offset: Int, found: String, expected: String) throws {
        let mistake = try #require(throws: WeeklyHours.Mistake.self) { try WeeklyHours(parsing: text) }
        #expect(mistake.offset == offset && mistake.found == found)
        #expect(mistake.expected.hasPrefix(expected), "\(mistake.expected)")
    }

    @Test(arguments: [("monday 08:00-09:00", "mon"), ("frx", "fri"), ("xyz", nil)])
    func suggestsADay(text: String, day: String?) throws {
        let mistake = try #require(throws: WeeklyHours.Mistake.self) { try WeeklyHours(parsing: text) }
        #expect(mistake.suggestion == day)
    }
}
