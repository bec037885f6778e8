import Glibc
import Places
import WaypostCore
import WaypostTracking

extension GeofenceMonitor.Settings {
    /// The fences of the file and those of the list that it names, which must agree on their ids.
    init(reading table: TableReader, _ tables: [TableReader]) {
        self.init()
        table.read("initial_enter", into: &initialEnter, as: .flag)
        var path: String?
        table.read("file", into: &path, as: .absolutePath("a GeoJSON file"))

        var ids: Set<String> = []
        for table in tables {
            guard let fence = Geofence(reading: table) else { continue }
            if !ids.insert(fence.id).inserted {
                table.report("id", "found \(fence.id.asTOML) again, expected an id that no other geofence has")
            }
            fences.append(fence)
        }
        if let path {
            fences += Self.list(path, except: ids, table)
        }
        if fences.count > GeofenceMonitor.fencesMax {
            (path == nil ? tables[0] : table).report(
                path == nil ? "id" : "file",
                "found \(fences.count) geofences, expected at most \(GeofenceMonitor.fencesMax)")
        }
        let corners = fences.reduce(0) { $0 + $1.cornerCount }
        if corners > Geofence.cornersMax {
            (path == nil ? tables[0] : table).report(
                path == nil ? "polygon" : "file",
                "found polygons with \(corners) corners, expected at most \(Geofence.cornersMax)")
        }
    }

    private static func list(_ path: String, except ids: Set<String>, _ table: TableReader) -> [Geofence] {
        var problems: [String] = []
        var fences: [Geofence] = []
        switch table.environment.included[path].map(Result.success) ?? GeofenceFile.contents(of: path) {
        case .success(let bytes):
            table.include(ConfigurationText(path: path, bytes: bytes))
            do throws(ListProblems) { fences = try GeofenceFile.read(bytes, except: ids) } catch {
                problems = error.lines
            }
        case .failure(let mistake): problems = [mistake.description]
        }
        for problem in problems { table.report("file", "\(path): \(problem)") }
        return fences
    }
}

/// The GeoJSON file that the configuration names.
private enum GeofenceFile {
    struct Unreadable: Error, CustomStringConvertible {
        /// `found …, expected …`
        let description: String
    }

    static func contents(of path: String) -> Result<[UInt8], Unreadable> {
        func failure(_ words: String) -> Result<[UInt8], Unreadable> { .failure(Unreadable(description: words)) }
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path)
            guard file.status.st_size <= ListText.bytesMax,
                let bytes = readAll(file.descriptor, bytesMax: ListText.bytesMax)
            else { return failure("found more than 8 MiB, expected a shorter list") }
            return .success(bytes)
        } catch {
            switch error {
            case .notRegular: return failure("found no regular file, expected GeoJSON")
            case .system(let code): return failure("found \(errorText(code)), expected a file that can be read")
            }
        }
    }

    /// - Parameter ids: ids in use.
    static func read(_ bytes: [UInt8], except ids: Set<String>) throws(ListProblems) -> [Geofence] {
        // The line of the mistake is for a tool of the user's to find.
        try GeoJSONFences.read(
            bytes, except: ids,
            expected: "a GeoJSON FeatureCollection (`python3 -m json.tool FILE` shows the line of the mistake)")
    }
}

extension Geofence {
    /// A circle, `center` and `radius`, or a `polygon`.
    fileprivate init?(reading table: TableReader) {
        let id = table.require("id", as: .name)
        var name: String?
        table.read("name", into: &name, as: .name)
        var radius: Double?
        table.read(
            "radius", into: &radius,
            as: .distance(.between(Geofence.radiusRange.lowerBound, Geofence.radiusRange.upperBound)))
        var polygon: [Coordinate]?
        table.read("polygon", into: &polygon, as: .polygon)
        var dwell: Duration?
        table.read("dwell", into: &dwell, as: .geofenceDwell)
        // Last, so that what is printed does not end the table in the middle of its keys.
        let centre = Coordinate(reading: table.table("center"))
        guard table.isWritten else { return nil }

        let shape: Shape
        switch (table.has("center"), table.has("radius"), table.has("polygon")) {
        case (true, true, false):
            guard let centre, let radius else { return nil }
            shape = .circle(centre: centre, radius: radius)
        case (false, false, true):
            guard let polygon else { return nil }
            shape = .polygon(polygon)
        case (_, _, true):
            let other = table.has("center") ? "center" : "radius"
            table.report(other, "found together with polygon, expected a circle (center and radius) or a polygon")
            return nil
        case (true, false, false), (false, true, false), (false, false, false):
            let missing = table.has("center") ? "radius" : "center"
            table.report(
                missing, "found nothing, expected a circle (center and radius) or a polygon", at: table.position)
            return nil
        }
        guard let id else { return nil }
        self.init(id: id, name: name, shape: shape, dwell: dwell)
        if let flaw { table.report("polygon", "found \(flaw.found), expected \(flaw.expected)") }
    }
}

extension ValueForm where Value == Duration {
    static var geofenceDwell: ValueForm { .duration(.between(1, 30 * 86_400)) }
}

extension ValueForm where Value == [Coordinate] {
    /// Corners as pairs of degrees, latitude first as everywhere in the configuration.
    static var polygon: ValueForm {
        let expected = "corners, each [latitude, longitude] in degrees"
        return ValueForm(
            expected: expected,
            read: { node, _ throws(Mistake) in
                try node.elements { corner throws(Mistake) in
                    guard case .array(let pair) = corner.value, pair.count == 2, let latitude = pair[0].finiteNumber,
                        let longitude = pair[1].finiteNumber
                    else { throw Mistake(found: corner.description) }
                    if let vertex = Coordinate(latitude: latitude, longitude: longitude) { return vertex }
                    let isSwapped = abs(latitude) <= 180 && abs(longitude) <= 90
                    throw Mistake(
                        found: "[\(latitude.plain), \(longitude.plain)]",
                        expected: "latitude -90 to 90, then longitude -180 to 180",
                        suggestion: isSwapped ? "[\(longitude.plain), \(latitude.plain)]" : nil)
                }
            },
            render: { vertices in
                "[\(vertices.map { "[\($0.latitude.plain), \($0.longitude.plain)]" }.joined(separator: ", "))]"
            })
    }
}
