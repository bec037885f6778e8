import DriveSimulation
import WaypostCore

/// Holds what was said about a drive against what happened.
struct MotionJudge {
    /// Seconds of the settings that decisions are judged by.
    struct Timeouts {
        var stop = 300.0
        var noFix = 1800.0
    }

    private let truth: DriveTruth
    private let record: DriveRecord
    private let timeouts: Timeouts
    private(set) var score = MotionScore()

    /// Milliseconds before a departure in which an announcement belongs to it.
    private static let foresight = 60_000
    /// Milliseconds of a trip that an announced one must share to have seen it.
    private static let overlapMin = 5_000
    /// Metres below which a trip may be missed.
    private static let shortTrip = 300.0
    /// Milliseconds of fixes without which nobody can find a place.
    private static let settling = 60_000
    /// What is listed for a person to look at.
    private static let startMetresMax = 80.0
    private static let startSecondsMax = 20.0
    private static let stopDelayMax = 2.0
    private static let excessMax = 1.0

    init(_ truth: DriveTruth, _ record: DriveRecord, timeouts: Timeouts = .init()) {
        self.truth = truth
        self.record = record
        self.timeouts = timeouts
        judgeParking()
        judgeTrips()
        judgeStops()
        judgePhantoms()
        judgeOdometer()
        judgeLine()
        score.violations.sort { $0.at < $1.at }
    }

    // MARK: What was said

    /// The last decision not after an instant.
    private func decision(at instant: Int) -> DriveRecord.Decision? { record.decisions.last { $0.at <= instant } }

    /// Spans in which a state was announced, by the times as dated back.
    private func spans(moving: Bool) -> [Range<Int>] {
        var spans: [Range<Int>] = []
        for (index, decision) in record.decisions.enumerated() where decision.moving == moving {
            if index > 0, record.decisions[index - 1].moving == moving { continue }
            let next = record.decisions[(index + 1)...].first { $0.moving != moving }
            spans.append(decision.since..<max(decision.since, next?.since ?? truth.duration))
        }
        return spans
    }

    /// The blindness around an instant.
    private func blindness(at instant: Int) -> Range<Int>? {
        record.blindness.first { $0.lowerBound < instant && instant < $0.upperBound }
    }

    /// From when on something that happened at an instant could be known.
    private func knowable(_ instant: Int) -> Int { blindness(at: instant)?.upperBound ?? instant }

