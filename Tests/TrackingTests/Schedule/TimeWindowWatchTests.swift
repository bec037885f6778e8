import Testing
import WaypostCore

@testable import WaypostTracking

/// Hours as they are reported to the tracker, live and in replay alike.
@Suite struct TimeWindowWatchTests {
    /// 2026-03-02, a Monday, 07:59:00 UTC.
    private static let start: Int64 = 1_772_438_340_000

    private struct Rig {
        var run: TrackerRun
        var seconds = 0.0
        /// Milliseconds by which the receiver is ahead.
        var ahead: Int64 = 0
        var north: Int32 = 0
        var records: [Location] = []
        var changes: [MotionChange] = []
        /// Each change of the tracker's hours that was seen, with the seconds.
        var log: [String] = []

        init(_ track: String?, hours: [String] = [], restored: StoredState? = nil) throws {
            run = TrackerRun(
                tracker: Tracker(settings: Tracker.Settings(trackables: [Trackable(id: "car")]), restored: restored),
                timetable: try Self.timetable(track, hours))
        }

        static func timetable(_ track: String?, _ hours: [String]) throws -> Timetable {
            var timetable = Timetable()
            if let track { timetable.set(.tracking, try WeeklyHours(parsing: track)) }
            for text in hours { timetable.set(.hours(text), try WeeklyHours(parsing: text)) }
            return timetable
        }

        private var at: EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

        private mutating func watch(_ step: (inout TrackerRun, (Effect, UTCTime?) -> Void) throws -> Void) rethrows {
            let before = run.tracker.snapshot.inHours
            var effects: [Effect] = []
            try step(&run) { effect, _ in effects.append(effect) }
            let now = run.tracker.snapshot.inHours
            if now != before { log.append("\(now ? "+" : "-")\(run.reached.nanoseconds / 1_000_000_000)") }
            for effect in effects {
                if case .record(let location) = effect { records.append(location) }
                if case .announceMotion(let change) = effect { changes.append(change) }
            }
        }

        mutating func reload(_ track: String?) throws {
            let (timetable, at) = (try Self.timetable(track, []), at)
            watch { $0.reloaded(nil, timetable, at: at, $1) }
        }

        /// One fix a second.
        mutating func fixes(_ count: Int, speed: Double = 0, dated: Bool = true) {
            for _ in 0..<count {
                seconds += 1
                north += Int32(speed * 90)
                let time = UTCTime(milliseconds: TimeWindowWatchTests.start + Int64(seconds * 1000) + ahead)
                let fix = Fix(
                    time: dated ? time : nil, timeOfDay: time.timeOfDay, at: at,
                    coordinate: Coordinate(latitudeE7: 520_000_000 + north, longitudeE7: 130_000_000),
                    horizontalAccuracy: 4, speed: speed, course: 0, mode: .threeD)
                watch { $0.epochReceived(.fix(fix), at: fix.at, $1) }
            }
        }

        /// Time passes without any epoch.
        mutating func silence(_ length: Double) {
            seconds += length
            while let due = run.nextDeadline, due <= at {
                watch { $0.passDeadlines(through: due, $1) }
                guard run.nextDeadline.map({ $0 > due }) ?? true else { break }
            }
        }
    }

    @Test func aReloadOpensAndClosesAtOnce() throws {
        var rig = try Rig(nil)
        rig.fixes(120)
        try rig.reload("sun 08:00-09:00")
        #expect(rig.log == ["-120"])
        // The same again is nothing new.
        try rig.reload("sun 08:00-09:00")
        rig.fixes(10)
        #expect(rig.log == ["-120"] && rig.run.schedule?.isOpen == false)
        try rig.reload("mon 08:00-08:05")
        #expect(rig.log == ["-120", "+130"])
        rig.silence(600)
        #expect(rig.log == ["-120", "+130", "-360"])
        try rig.reload(nil)
        #expect(rig.log == ["-120", "+130", "-360", "+730"] && rig.run.schedule == nil)
    }

    @Test func hoursThatAreNoMoreAreClosedAndThoseThatStayGoOn() throws {
        func words(_ events: [TrackerEvent]) -> [String] {
            events.compactMap { event in
                guard case .timeWindowChanged(.hours(let hours), let open) = event else { return nil }
                return "\(open ? "+" : "-")\(hours)"
            }
        }
        let now = UTCTime(milliseconds: Self.start + 120_000)
        var watch = TimeWindowWatch(try Rig.timetable(nil, ["mon 07:00-09:00", "mon 08:00-08:05"]))
        #expect(words(watch.begins(now, at: .zero)) == ["+mon 07:00-09:00", "+mon 08:00-08:05"])
        let other = try Rig.timetable(nil, ["mon 08:00-08:05", "mon 07:30-08:30", "tue"])
        #expect(words(watch.reloaded(other, now, at: .zero)) == ["-mon 07:00-09:00", "+mon 07:30-08:30"])
        #expect(watch.reloaded(other, now, at: .zero).isEmpty)
    }

    @Test func beforeTheFirstDateAReloadClosesNothing() throws {
        var rig = try Rig(nil)
        rig.fixes(5, dated: false)
        try rig.reload("sun 08:00-09:00")
        #expect(rig.log.isEmpty)
        rig.fixes(1)
        #expect(rig.log == ["-6"])
    }

