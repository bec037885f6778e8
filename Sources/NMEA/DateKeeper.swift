import WaypostCore

/// The host's clock while it is synchronised: what dates of the receiver are compared with.
///
/// It may correct a date by whole weeks, never the time of day.
public struct HostTime: Hashable, Sendable {
    public var time: UTCTime
    /// When it was read, on the boot clock.
    public var at: EventTime

    public init(time: UTCTime, at: EventTime) {
        self.time = time
        self.at = at
    }
}

/// Why the date of a receiver is not believed.
public enum DateFault: Hashable, Sendable {
    /// Not the date of the synchronised host clock, and not by whole weeks.
    case contradicted(UTCTime)
    /// One that a receiver shows before it knows the date, or that no repair makes plausible.
    case impossible(UTCTime)
    /// Another day than the time before leads to, until enough fixes agree.
    case unconfirmed(UTCTime)

    /// A sentence, without the stop.
    public var words: String {
        switch self {
        case .contradicted(let said):
            "the receiver's date \(said.iso8601.prefix(10)) is not that of the synchronised host clock: it is not believed"
        case .impossible(let said):
            "the receiver's date \(said.iso8601.prefix(10)) cannot be: wait for it to get the date, or restart it"
        case .unconfirmed(let said):
            "the receiver's date jumped to \(said.iso8601.prefix(10)): until it is confirmed, fixes are dated by the time before"
        }
    }
}

/// What is known of the dates of a receiver.
public struct ReceiverDates: Hashable, Sendable {
    /// Why its date is not believed at present; nil = it is, or there is none.
    public internal(set) var fault: DateFault?
    /// By how many weeks its dates were moved, as the synchronised host clock confirmed; nil = they were not.
    public internal(set) var repairedWeeks: Int?
    /// The newest date that was repaired so.
    public internal(set) var confirmedRepair: UTCTime?

    public init() {}
}

/// Turns times of day into UTC: by the date of the epoch itself, else by the newest dated fix before it.
///
/// A date that is not the one to which the time before leads is believed once enough fixes agree with it. Until then each fix
/// is dated by its time of day. In a log, whose pauses nobody has measured, both datings are given.
struct DateKeeper: Sendable {
    /// Time of the newest dated fix; nil = no date known yet.
    private(set) var newest: UTCTime?
    /// When it came, on the boot clock; nil = from a log.
    private var newestAt: EventTime?
    /// The date of `newest` was moved by whole weeks.
    private var isShifted = false
    /// Days since 1970-01-01 before which no date can be; nil = every date is accepted.
    private let buildDay: Int?
    /// Days since 1970-01-01 on which the receiver was used, as two clocks agreed, or of the build.
    private let knownDay: Int
    var host: HostTime?
    private var trial: Trial?
    private(set) var state = ReceiverDates()
    private(set) var refused = 0

    struct Dating {
        var time: UTCTime?
        var rollover = false
        /// In a log: the time if the date of the fix itself should be right, while that is open.
        var own: UTCTime?
        /// In a log: which dating is right for the fixes before for which it was open.
        var before: Choice?
    }

    enum Choice { case expected, own }

    /// A date that is not the expected one, and those that agree with it.
    ///
    /// More of them never count for less: who goes on within a trial that was decided for the expected date sees its last fixes
    /// only, and must decide the same.
    private struct Trial {
        typealias Moment = (time: UTCTime, at: EventTime?)

        private(set) var newest: Moment
        /// The newest that had a date of its own.
        private var newestDated: Moment
        private(set) var count = 1
        /// Milliseconds between those that had one, as far as they went forward.
        private var span: Int64 = 0
        let isShifted: Bool
        /// Somewhere the time of day did not go on from the one before: another recording, not another date.
        private(set) var isBreak: Bool

        private static let fixesMin = 5
        private static let spanMin: Int64 = 10_000
        private static let seldom: Int64 = 60_000

