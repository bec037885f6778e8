import WaypostCore
import WaypostTracking

/// Geofences of a GeoJSON text (RFC 7946): a FeatureCollection of Polygons, and of Points with a `radius`.
///
/// A feature's own `id`, or `id` among its properties, is the fence's id; the properties `name`, `radius` (metres, or a
/// distance as in the configuration) and `dwell` (seconds, or a duration) are taken, all others are left alone.
package enum GeoJSONFences {
    /// The fences of the reply of a server, or of a file.
    ///
    /// - Parameters:
    ///   - ids: ids in use.
    ///   - expected: what a text that is no JSON should be.
    package static func read(
        _ text: [UInt8], except ids: Set<String> = [], expected: String = "JSON"
    ) throws(ListProblems) -> [Geofence] {
        var fences = ItemCollector(named: "features", except: ids, id: id, fence)
        try check(ListText.read(text, at: ["features"], into: &fences, expected: expected))
        return try fences.items()
    }

    /// - Parameter collection: without its features.
    private static func check(_ collection: JSONValue) throws(ListProblems) {
        guard let type = collection["type"]?.string, collection["features"]?.items != nil else {
            throw ListProblems(
                lines: ["found other JSON, expected a GeoJSON FeatureCollection: an object with type and features"])
        }
        guard type == "FeatureCollection" else {
            throw ListProblems(lines: ["found a GeoJSON \(type.cut(toBytes: 60)), expected a FeatureCollection"])
        }
    }

    /// RFC 7946 allows numbers as ids. One among the properties counts where the feature has none of its own.
    private static func id(of feature: JSONValue) -> String? {
        FenceList.id(feature["id"]) ?? FenceList.id(feature["properties"]?["id"])
    }

    private static func fence(of feature: JSONValue) throws(ListText.Mistake) -> Geofence {
        guard feature["type"]?.string == "Feature" else {
            throw ListText.Mistake(found: "something else", expected: "an object of type Feature")
        }
        let properties = feature["properties"] ?? .null
        let geometry = feature["geometry"] ?? .null
        guard [geometry, properties].allSatisfy({ $0 == .null || $0.members != nil }) else {
            throw ListText.Mistake(found: "another type", expected: "geometry and properties to be objects")
        }
        let place = geometry == .null ? nil : try shape(geometry)
        let radius = try FenceList.quantity(properties["radius"], "radius", .distance)
        let dwell = try FenceList.dwell(properties["dwell"])
        guard let id = id(of: feature), !id.isEmpty else {
            throw ListText.Mistake(found: "no id", expected: "an id of at most 128 bytes")
        }
        let name = properties["name"]?.string
        try ListText.check(id: id, name: name)
        guard var place else {
            throw ListText.Mistake(found: "no geometry", expected: "a Polygon, or a Point with a radius")
        }
        if case .circle(let centre, _) = place {
            guard let radius else {
                throw ListText.Mistake(
                    found: "a Point without the property radius", expected: "metres from 10 to 1000000")
            }
            place = .circle(centre: centre, radius: radius)
        }
        let fence = Geofence(id: id, name: name, shape: place, dwell: dwell)
        if let flaw = fence.flaw { throw ListText.Mistake(flaw) }
        return fence
    }

    /// A polygon, or a point as a circle without a radius.
    private static func shape(_ geometry: JSONValue) throws(ListText.Mistake) -> Geofence.Shape {
        let type = geometry["type"]?.string ?? "object without a type"
        let coordinates = geometry["coordinates"]
        switch type {
        case "Polygon":
            guard let rings = coordinates?.items?.map({ $0.items?.map(numbers) }), rings.allSatisfy({ $0 != nil }),
                rings.allSatisfy({ $0?.contains(nil) == false })
            else {
                throw ListText.Mistake(
                    found: "other coordinates", expected: "[[[longitude, latitude], …]] of a Polygon")
            }
            guard rings.count == 1, let ring = rings[0] else {
                throw ListText.Mistake(
                    found: rings.isEmpty ? "no ring" : "a Polygon with holes",
                    expected: "one ring (make a fence of its own of a hole)")
            }
            return .polygon(try ring.map { (position) throws(ListText.Mistake) in try coordinate(position ?? []) })
        case "Point":
            guard let position = coordinates.flatMap(numbers) else {
                throw ListText.Mistake(found: "other coordinates", expected: "[longitude, latitude] of a Point")
            }
            return .circle(centre: try coordinate(position), radius: 0)
        default:
            throw ListText.Mistake(
                found: "a geometry of type \(type.cut(toBytes: 60))", expected: "a Polygon, or a Point with a radius")
        }
    }

    private static func numbers(_ value: JSONValue) -> [Double]? {
        guard let numbers = value.items?.map(\.number), !numbers.contains(nil) else { return nil }
        return numbers.compactMap { $0 }
    }

    /// Longitude first, and perhaps an altitude.
    private static func coordinate(_ position: [Double]) throws(ListText.Mistake) -> Coordinate {
        guard position.count >= 2, let place = Coordinate(latitude: position[1], longitude: position[0]) else {
            throw ListText.Mistake(
                found: "[\(position.prefix(4).map(\.plain).joined(separator: ", "))]",
                expected: "longitude -180 to 180, then latitude -90 to 90")
        }
        return place
    }
}
