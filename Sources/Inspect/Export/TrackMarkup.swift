import WaypostCore

/// A trip to be written.
struct ExportedTrip {
    var name: String
    var trackable: String?
    var first: UTCTime
    var last: UTCTime
    var locations = 0
    /// A point has none: then no point is written with one.
    var lacksAltitude = false
}

/// Where the asset was parked.
struct ExportedStop {
    var name: String
    var location: Location
    /// The standstill; where only the record is known, the time of the decision.
    var since: UTCTime
    /// The departure; nil = not seen.
    var until: UTCTime?

    var words: String? {
        until.map { "parked \(InWords.span(seconds: Double($0.milliseconds(since: since)) / 1000))" }
    }
}

/// How stops and trips are written in one form.
///
/// Some forms list the points of a trip twice, positions and times apart. What belongs into the second list waits *aside*.
protocol TrackMarkup: Sendable {
    var head: String { get }
    var tail: String { get }
    /// Whether a segment of one point is not allowed; then the point is written twice.
    var needsTwoPoints: Bool { get }
    /// Whether a line over the antimeridian would be read as one around the world; then it ends there.
    var endsLinesAtAntimeridian: Bool { get }
    /// Whether what waits aside belongs at the end of each segment, not at that of the trip.
    var mergesEachSegment: Bool { get }

    /// Between two stops or trips.
    var separator: String { get }

    func stop(_ stop: ExportedStop) -> String
    func tripBegan(_ trip: ExportedTrip) -> String
    /// - Parameter isFirst: of the trip.
    func segmentBegan(isFirst: Bool) -> (text: String, aside: String)
    /// - Parameter isFirst: of the segment.
    func point(_ location: Location, isFirst: Bool) -> (text: String, aside: String)
    /// The end of both lists.
    func segmentEnded() -> (text: String, aside: String)
    /// What stands before and after that which waited aside.
    func tripEnded(_ trip: ExportedTrip) -> (before: String, after: String)
}

struct GPXMarkup: TrackMarkup {
    var head: String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <gpx version="1.1" creator="waypost" xmlns="http://www.topografix.com/GPX/1/1" \
        xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2" xmlns:waypost="urn:waypost:gpx">

        """
    }
    var tail: String { "</gpx>\n" }
    var separator: String { "" }
    var needsTwoPoints: Bool { false }
    var endsLinesAtAntimeridian: Bool { false }
    var mergesEachSegment: Bool { false }

    func stop(_ stop: ExportedStop) -> String {
        "<wpt \(place(stop.location))>\(TrackText.element("ele", TrackText.altitude(stop.location)))"
            + TrackText.element("time", stop.since.iso8601) + TrackText.element("name", Markup.text(stop.name))
            + TrackText.element("desc", stop.words) + "<type>stop</type></wpt>\n"
    }

    func tripBegan(_ trip: ExportedTrip) -> String {
        "<trk>\(TrackText.element("name", Markup.text(trip.name)))<type>trip</type>\n"
    }

    func segmentBegan(isFirst: Bool) -> (text: String, aside: String) { ("<trkseg>\n", "") }

    func point(_ location: Location, isFirst: Bool) -> (text: String, aside: String) {
        let received =
            TrackText.element("fix", fix(location))
            + TrackText.element("sat", location.satellitesUsed.map(String.init))
            + TrackText.element("hdop", TrackText.hdop(location))
        let garmin =
            TrackText.element("gpxtpx:speed", TrackText.speed(location))
            + TrackText.element("gpxtpx:course", TrackText.course(location))
        let own = TrackText.element("waypost:accuracy", TrackText.accuracy(location))
        let extensions =
            (garmin.isEmpty ? "" : TrackText.element("gpxtpx:TrackPointExtension", garmin)) + own
        let text =
            "<trkpt \(place(location))>"
            + TrackText.Altitude.text(TrackText.element("ele", TrackText.altitude(location)))
            + TrackText.element("time", location.time.iso8601) + received
            + (extensions.isEmpty ? "" : TrackText.element("extensions", extensions)) + "</trkpt>\n"
        return (text, "")
    }

    func segmentEnded() -> (text: String, aside: String) { ("</trkseg>\n", "") }
    func tripEnded(_ trip: ExportedTrip) -> (before: String, after: String) { ("", "</trk>\n") }

    private func place(_ location: Location) -> String {
        let coordinate = location.coordinate
        return
            "lat=\"\(TrackText.degrees(coordinate.latitudeE7))\" lon=\"\(TrackText.degrees(coordinate.longitudeE7))\""
    }

    private func fix(_ location: Location) -> String? {
        switch location.quality {
        case .dgps, .rtk, .rtkFloat: "dgps"
        case .pps: "pps"
        default: location.mode.map { ["none", "2d", "3d"][$0.rawValue - 1] }
        }
    }
}

struct KMLMarkup: TrackMarkup {
    var head: String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
        <Document><name>waypost</name>

        """
    }
    var tail: String { "</Document>\n</kml>\n" }
    var separator: String { "" }
    var needsTwoPoints: Bool { false }
    var endsLinesAtAntimeridian: Bool { false }
    var mergesEachSegment: Bool { true }

    func stop(_ stop: ExportedStop) -> String {
        let span = TrackText.element("begin", stop.since.iso8601) + TrackText.element("end", stop.until?.iso8601)
        return "<Placemark>\(TrackText.element("name", Markup.text(stop.name)))"
            + TrackText.element("description", stop.words) + TrackText.element("TimeSpan", span)
            + "<Point><coordinates>\(TrackText.position(stop.location, separator: ","))</coordinates></Point></Placemark>\n"
    }

    func tripBegan(_ trip: ExportedTrip) -> String {
        "<Placemark>\(TrackText.element("name", Markup.text(trip.name)))<gx:MultiTrack>\n"
    }

    func segmentBegan(isFirst: Bool) -> (text: String, aside: String) { ("<gx:Track>\n", "") }

    func point(_ location: Location, isFirst: Bool) -> (text: String, aside: String) {
        (
            TrackText.element("when", location.time.iso8601) + "\n",
            // GDAL passes over a track whose positions have two parts. Nothing shows this altitude: a track lies on the ground.
            TrackText.element("gx:coord", TrackText.trackPosition(location, separator: " ", without: " 0")) + "\n"
        )
    }

    func segmentEnded() -> (text: String, aside: String) { ("", "</gx:Track>\n") }
    func tripEnded(_ trip: ExportedTrip) -> (before: String, after: String) { ("", "</gx:MultiTrack></Placemark>\n") }
}

