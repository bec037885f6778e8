import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite struct GeofenceShapeTests {
    private func place(_ latitude: Double, _ longitude: Double) -> Coordinate {
        Coordinate(latitude: latitude, longitude: longitude)!
    }

    private func polygon(_ corners: [(Double, Double)]) -> Geofence {
        Geofence(id: "f", shape: .polygon(corners.map { place($0.0, $0.1) }))
    }

    /// Corners as latitude and longitude, one after the other, and how the description of the flaw begins.
    private static let polygons: [(corners: String, found: String?)] = [
        // A square, its ring closed, the other way round.
        ("52 13  52 13.1  52.1 13.1  52.1 13", nil),
        ("52 13  52 13.1  52.1 13.1  52.1 13  52 13", nil),
        ("52.1 13  52.1 13.1  52 13.1  52 13", nil),
        // Repeated corners are one corner.
        ("52 13  52 13  52 13.1  52 13.1  52.1 13.1", nil),
        // Across the antimeridian, and around both poles.
        ("10 179.9  10 -179.9  10.1 -179.9  10.1 179.9", nil),
        ("89.9 0  89.9 90  89.9 180  89.9 -90", nil),
        ("-89.9 0  -89.9 120  -89.9 -120", nil),
        // A hollow one.
        ("52 13  52 13.3  52.1 13.3  52.1 13.2  52.05 13.2  52.05 13.1  52.1 13.1  52.1 13", nil),
        ("52 13  52 13.1", "2 distinct points"),
        ("52 13  52 13.1  52 13", "2 distinct points"),
        ("", "0 distinct points"),
        ("52 13  52 13.1  52 13.2", "a polygon whose edges from vertex 1 and from vertex 3 meet"),
        // A bow, one that touches itself in a corner, a spike.
        ("52 13  52.1 13.1  52 13.1  52.1 13", "a polygon whose edges from vertex 1 and from vertex 3 meet"),
        ("52 13  52 13.1  52.1 13.1  52 13.05  52.1 13", "a polygon whose edges from vertex 1 and from vertex"),
        ("52 13  52 13.1  52 13.05  52.1 13.05", "a polygon whose edges from vertex 1 and from vertex 2 meet"),
        ("52 13  52 16.1  52.1 16.1", "a polygon of 212 km across"),
        ("50 13  52 13.1  52 13.2", "a polygon of 222 km across"),
        ("-89.5 0  89.5 10  89.5 20", "a polygon of"),
    ]

    @Test(arguments: polygons.indices)
    func polygonsThatAreNoneAreFound(_ index: Int) {
        let numbers = Self.polygons[index].corners.split(separator: " ").compactMap { Double($0) }
        let corners = stride(from: 0, to: numbers.count, by: 2).map { (numbers[$0], numbers[$0 + 1]) }
        let flaw = polygon(corners).flaw
        if let found = Self.polygons[index].found {
            #expect(flaw?.found.hasPrefix(found) == true, "\(flaw?.found ?? "nothing")")
        } else {
            #expect(flaw == nil)
        }
    }

    @Test func verticesAndRadiiHaveLimits() {
        func ring(_ count: Int) -> Geofence {
            polygon(
                (0..<count).map { index in
                    let angle = 2 * Double.pi * Double(index) / Double(count)
                    return (52 + 0.1 * sin(angle), 13 + 0.1 * cos(angle))
                })
        }
        #expect(ring(1000).flaw == nil)
        #expect(ring(1001).flaw?.found == "1001 vertices")
        #expect(ring(5000).flaw?.found == "5000 vertices")
        let radii: [(Double, Bool)] = [
            (10, true), (1_000_000, true), (9.9, false), (1_000_001, false), (.nan, false), (.infinity, false),
            (-5, false),
        ]
        for (radius, isGood) in radii {
            let fence = Geofence(id: "f", shape: .circle(centre: place(0, 0), radius: radius))
            #expect((fence.flaw == nil) == isGood, "\(radius)")
            #expect((FenceArea(fence.shape) != nil) == isGood, "\(radius)")
        }
    }

    /// Every edge of a random star against every other.
    @Test func crossingsAreFoundAsByTryingAllPairs() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        var found = 0
        for _ in 0..<2000 {
            let ring: [SimplePolygon.Point] = (0..<Int.random(in: 3...9, using: &random)).map { _ in
                SimplePolygon.Point(x: .random(in: 0...12, using: &random), y: .random(in: 0...12, using: &random))
            }
            let crosses = SimplePolygon.crossing(ring) != nil
            if crosses { found += 1 }
            if crosses != meetsSomewhere(ring) { Issue.record("seed \(seed): \(ring)") }
        }
        #expect(found > 200)
    }

    private func meetsSomewhere(_ ring: [SimplePolygon.Point]) -> Bool {
        let count = ring.count
        for first in 0..<count {
            for second in 0..<count where second != first {
                let (a, b) = (ring[first], ring[(first + 1) % count])
                let (c, d) = (ring[second], ring[(second + 1) % count])
                let isNext = (first + 1) % count == second
                let isBefore = (second + 1) % count == first
                // Points of the second edge that lie on the first, but for the corner that they share.
                if !isNext, !isBefore, segmentsMeet(a, b, c, d) { return true }
                if isNext, count > 2, liesOn(d, a, b) || liesOn(a, c, d) { return true }
            }
        }
        return false
    }

    private func liesOn(_ p: SimplePolygon.Point, _ a: SimplePolygon.Point, _ b: SimplePolygon.Point) -> Bool {
        (b.x - a.x) * (p.y - a.y) == (b.y - a.y) * (p.x - a.x) && (min(a.x, b.x)...max(a.x, b.x)).contains(p.x)
            && (min(a.y, b.y)...max(a.y, b.y)).contains(p.y)
    }

    private func segmentsMeet(
        _ a: SimplePolygon.Point, _ b: SimplePolygon.Point, _ c: SimplePolygon.Point, _ d: SimplePolygon.Point
    ) -> Bool {
        if liesOn(c, a, b) || liesOn(d, a, b) || liesOn(a, c, d) || liesOn(b, c, d) { return true }
        func side(_ p: SimplePolygon.Point, _ q: SimplePolygon.Point, _ r: SimplePolygon.Point) -> Int64 {
            ((q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x)).signum()
        }
        return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0
    }

    @Test func distancesAreNegativeInside() throws {
        let circle = try #require(FenceArea(.circle(centre: place(52, 13), radius: 100)))
        #expect(abs(circle.signedDistance(to: place(52, 13)) + 100) < 0.01)
        #expect(abs(circle.signedDistance(to: Script.place(north: 150)) - 50) < 0.1)
        #expect(circle.size == 100)

        // 200 m from side to side around the origin of the script.
        let square = try #require(
            FenceArea(
                .polygon([
                    Script.place(north: -100, east: -100), Script.place(north: -100, east: 100),
                    Script.place(north: 100, east: 100), Script.place(north: 100, east: -100),
                ])))
        let places: [(Double, Double, Double)] = [
            (0, 0, -100), (90, 0, -10), (110, 0, 10), (0, -130, 30), (130, 140, 50), (-99, 99, -1),
        ]
        for (north, east, distance) in places {
            #expect(abs(square.signedDistance(to: Script.place(north: north, east: east)) - distance) < 0.1)
        }
        #expect(abs(square.size - 112.8) < 0.1)
    }

    @Test func antimeridianAndPolesAreNoEdges() throws {
        let pacific = try #require(
            FenceArea(polygon([(10, 179.9), (10, -179.9), (10.1, -179.9), (10.1, 179.9)]).shape))
        #expect(pacific.signedDistance(to: place(10.05, 180)) < -5000)
        #expect(pacific.signedDistance(to: place(10.05, -179.95)) < -5000)
        #expect(pacific.signedDistance(to: place(10.05, -179.8)) > 10_000)
        #expect(pacific.bounds.contains(place(10.05, -180)) && pacific.bounds.contains(place(10.05, 180)))
        #expect(!pacific.bounds.contains(place(10.05, 179.8)) && !pacific.bounds.contains(place(10.05, 0)))

        let pole = try #require(FenceArea(polygon([(89.9, 0), (89.9, 90), (89.9, 180), (89.9, -90)]).shape))
        #expect(pole.signedDistance(to: place(90, 17)) < -7000)
        #expect(pole.signedDistance(to: place(89.95, -135)) < -2000)
        #expect(pole.signedDistance(to: place(89.9, 45)) > 1000)
        #expect(pole.bounds.contains(place(89.95, -135)))

        // The edge of a polygon is straight in degrees: along the parallel, not along the great circle north of it.
        let wide = try #require(FenceArea(polygon([(52, 13), (52, 14.5), (52.5, 14.5), (52.5, 13)]).shape))
        #expect(
            wide.signedDistance(to: place(52.4995, 13.75)) < 0 && wide.signedDistance(to: place(52.5005, 13.75)) > 0)
    }

    /// What lies outside of the bounds must be outside by more than any hysteresis.
    @Test func boundsContainEverythingNear() throws {
        let seed = testSeed(2)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<3000 {
            let pole = Int.random(in: 0..<4, using: &random)
            var latitude = Double.random(in: -88...88, using: &random)
            if pole == 0 { latitude = Double.random(in: 88...90, using: &random) }
            if pole == 1 { latitude = Double.random(in: -90 ... -88, using: &random) }
            var longitude = Double.random(in: -180...180, using: &random)
            if Bool.random(using: &random) { longitude = Bool.random(using: &random) ? 180 : -179.999 }
            let centre = place(latitude, longitude)
            let radius = 10 * exp(Double.random(in: 0...11.5, using: &random))
            let area = try #require(FenceArea(.circle(centre: centre, radius: min(1e6, radius))))
            for _ in 0..<20 {
                let shift = Double.random(in: -12...12, using: &random) * radius / 1e6
                let near = place(
                    max(-90, min(90, latitude + shift)), Double.random(in: -180...180, using: &random))
                if !area.bounds.contains(near), area.signedDistance(to: near) <= 30 {
                    Issue.record("seed \(seed): \(near) of \(centre), \(radius) m")
                }
            }
        }
    }
}
