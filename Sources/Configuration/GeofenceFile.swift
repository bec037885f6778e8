import FoundationEssentials
import Glibc
import Positioning
import Tracking

/// Geofences of a GeoJSON file (RFC 7946): a FeatureCollection of Polygons, and of Points with a `radius`.
///
/// A feature's own `id`, or `id` among its properties, is the fence's id; the properties `name`, `radius` (metres, or a
/// distance as in the configuration) and `dwell` (seconds, or a duration) are taken, all others are left alone.
enum GeofenceFile {
    static let bytesMax = 8 << 20
    /// Mistakes that are told; more would say no more.
    private static let problemsMax = 20

    /// - Parameter ids: ids that are taken.
    static func read(_ path: String, except ids: Set<String>) -> (fences: [Geofence], problems: [String]) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return ([], ["found \(errorText(errno)), expected a file that can be read"]) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return ([], ["found no plain file, expected GeoJSON"])
        }
        guard status.st_size <= bytesMax, let bytes = readAll(descriptor, bytesMax: bytesMax) else {
            return ([], ["found more than 8 MiB, expected a shorter list"])
        }
        return parse(bytes, except: ids)
    }

    static func parse(_ bytes: [UInt8], except ids: Set<String>) -> (fences: [Geofence], problems: [String]) {
        let collection: Collection
        do {
            collection = try JSONDecoder().decode(Collection.self, from: Data(bytes))
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
            // The parser does not tell where.
            return (
                [],
                [
                    "found no valid JSON, expected a GeoJSON FeatureCollection "
                        + "(`python3 -m json.tool FILE` tells the line of the mistake)"
                ]
            )
        } catch {
            return ([], ["found other JSON, expected a GeoJSON FeatureCollection: an object with type and features"])
        }
        guard collection.type == "FeatureCollection" else {
            return ([], ["found a GeoJSON \(collection.type), expected a FeatureCollection"])
        }
        var ids = ids
        var fences: [Geofence] = []
        var problems: [String] = []
        for (index, feature) in collection.features.enumerated() {
            switch feature.fence() {
            case .success(let fence):
                if ids.insert(fence.id).inserted {
                    fences.append(fence)
                } else {
                    problems.append(
                        "features[\(index)]: found the id \(fence.id.asTOML) again, "
                            + "expected an id that no other geofence has")
                }
            case .failure(let flaw):
                let id = feature.id.map { " (id \($0.asTOML.shortened))" } ?? ""
                problems.append("features[\(index)]\(id): found \(flaw.found), expected \(flaw.expected)")
            }
        }
        if problems.count > problemsMax {
            let more = problems.count - problemsMax
            problems = problems.prefix(problemsMax) + ["\(more) more features have mistakes of their own"]
        }
        return (fences, problems)
    }

    private struct Collection: Decodable {
        var type: String
        var features: [Feature]
    }

    /// One feature, with what is wrong in it kept instead of thrown, so that all mistakes are told at once.
    private struct Feature: Decodable {
        var id: String?
        private var geometry: Geometry?
        private var properties: Properties?
        private var flaw: Geofence.Flaw?

        private enum Key: CodingKey {
            case type, id, geometry, properties
        }

        init(from decoder: any Decoder) throws {
            guard let container = try? decoder.container(keyedBy: Key.self),
                (try? container.decode(String.self, forKey: .type)) == "Feature"
            else {
                flaw = Geofence.Flaw(found: "something else", expected: "an object of type Feature")
                return
            }
            do {
                geometry = try container.decodeIfPresent(Geometry.self, forKey: .geometry)
                properties = try container.decodeIfPresent(Properties.self, forKey: .properties)
            } catch let flaw as Geofence.Flaw {
                self.flaw = flaw
            } catch {
                flaw = Geofence.Flaw(found: "another type", expected: "geometry and properties to be objects")
            }
            id = (try? container.decode(Name.self, forKey: .id))?.text ?? properties?.id
        }

        func fence() -> Result<Geofence, Geofence.Flaw> {
            if let flaw { return .failure(flaw) }
            guard let id, !id.isEmpty else {
                return .failure(Geofence.Flaw(found: "no id", expected: "an id of at most 128 bytes"))
            }
            // The same limits as in the configuration: both go over the wire with each crossing.
            for (word, text) in [("an id", id), ("a name", properties?.name ?? "")] {
                if text.utf8.count > 128 {
                    return .failure(
                        Geofence.Flaw(found: "\(word) of \(text.utf8.count) bytes", expected: "at most 128"))
                }
                if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                    return .failure(Geofence.Flaw(found: "\(word) with control characters", expected: "plain text"))
                }
            }
            guard let geometry else {
                return .failure(Geofence.Flaw(found: "no geometry", expected: "a Polygon, or a Point with a radius"))
            }
            let shape: Geofence.Shape
            switch geometry {
            case .polygon(let vertices):
                shape = .polygon(vertices)
            case .point(let centre):
                guard let radius = properties?.radius else {
                    return .failure(
                        Geofence.Flaw(
                            found: "a Point without the property radius", expected: "metres from 10 to 1000000"))
                }
                shape = .circle(centre: centre, radius: radius)
            }
            let fence = Geofence(id: id, name: properties?.name, shape: shape, dwell: properties?.dwell)
            return fence.flaw.map { .failure($0) } ?? .success(fence)
        }
    }

    private enum Geometry: Decodable {
        case polygon([Coordinate])
        case point(Coordinate)

        private enum Key: CodingKey {
            case type, coordinates
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            let type = (try? container.decode(String.self, forKey: .type)) ?? "object without a type"
            switch type {
            case "Polygon":
                guard let rings = try? container.decode([[[Double]]].self, forKey: .coordinates) else {
                    throw Geofence.Flaw(
                        found: "other coordinates", expected: "[[[longitude, latitude], …]] of a Polygon")
                }
                guard rings.count == 1 else {
                    throw Geofence.Flaw(
                        found: rings.isEmpty ? "no ring" : "a Polygon with holes",
                        expected: "one ring (make a fence of its own of a hole)")
                }
                self = .polygon(try rings[0].map(Self.coordinate))
            case "Point":
                guard let position = try? container.decode([Double].self, forKey: .coordinates) else {
                    throw Geofence.Flaw(found: "other coordinates", expected: "[longitude, latitude] of a Point")
                }
                self = .point(try Self.coordinate(position))
            default:
                throw Geofence.Flaw(
                    found: "a geometry of type \(type)", expected: "a Polygon, or a Point with a radius")
            }
        }

        /// Longitude first, and perhaps an altitude.
        private static func coordinate(_ position: [Double]) throws -> Coordinate {
            guard position.count >= 2, let place = Coordinate(latitude: position[1], longitude: position[0]) else {
                throw Geofence.Flaw(
                    found: "[\(position.map(\.plain).joined(separator: ", "))]",
                    expected: "longitude -180 to 180, then latitude -90 to 90")
            }
            return place
        }
    }

    private struct Properties: Decodable {
        var id: String?
        var name: String?
        /// Metres.
        var radius: Double?
        var dwell: Duration?

        private enum Key: CodingKey {
            case id, name, radius, dwell
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            id = (try? container.decode(Name.self, forKey: .id))?.text
            name = try? container.decode(String.self, forKey: .name)
            radius = try Self.quantity(container, .radius, .distance)
            guard let seconds = try Self.quantity(container, .dwell, .duration) else { return }
            guard (1...30 * 86_400).contains(seconds) else {
                throw Geofence.Flaw(found: "a dwell of \(seconds.plain) s", expected: "a duration from 1s to 30d")
            }
            dwell = .milliseconds(Int64((seconds * 1000).rounded()))
        }

        private static func quantity(
            _ container: KeyedDecodingContainer<Key>, _ key: Key, _ scale: UnitScale
        ) throws -> Double? {
            guard container.contains(key), (try? container.decodeNil(forKey: key)) != true else { return nil }
            if let bare = try? container.decode(Double.self, forKey: key) { return bare }
            if let text = try? container.decode(String.self, forKey: key), case .value(let value) = scale.read(text) {
                return value
            }
            throw Geofence.Flaw(found: "another \(key.stringValue)", expected: scale.expectation)
        }
    }

    /// RFC 7946 allows numbers as ids.
    private struct Name: Decodable {
        var text: String

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(Int64.self) {
                text = String(number)
            } else {
                text = try container.decode(String.self)
            }
        }
    }
}