        init(_ first: Moment, isShifted: Bool, isBreak: Bool) {
            (newest, newestDated) = (first, first)
            (self.isShifted, self.isBreak) = (isShifted, isBreak)
        }

        mutating func undated(_ next: Moment) { newest = next }

        /// - Returns: enough fixes agree.
        mutating func agrees(_ next: Moment, isBreak: Bool) -> Bool {
            let step: Int64 =
                if let at = next.at, let since = newestDated.at {
                    at.duration(since: since).milliseconds
                } else {
                    next.time.milliseconds(since: newestDated.time)
                }
            count += 1
            span += max(step, 0)
            (newest, newestDated) = (next, next)
            if isBreak { self.isBreak = true }
            return step > Self.seldom || count >= Self.fixesMin && span >= Self.spanMin
        }
    }

    private static let week: Int64 = 7 * UTCTime.millisecondsPerDay
    private static let daysOfRollover = 1024 * 7
    /// 15 years.
    private static let plausibleDays = 5479
    /// 3 years.
    private static let repairedDays = 1096
    private static let halfDay = 43_200_000
    private static let day = 86_400_000
    /// Milliseconds by which a date may differ from the host's after a repair.
    private static let repairTolerance: Int64 = 600_000
    /// The same without one.
    private static let hostTolerance: Int64 = 3_600_000
    /// Milliseconds between two fixes of one recording.
    private static let continuity = 60_000
    /// Days that receivers show before they know the date: the year 1980, and the weeks in which the week number was 0.
    private static let coldStarts = [3652..<4018, 10_825..<10_832, 17_993..<18_000]

    /// - Parameters:
    ///   - newest: of an earlier run on the same stream.
    ///   - known: the latest time that is known to have been.
    init(newest: UTCTime?, rollover: NMEADecoder.Rollover, known: UTCTime?) {
        self.newest = newest
        switch rollover {
        case .off: (buildDay, knownDay) = (nil, 0)
        case .repair(let buildDate):
            buildDay = buildDate.daysSince1970
            knownDay = max(buildDate.daysSince1970, known?.daysSince1970 ?? 0)
        }
    }

    mutating func forget() { (newest, newestAt, trial) = (nil, nil, nil) }

    /// The log is over: which dating is right for the fixes for which it is open.
    mutating func logEnded() -> Choice? {
        guard let trial else { return nil }
        self.trial = nil
        return settle(trial)
    }

    private mutating func settle(_ trial: Trial) -> Choice {
        guard trial.isBreak else {
            refused += trial.count
            return .expected
        }
        (newest, isShifted) = (trial.newest.time, trial.isShifted)
        return .own
    }

    /// - Parameters:
    ///   - day: the date of the epoch itself in days since 1970-01-01; nil when it has none.
    ///   - at: arrival on the boot clock; nil in a log.
    mutating func fixReceived(timeOfDay: Int, day: Int?, at: EventTime?) -> Dating {
        guard let day, let said = reading(day, timeOfDay, at) else { return undated(timeOfDay, at) }
        if said.isConfirmed || newest == nil || (at != nil && newestAt == nil) {
            trial = nil
            return believe(said.time, said.isShifted, at)
        }
        var dating = Dating()
        guard var expected = expected(timeOfDay, at) else { return believe(said.time, said.isShifted, at) }
        if said.time == expected {
            if let trial {
                self.trial = nil
                if at == nil { refused += trial.count }
                dating.before = .expected
            }
            return believe(said.time, said.isShifted, at, dating)
        }
        let next = (time: said.time, at: at)
        if var going = trial, Self.expected(timeOfDay, at, after: going.newest) == said.time {
            guard !going.agrees(next, isBreak: isBreak(timeOfDay, at)) else {
                trial = nil
                dating.before = .own
                return believe(said.time, said.isShifted, at, dating)
            }
            trial = going
        } else {
            if let trial {
                self.trial = nil
                if at == nil {
                    dating.before = settle(trial)
                    expected = self.expected(timeOfDay, at) ?? expected
                    if said.time == expected { return believe(said.time, said.isShifted, at, dating) }
                }
            }
            trial = Trial(next, isShifted: said.isShifted, isBreak: isBreak(timeOfDay, at))
        }
        if at != nil { refused += 1 }
        state.fault = .unconfirmed(said.time)
        dating.own = at == nil ? said.time : nil
        return go(on: expected, at, dating)
    }