    @Test func theTimeOfTheFixesOpensAndCloses() throws {
        var rig = try Rig("mon 08:00-08:05")
        rig.fixes(400)
        // Closed from the first fix on, before anything is made of it.
        #expect(rig.log == ["-1", "+60", "-360"])
        #expect(rig.changes.map(\.reason) == [.start])
        #expect(rig.records.map(\.event) == [.motionchange])
    }

    @Test func aTripEndsAtTheVerySecondWithTheReasonSchedule() throws {
        var rig = try Rig("mon 07:00-08:05")
        rig.fixes(60)
        rig.fixes(400, speed: 12)
        #expect(rig.changes.map(\.reason) == [.start, .speed, .schedule])
        let end = try #require(rig.records.last)
        #expect(end.time.iso8601 == "2026-03-02T08:05:00.000Z" && end.reason == "schedule")
        #expect(rig.run.schedule?.isOpen == false)
        #expect(rig.run.schedule?.until?.iso8601 == "2026-03-09T07:00:00.000Z")
    }

    @Test func hoursBeginAndEndWithoutAFix() throws {
        var rig = try Rig("mon 08:00-08:05")
        rig.fixes(30)
        rig.silence(3600)
        #expect(rig.log == ["-1", "+60", "-360"])
        // The next opening is a week away; nothing is due before.
        #expect(rig.run.nextDeadline == .zero + .seconds(60 + 7 * 86_400))
    }

    @Test func beforeTheFirstDateNothingIsClosed() throws {
        var rig = try Rig("sun 08:00-09:00")
        rig.fixes(100, dated: false)
        #expect(rig.log.isEmpty && rig.run.nextDeadline == nil)
        rig.fixes(1)
        #expect(rig.log == ["-101"])
    }

    @Test func aFixThatComesLateOpensNothingAgain() throws {
        var rig = try Rig("mon 07:00-08:00")
        rig.fixes(55)
        rig.silence(6)
        rig.ahead = -1500
        rig.fixes(20)
        #expect(rig.log == ["-60"])
    }

    @Test func oneWrongDateDecidesNothing() throws {
        for day in [Int64(1), -1] {
            var rig = try Rig("mon 07:00-09:00")
            rig.fixes(60)
            rig.ahead = day * 86_400_000
            rig.fixes(1)
            rig.ahead = 0
            rig.fixes(120)
            #expect(rig.log.isEmpty, "\(day)")
        }
    }

    @Test func aClockThatIsADayOffIsFollowedOnceItHolds() throws {
        for day in [Int64(1), -1] {
            var rig = try Rig("mon 07:00-09:00")
            rig.fixes(60)
            rig.ahead = day * 86_400_000
            rig.fixes(120)
            // Ten fixes to believe an earlier time, and two more to believe the day.
            #expect(rig.log == [day > 0 ? "-63" : "-72"])
            rig.ahead = 0
            rig.fixes(120)
            #expect(rig.log.count == 2)
        }
    }

    @Test func aClockThatFlapsDoesNotFloodTheQueue() throws {
        var rig = try Rig("mon 07:00-09:00")
        rig.fixes(60)
        for _ in 0..<200 {
            rig.ahead = rig.ahead == 0 ? 86_400_000 : 0
            rig.fixes(3)
        }
        #expect(rig.log.count <= 60)
        #expect(rig.records.count <= 20)
        var deadlines = 0
        while let due = rig.run.nextDeadline, due.nanoseconds < 2_000_000_000_000, deadlines < 1000 {
            rig.run.passDeadlines(through: due) { _, _ in }
            deadlines += 1
        }
        #expect(deadlines < 20)
    }

    @Test func aRestartOutsideTheHoursIsSilentAndOneWithinThemIsNot() throws {
        var before = try Rig("mon 07:00-08:05")
        before.fixes(60)
        before.fixes(400, speed: 12)
        let state = before.run.tracker.state
        var closed = try Rig("mon 07:00-08:05", restored: state)
        closed.ahead = 600_000
        closed.fixes(900)
        closed.silence(7200)
        #expect(closed.records.isEmpty && closed.run.tracker.snapshot.motion == .stationary)
        var open = try Rig("mon 07:00-08:05", restored: state)
        open.ahead = 7 * 86_400_000 - 3_000_000
        open.fixes(60)
        #expect(open.log.isEmpty && open.records.first?.reason == "restart")
    }

    @Test func otherHoursAreReportedToo() throws {
        var rig = try Rig(nil, hours: ["mon 08:00-09:00", "tue 08:00-09:00"])
        var reported: [TrackerEvent] = []
        var watch = TimeWindowWatch(try Rig.timetable("mon", ["mon 08:00-09:00", "tue"]))
        reported += watch.begins(UTCTime(milliseconds: Self.start), at: .zero)
        #expect(reported.isEmpty && watch.due == nil)
        reported += watch.reached(UTCTime(milliseconds: Self.start), at: .zero, believed: 1)
        #expect(reported.isEmpty && watch.due == .zero + .seconds(60))
        reported += watch.deadlineReached(UTCTime(milliseconds: Self.start + 59_999), at: .zero + .seconds(60))
        guard case .timeWindowChanged(.hours("mon 08:00-09:00"), open: true) = reported.first, reported.count == 1
        else {
            Issue.record("\(reported)")
            return
        }
        reported = watch.deadlineReached(UTCTime(milliseconds: Self.start + 16 * 3_600_000 + 60_000), at: .zero)
        #expect(reported.count == 3)
        // The tracker's own hours never close here.
        rig.fixes(120)
        #expect(rig.log.isEmpty && rig.run.schedule == nil)
    }
}
