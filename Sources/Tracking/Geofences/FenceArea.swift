import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A rectangle in degrees around a fence, wide enough that a point outside of it is outside of the fence by more than
/// any hysteresis.
struct FenceBounds: Sendable {
    static let whole: Int64 = 3_600_000_000
    /// Metres: the largest hysteresis, and some for rounding.
    static let margin = 35.0

    var south: Int32
    var north: Int32
    var west: Int32
    /// 1e-7 degree to the east of `west`.
    var width: UInt32

    func contains(_ coordinate: Coordinate) -> Bool {
        guard coordinate.latitudeE7 >= south, coordinate.latitudeE7 <= north else { return false }
        var east = Int64(coordinate.longitudeE7) - Int64(west)
        if east < 0 { east += Self.whole }
        return east <= Int64(width)
    }

    /// Around a cap of the sphere.
    init(centre: Coordinate, radius: Double) {
        let angle = (radius + Self.margin) / Coordinate.earthRadius
        let reach = angle * 180 / .pi * 1e7
        self.init(
            south: Double(centre.latitudeE7) - reach, north: Double(centre.latitudeE7) + reach,
            west: Int64(centre.longitudeE7), east: Int64(centre.longitudeE7),
            reach: { latitude in
                // Where a circle touches a meridian, which is nearer to the pole than its centre.
                let sine = sin(min(angle, .pi / 2)) / max(1e-12, cos(latitude))
                return sine < 1 ? asin(sine) : .pi
            }, at: Double(centre.latitudeE7))
    }

    /// Around points whose longitudes are unwrapped.
    init(south: Int32, north: Int32, west: Int64, east: Int64) {
        let reach = Self.margin / Coordinate.earthRadius * 180 / .pi * 1e7
        let polar = max(abs(Double(south)), abs(Double(north)))
        self.init(
            south: Double(south) - reach, north: Double(north) + reach, west: west, east: east,
            reach: { latitude in Self.margin / Coordinate.earthRadius / max(1e-12, cos(latitude)) }, at: polar)
    }

    /// Everything beyond a parallel.
    init(capNorth: Bool, from latitude: Int32) {
        let reach = Int32(Self.margin / Coordinate.earthRadius * 180 / .pi * 1e7)
        south = capNorth ? latitude - reach : -900_000_000
        north = capNorth ? 900_000_000 : latitude + reach
        west = -1_800_000_000
        width = UInt32(Self.whole)
    }

    private init(
        south: Double, north: Double, west: Int64, east: Int64, reach: (Double) -> Double, at latitude: Double
    ) {
        self.south = Int32(max(-900_000_000, south.rounded(.down)))
        self.north = Int32(min(900_000_000, north.rounded(.up)))
        let more = reach(latitude / 1e7 * .pi / 180) * 180 / .pi * 1e7
        let span = Double(east - west) + 2 * more + 2
        if south <= -900_000_000 || north >= 900_000_000 || span >= Double(Self.whole) {
            self.west = -1_800_000_000
            width = UInt32(Self.whole)
        } else {
            var start = west - Int64(more) - 1
            if start < -1_800_000_000 { start += Self.whole }
            if start > 1_800_000_000 { start -= Self.whole }
            self.west = Int32(clamping: start)
            width = UInt32(span.rounded(.up))
        }
    }
}

/// The plane of a polygon. Its edges are straight lines in degrees, except beyond 85° of latitude, where
/// degrees make no plane: there it is the azimuthal plane of the pole.
struct FencePlane: Sendable {
    static let polarLatitude: Int32 = 850_000_000

    private let local: LocalPlane
    private let origin: Coordinate
    /// 1 at the north pole, −1 at the south pole, 0 elsewhere.
    let pole: Double

    /// - Parameter ring: not empty.
    init(_ ring: [Coordinate]) {
        origin = ring[0]
        local = LocalPlane(origin: ring[0])
        let isPolar = ring.contains { abs(Int64($0.latitudeE7)) > Int64(Self.polarLatitude) }
        pole = isPolar ? (ring[0].latitudeE7 < 0 ? -1 : 1) : 0
    }

    /// Metres.
    func point(_ coordinate: Coordinate) -> PlanePoint {
        guard pole != 0 else { return local.point(coordinate) }
        let distance = Coordinate.earthRadius * (90 - pole * coordinate.latitude) * .pi / 180
        let angle = coordinate.longitude * .pi / 180
        return PlanePoint(east: distance * sin(angle), north: distance * cos(angle))
    }

    /// The longer side of the rectangle around the points, in metres.
    func extent(of ring: [Coordinate]) -> Double {
        let points = ring.map(point)
        let east = points.map(\.east)
        let north = points.map(\.north)
        return max(east.max()! - east.min()!, north.max()! - north.min()!)
    }

