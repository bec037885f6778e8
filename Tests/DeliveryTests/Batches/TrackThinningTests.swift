import Delivery
import TestSupport
import Testing
import WaypostCore

@Suite struct TrackThinningTests {
    /// A wandering track with pauses, and fixed points here and there.
    private func track(_ count: Int, _ generator: inout SeededGenerator) -> [TrackThinning.Point] {
        let plane = LocalPlane(origin: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_000_000))
        var time: Int64 = 1_700_000_000_000
        var (position, velocity) = (PlanePoint.zero, PlanePoint.zero)
        return (0..<count).map { _ in
            let step =
                Int64.random(in: 0..<30, using: &generator) == 0 ? 0 : Int64.random(in: 1...20, using: &generator)
            velocity =
                velocity
                + PlanePoint(
                    east: Double.random(in: -2...2, using: &generator),
                    north: Double.random(in: -2...2, using: &generator))
            if Int.random(in: 0..<20, using: &generator) == 0 { velocity = .zero }
            time += step * 1000
            position = position + velocity * Double(step)
            return TrackThinning.Point(
                time: UTCTime(milliseconds: time), coordinate: plane.coordinate(position),
                isFixed: Int.random(in: 0..<40, using: &generator) == 0)
        }
    }

    /// Metres between a location and where its kept neighbours put the asset at its time.
    private func error(of point: TrackThinning.Point, _ before: TrackThinning.Point, _ after: TrackThinning.Point)
        -> Double
    {
        let plane = LocalPlane(origin: before.coordinate)
        let whole = Double(after.time.milliseconds - before.time.milliseconds)
        let part = Double(point.time.milliseconds - before.time.milliseconds)
        return (plane.point(after.coordinate) * (part / whole) - plane.point(point.coordinate)).length
    }

    @Test(arguments: testSeeds(1...20))
    func leavesATrackWithinTheTolerance(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let points = track(2000, &generator)
        let tolerance = Double.random(in: 1...300, using: &generator)
        let removed = TrackThinning.superfluous(points, tolerance: tolerance)
        #expect(removed == removed.sorted() && Set(removed).count == removed.count)
        let gone = Set(removed)
        let kept = points.indices.filter { !gone.contains($0) }
        #expect(kept.first == 0 && kept.last == points.count - 1)
        #expect(removed.allSatisfy { !points[$0].isFixed })
        #expect(removed.count > 200)
        var worst = 0.0
        for (from, to) in zip(kept, kept.dropFirst()) {
            for index in from + 1..<max(to, from + 1) {
                worst = max(worst, error(of: points[index], points[from], points[to]))
            }
        }
        #expect(worst <= tolerance * 1.001, "seed \(seed)")
    }

    /// What the passes allow adds up to twice, four times, eight times the bound.
    @Test func doublesTheTotalErrorWithEachPass() {
        var total = 5.0
        for level in 1...6 {
            total += TrackThinning.tolerance(level: level, bound: 5)
            let expected: Double = 5 * Double(1 << level)
            #expect(total == expected)
        }
        #expect(!TrackThinning.isCoarsest(level: 6, bound: 5) && TrackThinning.isCoarsest(level: 7, bound: 5))
        #expect(TrackThinning.tolerance(level: .max, bound: .infinity) == 250)
        #expect(TrackThinning.tolerance(level: 0, bound: .nan) == 250)
    }

    /// A straight and even drive needs no location in between, but one of 257 stays.
    @Test func removesAtMost256InOneGo() {
        let points = (0..<600).map {
            TrackThinning.Point(
                time: UTCTime(milliseconds: Int64($0) * 1000),
                coordinate: Coordinate(latitudeE7: 525_200_000 + Int32($0) * 1000, longitudeE7: 134_000_000))
        }
        let removed = TrackThinning.superfluous(points, tolerance: 10)
        #expect(Set(points.indices).subtracting(removed) == [0, 256, 512, 599])
    }

    @Test func keepsWhatItCannotJudge() {
        let far = [Int64.min, 0, .max, .max, .min].map {
            TrackThinning.Point(
                time: UTCTime(milliseconds: $0), coordinate: Coordinate(latitudeE7: .max, longitudeE7: .min))
        }
        _ = TrackThinning.superfluous(far, tolerance: 10)
        #expect(TrackThinning.superfluous([], tolerance: 10) == [])
        #expect(TrackThinning.superfluous(Array(far.prefix(2)), tolerance: 10) == [])
        #expect(TrackThinning.superfluous(far, tolerance: .nan) == [])
    }
}
