import Glibc
import WaypostCore
import WaypostTracking

/// The geofences that a page can show: thousands elsewhere would only make it large and slow.
enum ShownFences {
    /// Those that were crossed, and those whose bounds meet the bounds of what was believed.
    static func of(_ fences: [Geofence], _ table: EpochTable, _ crossings: [Journey.Crossing]) -> [Geofence] {
        let crossed = Set(crossings.map(\.fence))
        let log = Box(of: (0..<table.count).lazy.filter(table.isBelieved).map(table.coordinate))
        return fences.filter { fence in
            if crossed.contains(fence.id) { return true }
            guard let log, let box = Box(around: fence.shape) else { return false }
            return log.meets(box)
        }
    }
}

/// A rectangle in degrees · 10⁷. Its longitudes go on beyond 180° where what it surrounds does.
private struct Box {
    private static let circle: Int64 = 3_600_000_000
    private static let metresPerUnit = Coordinate.earthRadius * .pi / 180 / 1e7

    private var south: Int64
    private var north: Int64
    private var west: Int64
    private var east: Int64

    /// - Parameter places: each less than half the earth from that before; nil when there is none.
    init?(of places: some Sequence<Coordinate>) {
        var box: Box?
        var last: Int64 = 0
        for place in places {
            var longitude = Int64(place.longitudeE7)
            if box != nil { longitude += Self.turns(from: longitude, to: last) }
            last = longitude
            let latitude = Int64(place.latitudeE7)
            box = Box(
                south: min(box?.south ?? latitude, latitude), north: max(box?.north ?? latitude, latitude),
                west: min(box?.west ?? longitude, longitude), east: max(box?.east ?? longitude, longitude))
        }
        guard let box else { return nil }
        self = box
    }

    init?(around shape: Geofence.Shape) {
        switch shape {
        case .polygon(let vertices): self.init(of: vertices)
        case .circle(let centre, let radius):
            let reach = min(radius / Self.metresPerUnit, 1.8e9)
            let wide = min(reach / max(0.01, cos(centre.latitude * .pi / 180)), 1.8e9)
            let (latitude, longitude) = (Int64(centre.latitudeE7), Int64(centre.longitudeE7))
            self.init(
                south: latitude - Int64(reach), north: latitude + Int64(reach), west: longitude - Int64(wide),
                east: longitude + Int64(wide))
        }
    }

    private init(south: Int64, north: Int64, west: Int64, east: Int64) {
        (self.south, self.north, self.west, self.east) = (south, north, west, east)
    }

    func meets(_ other: Box) -> Bool {
        guard south <= other.north, other.south <= north else { return false }
        let shift = Self.turns(from: (other.west + other.east) / 2, to: (west + east) / 2)
        return west <= other.east + shift && other.west + shift <= east
    }

    /// Whole circles that bring a longitude next to another.
    private static func turns(from longitude: Int64, to other: Int64) -> Int64 {
        Int64((Double(other - longitude) / Double(circle)).rounded()) * circle
    }
}
