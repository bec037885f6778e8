import Glibc
import Positioning

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
        for place in places[firstPlace(from: latitude - reach)...] {
            guard Int64(place.latitudeE7) <= latitude + reach else { return false }
            if place.distance(to: coordinate) <= radius { return true }
        }
        return false
    }

    private func firstPlace(from latitude: Int64) -> Int {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if Int64(places[middle].latitudeE7) < latitude { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
