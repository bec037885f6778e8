import Glibc
import JSON
import Positioning
import Tracking

/// Geofences of a GeoJSON file (RFC 7946): a FeatureCollection of Polygons, and of Points with a `radius`.
///
/// A feature's own `id`, or `id` among its properties, is the fence's id; the properties `name`, `radius` (metres, or a
/// distance as in the configuration) and `dwell` (seconds, or a duration) are taken, all others are left alone.
enum GeofenceFile {
    static let bytesMax = 8 << 20
    /// Mistakes that are reported one by one.
    private static let problemsMax = 20

    struct Unreadable: Error, CustomStringConvertible {
        /// `found …, expected …`
        let description: String
    }

    static func contents(of path: String) -> Result<[UInt8], Unreadable> {
        func failure(_ words: String) -> Result<[UInt8], Unreadable> { .failure(Unreadable(description: words)) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return failure("found \(errorText(errno)), expected a file that can be read") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return failure("found no regular file, expected GeoJSON")
        }
        guard status.st_size <= bytesMax, let bytes = readAll(descriptor, bytesMax: bytesMax) else {
            return failure("found more than 8 MiB, expected a shorter list")
        }
        return .success(bytes)
    }

    /// - Parameter ids: ids in use.
    static func parse(_ bytes: [UInt8], except ids: Set<String>) -> (fences: [Geofence], problems: [String]) {
        guard let collection = JSONReader.read(bytes, bytesMax: bytesMax) else {
            // The line of the mistake is for a tool of the user's to find.
            return (
                [],
                [
                    "found no valid JSON, expected a GeoJSON FeatureCollection "
                        + "(`python3 -m json.tool FILE` shows the line of the mistake)"
                ]
            )
        }
        guard let type = collection["type"]?.string, let features = collection["features"]?.items else {
            return ([], ["found other JSON, expected a GeoJSON FeatureCollection: an object with type and features"])
        }
        guard type == "FeatureCollection" else {
            return ([], ["found a GeoJSON \(type), expected a FeatureCollection"])
        }
        var ids = ids
        var fences: [Geofence] = []
        var problems: [String] = []
        for (index, feature) in features.enumerated() {
            do throws(Geofence.Flaw) {
                let fence = try fence(of: feature)
                if ids.insert(fence.id).inserted {
                    fences.append(fence)
                } else {
                    problems.append(
                        "features[\(index)]: found the id \(fence.id.asTOML) again, "
                            + "expected an id that no other geofence has")
                }
            } catch {
                let id = id(of: feature).map { " (id \($0.asTOML.shortened))" } ?? ""
                problems.append("features[\(index)]\(id): found \(error.found), expected \(error.expected)")
            }
        }
        if problems.count > problemsMax {
            let more = problems.count - problemsMax
            problems = problems.prefix(problemsMax) + ["\(more) more features have mistakes of their own"]
        }
        return (fences, problems)
    }

    /// RFC 7946 allows numbers as ids. One among the properties counts where the feature has none of its own.
    private static func id(of feature: JSONValue) -> String? {
        name(feature["id"]) ?? name(feature["properties"]?["id"])
    }

    private static func name(_ value: JSONValue?) -> String? { value?.string ?? value?.integer.map(String.init) }

