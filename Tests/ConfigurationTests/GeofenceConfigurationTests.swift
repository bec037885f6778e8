import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration

@Suite struct GeofenceConfigurationTests {
    private func place(_ latitude: Double, _ longitude: Double) -> Coordinate {
        Coordinate(latitude: latitude, longitude: longitude)!
    }

    /// What is said about a GeoJSON file of this text.
    private func file(_ text: String, _ more: String = "") throws -> (fences: [Geofence], problems: [String]) {
        let directory = try TemporaryDirectory()
        try directory.write("f.geojson", text)
        let toml = smallest + upload + "[geofences]\nfile = \"\(directory.path)/f.geojson\"\n" + more
        do throws(ConfigurationProblems) {
            return (try loaded(toml).config.tracking.geofences.fences, [])
        } catch {
            let prefix = "w.toml:7:8: geofences.file: \(directory.path)/f.geojson: "
            return (
                [],
                error.problems.map(\.description).map {
                    $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : $0
                }
            )
        }
    }

    private func features(_ list: String) -> String { #"{"type":"FeatureCollection","features":[\#(list)]}"# }

    @Test func noneUnlessTold() throws {
        let geofences = try loaded(smallest + upload).config.tracking.geofences
        #expect(geofences == GeofenceMonitor.Settings())
        #expect(geofences.initialEnter && geofences.fences.isEmpty)
    }

    @Test func circlesAndPolygonsAreReadWhole() throws {
        let text = """
            [[geofence]]
            id = "depot"
            name = "Depot North"
            center = { latitude = 52.5163, longitude = 13.3777 }
            radius = "1.2km"
            dwell = "10m"
            [[geofence]]
            id = "yard"
            polygon = [[52.5, 13.4], [52.5, 13.41], [52.51, 13.41]]
            [geofences]
            initial_enter = false
            """
        let loaded = try loaded(smallest + upload + text)
        #expect(!loaded.config.tracking.geofences.initialEnter)
        #expect(
            loaded.config.tracking.geofences.fences == [
                Geofence(
                    id: "depot", name: "Depot North",
                    shape: .circle(centre: place(52.5163, 13.3777), radius: 1200), dwell: .seconds(600)),
                Geofence(id: "yard", shape: .polygon([place(52.5, 13.4), place(52.5, 13.41), place(52.51, 13.41)])),
            ])
        let shown = loaded.effective.description
        #expect(shown.contains("polygon = [[52.5, 13.4], [52.5, 13.41], [52.51, 13.41]]  # from w.toml:14\n"))
        #expect(shown.contains("initial_enter = false  # from w.toml:16\n"))
        let again = try ConfigurationTestSupport.loaded(shown)
        #expect(again.config.tracking.geofences == loaded.config.tracking.geofences && again.warnings.isEmpty)
    }

