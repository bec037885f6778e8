import WaypostCore

/// An area whose crossings are recorded.
public struct Geofence: Hashable, Sendable, Codable {
    public enum Shape: Hashable, Sendable, Codable {
        /// Radius in metres, 10 m…1000 km.
        case circle(centre: Coordinate, radius: Double)
        /// 3…1000 vertices of a simple polygon without holes, in either direction; the last one may repeat the first.
        /// Its edges are straight in degrees, as in GeoJSON, and cross the antimeridian the shorter way.
        case polygon([Coordinate])
    }

    public var id: String
    /// Shown to people; nil = only the id.
    public var name: String?
    public var shape: Shape
    /// Stay inside after which DWELL is recorded once; nil = never.
    public var dwell: Duration?
    /// The id by which the server knows it that it came from; nil = it came from none.
    public var serverID: String?

    public init(id: String, name: String? = nil, shape: Shape, dwell: Duration? = nil) {
        self.id = id
        self.name = name
        self.shape = shape
        self.dwell = dwell
    }

    /// It came from a server: its id becomes `SOURCE/ID`, so that lists cannot collide.
    package mutating func belong(to source: String) {
        serverID = id
        id = "\(source)/\(id)"
    }
}

extension Geofence {
    /// Metres.
    public static let radiusRange: ClosedRange<Double> = 10...1_000_000
    public static let verticesMax = 1000
    /// Metres from west to east, and from south to north, of a polygon.
    public static let extentMax = 200_000.0

    /// Why a shape cannot be a geofence, for "found …, expected …".
    public struct Flaw: Error, Hashable, Sendable {
        public var found: String
        public var expected: String

        public init(found: String, expected: String) {
            self.found = found
            self.expected = expected
        }
    }

    /// What is wrong with the shape; nil when it is a good one.
    public var flaw: Flaw? {
        switch shape {
        case .circle(let centre, let radius):
            if !Self.radiusRange.contains(radius) {
                return Flaw(found: "a radius of \(Self.metres(radius))", expected: "a radius from 10 m to 1000 km")
            }
            return centre.isOnEarth ? nil : Flaw(found: "a centre that is not on Earth", expected: "degrees")
        case .polygon(let vertices):
            return Self.flaw(of: vertices)
        }
    }

    private static func flaw(of vertices: [Coordinate]) -> Flaw? {
        if vertices.count > verticesMax + 1 {
            return Flaw(found: "\(vertices.count) vertices", expected: "at most \(verticesMax)")
        }
        guard vertices.allSatisfy(\.isOnEarth) else {
            return Flaw(found: "a vertex that is not on Earth", expected: "degrees")
        }
        let ring = distinct(vertices)
        if ring.count > verticesMax {
            return Flaw(found: "\(ring.count) vertices", expected: "at most \(verticesMax)")
        }
        let points = Set(ring).count
        if points < 3 {
            return Flaw(
                found: "\(points) distinct \(points == 1 ? "point" : "points")",
                expected: "a polygon of at least 3")
        }
        let plane = FencePlane(ring)
        let extent = plane.extent(of: ring)
        if extent > extentMax {
            return Flaw(found: "a polygon of \(metres(extent)) across", expected: "at most 200 km")
        }
        if let (first, second) = SimplePolygon.crossing(plane.grid(ring)) {
            return Flaw(
                found: "a polygon whose edges from vertex \(first + 1) and from vertex \(second + 1) meet",
                expected: "one that does not cross or touch itself (are the vertices in order around it?)")
        }
        return nil
    }

    /// The corners, without a last one that repeats the first and without repetitions in a row.
    static func distinct(_ vertices: [Coordinate]) -> [Coordinate] {
        var ring: [Coordinate] = []
        ring.reserveCapacity(vertices.count)
        for vertex in vertices where vertex != ring.last { ring.append(vertex) }
        while ring.count > 1, ring.first == ring.last { ring.removeLast() }
        return ring
    }

