import WaypostCore
import WaypostNMEA

/// What is wrong with what the receiver reports, for status and journal: faults of its fixes and dates, and counts of what is
/// left out that keep rising.
struct ReceiverTrouble {
    /// What is left out, and the fix beside it counts.
    private enum Kind: CaseIterable {
        case straySentences, unknownQualities, modeConflicts, datesRefused

        func count(_ counters: NMEACounters) -> Int {
            switch self {
            case .straySentences: counters.straySentences
            case .unknownQualities: counters.unknownQualities
            case .modeConflicts: counters.modeConflicts
            case .datesRefused: counters.datesRefused
            }
        }

        var words: String {
            switch self {
            case .straySentences:
                "another source on the line has no position, and its sentences are left out: set talker in [source] to "
                    + "that of the receiver"
            case .unknownQualities:
                "GGA has a quality that is not known, and the fixes count by the other sentences: set the receiver to NMEA 0183"
            case .modeConflicts:
                "GSA says that there is no fix, and the other sentences have one: let the receiver send the GSA of all its "
                    + "constellations"
            case .datesRefused: "the receiver's date keeps jumping, and fixes are dated by the time before: replace it"
            }
        }
    }

    /// Between two looks at the counts.
    private static let pause = Duration.seconds(10)
    private static let risesMin = 3
    /// Without a rise for so long it is over.
    private static let memory = Duration.seconds(600)

    private var watch = ReceiverWatch()
    private var dates = ReceiverDates()
    private var lookAt: EventTime?
    private var counts = [Int](repeating: 0, count: Kind.allCases.count)
    private var roseAt = [EventTime?](repeating: nil, count: Kind.allCases.count)

    /// What is wrong with the fixes; nil = nothing.
    var fault: String? { watch.fault.map(Self.words) }
    /// Why the date is not believed; nil = it is.
    var dateFault: String? { dates.fault?.words }

    private static func words(_ fault: ReceiverWatch.Fault) -> String { "\(fault.words): \(fault.advice)" }

    func problems(at now: EventTime) -> [String] {
        let rising = zip(Kind.allCases, roseAt).filter { $1.map { now < $0 + Self.memory } ?? false }
        return [fault, dateFault].compactMap(\.self) + rising.map(\.0.words)
    }

    /// What a fix changed.
    struct News {
        /// What was not wrong before, for the journal.
        var lines: [String] = []
        /// `fault` or `dateFault` is another.
        var isFaultNew = false
    }

    /// - Parameters:
    ///   - fix: nil = an epoch without one.
    ///   - at: event time of the epoch.
    ///   - now: boot clock.
    /// - Returns: nil = nothing is new, as with nearly all fixes.
    @inline(__always)
    mutating func received(
        _ fix: Fix?, at: EventTime, dates new: ReceiverDates, counters: () -> NMEACounters, now: EventTime
    ) -> News? {
        let before = watch.fault
        if let fix { watch.received(fix, at: at) }
        let isLookDue = lookAt.map { now >= $0 } ?? true
        guard isLookDue || watch.fault != before || new != dates else { return nil }
        return judge(before, new, isLookDue ? counters() : nil, now: now)
    }

    @inline(never)
    private mutating func judge(
        _ before: ReceiverWatch.Fault?, _ new: ReceiverDates, _ counters: NMEACounters?, now: EventTime
    ) -> News {
        var news = News()
        let words = (fault: before.map(Self.words), dateFault: dateFault)
        if watch.fault != before, let fault { news.lines.append(fault) }
        if new != dates { note(new, &news.lines) }
        if let counters { look(counters, at: now, &news.lines) }
        news.isFaultNew = words != (fault, dateFault)
        return news
    }

    private mutating func note(_ new: ReceiverDates, _ news: inout [String]) {
        if let weeks = new.repairedWeeks, weeks != dates.repairedWeeks {
            news.append(
                "the receiver's date is \(weeks.magnitude) weeks \(weeks > 0 ? "behind" : "ahead of") the synchronised host "
                    + "clock: it is moved by them")
        }
        // The date itself changes with each fix.
        if let fault = new.fault, dates.fault.map({ !fault.isLike($0) }) ?? true { news.append(fault.words) }
        dates = new
    }

    private mutating func look(_ counters: NMEACounters, at now: EventTime, _ news: inout [String]) {
        let isFirst = lookAt == nil
        lookAt = now + Self.pause
        for (index, kind) in Kind.allCases.enumerated() {
            let count = kind.count(counters)
            if !isFirst, count >= counts[index] + Self.risesMin {
                if roseAt[index].map({ now >= $0 + Self.memory }) ?? true { news.append(kind.words) }
                roseAt[index] = now
            }
            counts[index] = count
        }
    }
}

extension DateFault {
    fileprivate func isLike(_ other: DateFault) -> Bool {
        switch (self, other) {
        case (.contradicted, .contradicted), (.impossible, .impossible), (.unconfirmed, .unconfirmed): true
        default: false
        }
    }
}