    /// Longitude in 1e-7 degree, unwrapped around the first vertex.
    func unwrapped(_ coordinate: Coordinate) -> Int64 {
        var east = Int64(coordinate.longitudeE7) - Int64(origin.longitudeE7)
        if east > 1_800_000_000 { east -= FenceBounds.whole }
        if east < -1_800_000_000 { east += FenceBounds.whole }
        return Int64(origin.longitudeE7) + east
    }

    /// The points as integers: as given, or at the poles in millimetres.
    func grid(_ ring: [Coordinate]) -> [SimplePolygon.Point] {
        ring.map { coordinate in
            if pole == 0 { return SimplePolygon.Point(x: unwrapped(coordinate), y: Int64(coordinate.latitudeE7)) }
            let point = point(coordinate)
            return SimplePolygon.Point(
                x: Int64((point.east * 1000).rounded()), y: Int64((point.north * 1000).rounded()))
        }
    }

    func bounds(of ring: [Coordinate]) -> FenceBounds {
        let latitudes = ring.map(\.latitudeE7)
        if pole != 0 {
            return FenceBounds(capNorth: pole > 0, from: pole > 0 ? latitudes.min()! : latitudes.max()!)
        }
        let longitudes = ring.map(unwrapped)
        return FenceBounds(
            south: latitudes.min()!, north: latitudes.max()!, west: longitudes.min()!, east: longitudes.max()!)
    }
}

/// A geofence made ready for the question how far inside or outside a position is.
struct FenceArea: Sendable {
    private enum Form: Sendable {
        case circle(centre: Coordinate, radius: Double)
        /// The vertices are the array of the fence itself, so that a corner takes 8 bytes and not 24.
        case polygon(plane: FencePlane, vertices: [Coordinate])
    }

    private let form: Form
    let bounds: FenceBounds
    /// Metres: the radius, or that of a circle of the same area.
    let size: Double

    /// nil for a shape without a distance. One that crosses itself is filled by the even-odd rule.
    init?(_ shape: Geofence.Shape) {
        switch shape {
        case .circle(let centre, let radius):
            guard Geofence.radiusRange.contains(radius), centre.isOnEarth else { return nil }
            form = .circle(centre: centre, radius: radius)
            bounds = FenceBounds(centre: centre, radius: radius)
            size = radius
        case .polygon(let vertices):
            guard vertices.count <= Geofence.verticesMax + 1, vertices.allSatisfy(\.isOnEarth) else { return nil }
            let ring = Geofence.distinct(vertices)
            guard ring.count >= 3 else { return nil }
            let plane = FencePlane(ring)
            guard plane.extent(of: ring) <= Geofence.extentMax else { return nil }
            // A vertex that is repeated makes an edge without length, which changes no distance.
            form = .polygon(plane: plane, vertices: vertices)
            bounds = plane.bounds(of: ring)
            size = (Self.area(ring.map(plane.point)) / .pi).squareRoot()
        }
    }

    /// Metres from the edge, negative inside.
    func signedDistance(to coordinate: Coordinate) -> Double {
        switch form {
        case .circle(let centre, let radius):
            return centre.distance(to: coordinate) - radius
        case .polygon(let plane, let vertices):
            let point = plane.point(coordinate)
            var isInside = false
            var nearest = Double.infinity
            var a = plane.point(vertices[vertices.count - 1])
            for vertex in vertices {
                let b = plane.point(vertex)
                if (a.north > point.north) != (b.north > point.north),
                    point.east < a.east + (point.north - a.north) / (b.north - a.north) * (b.east - a.east)
                {
                    isInside.toggle()
                }
                nearest = min(nearest, Self.squaredDistance(point, a, b))
                a = b
            }
            return isInside ? -nearest.squareRoot() : nearest.squareRoot()
        }
    }

    @inline(__always)
    private static func squaredDistance(_ p: PlanePoint, _ a: PlanePoint, _ b: PlanePoint) -> Double {
        let (east, north) = (b.east - a.east, b.north - a.north)
        let (x, y) = (p.east - a.east, p.north - a.north)
        let length = east * east + north * north
        let along = length > 0 ? max(0, min(1, (x * east + y * north) / length)) : 0
        let (dx, dy) = (x - along * east, y - along * north)
        return dx * dx + dy * dy
    }

    private static func area(_ corners: [PlanePoint]) -> Double {
        var doubled = 0.0
        var a = corners[corners.count - 1]
        for b in corners {
            doubled += a.east * b.north - b.east * a.north
            a = b
        }
        return abs(doubled) / 2
    }
}