    private static func fence(of feature: JSONValue) throws(Geofence.Flaw) -> Geofence {
        guard feature["type"]?.string == "Feature" else {
            throw Geofence.Flaw(found: "something else", expected: "an object of type Feature")
        }
        let properties = feature["properties"] ?? .null
        let geometry = feature["geometry"] ?? .null
        guard [geometry, properties].allSatisfy({ $0 == .null || $0.members != nil }) else {
            throw Geofence.Flaw(found: "another type", expected: "geometry and properties to be objects")
        }
        let place = geometry == .null ? nil : try shape(geometry)
        let radius = try quantity(properties, "radius", .distance)
        let dwell = try quantity(properties, "dwell", .duration)
        if let dwell, !(1...30 * 86_400).contains(dwell) {
            throw Geofence.Flaw(found: "a dwell of \(dwell.plain) s", expected: "a duration from 1s to 30d")
        }
        guard let id = id(of: feature), !id.isEmpty else {
            throw Geofence.Flaw(found: "no id", expected: "an id of at most 128 bytes")
        }
        let name = properties["name"]?.string
        // The same limits as in the configuration: both go over the wire with each crossing.
        for (word, text) in [("an id", id), ("a name", name ?? "")] {
            if text.utf8.count > 128 {
                throw Geofence.Flaw(found: "\(word) of \(text.utf8.count) bytes", expected: "at most 128")
            }
            if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw Geofence.Flaw(found: "\(word) with control characters", expected: "plain text")
            }
        }
        guard var place else {
            throw Geofence.Flaw(found: "no geometry", expected: "a Polygon, or a Point with a radius")
        }
        if case .circle(let centre, _) = place {
            guard let radius else {
                throw Geofence.Flaw(
                    found: "a Point without the property radius", expected: "metres from 10 to 1000000")
            }
            place = .circle(centre: centre, radius: radius)
        }
        let fence = Geofence(
            id: id, name: name, shape: place,
            dwell: dwell.map { .milliseconds(Int64(($0 * 1000).rounded())) })
        if let flaw = fence.flaw { throw flaw }
        return fence
    }

    /// A polygon, or a point as a circle without a radius.
    private static func shape(_ geometry: JSONValue) throws(Geofence.Flaw) -> Geofence.Shape {
        let type = geometry["type"]?.string ?? "object without a type"
        let coordinates = geometry["coordinates"]
        switch type {
        case "Polygon":
            guard let rings = coordinates?.items?.map({ $0.items?.map(numbers) }), rings.allSatisfy({ $0 != nil }),
                rings.allSatisfy({ $0?.contains(nil) == false })
            else {
                throw Geofence.Flaw(
                    found: "other coordinates", expected: "[[[longitude, latitude], …]] of a Polygon")
            }
            guard rings.count == 1, let ring = rings[0] else {
                throw Geofence.Flaw(
                    found: rings.isEmpty ? "no ring" : "a Polygon with holes",
                    expected: "one ring (make a fence of its own of a hole)")
            }
            return .polygon(try ring.map { (position) throws(Geofence.Flaw) in try coordinate(position ?? []) })
        case "Point":
            guard let position = coordinates.flatMap(numbers) else {
                throw Geofence.Flaw(found: "other coordinates", expected: "[longitude, latitude] of a Point")
            }
            return .circle(centre: try coordinate(position), radius: 0)
        default:
            throw Geofence.Flaw(found: "a geometry of type \(type)", expected: "a Polygon, or a Point with a radius")
        }
    }

    private static func numbers(_ value: JSONValue) -> [Double]? {
        guard let numbers = value.items?.map(\.number), !numbers.contains(nil) else { return nil }
        return numbers.compactMap { $0 }
    }

    /// Longitude first, and perhaps an altitude.
    private static func coordinate(_ position: [Double]) throws(Geofence.Flaw) -> Coordinate {
        guard position.count >= 2, let place = Coordinate(latitude: position[1], longitude: position[0]) else {
            throw Geofence.Flaw(
                found: "[\(position.map(\.plain).joined(separator: ", "))]",
                expected: "longitude -180 to 180, then latitude -90 to 90")
        }
        return place
    }

    private static func quantity(
        _ properties: JSONValue, _ name: String, _ scale: UnitScale
    ) throws(Geofence.Flaw) -> Double? {
        guard let value = properties[name], value != .null else { return nil }
        if let bare = value.number { return bare }
        if let text = value.string, case .value(let value) = scale.read(text) { return value }
        throw Geofence.Flaw(found: "another \(name)", expected: scale.expectation)
    }
}