struct GeoJSONMarkup: TrackMarkup {
    var head: String { "{\"type\":\"FeatureCollection\",\"features\":[\n" }
    var tail: String { "\n]}\n" }
    var separator: String { ",\n" }
    var needsTwoPoints: Bool { true }
    /// RFC 7946, section 3.1.9.
    var endsLinesAtAntimeridian: Bool { true }
    var mergesEachSegment: Bool { false }

    func stop(_ stop: ExportedStop) -> String {
        let position = TrackText.position(stop.location, separator: ",")
        var properties = common("stop", stop.name, stop.location.trackable, stop.since)
        if let until = stop.until { properties += ",\"end\":\"\(until.iso8601)\"" }
        return "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[\(position)]},"
            + "\"properties\":{\(properties)}}"
    }

    func tripBegan(_ trip: ExportedTrip) -> String {
        "{\"type\":\"Feature\",\"geometry\":{\"type\":\"MultiLineString\",\"coordinates\":["
    }

    func segmentBegan(isFirst: Bool) -> (text: String, aside: String) {
        let bracket = isFirst ? "[" : ",["
        return (bracket, bracket)
    }

    func point(_ location: Location, isFirst: Bool) -> (text: String, aside: String) {
        let comma = isFirst ? "" : ","
        return (
            "\(comma)[\(TrackText.trackPosition(location, separator: ","))]", "\(comma)\"\(location.time.iso8601)\""
        )
    }

    func segmentEnded() -> (text: String, aside: String) { ("]", "]") }

    func tripEnded(_ trip: ExportedTrip) -> (before: String, after: String) {
        let properties =
            common("trip", trip.name, trip.trackable, trip.first)
            + ",\"end\":\"\(trip.last.iso8601)\",\"locations\":\(trip.locations)"
        return ("]},\"properties\":{\(properties),\"coordTimes\":[", "]}}")
    }

    private func common(_ kind: String, _ name: String, _ trackable: String?, _ start: UTCTime) -> String {
        "\"kind\":\"\(kind)\",\"name\":\(TrackText.json(name))"
            + (trackable.map { ",\"trackable\":\(TrackText.json($0))" } ?? "") + ",\"start\":\"\(start.iso8601)\""
    }
}
