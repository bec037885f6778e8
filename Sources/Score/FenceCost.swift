import ArgumentParser
import DriveSimulation
import WaypostCore
import WaypostTracking

/// What geofences cost: the time of a fix with few and with many of them, found by the grid and one by one.
struct FenceCost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fences", abstract: "Microseconds per fix for geofences, by the grid and one by one.")

    @Option(help: "The largest number of geofences.")
    var fences = GeofenceMonitor.fencesMax

    @Option(help: "Fixes of the drive, at 1 Hz and 15 m/s.")
    var fixes = 20_000

    @Option(help: "Kilometres from side to side of the area in which the geofences lie.")
    var area = 100.0

    @Option(help: "Of places and shapes.")
    var seed: UInt64 = 1

    func run() throws {
        print("fences   area km  crossings   grid µs/fix   one by one µs/fix   build ms")
        for count in [64, 1000, 10_000] where count <= fences {
            let list = makeFences(count)
            let clock = ContinuousClock()
            var monitor = GeofenceMonitor(settings: .init())
            let building = clock.measure { monitor = GeofenceMonitor(settings: settings(list, gridAbove: 0)) }
            let (grid, crossings) = cost(&monitor)
            var plain = GeofenceMonitor(settings: settings(list, gridAbove: .max))
            let (oneByOne, same) = cost(&plain)
            guard crossings == same else {
                throw ValidationError("\(crossings) crossings by the grid, \(same) without")
            }
            print(
                [
                    String(count).padded(9), String(Int(area)).padded(9), String(crossings).padded(12),
                    Self.decimal(grid).padded(14), Self.decimal(oneByOne).padded(20),
                    Self.decimal(building.microseconds / 1000),
                ].joined())
        }
    }

    private func settings(_ fences: [Geofence], gridAbove: Int) -> GeofenceMonitor.Settings {
        var settings = GeofenceMonitor.Settings(fences: fences)
        settings.gridAbove = gridAbove
        return settings
    }

    private static let centre = Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000)

    /// Half circles, half polygons of eight corners, of 30 m to 500 m.
    private func makeFences(_ count: Int) -> [Geofence] {
        var random = SplitMix64(seed: seed)
        let plane = LocalPlane(origin: Self.centre)
        let half = area * 500
        return (0..<count).map { index in
            let place = PlanePoint(
                east: Double.random(in: -half...half, using: &random),
                north: Double.random(in: -half...half, using: &random))
            let radius = Double.random(in: 30...500, using: &random)
            if index % 2 == 0 {
                return Geofence(id: "fence-\(index)", shape: .circle(centre: plane.coordinate(place), radius: radius))
            }
            // An octagon, without a sine.
            let short = radius * 0.414
            let corners = [
                (short, radius), (radius, short), (radius, -short), (short, -radius), (-short, -radius),
                (-radius, -short), (-radius, short), (-short, radius),
            ]
            return Geofence(
                id: "fence-\(index)",
                shape: .polygon(corners.map { plane.coordinate(place + PlanePoint(east: $0.0, north: $0.1)) }))
        }
    }

    /// A drive that turns at the border of the area.
    private func cost(_ monitor: inout GeofenceMonitor) -> (microseconds: Double, crossings: Int) {
        var random = SplitMix64(seed: seed &+ 1)
        let plane = LocalPlane(origin: Self.centre)
        let half = area * 500
        var place = PlanePoint.zero
        var heading = PlanePoint(east: 12, north: 9)
        let drive = (0..<fixes).map { second in
            if abs(place.east + heading.east) > half { heading.east.negate() }
            if abs(place.north + heading.north) > half { heading.north.negate() }
            if second % 60 == 0 {
                heading = PlanePoint(
                    east: heading.north, north: Bool.random(using: &random) ? heading.east : -heading.east)
            }
            place = place + heading
            let at = EventTime(nanoseconds: Int64(second) * 1_000_000_000)
            let time = UTCTime(milliseconds: 1_772_352_000_000 + Int64(second) * 1000)
            let fix = Fix(
                time: time, timeOfDay: time.timeOfDay, at: at, coordinate: plane.coordinate(place),
                horizontalAccuracy: 4, speed: 15, course: 0, mode: .threeD)
            return GeofenceMonitor.Sighting(fix: fix, time: time, at: at)
        }
        var crossings = 0
        let elapsed = ContinuousClock().measure {
            for sighting in drive { crossings += monitor.reported(sighting).count }
        }
        return (elapsed.microseconds / Double(max(1, fixes)), crossings)
    }

    private static func decimal(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }
}

extension Duration {
    fileprivate var microseconds: Double { Double(nanoseconds) / 1000 }
}

extension String {
    fileprivate func padded(_ width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - utf8.count))
    }
}
