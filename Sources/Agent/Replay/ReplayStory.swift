import NMEA
import Positioning
import Tracking

/// Tells a replay to people: trips, stops and gaps with times and reasons, and at the end what became of the fixes.
public struct ReplayStory {
    private struct Trip {
        var number: Int
        var start: UTCTime?
        var startOdometer: Double
        var locations = 0
    }

    /// Lines ended by a line feed, to be taken by the caller.
    public var text = ""
    private var trip: Trip?
    private var trips = 0
    private var parkedSince: UTCTime?
    private var odometer = 0.0

    public init() {}

    public mutating func effect(_ effect: Effect, decided: UTCTime?) {
        switch effect {
        case .announceMotion(let change): motion(change)
        case .record(let location): record(location)
        case .count(.jump): line(decided, "jump", "three far positions agreed: the asset is there now")
        case .count(.clockStep): line(decided, "clock", "the receiver's clock was set back; following it")
        case .announceResolution, .setReceiver, .sleepReceiver, .count: break
        }
    }

    private mutating func motion(_ change: MotionChange) {
        let numbers = Self.numbers(change.evidence)
        if change.moving {
            trips += 1
            var words = "trip \(trips) begins"
            if let parkedSince, let since = change.since {
                words += " after \(Self.span(since.milliseconds(since: parkedSince))) parked"
            }
            if let since = change.since, let decided = change.decided {
                words += ", noticed \(Self.span(decided.milliseconds(since: since))) later"
            }
            line(change.since ?? change.decided, "departs", "\(words) (\(change.reason.rawValue): \(numbers))")
            trip = Trip(number: trips, start: change.since ?? change.decided, startOdometer: odometer)
        } else if let trip {
            var words = "trip \(trip.number) ends"
            words += ": \(Self.distance(odometer - trip.startOdometer))"
            if let start = trip.start, let since = change.since {
                words += " in \(Self.span(since.milliseconds(since: start)))"
            }
            words += ", \(trip.locations) locations (\(change.reason.rawValue): \(numbers))"
            line(change.since ?? change.decided, "stops", words)
            self.trip = nil
        } else {
            line(change.since ?? change.decided, "parked", "here when first seen (\(change.reason.rawValue))")
        }
        parkedSince = change.moving ? nil : change.since ?? change.decided
    }

    private mutating func record(_ location: Location) {
        odometer = location.odometer
        trip?.locations += 1
        switch location.event {
        case .gap: line(location.time, "gap", "no fix from here on (\(location.reason ?? "unknown"))")
        case .power: line(location.time, "power", location.reason ?? "changed")
        case .geofence:
            guard let crossing = location.geofence else { return }
            var words = "\(crossing.action.rawValue) \(crossing.name ?? crossing.id)"
            let plain: [GeofenceMonitor.Reason] = [.crossing, .dwell]
            if let reason = location.reason, !plain.contains(where: { $0.rawValue == reason }) {
                words += " (\(reason))"
            }
            line(location.time, "geofence", words)
        case .none, .motionchange, .heartbeat, .trip, .panic: break
        }
    }

    /// The last lines.
    public mutating func end(_ decoded: NMEACounters, _ tracked: TrackerCounters, published: Int) {
        if let trip { text += "\ntrip \(trip.number) had not ended when the log did.\n" }
        text += "\n"
        row("sentences", "\(decoded.sentences) with a good checksum, \(decoded.bytes) bytes")
        let defects = Self.defects(decoded)
        if !defects.isEmpty { row("defects", defects.joined(separator: ", ")) }
        row("fixes", "\(decoded.fixes), epochs without a fix: \(decoded.voidEpochs)")
        var admitted = "\(tracked.admitted)"
        let rejections = FixFilter.Rejection.allCases.filter { tracked.rejected($0) > 0 }
        if !rejections.isEmpty {
            admitted += ", rejected "
            admitted += rejections.map { "\(tracked.rejected($0)) by \($0.rawValue)" }.joined(separator: ", ")
        }
        row("admitted", admitted)
        row("trips", "\(tracked.trips), ended by a stop: \(tracked.stops)")
        row("on the way", "halts: \(tracked.halts), gaps: \(tracked.gaps)")
        row("locations", "\(tracked.records) kept, \(published) of them published")
        row("odometer", Self.distance(odometer))
    }

    private mutating func line(_ time: UTCTime?, _ word: String, _ words: String) {
        let stamp = time.map(Self.stamp) ?? "                   "
        text += "\(stamp)  \(word.padded(to: 9))\(words)\n"
    }

    private mutating func row(_ name: String, _ words: String) { text += "\(name.padded(to: 11))\(words)\n" }

    static func defects(_ counters: NMEACounters) -> [String] {
        [
            (counters.checksumErrors, "bad checksum"), (counters.missingChecksums, "no checksum"),
            (counters.tooLong, "too long"), (counters.badBytes, "cut off"), (counters.badFields, "bad field"),
            (counters.late, "late"), (counters.dateless, "no date yet"),
        ].filter { $0.0 > 0 }.map { "\($0.1): \($0.0)" }
    }

    private static func numbers(_ evidence: MotionEvidence) -> String {
        var words = "evidence \(Int(evidence.evidence.rounded())) m, distance \(Int(evidence.distance.rounded())) m"
        if let accuracy = evidence.accuracy { words += ", accuracy \(metres(accuracy)) m" }
        return words
    }

    /// `12`, and below a metre `0.03`: an accuracy is never 0.
    static func metres(_ accuracy: Double) -> String {
        guard accuracy < 1 else { return String(Int(accuracy.rounded())) }
        let hundredths = max(1, Int((accuracy * 100).rounded()))
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }

    /// `2020-02-07 02:16:18`
    static func stamp(_ time: UTCTime) -> String {
        let iso = time.iso8601
        return iso.prefix(10) + " " + iso.dropFirst(11).prefix(8)
    }

    /// `1 h 02 min`, `2 min 10 s`, `8 s`
    static func span(_ milliseconds: Int64) -> String {
        let seconds = Int(milliseconds / 1000)
        if seconds >= 3600 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
        if seconds >= 60 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds) s"
    }

    /// `850 m`, `12.3 km`
    static func distance(_ metres: Double) -> String {
        guard metres >= 1000 else { return "\(Int(metres.rounded())) m" }
        let tenths = Int((metres / 100).rounded())
        return "\(tenths / 10).\(tenths % 10) km"
    }
}

extension String {
    /// Filled up with blanks at the end.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - utf8.count)) }
}
