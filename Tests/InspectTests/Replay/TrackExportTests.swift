import Foundation
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Inspect

/// Kept locations as files for other programs. `scripts/formats` reads the same forms with gpsbabel and ogr2ogr.
@Suite struct TrackExportTests {
    private static let start = UTCTime(milliseconds: 1_772_434_980_000)

    private func location(
        _ seconds: Int64, _ latitude: Int32, longitude: Int32 = -1_234_567, moving: Bool = true,
        event: LocationEvent = .none, reason: String = "interval", trackable: String = "van", published: Bool = true
    ) -> Location {
        Location(
            trackable: trackable, time: Self.start + .milliseconds(seconds * 1000 + 500), at: .zero,
            coordinate: Coordinate(latitudeE7: latitude, longitudeE7: longitude), altitudeMSL: 39.5,
            horizontalAccuracy: 5.94, speed: 4, course: 359.97, hdop: 0.9, satellitesUsed: 8, mode: .threeD,
            quality: .gps,
            moving: moving, event: event, reason: reason, odometer: 12.3, published: published)
    }

    /// A trip with a gap, and a stop.
    private var drive: [Location] {
        var plain = location(20, 525_200_040, reason: "gap")
        (plain.altitudeMSL, plain.speed, plain.course, plain.horizontalAccuracy) = (nil, nil, nil, nil)
        (plain.mode, plain.quality, plain.hdop, plain.satellitesUsed) = (nil, nil, nil, nil)
        return [
            location(-60, 525_200_000, moving: false, event: .motionchange, reason: "start"),
            location(0, 525_200_010, event: .motionchange, reason: "speed"),
            location(1, 525_200_020, published: false),
            location(2, 525_200_020, event: .gap, reason: "no-sky"),
            plain,
            location(320, 525_200_050, moving: false, event: .motionchange, reason: "stop-timeout"),
            location(320, 525_200_050, moving: false, event: .trip, reason: "stop-timeout"),
            location(920, 525_200_050, moving: false, event: .heartbeat, reason: "heartbeat"),
        ]
    }

    private func text(_ format: TrackFormat, _ locations: [Location], names: Bool = false) throws -> String {
        try printed { descriptor in
            let export = try TrackExport(
                format, to: OutputBuffer(descriptor: descriptor), namesTrackables: names, folder: NSTemporaryDirectory()
            )
            for location in locations {
                if location.reason == "stop-timeout" { export.stopped(since: Self.start + .milliseconds(20_500)) }
                try export.add(location)
            }
            try export.end()
        }
    }

