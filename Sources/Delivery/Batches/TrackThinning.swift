import WaypostCore

/// Which locations of a track can be removed so that the others still show its course, within a bound.
///
/// Between two kept locations the asset is assumed to move evenly; a removed location is within the tolerance of where
/// the asset then is at its time (synchronised distance). One pass, at most `span` locations in one go.
package enum TrackThinning {
    package struct Point: Hashable, Sendable {
        package var time: UTCTime
        package var coordinate: Coordinate
        /// It stays, and the track passes through it.
        package var isFixed: Bool

        package init(time: UTCTime, coordinate: Coordinate, isFixed: Bool = false) {
            self.time = time
            self.coordinate = coordinate
            self.isFixed = isFixed
        }
    }

    /// Metres at which detail has become too coarse to be worth more than age.
    package static let coarsest = 500.0
    /// Maximum number of locations removed between two that stay.
    private static let span = 256

    /// Maximum distance between the remaining track and a location that is removed in pass `level` (1, 2, 3 …).
    ///
    /// Each pass measures against what the passes before left, so errors add up: `bound` of the sampling, then 1, 2, 4 …
    /// times that make a total of 2, 4, 8 … times the bound.
    package static func tolerance(level: Int, bound: Double) -> Double {
        let bound = max(1, bound.isFinite ? bound : coarsest)
        return min(bound * Double(Int64(1) << Int64(max(0, min(20, level - 1)))), coarsest / 2)
    }

    /// Whether locations of this pass may be as far off as is ever allowed.
    package static func isCoarsest(level: Int, bound: Double) -> Bool {
        tolerance(level: level, bound: bound) * 2 >= coarsest
    }

    /// Positions in `points` that can go. The first and the last location stay; so does the order.
    package static func superfluous(_ points: [Point], tolerance: Double) -> [Int] {
        guard points.count > 2, tolerance >= 0 else { return [] }
        var removed: [Int] = []
        var cone = Cone(at: points[0], tolerance: tolerance)
        var start = 0
        for index in 1..<points.count {
            let point = points[index]
            if !cone.admits(point) || cone.count >= span {
                // The one before was admitted: up to there everything is near the line.
                if index - 1 > start { removed.append(contentsOf: (start + 1)..<(index - 1)) }
                start = index - 1
                cone = Cone(at: points[start], tolerance: tolerance)
                // A time that does not advance admits nothing: the track begins again there.
                if !cone.admits(point) {
                    start = index
                    cone = Cone(at: point, tolerance: tolerance)
                    continue
                }
            }
            if point.isFixed || index == points.count - 1 {
                removed.append(contentsOf: (start + 1)..<index)
                start = index
                cone = Cone(at: point, tolerance: tolerance)
            } else {
                cone.append(point)
            }
        }
        return removed
    }

    /// The velocities from one location on that pass all later ones within the tolerance: see
    /// `TrackErrorSegment` of the sampler, which decides the same while driving.
    private struct Cone {
        private struct Disc {
            var velocity: PlanePoint
            var radius: Double
        }

        private let plane: LocalPlane
        private let start: UTCTime
        private let tolerance: Double
        private var discs: [Disc] = []

        init(at point: Point, tolerance: Double) {
            plane = LocalPlane(origin: point.coordinate)
            start = point.time
            self.tolerance = tolerance
        }

        var count: Int { discs.count }

        private func velocity(to point: Point) -> (velocity: PlanePoint, seconds: Double)? {
            let elapsed = point.time.milliseconds(since: start)
            guard elapsed > 0 else { return nil }
            let seconds = Double(elapsed) / 1000
            return (plane.point(point.coordinate) * (1 / seconds), seconds)
        }

        func admits(_ point: Point) -> Bool {
            guard let (velocity, _) = velocity(to: point) else { return false }
            for disc in discs.reversed() where (velocity - disc.velocity).length > disc.radius { return false }
            return true
        }

        mutating func append(_ point: Point) {
            guard let (velocity, seconds) = velocity(to: point) else { return }
            discs.append(Disc(velocity: velocity, radius: tolerance / seconds))
        }
    }
}
