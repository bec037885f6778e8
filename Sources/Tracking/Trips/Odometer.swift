import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Distance driven, in metres. It only counts while the asset moves.
public struct Odometer: Sendable {
    private struct Point: Sendable {
        var time: UTCTime
        var at: EventTime
        var coordinate: Coordinate
        var speed: Double?
        var accuracy: Double?
    }

    /// Seconds between two fixes within which speeds are integrated.
    private static let stepMax = 3.0
    /// Metres; where the accuracy is worse the speed is not trusted either.
    private static let accuracyMax = 100.0
    /// Seconds over which the pace of an asset without speeds is a mean.
    private static let paceSeconds = 10.0
    /// Metres by speed for one of position that are believed: less for all that bends.
    private static let confirmation = 4.0
    /// Metres by speed that need no confirmation once it cannot come any more.
    private static let unconfirmedMax = 50.0
    /// A hundred million kilometres, so that tenths of a metre still count.
    public static let metresMax = 1e11

    private(set) var metres: Double
    /// How much of `metres` was not seen: straight lines across gaps within trips.
    private(set) var gapMetres: Double
    private var last: Point?
    /// The part of a way without speeds that goes straight on.
    private var leg: Leg?
    /// m/s over some ten seconds; nil = unknown.
    private var pace: Double?
    /// m/s of a step that was taken for a jump: if the next one is as fast it was none.
    private var doubted: Double?
    /// Metres by speed alone, from a place that the position has not left since: a speed that stands still is none.
    private var unconfirmed = (metres: 0.0, since: Coordinate?.none)
    /// Metres counted in the first seconds of halts, before they were seen to be halts: noise that the next metres pay for,
    /// so that the odometer never runs back.
    private var debt = 0.0

    init(metres: Double, gapMetres: Double) {
        self.metres = metres
        self.gapMetres = gapMetres
    }

    /// Another reading, such as that of the vehicle itself, which saw all of it; negative counts as 0.
    mutating func set(_ metres: Double) {
        self.metres = min(max(0, metres), Self.metresMax)
        gapMetres = 0
        debt = 0
    }

    /// Counting continues from here; the way to here is not counted.
    mutating func start(at fix: Fix, time: UTCTime, at: EventTime) {
        stop()
        last = Point(
            time: time, at: at, coordinate: fix.coordinate, speed: fix.speed, accuracy: fix.horizontalAccuracy)
    }

    /// Counting continues from the last fix of an earlier run.
    /// - Parameter at: when that was, as far as the dates of fixes tell.
    mutating func start(at fix: StoredState.LastFix, at: EventTime) {
        stop()
        last = Point(time: fix.time, at: at, coordinate: fix.coordinate, speed: nil, accuracy: fix.accuracy)
    }

    /// Nothing is known about the way to the next fix.
    mutating func stop() {
        settle()
        last = nil
        leg = nil
        pace = nil
        doubted = nil
    }

    /// What the position has not confirmed is counted all the same, if it is little: who turns round is where he was.
    mutating func settle() {
        if unconfirmed.metres <= Self.unconfirmedMax { add(unconfirmed.metres) }
        unconfirmed = (0, nil)
    }

    mutating func add(_ distance: Double) {
        guard distance > 0 else { return }
        let paid = min(debt, distance)
        debt -= paid
        metres += distance - paid
    }

    /// The noise of a velocity vector across the direction of travel makes its length too large, the more the slower the
    /// asset is: half of the square of the noise is across.
    private static func withoutNoise(_ speed: Double, _ noise: Double) -> Double {
        max(0, speed * speed - noise * noise / 2).squareRoot()
    }

    /// Counted metres that were noise.
    mutating func deduct(_ distance: Double) { debt += max(0, distance) }

    /// Metres in a straight line across a way that was not seen.
    mutating func addGap(_ distance: Double) {
        let before = metres
        add(distance)
        // Not what pays for noise: this is a part of the odometer.
        gapMetres += metres - before
    }

