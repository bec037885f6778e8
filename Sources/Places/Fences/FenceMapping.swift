import WaypostCore
import WaypostTracking

/// Where the members of fences are in a server's reply: paths of member names and indexes, as `position.lat`.
///
/// A fence is a circle where it has the member at `radius`, else a polygon.
package struct FenceMapping: Hashable, Sendable {
    /// Of the corners of a polygon; those that are objects name their members.
    package enum Order: String, Hashable, Sendable, CaseIterable {
        /// As in GeoJSON.
        case lonLat = "lon-lat"
        case latLon = "lat-lon"
    }

    /// From the reply to the array of fences; empty = the reply is that array.
    package var list: [String] = []
    /// From a fence to its members. A text or a whole number.
    package var id = ["id"]
    /// A text; nil = fences have no names.
    package var name: [String]?
    /// Metres, or a text with a unit; nil = there are no circles.
    package var radius: [String]?
    /// Degrees, of a circle.
    package var latitude: [String]?
    package var longitude: [String]?
    /// An array of corners; nil = there are no polygons.
    package var polygon: [String]?
    package var order = Order.lonLat
    /// Seconds, or a text with a unit; nil = fences have no dwell.
    package var dwell: [String]?

    package init() {}

    /// The venue of accesso's te2 API.
    package static let accessoVenue: FenceMapping = {
        var mapping = FenceMapping()
        mapping.list = ["geofences"]
        mapping.name = ["name"]
        mapping.radius = ["radius"]
        mapping.latitude = ["center", "lat"]
        mapping.longitude = ["center", "lon"]
        return mapping
    }()

    func read(_ reply: [UInt8]) throws(ListProblems) -> [Geofence] {
        var fences = ItemCollector(named: list.joined(separator: "."), fence)
        try ListText.checkItems(of: ListText.read(reply, at: list, into: &fences), at: list, "fences")
        return try fences.items()
    }

    private func fence(of item: JSONValue) throws(ListText.Mistake) -> Geofence {
        guard item.members != nil else { throw ListText.Mistake(found: "something else", expected: "an object") }
        guard let id = FenceList.id(item.value(at: id)), !id.isEmpty else {
            throw ListText.Mistake(ListText.words(id), found: "no id", expected: "a text or a whole number")
        }
        let name = try ListText.name(of: item, at: name)
        try ListText.check(id: id, name: name)
        let radius = try at(radius) { path throws(ListText.Mistake) in
            try FenceList.quantity(item.value(at: path), "radius", .distance)
        }
        let dwell = try at(dwell) { path throws(ListText.Mistake) in try FenceList.dwell(item.value(at: path)) }
        let shape: Geofence.Shape
        if let radius { shape = try circle(item, radius) } else { shape = try polygon(item) }
        let fence = Geofence(id: id, name: name, shape: shape, dwell: dwell)
        if let flaw = fence.flaw {
            let member = if case .circle = shape { self.radius } else { self.polygon }
            throw ListText.Mistake(flaw, at: ListText.words(member))
        }
        return fence
    }

    /// nil where there is no path. A mistake that is found gets it.
    private func at<Value>(
        _ path: [String]?, _ read: ([String]) throws(ListText.Mistake) -> Value?
    ) throws(ListText.Mistake) -> Value? {
        guard let path else { return nil }
        do throws(ListText.Mistake) { return try read(path) } catch {
            throw ListText.Mistake(ListText.words(path), found: error.found, expected: error.expected)
        }
    }

    private func circle(_ item: JSONValue, _ metres: Double) throws(ListText.Mistake) -> Geofence.Shape {
        let latitude = try degrees(item, latitude, 90)
        let longitude = try degrees(item, longitude, 180)
        guard let centre = Coordinate(latitude: latitude, longitude: longitude) else {
            throw ListText.Mistake(ListText.words(self.latitude), found: "no place on Earth", expected: "degrees")
        }
        return .circle(centre: centre, radius: metres)
    }

    private func degrees(
        _ item: JSONValue, _ path: [String]?, _ limit: Double
    ) throws(ListText.Mistake) -> Double {
        let expected = "degrees from -\(limit.plain) to \(limit.plain)"
        guard let path, let value = item.value(at: path)?.number else {
            throw ListText.Mistake(ListText.words(path), found: "no number", expected: expected)
        }
        guard abs(value) <= limit else {
            throw ListText.Mistake(ListText.words(path), found: value.plain, expected: expected)
        }
        return value
    }

    private func polygon(_ item: JSONValue) throws(ListText.Mistake) -> Geofence.Shape {
        guard let polygon, let corners = item.value(at: polygon)?.items else {
            let expected =
                radius == nil ? "corners" : polygon == nil ? "metres from 10 to 1000000" : "a radius or corners"
            throw ListText.Mistake(
                ListText.words(radius ?? polygon), found: "nothing", expected: expected)
        }
        var vertices: [Coordinate] = []
        vertices.reserveCapacity(corners.count)
        for (index, corner) in corners.enumerated() {
            guard let vertex = vertex(corner) else {
                throw ListText.Mistake(
                    "\(ListText.words(polygon) ?? "")[\(index)]", found: "no corner",
                    expected: "degrees, \(order == .lonLat ? "longitude first" : "latitude first")")
            }
            vertices.append(vertex)
        }
        return .polygon(vertices)
    }

    private func vertex(_ corner: JSONValue) -> Coordinate? {
        let (latitude, longitude): (JSONValue?, JSONValue?)
        if let pair = corner.items, pair.count >= 2 {
            (latitude, longitude) = order == .latLon ? (pair[0], pair[1]) : (pair[1], pair[0])
        } else {
            latitude = corner["lat"] ?? corner["latitude"]
            longitude = corner["lon"] ?? corner["lng"] ?? corner["longitude"]
        }
        guard let latitude = latitude?.number, let longitude = longitude?.number else { return nil }
        return Coordinate(latitude: latitude, longitude: longitude)
    }
}