    /// What enough fixes agree about needs no more of them: more than these are not to be held.
    mutating func confirmTrial() -> Choice? {
        guard let trial else { return nil }
        self.trial = nil
        (newest, isShifted) = (trial.newest.time, trial.isShifted)
        return .own
    }

    private mutating func undated(_ timeOfDay: Int, _ at: EventTime?) -> Dating {
        guard let expected = expected(timeOfDay, at) else { return Dating() }
        var dating = Dating()
        if var going = trial, let own = Self.expected(timeOfDay, at, after: going.newest) {
            going.undated((own, at))
            trial = going
            if at == nil { dating.own = own }
        }
        return go(on: expected, at, dating)
    }

    private mutating func believe(
        _ time: UTCTime, _ isShifted: Bool, _ at: EventTime?, _ dating: Dating = Dating()
    ) -> Dating {
        self.isShifted = isShifted
        state.fault = nil
        return go(on: time, at, dating)
    }

    private mutating func go(on time: UTCTime, _ at: EventTime?, _ dating: Dating) -> Dating {
        (newest, newestAt) = (time, at)
        var dating = dating
        (dating.time, dating.rollover) = (time, isShifted)
        return dating
    }

    /// The time of a void epoch, by the date known before. It changes nothing: before a fix even the time of day of a
    /// receiver may be that of its own clock, and would count a day too many.
    func counted(timeOfDay: Int, at: EventTime?) -> Dating {
        Dating(
            time: expected(timeOfDay, at),
            own: at == nil ? trial.flatMap { Self.expected(timeOfDay, at, after: $0.newest) } : nil)
    }

    private func expected(_ timeOfDay: Int, _ at: EventTime?) -> UTCTime? {
        newest.flatMap { Self.expected(timeOfDay, at, after: ($0, newestAt)) }
    }

    /// The time of day on the date to which an earlier time leads: with the boot clock the nearest one, in a log the next.
    private static func expected(
        _ timeOfDay: Int, _ at: EventTime?, after earlier: (time: UTCTime, at: EventTime?)
    ) -> UTCTime? {
        if let at, let since = earlier.at {
            let reached = earlier.time + at.duration(since: since)
            let ahead = timeOfDay - reached.timeOfDay
            let day = reached.daysSince1970 + (ahead > halfDay ? -1 : ahead < -halfDay ? 1 : 0)
            return time(day: day, timeOfDay: timeOfDay)
        }
        let (day, before) = (earlier.time.daysSince1970, earlier.time.timeOfDay)
        // A leap second (23:59:60) is in the next day of Unix time already; more of it must not count another.
        if timeOfDay >= Self.day, before < 1000 { return time(day: day - 1, timeOfDay: timeOfDay) }
        // Only a fall by more than half a day is midnight: a smaller one is a receiver that repeats or sets its clock.
        return time(day: before - timeOfDay > halfDay ? day + 1 : day, timeOfDay: timeOfDay)
    }

    private func isBreak(_ timeOfDay: Int, _ at: EventTime?) -> Bool {
        guard at == nil, let newest else { return false }
        var ahead = timeOfDay - newest.timeOfDay
        if ahead > Self.halfDay { ahead -= Self.day } else if ahead < -Self.halfDay { ahead += Self.day }
        return ahead.magnitude > Self.continuity
    }