    /// Doppler first: it does not see jumps. Otherwise the line that goes with the fixes, within their accuracy. A silence counts
    /// as a straight line, if it is one that can have been driven in the time; a jump counts nothing.
    /// - Parameters:
    ///   - noise: m/s that the receiver reports of an asset that stands, root mean square; 0 = unknown.
    ///   - gap: seconds; after a longer time without a fix the way was not seen.
    mutating func advance(
        to fix: Fix, time: UTCTime, at: EventTime, speedMax: Double, noise: Double = 0, gap: Double = 60
    ) {
        guard let last else { return start(at: fix, time: time, at: at) }
        self.last = Point(
            time: time, at: at, coordinate: fix.coordinate, speed: fix.speed, accuracy: fix.horizontalAccuracy)
        let seconds = Elapsed.seconds(from: (last.time, last.at), to: (time, at))
        if seconds <= Self.stepMax, let before = last.speed, let now = fix.speed,
            (0...speedMax).contains(before), (0...speedMax).contains(now),
            max(last.accuracy ?? 0, fix.horizontalAccuracy ?? 0) <= Self.accuracyMax
        {
            leg = nil
            pace = now
            doubted = nil
            let metres = Self.withoutNoise((before + now) / 2, noise) * seconds
            return addBySpeed(metres, from: last.coordinate, to: fix.coordinate)
        }
        settle()
        let accuracy =
            ((last.accuracy ?? FixFilter.unknownAccuracy) + (fix.horizontalAccuracy ?? FixFilter.unknownAccuracy)) / 2
        let step = last.coordinate.distance(to: fix.coordinate)
        if seconds > gap {
            (leg, pace, doubted) = (nil, nil, nil)
            if step > accuracy, step <= speedMax * seconds + 2 * accuracy { addGap(step) }
            return
        }
        let speed = seconds > 0 ? step / seconds : 0
        let isConfirmed = doubted.map { speed >= $0 / 2 } ?? false
        if !isConfirmed, step > Reach.metres(in: seconds, from: pace ?? Reach.speedMax, accuracy: 2 * accuracy) {
            leg = nil
            doubted = speed <= Reach.speedMax ? speed : nil
            return
        }
        doubted = nil
        if let pace, !isConfirmed {
            self.pace = pace + (speed - pace) * min(1, seconds / Self.paceSeconds)
        } else {
            pace = speed
        }
        if leg == nil { leg = Leg(from: last.coordinate) }
        add(leg?.advance(to: fix.coordinate, accuracy: accuracy) ?? 0)
    }

    private mutating func addBySpeed(_ metres: Double, from: Coordinate, to: Coordinate) {
        let since = unconfirmed.since ?? from
        let sum = unconfirmed.metres + metres
        guard
            since.isSurelyAtLeast(sum / Self.confirmation, from: to)
                || Self.confirmation * since.distance(to: to) >= sum
        else {
            unconfirmed = (sum, since)
            return
        }
        add(sum)
        unconfirmed = (0, nil)
    }
}

/// A way without speeds, as long as it goes straight on within the accuracy of its fixes. Counted from fix to fix the noise
/// would make it longer, the more the slower the asset is.
private struct Leg: Sendable {
    private var start: LocalPlane
    /// The last fix that it goes to.
    private var end: Coordinate
    /// Metres of it that are counted.
    private var counted = 0.0
    /// Directions, in radians, that pass each fix within half of the accuracy: the first one, and from where to where beside it.
    private var sector: (heading: Double, low: Double, high: Double)?

    init(from coordinate: Coordinate) {
        start = LocalPlane(origin: coordinate)
        end = coordinate
    }

    /// - Returns: metres that this fix adds.
    mutating func advance(to coordinate: Coordinate, accuracy: Double) -> Double {
        if let metres = extend(to: coordinate, accuracy: accuracy) { return metres }
        self = Leg(from: end)
        return extend(to: coordinate, accuracy: accuracy) ?? 0
    }

    /// - Returns: nil = the way bends before this fix.
    private mutating func extend(to coordinate: Coordinate, accuracy: Double) -> Double? {
        let point = start.point(coordinate)
        let metres = point.length
        if metres < counted - accuracy { return nil }
        guard metres > accuracy else { return 0 }
        let heading = atan2(point.east, point.north)
        // The line that is kept is as close.
        let half = asin(accuracy / 2 / metres)
        if let sector {
            var beside = heading - sector.heading
            if beside > .pi { beside -= 2 * .pi } else if beside < -.pi { beside += 2 * .pi }
            guard (sector.low...sector.high).contains(beside) else { return nil }
            self.sector = (sector.heading, max(sector.low, beside - half), min(sector.high, beside + half))
        } else {
            sector = (heading, -half, half)
        }
        end = coordinate
        defer { counted = max(counted, metres) }
        return max(0, metres - counted)
    }
}

extension Odometer {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(metres.isFinite && metres >= 0, "\(metres) m")
        invariant(gapMetres.isFinite && gapMetres >= 0, "\(gapMetres) m in gaps")
        invariant(debt.isFinite && debt >= 0, "\(debt) m to deduct")
        invariant(
            unconfirmed.metres.isFinite && unconfirmed.metres >= 0,
            "\(unconfirmed.metres) m that positions have to confirm")
        invariant(pace.map { $0.isFinite && $0 >= 0 } ?? true, "a pace of \(pace ?? 0) m/s")
    }
}
