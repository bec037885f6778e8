import WaypostCore
import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Checks the promise of the rule `track-error`, and shares nothing with the code that makes it: every fix that the sampler
/// took against the straight line between the records before and after it, at its own time.
struct TrackErrorVerifier {
    /// A record or a fix as far as the track goes.
    struct Point: Sendable {
        var time: UTCTime
        var coordinate: Coordinate
        /// Degrees true; nil = unknown.
        var course: Double?
        /// The held position of an asset that stands.
        var isHeld = false
    }

    /// What was taken between two records that stand whatever the rule says: changes of state, the ends of gaps.
    struct Span {
        var begin: Point
        /// In the order of time, without both ends.
        var taken: [Point] = []
        var end: Point
        /// Records after the first one, the last one counted in.
        var kept = 1
    }

    /// Metres: the largest distance that was found.
    private(set) var worst = 0.0
    private(set) var worstTime: UTCTime?
    /// Fixes that lie before the first record or in none of the runs of time.
    private(set) var uncovered = 0
    private(set) var spans: [Span] = []

    /// - Parameters:
    ///   - records: everything that was recorded for the trackable, in order.
    ///   - taken: everything that the sampler took, in order.
    init(records: [Location], taken: [Point]) {
        var next = 0
        var span: Span?
        for (index, record) in records.enumerated() {
            let point = Point(time: record.time, coordinate: record.coordinate)
            guard index > 0 else {
                while next < taken.count, taken[next].time < point.time { next += 1 }
                uncovered += next
                span = Span(begin: point, end: point)
                continue
            }
            let before = records[index - 1]
            let begin = Point(time: before.time, coordinate: before.coordinate)
            if record.time < before.time {
                // The receiver's clock went back: what is left of the run stands beside its last record.
                while next < taken.count, next == 0 || taken[next].time >= taken[next - 1].time {
                    if taken[next].time > begin.time { judge(taken[next], begin, begin) }
                    next += 1
                }
                next += next < taken.count ? 1 : 0
                span = Span(begin: point, end: point)
                continue
            }
            while next < taken.count, taken[next].time <= record.time {
                if next > 0, taken[next].time < taken[next - 1].time, taken[next].time < begin.time { break }
                let fix = taken[next]
                next += 1
                if fix.time > begin.time, fix.time < record.time { judge(fix, begin, point) }
                if fix.time > span?.begin.time ?? begin.time { span?.taken.append(fix) }
            }
            let opensNext = index + 1 < records.count && Self.opens(records[index + 1])
            if record.event != .none || Self.opens(record) || opensNext || index == records.count - 1 {
                span?.end = point
                if var span {
                    while let last = span.taken.last, last.time >= point.time { span.taken.removeLast() }
                    if !span.taken.isEmpty, !Self.opens(record) { spans.append(span) }
                }
                span = Span(begin: point, end: point)
            } else {
                span?.kept += 1
            }
        }
        if let last = records.last {
            let end = Point(time: last.time, coordinate: last.coordinate)
            for fix in taken[min(next, taken.count)...] { judge(fix, end, end) }
        } else {
            uncovered = taken.count
        }
    }

    /// The first record of a new segment: nothing is known about the way to it.
    private static func opens(_ record: Location) -> Bool {
        record.event == .none && ["gap", "jump", "first", "clock-step"].contains(record.reason)
    }

    private mutating func judge(_ fix: Point, _ begin: Point, _ end: Point) {
        let distance = Self.distance(fix, begin, end)
        guard distance > worst else { return }
        worst = distance
        worstTime = fix.time
    }

    /// Metres from a fix to where the way from `begin` to `end` is at its time.
    static func distance(_ fix: Point, _ begin: Point, _ end: Point) -> Double {
        let whole = Double(end.time.milliseconds - begin.time.milliseconds)
        let share = whole > 0 ? Double(fix.time.milliseconds - begin.time.milliseconds) / whole : 0
        let north = begin.coordinate.latitude + share * (end.coordinate.latitude - begin.coordinate.latitude)
        let east =
            begin.coordinate.longitude + share * shortWay(end.coordinate.longitude - begin.coordinate.longitude)
        let metresPerDegree = Coordinate.earthRadius * .pi / 180
        let northward = (fix.coordinate.latitude - north) * metresPerDegree
        let eastward =
            shortWay(fix.coordinate.longitude - east) * metresPerDegree * cos(fix.coordinate.latitude * .pi / 180)
        return (northward * northward + eastward * eastward).squareRoot()
    }

    fileprivate static func shortWay(_ degrees: Double) -> Double {
        if degrees > 180 { return degrees - 360 }
        if degrees < -180 { return degrees + 360 }
        return degrees
    }
}

extension TrackErrorVerifier.Span {
    private var points: [TrackErrorVerifier.Point] { [begin] + taken + [end] }

    /// The least number of records after the first one that keep the bound: the shortest path over all lines that keep it.
    /// - Parameter delay: milliseconds that a line may last; how long the asset stands where it begins does not count.
    func least(bound: Double, delay: Int64) -> Int {
        let points = points
        let metresPerDegree = Coordinate.earthRadius * .pi / 180
        // Degrees from the beginning, north and east, and seconds.
        let plain = points.map { point in
            SIMD3(
                point.coordinate.latitude - begin.coordinate.latitude,
                TrackErrorVerifier.shortWay(point.coordinate.longitude - begin.coordinate.longitude),
                Double(point.time.milliseconds - begin.time.milliseconds))
        }
        var steps = [Int](repeating: .max, count: points.count)
        steps[0] = 0
        for first in points.indices.dropLast() {
            var since = first
            while since + 1 < points.count - 1, points[since + 1].isHeld,
                points[since + 1].coordinate == points[first].coordinate
            {
                since += 1
            }
            let start = plain[first]
            let east = metresPerDegree * cos(points[first].coordinate.latitude * .pi / 180)
            for last in (first + 1)..<points.count {
                if last > first + 1, plain[last].z - plain[since].z > Double(delay) { break }
                guard steps[first] + 1 < steps[last] else { continue }
                let way = plain[last] - start
                var between = last - 1
                while between > first {
                    let part = plain[between] - start
                    let share = way.z > 0 ? part.z / way.z : 0
                    let x = (part.y - share * way.y) * east
                    let y = (part.x - share * way.x) * metresPerDegree
                    if x * x + y * y > bound * bound { break }
                    between -= 1
                }
                if between == first { steps[last] = steps[first] + 1 }
            }
        }
        return steps[points.count - 1]
    }

    /// Records after the first one of a tracker that keeps a fix after 100 m, after a turn of 10° at any speed, or after 300 s.
    func baseline() -> Int {
        var number = 1
        var kept = begin
        for fix in taken {
            if kept.course == nil { kept.course = fix.course }
            let turn = fix.course.flatMap { course in kept.course.map { abs(course - $0) } } ?? 0
            guard
                fix.coordinate.distance(to: kept.coordinate) >= 100 || min(turn, 360 - turn) >= 10
                    || fix.time.milliseconds - kept.time.milliseconds >= 300_000
            else { continue }
            kept = fix
            number += 1
        }
        return number
    }
}
