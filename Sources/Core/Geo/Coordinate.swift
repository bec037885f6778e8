#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A position on WGS 84 in integers of 1e-7 degree (11 mm), so that no digit of the receiver is lost on the way.
public struct Coordinate: Hashable, Sendable, Codable {
    /// North positive, −900 000 000…900 000 000.
    public var latitudeE7: Int32
    /// East positive, −1 800 000 000…1 800 000 000.
    public var longitudeE7: Int32

    public init(latitudeE7: Int32, longitudeE7: Int32) {
        self.latitudeE7 = latitudeE7
        self.longitudeE7 = longitudeE7
    }

    /// Rounds to 1e-7 degree; nil when a value is not finite or out of range.
    public init?(latitude: Double, longitude: Double) {
        guard abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        latitudeE7 = Int32((latitude * 1e7).rounded())
        longitudeE7 = Int32((longitude * 1e7).rounded())
    }

    /// Degrees.
    public var latitude: Double { Double(latitudeE7) / 1e7 }
    /// Degrees.
    public var longitude: Double { Double(longitudeE7) / 1e7 }

    /// IUGG mean radius of the Earth in metres.
    public static let earthRadius = 6_371_008.8

    private static let radiansPerUnit = Double.pi / 180 / 1e7

    /// Great-circle distance in metres on the sphere of `earthRadius` (haversine).
    public func distance(to other: Coordinate) -> Double {
        let unit = Self.radiansPerUnit
        let lat1 = Double(latitudeE7) * unit
        let lat2 = Double(other.latitudeE7) * unit
        let sinLat = sin((lat2 - lat1) / 2)
        let sinLon = sin((Double(other.longitudeE7) - Double(longitudeE7)) * unit / 2)
        let h = sinLat * sinLat + cos(lat1) * cos(lat2) * sinLon * sinLon
        return 2 * Self.earthRadius * asin(min(1, h.squareRoot()))
    }

    /// Whether the distance is certainly no less, as far as that is seen without trigonometry: false says nothing.
    package func isSurelyAtLeast(_ metres: Double, from other: Coordinate) -> Bool {
        let north = Double(latitudeE7) - Double(other.latitudeE7)
        let east = Double(longitudeE7) - Double(other.longitudeE7)
        guard abs(north) < 1e6, abs(east) < 1e6 else { return false }
        let latitude = max(abs(Double(latitudeE7)), abs(Double(other.latitudeE7))) * Self.radiansPerUnit
        // No cosine is less. A degree of latitude is 111.2 km.
        let width = max(0, 1 - latitude * latitude / 2) * east
        return (north * north + width * width) * (0.0111 * 0.0111) >= metres * metres
    }

    /// No distance is greater than these metres, which need no trigonometry.
    package func distanceMax(to other: Coordinate) -> Double {
        let north = abs(Double(other.latitudeE7) - Double(latitudeE7))
        let east = abs(Double(other.longitudeE7) - Double(longitudeE7))
        return (north + east) * 0.0112
    }

    /// Initial great-circle bearing in degrees true, 0 ≤ x < 360; 0 for equal positions.
    public func bearing(to other: Coordinate) -> Double {
        let unit = Self.radiansPerUnit
        let lat1 = Double(latitudeE7) * unit
        let lat2 = Double(other.latitudeE7) * unit
        let dLon = (Double(other.longitudeE7) - Double(longitudeE7)) * unit
        let degrees =
            atan2(sin(dLon) * cos(lat2), cos(lat1) * sin(lat2) - sin(lat1) * cos(lat2) * cos(dLon)) * 180 / .pi
        let wrapped = degrees < 0 ? degrees + 360 : degrees
        return wrapped >= 360 ? 0 : wrapped
    }
}
