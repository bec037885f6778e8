import Positioning

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
    /// A hundred million kilometres, so that tenths of a metre still count.
    public static let metresMax = 1e11

    private(set) var metres: Double
    /// How much of `metres` was not seen: straight lines across gaps within trips.
    private(set) var gapMetres: Double
    private var last: Point?
    /// Metres counted in the first seconds of halts, before they were seen to be halts: noise that the next metres pay for,
    /// so that the odometer never runs back.
    private var debt = 0.0
    /// The place up to which the distance is counted.
    private var counted: Coordinate?

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
        last = Point(
            time: time, at: at, coordinate: fix.coordinate, speed: fix.speed, accuracy: fix.horizontalAccuracy)
        counted = fix.coordinate
    }

    /// Counting continues from the last fix of an earlier run.
    /// - Parameter at: when that was, as far as the dates of fixes tell.
    mutating func start(at fix: StoredState.LastFix, at: EventTime) {
        last = Point(time: fix.time, at: at, coordinate: fix.coordinate, speed: nil, accuracy: fix.accuracy)
        counted = fix.coordinate
    }

    /// Nothing is known about the way to the next fix.
    mutating func stop() {
        last = nil
        counted = nil
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

    /// Doppler first: it does not see jumps. Otherwise the straight line, once it stands out of the noise, and if it is one that
    /// can have been driven in the time.
    /// - Parameters:
    ///   - noise: m/s that the receiver reports of an asset that stands, root mean square; 0 = unknown.
    ///   - gap: seconds; after a longer time without a fix the way was not seen.
    mutating func advance(
        to fix: Fix, time: UTCTime, at: EventTime, speedMax: Double, noise: Double = 0, gap: Double = 60
    ) {
        guard let last, let counted else { return start(at: fix, time: time, at: at) }
        let seconds = Elapsed.seconds(from: (last.time, last.at), to: (time, at))
        if seconds <= Self.stepMax, let before = last.speed, let now = fix.speed,
            (0...speedMax).contains(before), (0...speedMax).contains(now),
            max(last.accuracy ?? 0, fix.horizontalAccuracy ?? 0) <= Self.accuracyMax
        {
            add(Self.withoutNoise((before + now) / 2, noise) * seconds)
            return start(at: fix, time: time, at: at)
        }
        let chord = counted.distance(to: fix.coordinate)
        let noise =
            ((last.accuracy ?? FixFilter.unknownAccuracy) + (fix.horizontalAccuracy ?? FixFilter.unknownAccuracy)) / 2
        start(at: fix, time: time, at: at)
        if chord > noise, seconds <= Self.stepMax || chord <= speedMax * seconds + 2 * noise {
            if seconds > gap { addGap(chord) } else { add(chord) }
        } else {
            self.counted = counted
        }
    }
}
