import Glibc
import WaypostCore

/// How far the fixes of trips lie from the straight lines between the locations that were kept, each at its own time.
struct LineError {
    /// Metres.
    var worst: Double
    /// Metres; 95 % of the fixes are not further away.
    var most: Double

    private static let metresPerDegree = Coordinate.earthRadius * .pi / 180

    /// - Parameters:
    ///   - kept: rising in time.
    ///   - judged: whose trips count.
    ///   - own: what the settings that kept them made of the log. In its halts nothing is judged: the position of an asset that
    ///     stands is held on purpose, while the receiver's wanders.
    /// - Returns: nil when no fix lies between two of them.
    init?(of table: EpochTable, along kept: [KeptPoint], in judged: Journey, heldAsIn own: Journey) {
        var errors: [Double] = []
        for trip in judged.trips {
            let rows = table.rows(from: trip.start, through: trip.end)
            var next = kept.firstIndex(from: trip.start, by: \.time)
            for row in rows where table.isBelieved(row) {
                let time = table.times[row]
                guard !own.isHalted(at: time) else { continue }
                while next < kept.count, kept[next].time <= time { next += 1 }
                guard next > 0, next < kept.count else { continue }
                errors.append(Self.distance(table.coordinate(row), time, kept[next - 1], kept[next]))
            }
        }
        guard let last = errors.indices.last else { return nil }
        errors.sort()
        worst = errors[last]
        most = errors[last * 95 / 100]
    }

    private static func distance(
        _ place: Coordinate, _ time: Int64, _ before: KeptPoint, _ after: KeptPoint
    ) -> Double {
        let whole = after.time - before.time
        let share = whole > 0 ? Double(time - before.time) / Double(whole) : 0
        let (from, to) = (before.coordinate, after.coordinate)
        let latitude = from.latitude + share * (to.latitude - from.latitude)
        let longitude = from.longitude + share * shortWay(to.longitude - from.longitude)
        let north = (place.latitude - latitude) * metresPerDegree
        let east = shortWay(place.longitude - longitude) * metresPerDegree * cos(place.latitude * .pi / 180)
        return (north * north + east * east).squareRoot()
    }

    /// Across the antimeridian where that is nearer.
    private static func shortWay(_ degrees: Double) -> Double {
        if degrees > 180 { return degrees - 360 }
        return degrees < -180 ? degrees + 360 : degrees
    }
}

/// A location that was kept and published, as far as the report needs it.
struct KeptPoint {
    /// Unix milliseconds.
    var time: Int64
    var coordinate: Coordinate
    /// The word for why.
    var reason: String
}
