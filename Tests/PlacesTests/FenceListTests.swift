import Testing
import WaypostCore
import WaypostTracking

@testable import Places

@Suite struct FenceListTests {
    private let accesso = FenceList.Form.mapping(.accessoVenue)

    private func read(_ text: String, _ form: FenceList.Form? = nil) throws(ListProblems) -> [Geofence] {
        try FenceList.read(Array(text.utf8), form ?? accesso, source: "venue")
    }

    /// What is wrong with a text; empty when it is a list.
    private func problems(_ text: String, _ form: FenceList.Form? = nil) -> [String] {
        do throws(ListProblems) {
            _ = try read(text, form)
            return []
        } catch { return error.lines }
    }

    private func venue(_ fences: String) -> String { #"{"id":"v-1","name":"Park","geofences":[\#(fences)]}"# }

    private func place(_ latitude: Double, _ longitude: Double) -> Coordinate {
        Coordinate(latitude: latitude, longitude: longitude)!
    }

    private func fence(_ id: String, _ name: String?, _ shape: Geofence.Shape) -> Geofence {
        var fence = Geofence(id: id, name: name, shape: shape)
        fence.belong(to: "venue")
        return fence
    }

    @Test func theVenueOfAccessoGivesCircles() throws {
        let fences = try read(
            venue(
                """
                {"id":"f-1","venueId":"v-1","name":"Depot North","label":"…","radius":375,
                 "center":{"lat":52.52,"lon":13.405,"horizontalAccuracy":5,"locationSource":"DEVICE"}},
                {"id":17,"name":null,"radius":"1.2km","center":{"lat":-33.5,"lon":151}}
                """))
        #expect(
            fences == [
                fence("f-1", "Depot North", .circle(centre: place(52.52, 13.405), radius: 375)),
                fence("17", nil, .circle(centre: place(-33.5, 151), radius: 1200)),
            ])
        #expect(fences.map(\.id) == ["venue/f-1", "venue/17"] && fences.map(\.serverID) == ["f-1", "17"])
        #expect(try read(venue("")) == [])
    }

