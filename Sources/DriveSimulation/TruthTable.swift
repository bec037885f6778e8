import WaypostCore

/// The truth as tab-separated text. The first column names the kind of row: `trip`, `stop` or `at`.
package struct TruthTable: Sendable {
    private let truth: DriveTruth
    private let start: UTCTime
    private let plane: LocalPlane

    package init(_ drive: SimulatedDrive) {
        truth = drive.truth
        start = drive.settings.start
        plane = LocalPlane(origin: drive.settings.origin)
    }

    /// Column names and the trips and stops, in Unix milliseconds; a time outside the log is empty.
    package var intervals: String {
        var text = "#trip\tdeparture_ms\tstandstill_ms\tmetres\tblind_metres\tsky_at_departure\n"
        for trip in truth.trips {
            text += "trip\t\(unix(trip.departure))\t\(unix(trip.standstill))\t\(fixed(trip.metres, 1))\t"
            text += "\(fixed(trip.blindMetres, 1))\t\(trip.skyAtDeparture.rawValue)\n"
        }
        text += "#stop\tstandstill_ms\tdeparture_ms\tlatitude\tlongitude\n"
        for stop in truth.stops {
            text +=
                "stop\t\(stop.standstill.map(unix) ?? "")\t\(stop.departure.map(unix) ?? "")\t\(degrees(stop.place))\n"
        }
        return text + "#at\ttime_ms\tlatitude\tlongitude\tspeed\tstate\tdistance\tsky\n"
    }

    /// One row per sample. `state` is `parked` or `moving`; a halt inside a trip is `moving` with speed 0.
    package func row(_ sample: DriveTruth.Sample) -> String {
        "at\t\(unix(sample.elapsed))\t\(degrees(sample.place))\t\(fixed(sample.speed, 3))\t"
            + "\(sample.isParked ? "parked" : "moving")\t\(fixed(sample.distance, 2))\t\(sample.sky.rawValue)\n"
    }

    private func unix(_ elapsed: Int) -> String { String(start.milliseconds + Int64(elapsed)) }

    private func degrees(_ place: PlanePoint) -> String {
        let coordinate = plane.coordinate(place)
        return "\(fixed(coordinate.latitude, 7))\t\(fixed(coordinate.longitude, 7))"
    }
}
