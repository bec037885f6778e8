#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Metres east and north of an origin.
public struct PlanePoint: Hashable, Sendable, Codable {
    public var east: Double
    public var north: Double

    public init(east: Double, north: Double) {
        self.east = east
        self.north = north
    }

    public static let zero = PlanePoint(east: 0, north: 0)

    public var length: Double { (east * east + north * north).squareRoot() }

    public static func + (a: PlanePoint, b: PlanePoint) -> PlanePoint {
        PlanePoint(east: a.east + b.east, north: a.north + b.north)
    }

    public static func - (a: PlanePoint, b: PlanePoint) -> PlanePoint {
        PlanePoint(east: a.east - b.east, north: a.north - b.north)
    }

    public static func * (a: PlanePoint, factor: Double) -> PlanePoint {
        PlanePoint(east: a.east * factor, north: a.north * factor)
    }
}

/// The plane tangent at an origin (equirectangular, scaled by the cosine of the origin's latitude).
///
/// Good to 0.1 % within 100 km outside the polar caps; across the antimeridian it goes the shorter way.
public struct LocalPlane: Sendable {
    public let origin: Coordinate
    private let metresPerUnitEast: Double
    private static let metresPerUnit = Coordinate.earthRadius * Double.pi / 180 / 1e7

    public init(origin: Coordinate) {
        self.origin = origin
        metresPerUnitEast = Self.metresPerUnit * cos(origin.latitude * .pi / 180)
    }

    public func point(_ coordinate: Coordinate) -> PlanePoint {
        var east = Int64(coordinate.longitudeE7) - Int64(origin.longitudeE7)
        if east > 1_800_000_000 { east -= 3_600_000_000 }
        if east < -1_800_000_000 { east += 3_600_000_000 }
        let north = Int64(coordinate.latitudeE7) - Int64(origin.latitudeE7)
        return PlanePoint(east: Double(east) * metresPerUnitEast, north: Double(north) * Self.metresPerUnit)
    }

    public func coordinate(_ point: PlanePoint) -> Coordinate {
        var longitude = Double(origin.longitudeE7)
        if metresPerUnitEast > 0 { longitude += point.east / metresPerUnitEast }
        if longitude > 1_800_000_000 { longitude -= 3_600_000_000 }
        if longitude < -1_800_000_000 { longitude += 3_600_000_000 }
        let latitude = Double(origin.latitudeE7) + point.north / Self.metresPerUnit
        return Coordinate(
            latitudeE7: Int32(max(-900_000_000, min(900_000_000, latitude)).rounded()),
            longitudeE7: Int32(max(-1_800_000_000, min(1_800_000_000, longitude)).rounded()))
    }
}