    @Test func whatGoesOverTheWireIsAsShortAndPlainInAListAsInTheConfiguration() throws {
        func point(_ members: String) -> String {
            features(
                #"{"type":"Feature",\#(members),"geometry":{"type":"Point","coordinates":[13,52]}}"#)
        }
        let long = String(repeating: "x", count: 129)
        #expect(
            try file(point(#""id":"\#(long)","properties":{"radius":50}"#)).problems == [
                "features[0] (id \"\(String(repeating: "x", count: 55))…\"): found an id of 129 bytes, expected at most 128"
            ])
        #expect(
            try file(point(#""id":"a","properties":{"radius":50,"name":"\#(long)"}"#)).problems == [
                "features[0] (id \"a\"): found a name of 129 bytes, expected at most 128"
            ])
        for members in [
            #""id":"a\u0000b","properties":{"radius":50}"#, #""id":"a","properties":{"radius":50,"name":"\u001b[31m"}"#,
        ] {
            let problems = try file(point(members)).problems
            #expect(problems.count == 1 && problems[0].hasSuffix("with control characters, expected plain text"))
        }
    }

    static let mistakes = rows(
        #"""
        [[geofence]] ⏎ id = "a"
        → w.toml:6:1: geofence.center: found nothing, expected a circle (center and radius) or a polygon
        [[geofence]] ⏎ id = "a" ⏎ radius = 50
        → w.toml:6:1: geofence.center: found nothing, expected a circle (center and radius) or a polygon
        [[geofence]] ⏎ id = "a" ⏎ center = { latitude = 52, longitude = 13 }
        → w.toml:6:1: geofence.radius: found nothing, expected a circle (center and radius) or a polygon
        [[geofence]] ⏎ radius = 50 ⏎ center = { latitude = 52, longitude = 13 }
        → w.toml:6:1: geofence.id: found nothing, expected a name of at most 128 bytes
        [[geofence]] ⏎ id = "a" ⏎ radius = 50 ⏎ polygon = [[52, 13], [52, 14], [53, 13]]
        → w.toml:8:10: geofence.radius: found together with polygon, expected a circle (center and radius) or a polygon
        [[geofence]] ⏎ id = "a" ⏎ radius = "9m" ⏎ center = { latitude = 52, longitude = 13 }
        → w.toml:8:10: geofence.radius: found "9m", expected a distance from 10m to 1000km
        [[geofence]] ⏎ id = "a" ⏎ polygon = [[52, 13], [52.1, 13.1], [52, 13.1], [52.1, 13]]
        → w.toml:8:11: geofence.polygon: found a polygon whose edges from vertex 1 and from vertex 3 meet, expected one that does not cross or touch itself (are the vertices in order around it?)
        [[geofence]] ⏎ id = "a" ⏎ polygon = [[52, 13], [52.1, 13.1]]
        → w.toml:8:11: geofence.polygon: found 2 distinct points, expected a polygon of at least 3
        [[geofence]] ⏎ id = "a" ⏎ polygon = [[150.5, -33], [150.6, -33], [150.6, -34]]
        → w.toml:8:12: geofence.polygon: found [150.5, -33], expected latitude -90 to 90, then longitude -180 to 180 (did you mean [-33, 150.5]?)
        [[geofence]] ⏎ id = "a" ⏎ polygon = [[52, 13], 7]
        → w.toml:8:22: geofence.polygon: found 7, expected corners, each [latitude, longitude] in degrees
        [[geofence]] ⏎ id = "a" ⏎ radius = 50 ⏎ center = { latitude = 52, longitude = 13 } ⏎ dwell = 0
        → w.toml:10:9: geofence.dwell: found 0, expected a duration from 1s to 30d
        [[geofence]]
        id = "a"
        radius = 50
        center = { latitude = 52, longitude = 13 }
        [[geofence]]
        id = "a"
        radius = 60
        center = { latitude = 52, longitude = 13 }
        → w.toml:11:6: geofence.id: found "a" again, expected an id that no other geofence has
        [[geofence]]
        id = "a"
        radius = 50
        centre = { latitude = 52, longitude = 13 }
        center = { latitude = 52, longitude = 13 }
        → w.toml:9:1: geofence.centre: found an unknown key, expected a key of [[geofence]] (did you mean center?)
        [geofences.source] ⏎ kind = "accesso"
        → w.toml:6:12: geofences.source: found a table, expected tables, each written [[geofences.source]]
        [geofences] ⏎ file = "fences.geojson"
        → w.toml:7:8: geofences.file: found "fences.geojson", expected the absolute path of a GeoJSON file
        [geofences] ⏎ file = "/nowhere/f.geojson"
        → w.toml:7:8: geofences.file: /nowhere/f.geojson: found No such file or directory, expected a file that can be read
        """#)

    /// What is wrong, and the exact words about it. The lines under test begin at line 6.
    @Test(arguments: mistakes) func mistakesAreNamed(_ text: String, _ problem: String) {
        #expect(problems(smallest + upload + text) == [problem])
    }

    @Test func aGeoJSONFileGivesItsFences() throws {
        let (fences, problems) = try file(
            features(
                """
                {"type":"Feature","id":17,"geometry":{"type":"Point","coordinates":[13.4,52.5,34.0]},
                 "properties":{"radius":"1km","name":"Nord","dwell":90,"colour":{"r":1}}},
                {"type":"Feature","geometry":{"type":"Polygon","coordinates":
                 [[[13.4,52.5],[13.5,52.5],[13.5,52.6],[13.4,52.5]]]},"properties":{"id":"yard","dwell":"5m"}},
                {"type":"Feature","id":"plain","bbox":[],"geometry":{"type":"Point","coordinates":[0,0]},"properties":{"radius":10}}
                """), "[[geofence]]\nid = \"a\"\nradius = 50\ncenter = { latitude = 52, longitude = 13 }")
        #expect(problems == [])
        let ring = [place(52.5, 13.4), place(52.5, 13.5), place(52.6, 13.5), place(52.5, 13.4)]
        #expect(
            fences == [
                Geofence(id: "a", shape: .circle(centre: place(52, 13), radius: 50)),
                Geofence(
                    id: "17", name: "Nord", shape: .circle(centre: place(52.5, 13.4), radius: 1000),
                    dwell: .seconds(90)),
                Geofence(id: "yard", shape: .polygon(ring), dwell: .seconds(300)),
                Geofence(id: "plain", shape: .circle(centre: place(0, 0), radius: 10)),
            ])
    }

    static let mistakenFeatures = rows(
        #"""
        {"type":"Feature","id":"m","geometry":{"type":"MultiPolygon","coordinates":[]},"properties":null}
        → features[0] (id "m"): found a geometry of type MultiPolygon, expected a Polygon, or a Point with a radius
        {"type":"Feature","id":"h","geometry":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]],[[0.1,0.1],[0.2,0.1],[0.2,0.2]]]},"properties":{}}
        → features[0] (id "h"): found a Polygon with holes, expected one ring (make a fence of its own of a hole)
        {"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[52.5,113.4]},"properties":{"radius":50}}
        → features[0] (id "p"): found [52.5, 113.4], expected longitude -180 to 180, then latitude -90 to 90
        {"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{}}
        → features[0] (id "p"): found a Point without the property radius, expected metres from 10 to 1000000
        {"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{"radius":5}}
        → features[0] (id "p"): found a radius of 5.0 m, expected a radius from 10 m to 1000 km
        {"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{"radius":"5 miles"}}
        → features[0] (id "p"): found another radius, expected a distance such as "50m" (units m, km; a bare number is metres)
        {"type":"Feature","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{"radius":50}}
        → features[0]: found no id, expected an id of at most 128 bytes
        {"type":"Feature","id":"n","geometry":null,"properties":null}
        → features[0] (id "n"): found no geometry, expected a Polygon, or a Point with a radius
        {"type":"Geometry"} → features[0]: found something else, expected an object of type Feature
        17 → features[0]: found something else, expected an object of type Feature
        """#)

    @Test(arguments: mistakenFeatures) func aMistakenFeatureIsNamed(_ feature: String, _ problem: String) throws {
        #expect(try file(features(feature)).problems == [problem])
    }

    @Test func filesThatAreNoneAreRefused() throws {
        let json = "expected a GeoJSON FeatureCollection"
        #expect(try file("{\"type\":").problems.first?.contains("found no valid JSON at byte 8, \(json)") == true)
        #expect(try file("[1]").problems.first?.contains("found other JSON, \(json)") == true)
        #expect(
            try file(#"{"type":"Topology","features":[]}"#).problems == [
                "found a GeoJSON Topology, expected a FeatureCollection"
            ])
        #expect(try file(features("")).problems.isEmpty)
        let directory = try TemporaryDirectory()
        #expect(
            problems(smallest + upload + "[geofences]\nfile = \"\(directory.path)\"")
                == ["w.toml:7:8: geofences.file: \(directory.path): found no regular file, expected GeoJSON"])
    }

    @Test func oneIdIsOneFenceInBothLists() throws {
        let point =
            #"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[13,52]},"properties":{"radius":50}}"#
        let own = "[[geofence]]\nid = \"a\"\nradius = 50\ncenter = { latitude = 52, longitude = 13 }"
        #expect(
            try file(features(point), own).problems
                == [#"features[0]: found the id "a" again, expected an id that no other geofence has"#])
        let many = (0..<30).map { _ in point }.joined(separator: ",")
        let problems = try file(features(many)).problems
        #expect(problems.count == 21 && problems.last == "9 more items have mistakes of their own")
    }

    @Test func tenThousandAreTakenAndOneMoreIsNot() throws {
        let list = (0..<10_000).map { index -> String in
            #"{"type":"Feature","id":\#(index),"geometry":{"type":"Point","coordinates":[13,52]},"properties":{"radius":50}}"#
        }.joined(separator: ",")
        #expect(try file(features(list)).fences.count == 10_000)
        let own = "[[geofence]]\nid = \"a\"\nradius = 50\ncenter = { latitude = 52, longitude = 13 }"
        let problem = "w.toml:7:8: geofences.file: found 10001 geofences, expected at most 10000"
        #expect(try file(features(list), own).problems == [problem])
    }
}
