import Glibc
import WaypostCore

/// Circles around places that are not to be shown, for questions about many positions.
struct HiddenPlaces {
    /// From south to north, each once.
    private let places: [Coordinate]
    private let radius: Double
    /// Degrees · 10⁷ that the radius reaches to the north, rounded up.
    private let reach: Int64

    private static let metresPerUnit = Coordinate.earthRadius * .pi / 180 / 1e7

    /// - Parameter radius: metres.
    init(_ places: [Coordinate], _ radius: Double) {
        self.places = Set(places).sorted { $0.latitudeE7 < $1.latitudeE7 }
        self.radius = radius
        reach = Int64(min(radius / Self.metresPerUnit, 1.8e9)) + 1
    }

    func contains(_ coordinate: Coordinate) -> Bool {
        let latitude = Int64(coordinate.latitudeE7)
        for place in places[places.firstIndex(from: Int32(clamping: latitude - reach), by: \.latitudeE7)...] {
            guard Int64(place.latitudeE7) <= latitude + reach else { return false }
            if place.distance(to: coordinate) <= radius { return true }
        }
        return false
    }
}
