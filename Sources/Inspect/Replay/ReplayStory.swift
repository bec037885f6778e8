import WaypostCore
import WaypostNMEA
import WaypostTracking

/// A replay for people, on a page: trips, stops, gaps and what was not believed, with times and reasons, and at
/// the end what became of the fixes.
///
/// A stop is known minutes after the standstill, so lines wait until a motion change sorts them.
package struct ReplayStory {
    private struct Trip {
        var number: Int
        var start: UTCTime?
        var startOdometer: Double
        private var counted = 0
        /// Times of the newest ones: which of them belong to the trip is known minutes after its end.
        private var recent: [UTCTime] = []
        private static let recentMax = 4096

        init(number: Int, start: UTCTime?, startOdometer: Double) {
            (self.number, self.start, self.startOdometer) = (number, start, startOdometer)
        }

        mutating func recorded(_ time: UTCTime) {
            if recent.count >= 2 * Self.recentMax {
                recent.removeFirst(Self.recentMax)
                counted += Self.recentMax
            }
            recent.append(time)
        }

        /// Those up to a time; nil = all.
        func locations(through end: UTCTime?) -> Int {
            guard let end else { return counted + recent.count }
            return counted + recent.count(where: { $0 <= end })
        }
    }

    private struct Line {
        var time: UTCTime?
        var word: String
        var words: String
    }

    /// Fixes that were refused one after the other for one reason.
    private struct Refused {
        var reason: FixFilter.Rejection
        var count: Int
        var first: UTCTime
        var last: UTCTime
    }

    /// A log of a flapping receiver must not grow the memory: at most this many lines wait.
    private static let waitingMax = 1000
    /// Refused fixes in a row that are worth a line of their own; the others are in the last lines.
    private static let refusedMin = 10
    /// Milliseconds without one after which a row of refused fixes has ended.
    private static let refusedPause: Int64 = 60_000

    /// Why a log with believed fixes may have neither a trip nor a stop.
    package static let noPlace =
        "no place was certain before the log ended, or the log lies outside of [schedule]: a start takes 30 fixes, or 60 s"

    /// m/s that do not fit to an asset whose positions stay at one place.
    package static let doubtfulSpeed = 2.0

    /// Lines ended by a line feed, to be taken by the caller.
    package var text = ""
    private var waiting: [Line] = []
    private var trip: Trip?
    private var trips = 0
    private var moving = false
    private var parkedSince: UTCTime?
    /// The receiver slept since the last motion change: each further time would fill the page.
    private var sleptHere = false
    private var odometer = 0.0
    private var refused: Refused?
    private var keptBy: [String: Int] = [:]
    /// What was printed last of each trackable, moving and not: a motion change alone is no news.
    private var printed: [String: Resolution] = [:]

    private let units: DisplayUnits
    private let stamp: @Sendable (UTCTime) -> String

    /// - Parameter stamp: a time as whoever reads the story writes it; nil = UTC.
    package init(units: DisplayUnits = .metric, stamp: (@Sendable (UTCTime) -> String)? = nil) {
        self.units = units
        self.stamp = stamp ?? InWords.stamp
    }

    package mutating func effect(_ effect: Effect, decided: UTCTime?) {
        switch effect {
        case .announceMotion(let change): motion(change)
        case .record(let location): record(location, decided: decided)
        case .count(.jump):
            line(decided, "jump", "far positions led on, or agreed for three minutes: the asset is there now")
        case .count(.clockStep): line(decided, "clock", "the receiver's clock was set back; following it")
        case .count(.rejected(let reason)): refuse(reason, decided)
        case .announceResolution(let trackable, let resolution): follow(trackable, resolution, decided)
        case .sleepReceiver where !sleptHere:
            sleptHere = true
            line(decided, "sleeps", "the receiver, except for short probes")
        case .announceMove(let time, let metres):
            line(time, "moved", "stands \(InWords.distance(metres)) from where it was parked; nobody saw the way")
        case .announceHalt, .announceGap, .announceLowBattery, .announceRule, .setReceiver, .sleepReceiver,
            .wakeReceiver, .count:
            break
        }
    }

    private mutating func motion(_ change: MotionChange) {
        endRefused()
        let why = "(\(change.reason.rawValue): \(numbers(change.evidence)))"
        moving = change.moving
        sleptHere = false
        if change.moving {
            trips += 1
            var words = "trip \(trips) begins"
            if let parkedSince, let since = change.since, since > parkedSince {
                words += " after \(InWords.span(milliseconds: since.milliseconds(since: parkedSince))) parked"
            }
            if let since = change.since, let decided = change.decided, decided.milliseconds(since: since) >= 1000 {
                words += ", noticed \(InWords.span(milliseconds: decided.milliseconds(since: since))) later"
            }
            line(change.since ?? change.decided, "departs", "\(words) \(why)")
            trip = Trip(number: trips, start: change.since ?? change.decided, startOdometer: odometer)
        } else if let trip {
            var words = "trip \(trip.number) ends"
            if let summary = change.trip {
                words += ": \(InWords.distance(summary.distance, in: units))"
                if let start = trip.start {
                    words += " in \(InWords.span(milliseconds: summary.end.milliseconds(since: start)))"
                }
                if summary.idle >= 1 {
                    words += ", \(InWords.span(seconds: summary.idle)) of it halted"
                }
                if let speed = summary.maxSpeed { words += ", at most \(InWords.speed(speed, in: units))" }
            }
            words += ", \(trip.locations(through: change.since)) locations \(why)"
            line(change.since ?? change.decided, "stops", words)
            self.trip = nil
        } else {
            let speed = change.evidence.speed ?? 0
            let doubt = "positions at one place, although the receiver says \(InWords.speed(speed, in: units)) "
            line(
                change.since ?? change.decided, "parked",
                "here when first seen \(speed >= Self.doubtfulSpeed ? doubt : "")\(why)")
        }
        parkedSince = change.moving ? nil : change.since ?? change.decided
        printWaiting()
    }

    private mutating func record(_ location: Location, decided: UTCTime?) {
        odometer = location.odometer
        let time = location.isPlaced ? location.time : decided
        if location.isPlaced { trip?.recorded(location.time) }
        if location.published {
            keptBy[location.event == .none ? location.reason ?? "other" : location.event.rawValue, default: 0] += 1
        }
        switch location.event {
        case .gap:
            let reason = location.reason.flatMap(RecordReason.init)
            let why = reason.map { "\($0.rawValue): \($0.words)" } ?? location.reason ?? "unknown"
            line(location.time, "gap", "the last fix for a while (\(why))")
        case .power: line(location.time, "power", location.reason ?? "changed")
        case .geofence:
            guard let crossing = location.geofence else { return }
            var words = "\(crossing.action.rawValue) \(crossing.name ?? crossing.id)"
            let plain = [GeofenceMonitor.Reason.crossing.rawValue, GeofenceMonitor.Reason.dwell.rawValue, "beacon"]
            if let reason = location.reason, !plain.contains(reason) {
                words += " (\(reason))"
            }
            line(time, crossing.source == .beacon ? "region" : "geofence", words)
        case .none:
            if location.reason == SegmentOpening.gap.rawValue { line(location.time, "gap", "ends here") }
        case .beacon: line(time, "beacon", location.geofence?.id ?? "")
        case .motionchange, .heartbeat, .trip, .panic, .requested, .settings: break
        }
    }

    private mutating func refuse(_ reason: FixFilter.Rejection, _ decided: UTCTime?) {
        guard let decided else { return }
        if var row = refused, row.reason == reason, decided.milliseconds(since: row.last) < Self.refusedPause {
            row.count += 1
            row.last = decided
            refused = row
        } else {
            endRefused()
            refused = Refused(reason: reason, count: 1, first: decided, last: decided)
        }
    }

    private mutating func endRefused() {
        guard let row = refused else { return }
        refused = nil
        guard row.count >= Self.refusedMin else { return }
        line(
            row.first, "rejects",
            "\(row.count) fixes within \(InWords.span(milliseconds: row.last.milliseconds(since: row.first))) "
                + "(\(row.reason.rawValue): \(row.reason.words))")
    }

    private mutating func follow(_ trackable: String, _ resolution: Resolution, _ decided: UTCTime?) {
        let key = (moving ? "moving " : "parked ") + trackable
        defer { printed[key] = resolution }
        guard let before = printed[key], before != resolution else { return }
        line(decided, "follows", "\(trackable) with \(resolution.words)")
    }

    /// The last lines.
    /// - Parameter isNMEA: else there are lines of gpsd or points of GPX among the sentences, which have no checksum.
    package mutating func end(
        _ decoded: NMEACounters, isNMEA: Bool, _ tracked: TrackerCounters, published: Int,
        faults: [ReceiverWatch.Fault] = []
    ) {
        endRefused()
        printWaiting()
        if let trip {
            text += "\ntrip \(trip.number) had not ended when the log did: "
            text += "\(InWords.distance(odometer - trip.startOdometer)) so far, "
            text += "\(trip.locations(through: nil)) locations.\n"
        }
        if tracked.admitted > 0, tracked.records == 0 {
            text += "\(Self.noPlace).\n"
        }
        text += "\n"
        if isNMEA {
            row("sentences", "\(decoded.sentences) with a good checksum, \(decoded.bytes) bytes")
        } else {
            row("records", "\(decoded.sentences), \(decoded.bytes) bytes")
        }
        let defects = Self.defects(decoded)
        if !defects.isEmpty { row("defects", defects.joined(separator: ", ")) }
        row("fixes", "\(decoded.fixes), epochs without a fix: \(decoded.voidEpochs)")
        for fault in faults { row("receiver", fault.words) }
        var admitted = "\(tracked.admitted)"
        let rejections = FixFilter.Rejection.allCases.filter { tracked.rejected($0) > 0 }
        if !rejections.isEmpty {
            admitted += ", rejected "
            admitted += rejections.map { "\(tracked.rejected($0)) by \($0.rawValue)" }.joined(separator: ", ")
        }
        row("admitted", admitted)
        row("trips", "\(tracked.trips), ended by a stop: \(tracked.stops)")
        row("on the way", "halts: \(tracked.halts), gaps: \(tracked.gaps)")
        let beside = tracked.records - published
        row("locations", "\(published) kept" + (beside > 0 ? ", and \(beside) for feed = \"engine\" alone" : ""))
        if !keptBy.isEmpty {
            let most = keptBy.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
            row("kept by", most.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
        }
        row("odometer", InWords.distance(odometer))
    }

    private mutating func line(_ time: UTCTime?, _ word: String, _ words: String) {
        waiting.append(Line(time: time, word: word, words: words))
        if waiting.count >= Self.waitingMax { printWaiting() }
    }

    /// Writes the lines that wait in the order of their times; those without a time stay where they came.
    private mutating func printWaiting() {
        var reached = UTCTime(milliseconds: .min)
        let stamped = waiting.enumerated().map { index, line in
            reached = line.time ?? reached
            return (line: line, time: reached, index: index)
        }
        for (line, _, _) in stamped.sorted(by: { ($0.time, $0.index) < ($1.time, $1.index) }) {
            let stamp =
                line.time.map(self.stamp) ?? String(repeating: " ", count: self.stamp(UTCTime(milliseconds: 0)).count)
            text += "\(stamp)  \(line.word.padded(to: 9))\(line.words)\n"
        }
        waiting.removeAll()
    }

    private mutating func row(_ name: String, _ words: String) { text += "\(name.padded(to: 11))\(words)\n" }

    static func defects(_ counters: NMEACounters) -> [String] {
        [
            (counters.checksumErrors, "bad checksum"), (counters.missingChecksums, "no checksum"),
            (counters.tooLong, "too long"), (counters.badBytes, "cut off"), (counters.badFields, "bad field"),
            (counters.unknownLines, "not understood"), (counters.late, "late"), (counters.dateless, "no date yet"),
            (counters.repeats, "repeated"), (counters.straySentences, "of a source without a position"),
            (counters.unknownQualities, "unknown quality in GGA"),
            (counters.modeConflicts, "GSA without a fix beside one"),
            (counters.datesRefused, "date not believed"),
        ].filter { $0.0 > 0 }.map { "\($0.1): \($0.0)" }
    }

    private func numbers(_ evidence: MotionEvidence) -> String {
        var words = "evidence \(InWords.whole(evidence.evidence)) m, distance \(InWords.whole(evidence.distance)) m"
        if let speed = evidence.speed { words += ", speed \(InWords.speed(speed, in: units))" }
        if let accuracy = evidence.accuracy { words += ", accuracy \(InWords.accuracy(accuracy))" }
        return words
    }
}

extension FixFilter.Rejection {
    /// What it means, for people.
    var words: String {
        switch self {
        case .position: "no position, or 0°/0°"
        case .simulated: "simulated or entered by hand"
        case .dateless: "the receiver has sent no date yet"
        case .duplicate: "already reported"
        case .age: "not later than the last one"
        case .accuracy: "not accurate enough"
        case .impliedSpeed: "too far from the last one for the time between"
        }
    }
}

extension String {
    /// Filled up with blanks at the end.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - utf8.count)) }
}
