import WaypostCore

/// Follows the receiver's time through a timetable, and reports which windows open and close.
///
/// The time of the fixes decides, live and in replay; between fixes it goes on with the event time. Before the first dated
/// fix nothing is known, and the windows are as the tracker assumes.
struct TimeWindowWatch {
    private(set) var timetable: Timetable
    /// As reported to the tracker, in the order of the timetable.
    private var isOpen: [Bool]
    /// The times at which this holds.
    private var valid: Range<Int64>?
    /// Event time of the next change; nil = none is known.
    private(set) var due: EventTime?
    /// The last time that was believed, on both clocks.
    private var last: (at: EventTime, time: UTCTime)?
    /// Believed fixes at the moment when the receiver's clock stepped; nil = it runs.
    private var steppedAt: Int?

    /// Milliseconds by which a fix may be dated before the end of hours that have ended, without opening them again: it is
    /// late on its way.
    private static let late: Int64 = 10_000
    /// Milliseconds between the two clocks that are a step, not jitter.
    private static let step: Int64 = 2000
    /// Believed fixes after a step until it counts: a single wrong date ends no trip.
    private static let confirming = 2

    init(_ timetable: Timetable) {
        self.timetable = timetable
        isOpen = timetable.entries.map { $0.window == .tracking }
    }

    var isIdle: Bool { isOpen.isEmpty }

    /// A fix came, or `due` did.
    /// - Parameters:
    ///   - time: by the last believed fix.
    ///   - believed: count of fixes that were.
    mutating func reached(_ time: UTCTime, at: EventTime, believed: Int) -> [TrackerEvent] {
        if let last {
            let elapsed = (at.nanoseconds &- last.at.nanoseconds) / 1_000_000
            let passed = time.milliseconds &- last.time.milliseconds
            if (passed &- elapsed).magnitude > Self.step {
                steppedAt = believed
                due = nil
            }
        }
        last = (at, time)
        if let steppedAt {
            guard believed - steppedAt >= Self.confirming else { return [] }
            self.steppedAt = nil
        }
        guard let valid, valid.contains(time.milliseconds) else { return look(time, at: at) }
        aim(valid.upperBound, from: time, at: at)
        return []
    }

    /// The first dated fix is about to be seen: it must find the windows right.
    mutating func begins(_ time: UTCTime, at: EventTime) -> [TrackerEvent] {
        let events = look(time, at: at)
        // Nothing says yet that it will be believed.
        due = nil
        return events
    }

    /// The time of `due` has come.
    mutating func deadlineReached(_ time: UTCTime, at: EventTime) -> [TrackerEvent] {
        // A conversion that rounds down must not find the moment before the change.
        guard let valid else {
            due = nil
            return []
        }
        return look(UTCTime(milliseconds: max(time.milliseconds, valid.upperBound)), at: at)
    }

    /// Other windows, or other hours of the same ones.
    ///
    /// - Parameter time: what the receiver's clock shows; nil before it showed anything.
    mutating func reloaded(_ new: Timetable, _ time: UTCTime?, at: EventTime) -> [TrackerEvent] {
        guard new != timetable else { return [] }
        let before = Dictionary(uniqueKeysWithValues: zip(timetable.entries.map(\.window), isOpen))
        // A window that is no more is as it would be without any hours.
        let events = timetable.entries.map(\.window).filter { window in
            !new.entries.contains { $0.window == window } && before[window] != (window == .tracking)
        }.map { TrackerEvent.timeWindowChanged($0, open: $0 == .tracking) }
        timetable = new
        isOpen = new.entries.map { before[$0.window] ?? ($0.window == .tracking) }
        valid = nil
        due = nil
        return time.map { events + look($0, at: at) } ?? events
    }

    private mutating func look(_ time: UTCTime, at: EventTime) -> [TrackerEvent] {
        var events: [TrackerEvent] = []
        var end = Int64.max
        for (index, entry) in timetable.entries.enumerated() {
            let state = timetable.state(of: entry.hours, at: time)
            if let until = state.until { end = min(end, until.milliseconds) }
            if state.isOpen != isOpen[index] {
                isOpen[index] = state.isOpen
                events.append(.timeWindowChanged(entry.window, open: state.isOpen))
            }
        }
        let start = max(time.milliseconds, .min + Self.late) - Self.late
        valid = start..<max(end, start)
        aim(end, from: time, at: at)
        return events
    }

    private mutating func aim(_ end: Int64, from time: UTCTime, at: EventTime) {
        guard end < .max else { return due = nil }
        let (ahead, overflow) = end.subtractingReportingOverflow(time.milliseconds)
        // Beyond a year the next fix aims again.
        due = overflow || ahead > 31_536_000_000 ? nil : at.advanced(byNanoseconds: max(0, ahead) * 1_000_000)
    }
}

extension TimeWindowWatch {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(valid.map { !$0.isEmpty } ?? true, "what was found holds for no time")
        invariant(steppedAt.map { $0 >= 0 } ?? true, "a clock that stepped at fix \(steppedAt ?? 0)")
    }
}
