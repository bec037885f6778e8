import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct TimetableTests {
    private static let berlin = "CET-1CEST,M3.5.0,M10.5.0/3"
    private static let newYork = "EST5EDT,M3.2.0,M11.1.0"

    private static func utc(_ text: String) -> UTCTime {
        // 2026-03-29T01:30
        let parts = text.split { !$0.isNumber }.map { Int($0) ?? 0 }
        return UTCTime(
            date: CivilDate(year: parts[0], month: parts[1], day: parts[2])!,
            timeOfDay: (parts[3] * 60 + parts[4]) * 60_000)
    }

    /// Every opening (+) and closing (-) from one time to another, in UTC.
    private func changes(_ hours: String, _ zone: String, from: String, to: String) throws -> [String] {
        let timetable = Timetable(zone: try #require(TimeZoneRules(posix: zone)))
        let hours = try WeeklyHours(parsing: hours)
        var time = Self.utc(from)
        var found: [String] = []
        while let until = timetable.state(of: hours, at: time).until, until < Self.utc(to) {
            let isOpen = timetable.state(of: hours, at: until).isOpen
            #expect(isOpen != timetable.state(of: hours, at: time).isOpen && until > time)
            found.append((isOpen ? "+" : "-") + until.iso8601.prefix(16))
            time = until
        }
        return found
    }

    @Test(
        arguments: [
            // 2026-03-29: Berlin goes from 02:00 to 03:00 at 01:00 UTC. Half past two never comes.
            ("02:30-03:30", berlin, "2026-03-29T00:00", ["+2026-03-29T01:00", "-2026-03-29T01:30"]),
            ("02:15-02:45", berlin, "2026-03-29T00:00", []),
            ("01:30-04:00", berlin, "2026-03-29T00:00", ["+2026-03-29T00:30", "-2026-03-29T02:00"]),
            ("02:00-03:00", berlin, "2026-03-29T00:00", []),
            // 2026-10-25: from 03:00 back to 02:00 at 01:00 UTC. Half past two comes twice.
            (
                "02:30-03:30", berlin, "2026-10-25T00:00",
                ["+2026-10-25T00:30", "-2026-10-25T01:00", "+2026-10-25T01:30", "-2026-10-25T02:30"]
            ),
            (
                "02:15-02:45", berlin, "2026-10-25T00:00",
                ["+2026-10-25T00:15", "-2026-10-25T00:45", "+2026-10-25T01:15", "-2026-10-25T01:45"]
            ),
            ("01:30-02:00", berlin, "2026-10-24T23:00", ["+2026-10-24T23:30", "-2026-10-25T00:00"]),
            ("02:00-03:00", berlin, "2026-10-24T23:00", ["+2026-10-25T00:00", "-2026-10-25T02:00"]),
            // 2026-03-08 and 2026-11-01: New York, at 07:00 and 06:00 UTC.
            ("02:30-03:30", newYork, "2026-03-08T05:00", ["+2026-03-08T07:00", "-2026-03-08T07:30"]),
            (
                "01:30-02:30", newYork, "2026-11-01T05:00",
                ["+2026-11-01T05:30", "-2026-11-01T06:00", "+2026-11-01T06:30", "-2026-11-01T07:30"]
            ),
            // The working day begins an hour earlier by UTC from then on.
            ("mon-fri 08:00-18:00", berlin, "2026-03-27T18:00", ["+2026-03-30T06:00"]),
            ("mon-fri 08:00-18:00", newYork, "2026-10-30T23:00", []),
        ] as [(String, String, String, [String])])
    func theClockOnTheWallDecides(hours: String, zone: String, from: String, expected: [String]) throws {
        let days: Int64 = hours.hasPrefix("mon") ? 3 : 0
        let end = Self.utc(from).milliseconds + days * UTCTime.millisecondsPerDay + 6 * 3_600_000
        let found = try changes(hours, zone, from: from, to: String(UTCTime(milliseconds: end).iso8601.prefix(16)))
        #expect(found.prefix(expected.count) == expected[...], "\(found)")
        if days == 0 { #expect(found.count == expected.count, "\(found)") }
    }

    @Test func openForEverAndNeverDoNotChange() throws {
        let timetable = Timetable(zone: try #require(TimeZoneRules(posix: Self.berlin)))
        let always = try WeeklyHours(parsing: ["mon-sun"])
        #expect(timetable.state(of: always, at: UTCTime(milliseconds: 0)) == (true, nil))
        #expect(timetable.state(of: try WeeklyHours(parsing: []), at: UTCTime(milliseconds: 0)) == (false, nil))
    }

    @Test func hoursThatAreKnownByTheirWordsAreAWindowOfTheirOwn() throws {
        var timetable = Timetable(zone: .utc)
        timetable.set(hours: "mon")
        timetable.set(hours: "nonsense")
        timetable.set(.tracking, try WeeklyHours(parsing: "tue"))
        timetable.set(hours: "mon")
        #expect(timetable.entries.map(\.window) == [.tracking, .hours("mon")])
    }

    @Test func timesOfNoCalendarDoNotTrap() throws {
        let timetable = Timetable(zone: try #require(TimeZoneRules(posix: Self.berlin)))
        let hours = try WeeklyHours(parsing: "mon-fri 08:00-18:00")
        for time in [Int64.min, -1, 0, 1_000_000_000_000_000, .max] {
            _ = timetable.state(of: hours, at: UTCTime(milliseconds: time))
        }
    }

    /// Random hours at random times around the changes of the clocks, against looking at each minute.
    @Test(arguments: [berlin, newYork, "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "IST-1GMT0,M10.5.0,M3.5.0/1", "UTC0"])
    func agreesWithLookingAtTheClockEachMinute(zone: String) throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let timetable = Timetable(zone: try #require(TimeZoneRules(posix: zone)))
        let weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        func clock() -> String {
            let minute = Int.random(in: 0..<1440, using: &random)
            return "\(minute / 60):\(minute % 60 < 10 ? "0" : "")\(minute % 60)"
        }
        for _ in 0..<4 {
            var texts: [String] = []
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let days = (0..<Int.random(in: 1...2, using: &random)).map { _ in
                    let day = weekdays.randomElement(using: &random)!
                    return Bool.random(using: &random) ? day : "\(day)-\(weekdays.randomElement(using: &random)!)"
                }
                let (from, to) = (clock(), clock())
                if from != to { texts.append("\(days.joined(separator: ",")) \(from)-\(to)") }
            }
            if texts.isEmpty { continue }
            let hours = try WeeklyHours(parsing: texts)
            let spans = texts.flatMap { naive($0, weekdays) }
            // Five days that may hold a change.
            let starts = ["2026-03-06T00:00", "2026-03-27T00:00", "2026-10-23T00:00", "2026-04-03T00:00"]
            var time = Self.utc(starts.randomElement(using: &random)!)
            time.milliseconds += Int64.random(in: 0..<86_400_000, using: &random)
            var claim = timetable.state(of: hours, at: time)
            let end = time.milliseconds + 5 * UTCTime.millisecondsPerDay
            while time.milliseconds < end {
                let next = UTCTime(milliseconds: (time.milliseconds / 60_000 + 1) * 60_000)
                let local = next.milliseconds / 1000 + timetable.zone.offset(at: next.milliseconds / 1000).seconds
                let isOpen = spans.contains { $0.holds(local) }
                if let until = claim.until, until <= next {
                    #expect(until == next && isOpen != claim.isOpen, "seed \(seed) \(texts) \(next.iso8601)")
                    claim = timetable.state(of: hours, at: next)
                }
                guard claim.isOpen == isOpen else {
                    Issue.record("seed \(seed) \(texts) at \(next.iso8601): \(claim)")
                    return
                }
                time = next
            }
        }
    }

    private struct Span {
        var days: Set<Int>
        var from: Int
        var to: Int

        func holds(_ local: Int64) -> Bool {
            let minute = Int(local / 60) % 1440
            let today = Int(local / 86_400 + 3) % 7
            if from < to { return days.contains(today) && (from..<to).contains(minute) }
            return days.contains(today) && minute >= from || days.contains((today + 6) % 7) && minute < to
        }
    }

    private func naive(_ text: String, _ weekdays: [String]) -> [Span] {
        let parts = text.split(separator: " ")
        let times = parts[1].split(separator: "-").map { time in
            let parts = time.split(separator: ":").map { Int($0)! }
            return parts[0] * 60 + parts[1]
        }
        return parts[0].split(separator: ",").map { span in
            let ends = span.split(separator: "-").map { weekdays.firstIndex(of: String($0))! }
            let days = (0..<7).filter { ($0 - ends[0] + 7) % 7 <= (ends.last! - ends[0] + 7) % 7 }
            return Span(days: Set(days), from: times[0], to: times[1])
        }
    }
}