    /// What a date means; nil when it means nothing.
    private mutating func reading(
        _ day: Int, _ timeOfDay: Int, _ at: EventTime?
    ) -> (time: UTCTime, isShifted: Bool, isConfirmed: Bool)? {
        let said = Self.time(day: day, timeOfDay: timeOfDay)
        guard let buildDay else { return (said, false, false) }
        if let at, let host { return reading(said, by: host.time + at.duration(since: host.at)) }
        guard let repaired = repaired(day, buildDay) else {
            state.fault = .impossible(said)
            refused += 1
            return nil
        }
        return (Self.time(day: repaired, timeOfDay: timeOfDay), repaired != day, false)
    }

    private mutating func reading(
        _ said: UTCTime, by host: UTCTime
    ) -> (time: UTCTime, isShifted: Bool, isConfirmed: Bool)? {
        let off = said.milliseconds(since: host)
        let weeks = (off + (off < 0 ? -Self.week : Self.week) / 2) / Self.week
        let rest = (off - weeks * Self.week).magnitude
        if weeks == 0, rest <= Self.hostTolerance.magnitude {
            return (said, false, rest <= Self.repairTolerance.magnitude)
        }
        guard rest <= Self.repairTolerance.magnitude else {
            state.fault = .contradicted(said)
            refused += 1
            return nil
        }
        let time = UTCTime(milliseconds: said.milliseconds - weeks * Self.week)
        state.repairedWeeks = Int(-weeks)
        state.confirmedRepair = time
        return (time, true, true)
    }

    private func repaired(_ day: Int, _ buildDay: Int) -> Int? {
        if Self.coldStarts.contains(where: { $0.contains(day) }) { return nil }
        guard day < buildDay else { return day <= knownDay + Self.plausibleDays ? day : nil }
        let rollovers = (buildDay - day + Self.daysOfRollover - 1) / Self.daysOfRollover
        let repaired = day + rollovers * Self.daysOfRollover
        return repaired <= max(knownDay, state.confirmedRepair?.daysSince1970 ?? 0) + Self.repairedDays ? repaired : nil
    }

    private static func time(day: Int, timeOfDay: Int) -> UTCTime {
        UTCTime(milliseconds: Int64(day) * UTCTime.millisecondsPerDay + Int64(timeOfDay))
    }
}

extension DateKeeper.Dating {
    /// - Parameter choice: which of both datings, where there are two.
    @inline(__always)
    func time(_ choice: DateKeeper.Choice) -> UTCTime? { choice == .own ? own ?? time : time }

    /// - Parameter choice: which of both datings, where there are two.
    @inline(__always)
    func dated(_ epoch: Epoch, _ choice: DateKeeper.Choice = .expected) -> Epoch {
        let time = time(choice)
        switch epoch {
        case .fix(var fix):
            (fix.time, fix.rollover) = (time, rollover)
            return .fix(fix)
        case .void(var void):
            void.time = time
            return .void(void)
        }
    }
}

/// Epochs of a log that wait until their date is certain, in their order.
struct HeldEpochs: Sendable {
    /// What has agreed for so long needs no more.
    private static let most = 256

    private var items: [(epoch: Epoch, dating: DateKeeper.Dating, offset: Int64)] = []

    var isEmpty: Bool { items.isEmpty }
    var isFull: Bool { items.count >= Self.most }

    @inline(__always)
    func isNeeded(for dating: DateKeeper.Dating) -> Bool { dating.own != nil || !items.isEmpty }

    mutating func add(_ epoch: Epoch, _ dating: DateKeeper.Dating, _ offset: Int64 = 0) {
        items.append((epoch, dating, offset))
        invariant(items.count <= Self.most, "\(items.count) epochs wait for a date")
    }

    mutating func release(_ choice: DateKeeper.Choice) -> [(epoch: Epoch, time: UTCTime?, offset: Int64)] {
        defer { items = [] }
        return items.map { ($0.dating.dated($0.epoch, choice), $0.dating.time(choice), $0.offset) }
    }
}