    private func distance(at instant: Int) -> Double {
        guard let first = truth.samples.first else { return 0 }
        var low = 0
        var high = truth.samples.count
        while low < high {
            let middle = (low + high) / 2
            if truth.samples[middle].elapsed <= instant { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return first.distance }
        let before = truth.samples[low - 1]
        guard low < truth.samples.count else { return before.distance }
        let after = truth.samples[low]
        let share = Double(instant - before.elapsed) / Double(after.elapsed - before.elapsed)
        return before.distance + (after.distance - before.distance) * share
    }

    private mutating func complain(_ at: Int, _ what: String) {
        score.violations.append(MotionScore.Violation(at: at, what: what))
    }

    private func whole(_ value: Double) -> String { String(Int(value.rounded())) }

    // MARK: Parked

    /// Parked intervals.
    private var parkings: [Range<Int>] {
        truth.stops.map { stop in
            let start = stop.standstill ?? 0
            return start..<max(start, stop.departure ?? truth.duration)
        }
    }

    private func isFalseTrip(_ decision: DriveRecord.Decision) -> Bool {
        decision.moving
            && parkings.contains { $0.contains(decision.at) && $0.upperBound - decision.at > Self.foresight }
            && !truth.trips.contains { $0.departure > decision.at && $0.departure - decision.at <= Self.foresight }
    }

    private mutating func judgeParking() {
        score.parkedSeconds = parkings.reduce(0) { $0 + Double($1.count) / 1000 }
        for decision in record.decisions where isFalseTrip(decision) {
            score.falseTrips += 1
            complain(decision.at, "false trip by \(decision.reason)")
        }
    }

    private mutating func judgePhantoms() {
        var falseTrips: [Range<Int>] = []
        for (index, decision) in record.decisions.enumerated() where isFalseTrip(decision) {
            let end = record.decisions[(index + 1)...].first { !$0.moving }?.at ?? truth.duration
            let start = min(decision.since, decision.at)
            falseTrips.append(start..<max(start, end + 1))
        }
        var parked = parkings.makeIterator()
        var interval = parked.next()
        for (before, point) in zip(record.points, record.points.dropFirst()) {
            while let current = interval, point.time > current.upperBound { interval = parked.next() }
            guard let interval, before.time >= interval.lowerBound, point.time <= interval.upperBound else { continue }
            if falseTrips.contains(where: { $0.contains(before.at) || $0.contains(point.at) }) { continue }
            let metres = (point.place - before.place).length
            let stopped = record.decisions.contains {
                !$0.moving && $0.at >= interval.lowerBound && $0.at < interval.upperBound && $0.at < point.at
            }
            if stopped || interval.lowerBound == 0 || !before.moving {
                score.phantomParked += metres
                if metres > 1 { complain(point.at, "\(whole(metres)) phantom metres after the stop") }
            } else {
                score.phantomStopping += metres
            }
        }
    }

    // MARK: Trips

    private mutating func judgeTrips() {
        score.trips = truth.trips.count
        let moving = spans(moving: true)
        for trip in truth.trips {
            score.tripSeconds += Double(trip.standstill - trip.departure) / 1000
            let seen = moving.contains { overlap($0, trip) >= Self.overlapMin }
            if !seen, trip.metres - trip.blindMetres >= Self.shortTrip {
                score.missed += 1
                complain(trip.departure, "missed a trip of \(whole(trip.metres)) m")
            }
            judgeStart(trip)
        }
        for span in moving {
            let covered = truth.trips.filter { overlap(span, $0) >= Self.overlapMin }
            for trip in covered.dropFirst() {
                score.merged += 1
                complain(trip.departure, "merged with the trip before")
            }
        }
        for decision in record.decisions where !decision.moving && decision.reason != "gap" {
            guard let trip = truth.trips.first(where: { $0.departure < decision.at && decision.at < $0.standstill }),
                decision.since > trip.departure
            else { continue }
            score.falseStops += 1
            complain(decision.at, "false stop by \(decision.reason)")
        }
    }

    private func overlap(_ span: Range<Int>, _ trip: DriveTruth.Trip) -> Int {
        min(span.upperBound, trip.standstill) - max(span.lowerBound, trip.departure)
    }

    private mutating func judgeStart(_ trip: DriveTruth.Trip) {
        let departure = min(knowable(trip.departure), trip.standstill)
        let next = truth.trips.first { $0.departure > trip.departure }?.departure ?? truth.duration
        let decided: DriveRecord.Decision
        if let before = decision(at: departure), before.moving {
            // Moving all along: a merged trip, or a false one that goes on. Both are counted elsewhere.
            guard before.at >= trip.departure - Self.foresight else { return }
            decided = before
        } else if let after = record.decisions.first(where: { $0.moving && $0.at > departure && $0.at < next }) {
            decided = after
        } else {
            return
        }
        let metres = max(0, distance(at: min(decided.at, trip.standstill)) - distance(at: departure))
        let seconds = Double(max(0, decided.at - departure)) / 1000
        score.startMetres.append(metres)
        score.startSeconds.append(seconds)
        if metres > Self.startMetresMax, seconds > Self.startSecondsMax {
            complain(decided.at, "start after \(whole(metres)) m and \(whole(seconds)) s by \(decided.reason)")
        }
        let error = decided.since > departure ? distance(at: decided.since) - distance(at: departure) : 0
        score.departedErrors.append(error)
        score.departedEarly.append(Double(max(0, trip.departure - decided.since)) / 1000)
        if error > 15 { complain(decided.at, "departure dated \(whole(error)) m late") }
    }

    // MARK: Stops

    private mutating func judgeStops() {
        for (index, trip) in truth.trips.enumerated() {
            let next = index + 1 < truth.trips.count ? truth.trips[index + 1].departure : truth.duration
            judgeStop(trip.standstill, next: next)
        }
        let visible = parkings.compactMap { parking -> Range<Int>? in
            // What the log does not show from its beginning is shorter.
            let start = parking.lowerBound == 0 ? min(knowable(0), parking.upperBound) : parking.lowerBound
            let shown = start..<parking.upperBound
            return shown.count >= Self.settling ? shown : nil
        }
        let announced = spans(moving: false)
        score.trueStops = visible.count
        score.announcedStops = announced.count
        score.matchedStops = visible.filter { stop in announced.contains { Self.agree(stop, $0) } }.count
    }

    /// Intersection over union of at least a half.
    private static func agree(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
        let shared = a.clamped(to: b).count
        return shared > 0 && 2 * shared >= a.count + b.count - shared
    }

    private mutating func judgeStop(_ standstill: Int, next: Int) {
        let timeout = Int(timeouts.stop * 1000)
        if let before = decision(at: standstill), !before.moving {
            score.stopDelays.append(Double(before.at - standstill - timeout) / 1000)
            complain(before.at, "stopped \(whole(Double(standstill - before.at) / 1000)) s before the standstill")
            return
        }
        let blind = blindness(at: standstill)
        let known = blind?.upperBound ?? next
        guard
            let decided = record.decisions.first(where: {
                !$0.moving && $0.at > standstill && ($0.at <= max(next, known) || $0.since <= next)
            })
        else {
            score.unseenStops += 1
            return complain(standstill, "stop of \(whole(Double(next - standstill) / 1000)) s not seen")
        }
        guard let blind else {
            let delay = Double(decided.at - standstill - timeout) / 1000
            score.stopDelays.append(delay)
            if abs(delay) > Self.stopDelayMax { complain(decided.at, "stop \(whole(delay)) s late") }
            return
        }
        let due = min(blind.upperBound, blind.lowerBound + Int(timeouts.noFix * 1000))
        let delay = Double(decided.at - due) / 1000
        score.blindStopDelays.append(delay)
        if abs(delay) > Self.stopDelayMax { complain(decided.at, "blind stop \(whole(delay)) s late") }
    }

    // MARK: Line

    /// Nobody sees on the map that a position wandered while the asset stood.
    private mutating func judgeLine() {
        var index = 0
        var honest: [DriveRecord.Seen] = []
        var reflected: [DriveRecord.Seen] = []
        for fix in record.seen {
            while index + 1 < truth.samples.count, truth.samples[index + 1].elapsed <= fix.time { index += 1 }
            guard index < truth.samples.count, truth.samples[index].speed >= LineScore.speedMin else { continue }
            let error = (fix.place - truth.samples[index].place).length
            // To follow such a one while standing would be worse than to hold.
            if error > 2 * (fix.accuracy ?? LineScore.accuracyUnknown) {
                reflected.append(fix)
            } else {
                honest.append(fix)
            }
        }
        score.line = LineScore(of: honest, along: record.points)
        score.reflections = LineScore(of: reflected, along: record.points)
        score.kept = record.points.count
        guard let excess = score.line.excess, let at = score.line.excessAt, excess > Self.excessMax else { return }
        complain(at, "a fix \(whole(excess)) m beyond the bound and its accuracy")
    }

    // MARK: Odometer

    private mutating func judgeOdometer() {
        score.odometer = record.odometer
        score.metres = distance(at: truth.duration)
        for blind in record.blindness {
            score.metres -= distance(at: blind.upperBound) - distance(at: max(0, blind.lowerBound))
        }
    }
}

extension MotionScore {
    /// - Parameters:
    ///   - record: what was said.
    ///   - truth: what happened.
    package init(of record: DriveRecord, against truth: DriveTruth) {
        self = MotionJudge(truth, record).score
    }
}