    @Test func gpxHasTripsAsTracksAndStopsAsWaypoints() throws {
        let received =
            "<fix>3d</fix><sat>8</sat><hdop>0.90</hdop><extensions><gpxtpx:TrackPointExtension>"
            + "<gpxtpx:speed>4.00</gpxtpx:speed><gpxtpx:course>0.0</gpxtpx:course></gpxtpx:TrackPointExtension>"
            + "<waypost:accuracy>5.9</waypost:accuracy></extensions>"
        #expect(
            try text(.gpx, drive) == """
                <?xml version="1.0" encoding="UTF-8"?>
                <gpx version="1.1" creator="waypost" xmlns="http://www.topografix.com/GPX/1/1" \
                xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2" xmlns:waypost="urn:waypost:gpx">
                <wpt lat="52.5200000" lon="-0.1234567"><ele>39.50</ele><time>2026-03-02T07:02:00.500Z</time>\
                <name>stop 1</name><desc>parked 1 min</desc><type>stop</type></wpt>
                <wpt lat="52.5200050" lon="-0.1234567"><ele>39.50</ele><time>2026-03-02T07:03:20.500Z</time>\
                <name>stop 2</name><type>stop</type></wpt>
                <trk><name>trip 1</name><type>trip</type>
                <trkseg>
                <trkpt lat="52.5200010" lon="-0.1234567"><time>2026-03-02T07:03:00.500Z</time>\(received)</trkpt>
                <trkpt lat="52.5200020" lon="-0.1234567"><time>2026-03-02T07:03:02.500Z</time>\(received)</trkpt>
                </trkseg>
                <trkseg>
                <trkpt lat="52.5200040" lon="-0.1234567"><time>2026-03-02T07:03:20.500Z</time></trkpt>
                <trkpt lat="52.5200050" lon="-0.1234567"><time>2026-03-02T07:08:20.500Z</time>\(received)</trkpt>
                </trkseg>
                </trk>
                </gpx>

                """)
    }

    @Test func kmlHasTracksWithTimes() throws {
        #expect(
            try text(.kml, drive) == """
                <?xml version="1.0" encoding="UTF-8"?>
                <kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
                <Document><name>waypost</name>
                <Placemark><name>stop 1</name><description>parked 1 min</description><TimeSpan>\
                <begin>2026-03-02T07:02:00.500Z</begin><end>2026-03-02T07:03:00.500Z</end></TimeSpan>\
                <Point><coordinates>-0.1234567,52.5200000,39.50</coordinates></Point></Placemark>
                <Placemark><name>stop 2</name><TimeSpan><begin>2026-03-02T07:03:20.500Z</begin></TimeSpan>\
                <Point><coordinates>-0.1234567,52.5200050,39.50</coordinates></Point></Placemark>
                <Placemark><name>trip 1</name><gx:MultiTrack>
                <gx:Track>
                <when>2026-03-02T07:03:00.500Z</when>
                <when>2026-03-02T07:03:02.500Z</when>
                <gx:coord>-0.1234567 52.5200010 0</gx:coord>
                <gx:coord>-0.1234567 52.5200020 0</gx:coord>
                </gx:Track>
                <gx:Track>
                <when>2026-03-02T07:03:20.500Z</when>
                <when>2026-03-02T07:08:20.500Z</when>
                <gx:coord>-0.1234567 52.5200040 0</gx:coord>
                <gx:coord>-0.1234567 52.5200050 0</gx:coord>
                </gx:Track>
                </gx:MultiTrack></Placemark>
                </Document>
                </kml>

                """)
    }

    @Test func geoJSONHasLinesWithTheTimesOfTheirPoints() throws {
        #expect(
            try text(.geojson, drive) == """
                {"type":"FeatureCollection","features":[
                {"type":"Feature","geometry":{"type":"Point","coordinates":[-0.1234567,52.5200000,39.50]},\
                "properties":{"kind":"stop","name":"stop 1","trackable":"van","start":"2026-03-02T07:02:00.500Z",\
                "end":"2026-03-02T07:03:00.500Z"}},
                {"type":"Feature","geometry":{"type":"Point","coordinates":[-0.1234567,52.5200050,39.50]},\
                "properties":{"kind":"stop","name":"stop 2","trackable":"van","start":"2026-03-02T07:03:20.500Z"}},
                {"type":"Feature","geometry":{"type":"MultiLineString","coordinates":[\
                [[-0.1234567,52.5200010],[-0.1234567,52.5200020]],\
                [[-0.1234567,52.5200040],[-0.1234567,52.5200050]]]},\
                "properties":{"kind":"trip","name":"trip 1","trackable":"van","start":"2026-03-02T07:03:00.500Z",\
                "end":"2026-03-02T07:08:20.500Z","locations":4,"coordTimes":[\
                ["2026-03-02T07:03:00.500Z","2026-03-02T07:03:02.500Z"],\
                ["2026-03-02T07:03:20.500Z","2026-03-02T07:08:20.500Z"]]}}
                ]}

                """)
    }

    /// A reader takes a point without altitude beside others with one to be at 0 m: see `scripts/formats`.
    @Test func aTrackHasAnAltitudeAtEachPointOrAtNone() throws {
        var next = drive
        next.append(location(1000, 525_200_060, event: .motionchange, reason: "speed"))
        next.append(location(1001, 525_200_070))
        for format in [TrackFormat.gpx, .kml, .geojson] {
            let text = try text(format, next)
            // Two stops before, and two points of the second trip.
            #expect(text.components(separatedBy: "39.50").count - 1 == 4, "\(text)")
            #expect(!text.utf8.contains(where: TrackText.Altitude.marks.contains))
        }
    }

    @Test func csvHasEveryLocation() throws {
        let lines = try text(.csv, drive).split(separator: "\n")
        #expect(
            lines.first == """
                time,trackable,latitude,longitude,altitude,accuracy,speed,bearing,satellites,hdop,moving,event,reason,odometer,\
                geofence_id,geofence_action
                """)
        #expect(lines.count == 8)
        #expect(
            lines[2]
                == "2026-03-02T07:03:00.500Z,van,52.5200010,-0.1234567,39.50,5.9,4.00,0.0,8,0.90,true,motionchange,speed,12.3,,"
        )
        #expect(
            lines[4] == "2026-03-02T07:03:20.500Z,van,52.5200040,-0.1234567,,,,,,,true,none,gap,12.3,,")
    }

    @Test func namesFromOutsideStayText() throws {
        let name = "a\"<b>&,\u{1}\u{1B}"
        let moving = location(0, 1, event: .motionchange, trackable: name)
        let escaped = "<name>a&quot;&lt;b&gt;&amp;,\u{FFFD}\u{FFFD}: trip 1</name>"
        #expect(try text(.gpx, [moving], names: true).contains(escaped))
        #expect(try text(.kml, [moving], names: true).contains(escaped))
        #expect(Markup.text("'\u{FFFE}\r\n\u{1F600}") == "&#39;\u{FFFD}\r\n\u{1F600}")
        #expect(try text(.csv, [moving]).contains(",\"a\"\"<b>&,\u{1}\u{1B}\","))
        let json = try JSONSerialization.jsonObject(with: Data(text(.geojson, [moving], names: true).utf8))
        #expect(((json as? [String: Any])?["features"] as? [Any])?.count == 1)
    }

    /// A spreadsheet computes a cell that looks like a formula, and sends it somewhere if the formula says so.
    @Test func textIsNoFormulaOfASpreadsheet() throws {
        let names = [
            ("=1+2", "'=1+2"), ("+49", "'+49"), ("-van", "'-van"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1"),
            ("=\"a\",1", "\"'=\"\"a\"\",1\""), ("'=1", "'=1"), ("a=1", "a=1"), ("", ""),
        ]
        for (name, cell) in names {
            var record = location(0, -1, event: .motionchange, reason: name, trackable: name)
            record.geofence = GeofenceCrossing(id: name, name: nil, action: .enter)
            let line = try text(.csv, [record]).split(separator: "\n")[1]
            #expect(line.contains("Z,\(cell),-0.0000001,-0.1234567,"), "\(line)")
            #expect(line.contains(",motionchange,\(cell),12.3,\(cell),enter"), "\(line)")
        }
    }

    /// A line of one position is not allowed.
    @Test func aSegmentOfOneLocationIsALineInGeoJSON() throws {
        let text = try text(.geojson, [location(0, 1, event: .motionchange)])
        #expect(text.contains("[[[-0.1234567,0.0000001,39.50],[-0.1234567,0.0000001,39.50]]]"))
    }

    @Test(arguments: TrackFormat.allCases)
    func withoutLocationsTheFileIsStillComplete(_ format: TrackFormat) throws {
        let text = try text(format, [])
        switch format {
        case .csv: #expect(text.split(separator: "\n").count == 1)
        case .geojson: #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(text.utf8)) }
        case .gpx: #expect(text.hasSuffix("</gpx>\n"))
        case .kml: #expect(text.hasSuffix("</kml>\n"))
        }
    }

    /// Interleaved trackables have tracks of their own, in the same order whether they fit in memory or not.
    @Test func tracksOfSeveralTrackablesAreApart() throws {
        var locations: [Location] = []
        for second in 0..<6000 {
            for name in ["van", "trailer"] {
                let event: LocationEvent = second == 0 ? .motionchange : .none
                locations.append(location(Int64(second), Int32(second), event: event, trackable: name))
            }
        }
        let text = try text(.gpx, locations, names: true)
        let tracks = text.components(separatedBy: "<trk>").dropFirst()
        #expect(tracks.count == 2)
        for (track, name) in zip(tracks, ["van", "trailer"]) {
            #expect(track.hasPrefix("<name>\(name): trip 1</name>"))
            #expect(track.components(separatedBy: "<trkpt").count == 6001)
        }
        #expect(text.utf8.count > 2 << 20)
    }

    @Test func geoJSONEndsALineAtTheAntimeridian() throws {
        let text = try text(
            .geojson,
            [
                location(0, 0, longitude: 1_799_998_000, event: .motionchange),
                location(1, 0, longitude: 1_799_999_000),
                location(2, 0, longitude: -1_799_999_000),
                location(3, 0, longitude: -1_799_998_000, moving: false, event: .motionchange),
            ])
        func position(_ longitude: String) -> String { "[\(longitude),0.0000000,39.50]" }
        #expect(
            text.contains(
                "\"coordinates\":[[\(position("179.9998000")),\(position("179.9999000"))],"
                    + "[\(position("-179.9999000")),\(position("-179.9998000"))]]"))
        #expect(text.contains(".500Z\",\"2026-03-02T07:03:01.500Z\"],[\""))
    }

    @Test func aFileAppearsWholeOrNotAtAll() throws {
        let folder = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/drive.gpx"
        try Data("before".utf8).write(to: URL(fileURLWithPath: path))
        do {
            let file = try OutputFile(path: path)
            try OutputBuffer(descriptor: file.descriptor).write(Array("half".utf8))
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "before")
        let file = try OutputFile(path: path)
        try OutputBuffer(descriptor: file.descriptor).write(Array("whole".utf8))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "before")
        try file.commit()
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "whole")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["drive.gpx"])
        #expect(throws: SystemError.self) { try OutputFile(path: folder + "/missing/drive.gpx") }
    }
}
