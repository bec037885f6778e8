import DriveSimulation
import WaypostCore
import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The sampler alone on a long drive, for the measurement of its cost.
package enum TrackErrorCost {
    package struct Sample: Sendable {
        var time: UTCTime
        var coordinate: Coordinate
        var speed: Double
        var course: Double
    }

    /// A drive at 1 Hz that turns and changes its speed now and then.
    package static func fixes(count: Int) -> [Sample] {
        var random = SplitMix64(seed: 11)
        let plane = LocalPlane(origin: SimulatedDrive.Settings.defaultOrigin)
        var (place, speed, course, turn) = (PlanePoint.zero, 12.0, 40.0, 0.0)
        return (0..<count).map { index in
            if index % 20 == 0 {
                turn = Double.random(in: 0...1, using: &random) < 0.4 ? Double.random(in: -12...12, using: &random) : 0
            }
            if index % 20 == 5 { turn = 0 }
            speed = max(2, min(30, speed + Double.random(in: -1...1, using: &random)))
            course = (course + turn + 360).truncatingRemainder(dividingBy: 360)
            place = place + PlanePoint(east: sin(course * .pi / 180), north: cos(course * .pi / 180)) * speed
            // Back to the middle before the plane bends.
            if place.length > 20_000 { course = (course + 180).truncatingRemainder(dividingBy: 360) }
            return Sample(
                time: UTCTime(milliseconds: Int64(index) * 1000), coordinate: plane.coordinate(place), speed: speed,
                course: course)
        }
    }

    /// - Returns: how many fixes were kept.
    package static func run(_ fixes: [Sample], rule: LocationSampler.Rule) -> Int {
        var settings = LocationSampler.Settings()
        settings.rule = rule
        var sampler = LocationSampler(settings: settings)
        var kept = 0
        for fix in fixes {
            let selection = sampler.sample(
                .init(
                    time: fix.time, coordinate: fix.coordinate, speed: fix.speed, course: fix.course, accuracy: 4),
                resolution: .standard)
            guard let selection else { continue }
            kept += (selection.previous == nil ? 0 : 1) + (selection.current == nil ? 0 : 1)
        }
        return kept
    }
}