    /// As the vendor prints it: a trailing comma is no JSON.
    @Test func aTrailingCommaIsNoList() {
        let sample = venue(#"{"id":"f-1","radius":375,"center":{"lat":52.52,"lon":13.405,}}"#)
        #expect(problems(sample) == ["found no valid JSON at byte 99, expected JSON"])
        #expect(problems(venue(#"{"id":"f-1","radius":375,"center":{"lat":52.52,"lon":13.405}},"#)).count == 1)
    }

    @Test func onePlaceThatIsWrongRefusesAll() {
        let (metres, latitude) = ("expected a radius from 10 m to 1000 km", "expected degrees from -90 to 90")
        let (at, noLatitude) = (#","center":{"lat":52,"lon":13}"#, ".center.lat: found no number, \(latitude)")
        let rows: [(members: String, problem: String)] = [
            (#""radius":0"# + at, ".radius: found a radius of 0.0 m, \(metres)"),
            (#""radius":-5"# + at, ".radius: found a radius of -5.0 m, \(metres)"),
            (
                #""radius":"wide""# + at,
                #".radius: found another radius, expected a distance such as "50m" (units m, km; a bare number is metres)"#
            ),
            (#""x":1"# + at, ".radius: found nothing, expected metres from 10 to 1000000"),
            (#""radius":50,"center":{"lat":90.01,"lon":13}"#, ".center.lat: found 90.01, \(latitude)"),
            (
                #""radius":50,"center":{"lat":52,"lon":-181}"#,
                ".center.lon: found -181, expected degrees from -180 to 180"
            ),
            (#""radius":50,"center":{"lat":"52","lon":13}"#, noLatitude), (#""radius":50"#, noLatitude),
            (#""radius":50,"center":null"#, noLatitude),
            (#""name":7,"radius":50"# + at, ".name: found no text, expected a name"),
            (
                #""name":"a\u0007","radius":50"# + at, ": found a name with control characters, expected plain text"
            ),
        ]
        let good = #"{"id":"a","radius":50\#(at)}"#
        for (members, problem) in rows {
            let text = venue(#"\#(good),\#(good.replacing(#""a""#, with: #""b""#)),{"id":"c",\#(members)}"#)
            #expect(problems(text) == ["geofences[2]" + problem], "\(members)")
        }
    }

    @Test func whatIsNoListIsNamed() {
        let noArray = "geofences: found no array, expected one of fences"
        let rows: [(text: String, problem: String)] = [
            ("", "found no valid JSON at byte 0, expected JSON"), ("{}", noArray), (#"{"geofences":{}}"#, noArray),
            ("[]", noArray), (venue("7"), "geofences[0]: found something else, expected an object"),
            (venue(#"{"radius":50}"#), "geofences[0].id: found no id, expected a text or a whole number"),
            (
                venue(#"{"id":"a\u009b2J","radius":50}"#),
                "geofences[0]: found an id with control characters, expected plain text"
            ),
            (
                venue(#"{"id":"a\u202e","radius":50}"#),
                "geofences[0]: found an id with characters that change the order of text, expected plain text"
            ),
            (#"{"geofences":[],"geofences":[]}"#, "found two members of one name, expected each once"),
        ]
        for (text, problem) in rows { #expect(problems(text) == [problem], "\(text)") }
        #expect(problems(venue("1,2,3")).count == 3)
        #expect(ListProblems(lines: ["a", "b", "c"]).description == "a (and 2 more)")
    }

    @Test func anIDIsThatOfOneFence() {
        let fence = #"{"id":"a","radius":50,"center":{"lat":52,"lon":13}}"#
        let problem = #"geofences[1]: found the id "a" again, expected an id that no other geofence has"#
        #expect(problems(venue("\(fence),\(fence)")) == [problem])
    }

    @Test func aListHasBounds() throws {
        func list(_ count: Int) -> String {
            venue(
                (0..<count).map { #"{"id":\#($0),"radius":50,"center":{"lat":52,"lon":13}}"# }.joined(separator: ","))
        }
        #expect(try read(list(10_000)).count == 10_000)
        #expect(problems(list(10_001)) == ["found 10001 geofences, expected at most 10000"])
        // Neither items without end nor one without end is kept in memory.
        let empty = problems(venue(String(repeating: "0,", count: 100_000) + "0"))
        #expect(empty.count == 21 && empty.last == "99981 more items have mistakes of their own")
        let zeros = String(repeating: "0,", count: 50_000) + "0"
        let tooMany = "found more than 50000 values in an item, or beside the items, expected fewer"
        for text in [venue(#"{"id":"a","x":[\#(zeros)]}"#), #"{"x":[\#(zeros)],"geofences":[]}"#] {
            #expect(problems(text) == [tooMany])
        }
        let long = venue("") + String(repeating: " ", count: ListText.bytesMax)
        #expect(problems(long) == ["found more than 8 MiB, expected a shorter list"])
    }

    @Test func cornersAreLimitedBesideFences() throws {
        let corners = [Coordinate](repeating: place(52, 13), count: 1000)
        func list(_ count: Int) throws(ListProblems) -> [Geofence] {
            var read = 0
            var fences = ItemCollector<Geofence>(named: "fences") { _ in
                read += 1
                return Geofence(id: "\(read)", shape: .polygon(corners))
            }
            for _ in 0..<count { fences.take(.null) }
            return try fences.items()
        }
        #expect(try list(200).count == 200)
        let problem = ListProblems(lines: ["found polygons with 201000 corners, expected at most 200000"])
        #expect(throws: problem) { try list(201) }
    }

    @Test func geoJSONIsReadAsTheFileOfTheConfiguration() throws {
        let text = """
            {"type":"FeatureCollection","features":[{"type":"Feature","id":"yard","properties":{"name":"Yard","dwell":"5m"},
            "geometry":{"type":"Polygon","coordinates":[[[13.4,52.5],[13.5,52.5],[13.5,52.6],[13.4,52.5]]]}}]}
            """
        let fences = try read(text, .geoJSON)
        #expect(fences.map(\.id) == ["venue/yard"] && fences[0].dwell == .seconds(300) && fences[0].name == "Yard")
        #expect(problems(venue(""), .geoJSON).first?.hasPrefix("found other JSON") == true)
    }

    @Test func ownPathsLeadToCirclesAndPolygons() throws {
        var mapping = FenceMapping()
        mapping.id = ["meta", "key"]
        mapping.name = ["title"]
        mapping.radius = ["r"]
        mapping.latitude = ["at", "1"]
        mapping.longitude = ["at", "0"]
        mapping.polygon = ["shape"]
        mapping.order = .latLon
        mapping.dwell = ["stay"]
        let fences = try read(
            """
            [{"meta":{"key":"a"},"title":"A","r":50,"at":[13.4,52.5],"stay":90},
             {"meta":{"key":"b"},"shape":[[52.5,13.4],[52.5,13.5],{"lat":52.6,"lng":13.5}],"stay":null}]
            """, .mapping(mapping))
        var circle = fence("a", "A", .circle(centre: place(52.5, 13.4), radius: 50))
        circle.dwell = .seconds(90)
        let corners = [place(52.5, 13.4), place(52.5, 13.5), place(52.6, 13.5)]
        #expect(fences == [circle, fence("b", nil, .polygon(corners))])
        let wrong: [(members: String, problem: String)] = [
            (#""x":1"#, "[0].r: found nothing, expected a radius or corners"),
            (
                #""shape":[[52.5,13.4],[152.5,13.5]]"#,
                "[0].shape[1]: found no corner, expected degrees, latitude first"
            ), (#""shape":[[1,1],[2,2]]"#, "[0].shape: found 2 distinct points"),
            (
                #""r":50,"at":[0,0],"stay":0"#,
                "[0].stay: found a dwell of 0 s, expected a duration from 1s to 30d"
            ),
        ]
        for (members, problem) in wrong {
            let found = problems(#"[{"meta":{"key":"a"},\#(members)}]"#, .mapping(mapping))
            #expect(found.count == 1 && found[0].hasPrefix(problem), "\(found)")
        }
    }

    @Test func nothingThatIsReadTraps() {
        let good = Array(venue(#"{"id":"a","radius":50,"center":{"lat":52,"lon":13}}"#).utf8)
        for end in good.indices { _ = problems(String(decoding: good[..<end], as: UTF8.self)) }
        for text in ["[1e999]", #"{"geofences":[{"id":"a","radius":1e308,"center":{"lat":1e308,"lon":-1e308}}]}"#] {
            #expect(!problems(text).isEmpty)
        }
    }
}