    private static func metres(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value) m" }
        return abs(value) < 10_000 ? "\((value * 10).rounded() / 10) m" : "\(Int((value / 1000).rounded())) km"
    }

    /// 32 bits that differ between shapes: FNV-1a over id and shape. Name and dwell do not count, a stay continues
    /// when they change.
    var revision: UInt32 {
        var hash = FNV1a()
        for byte in id.utf8 { hash.add(byte) }
        switch shape {
        case .circle(let centre, let radius):
            hash.add(1 as UInt8)
            hash.add(centre)
            hash.add(radius.bitPattern)
        case .polygon(let vertices):
            hash.add(2 as UInt8)
            for vertex in vertices { hash.add(vertex) }
        }
        return UInt32(truncatingIfNeeded: hash.value ^ (hash.value >> 32))
    }
}

extension FNV1a {
    fileprivate mutating func add(_ coordinate: Coordinate) {
        add(
            UInt64(UInt32(bitPattern: coordinate.latitudeE7)) << 32
                | UInt64(UInt32(bitPattern: coordinate.longitudeE7)))
    }
}

/// Whether a ring of points crosses or touches itself.
enum SimplePolygon {
    struct Point {
        var x: Int64
        var y: Int64
    }

    /// The first two edges that meet elsewhere than at the corner they share, by the index of their first point; nil when
    /// none do. Exact for coordinates below 2^31.
    static func crossing(_ ring: [Point]) -> (Int, Int)? {
        let count = ring.count
        // From west to east, so that only edges that overlap in x are compared.
        let order = ring.indices.sorted { west(ring, $0) < west(ring, $1) }
        for position in order.indices {
            let first = order[position]
            let (a, b) = (ring[first], ring[(first + 1) % count])
            for second in order[(position + 1)...] {
                if west(ring, second) > max(a.x, b.x) { break }
                let (c, d) = (ring[second], ring[(second + 1) % count])
                let meet =
                    if (first + 1) % count == second {
                        folds(a, b, d)
                    } else if (second + 1) % count == first {
                        folds(c, d, b)
                    } else {
                        touch(a, b, c, d)
                    }
                if meet { return (min(first, second), max(first, second)) }
            }
        }
        return nil
    }

    private static func west(_ ring: [Point], _ index: Int) -> Int64 {
        min(ring[index].x, ring[(index + 1) % ring.count].x)
    }

    /// The side of the line a→b of c: −1, 0, 1.
    private static func side(_ a: Point, _ b: Point, _ c: Point) -> Int {
        let cross = (b.x &- a.x) &* (c.y &- a.y) &- (b.y &- a.y) &* (c.x &- a.x)
        return cross.signum().asInt
    }

    private static func isWithin(_ p: Point, _ a: Point, _ b: Point) -> Bool {
        min(a.x, b.x) <= p.x && p.x <= max(a.x, b.x) && min(a.y, b.y) <= p.y && p.y <= max(a.y, b.y)
    }

    private static func touch(_ a: Point, _ b: Point, _ c: Point, _ d: Point) -> Bool {
        let (abc, abd, cda, cdb) = (side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b))
        if abc * abd < 0, cda * cdb < 0 { return true }
        return (abc == 0 && isWithin(c, a, b)) || (abd == 0 && isWithin(d, a, b))
            || (cda == 0 && isWithin(a, c, d)) || (cdb == 0 && isWithin(b, c, d))
    }

    /// The edge corner→end runs back along the edge start→corner.
    private static func folds(_ start: Point, _ corner: Point, _ end: Point) -> Bool {
        guard side(start, corner, end) == 0 else { return false }
        return (start.x &- corner.x) &* (end.x &- corner.x) &+ (start.y &- corner.y) &* (end.y &- corner.y) > 0
    }
}

extension Int64 {
    fileprivate var asInt: Int { Int(truncatingIfNeeded: self) }
}
