import WaypostCore
import WaypostHost
import WaypostTracking

/// Writes kept locations for other programs, in the order in which they come: trips as tracks, broken where the receiver was
/// silent, and stops as waypoints. In CSV every location has a line.
///
/// Tracks follow the stops, as GPX demands, and each trackable has its own: they wait in a ``Spool``, so that memory does not
/// grow with the log.
package final class TrackExport {
    /// One trackable.
    private final class Track {
        let label: String
        /// Trips that have ended.
        let text: Spool
        /// The trip that is being written: at its end it is known whether all of its points have an altitude.
        let current: Spool
        let aside: Spool
        var trips = 0
        var stops = 0
        /// The trip that is being written.
        var trip: ExportedTrip?
        var segments = 0
        /// In the segment that is being written; 0 = none has begun.
        var points = 0
        var newest: Location?
        /// Written when it is known how long it was.
        var stop: ExportedStop?

        init(label: String, folder: String) {
            self.label = label
            (text, current, aside) = (Spool(folder: folder), Spool(folder: folder), Spool(folder: folder))
        }
    }

    private static let pieceBytes = 1 << 16

    private let markup: (any TrackMarkup)?
    private let output: OutputBuffer
    private let folder: String
    private let namesTrackables: Bool
    private var piece: [UInt8] = []
    /// In the order of their first location.
    private var tracks: [(trackable: String?, track: Track)] = []
    private var standstill: UTCTime?
    private var isFirst = true

    /// - Parameters:
    ///   - namesTrackables: in the names of trips and stops.
    ///   - folder: for temporary files.
    /// - Throws: `SystemError` when the output cannot be written; so do all others.
    package init(
        _ format: TrackFormat, to output: OutputBuffer, namesTrackables: Bool, folder: String
    ) throws(SystemError) {
        markup =
            switch format {
            case .gpx: GPXMarkup()
            case .geojson: GeoJSONMarkup()
            case .kml: KMLMarkup()
            case .csv: nil
            }
        self.output = output
        self.folder = folder
        self.namesTrackables = namesTrackables
        try write(markup?.head ?? CSVLine.head)
    }

    /// The next stop is of an asset that has stood since then: earlier than its record, which is of the decision.
    package func stopped(since: UTCTime?) { standstill = since }

    package func add(_ location: Location) throws(SystemError) {
        guard location.published, location.isPlaced else { return }
        guard let markup else { return try write(CSVLine.text(location)) }
        // A summary is no place of its own.
        guard location.event != .trip else { return }
        let track = track(location.trackable)
        let isChange = location.event == .motionchange
        if isChange, location.moving {
            try endTrip(track, markup)
            track.stop?.until = location.time
            try writeStop(track, markup)
        }
        if track.trip == nil, location.moving { try beginTrip(track, at: location, markup) }
        if track.trip != nil, location.moving || isChange { try point(location, track, markup) }
        guard !location.moving else { return }
        try endTrip(track, markup)
        if isChange {
            try writeStop(track, markup)
            track.stops += 1
            track.stop = ExportedStop(
                name: track.label + "stop \(track.stops)", location: location, since: standstill ?? location.time)
        }
    }

    /// The end of the file.
    package func end() throws(SystemError) {
        if let markup {
            for (_, track) in tracks {
                try endTrip(track, markup)
                try writeStop(track, markup)
            }
            for (_, track) in tracks where track.trips > 0 {
                try separate(markup)
                try track.text.drain { (bytes) throws(SystemError) in try write(bytes) }
            }
            try write(markup.tail)
        }
        try output.write(piece)
        piece = []
    }

    private func track(_ trackable: String?) -> Track {
        if let known = tracks.first(where: { $0.trackable == trackable }) { return known.track }
        let label = namesTrackables ? trackable.map { "\($0): " } ?? "" : ""
        let track = Track(label: label, folder: folder)
        tracks.append((trackable, track))
        return track
    }

    private func beginTrip(_ track: Track, at location: Location, _ markup: any TrackMarkup) throws(SystemError) {
        track.trips += 1
        let trip = ExportedTrip(
            name: track.label + "trip \(track.trips)", trackable: location.trackable, first: location.time,
            last: location.time)
        track.trip = trip
        track.segments = 0
        if track.trips > 1 { try track.current.append(markup.separator) }
        try track.current.append(markup.tripBegan(trip))
    }

    private func point(_ location: Location, _ track: Track, _ markup: any TrackMarkup) throws(SystemError) {
        let isOtherSide = markup.endsLinesAtAntimeridian && Self.isAcrossAntimeridian(track.newest, location)
        if isOtherSide || Self.opensSegment(location) { try endSegment(track, markup) }
        if track.points == 0 {
            try append(markup.segmentBegan(isFirst: track.segments == 0), track)
            track.segments += 1
        }
        try append(markup.point(location, isFirst: track.points == 0), track)
        track.points += 1
        track.newest = location
        track.trip?.locations += 1
        track.trip?.last = location.time
        if TrackText.altitude(location) == nil { track.trip?.lacksAltitude = true }
        if location.event == .gap { try endSegment(track, markup) }
    }

    /// Nothing is known about the way to it.
    private static func opensSegment(_ location: Location) -> Bool {
        location.event == .none
            && [SegmentOpening.gap, .jump].contains { $0.rawValue == location.reason }
    }

    private static func isAcrossAntimeridian(_ one: Location?, _ other: Location) -> Bool {
        guard let one else { return false }
        return abs(Int64(one.coordinate.longitudeE7) - Int64(other.coordinate.longitudeE7)) > 1_800_000_000
    }

    private func endSegment(_ track: Track, _ markup: any TrackMarkup) throws(SystemError) {
        guard track.points > 0 else { return }
        if track.points == 1, markup.needsTwoPoints, let only = track.newest {
            try append(markup.point(only, isFirst: false), track)
        }
        track.points = 0
        try append(markup.segmentEnded(), track)
        if markup.mergesEachSegment { try merge(track) }
    }

    private func endTrip(_ track: Track, _ markup: any TrackMarkup) throws(SystemError) {
        guard let trip = track.trip else { return }
        try endSegment(track, markup)
        track.trip = nil
        let (before, after) = markup.tripEnded(trip)
        try track.current.append(before)
        try merge(track)
        try track.current.append(after)
        var choice = TrackText.Altitude.Choice(isKnown: !trip.lacksAltitude)
        try track.current.drain { (bytes) throws(SystemError) in try track.text.append(choice.chosen(bytes)) }
    }

    private func merge(_ track: Track) throws(SystemError) {
        try track.aside.drain { (bytes) throws(SystemError) in try track.current.append(bytes) }
    }

    private func append(_ lists: (text: String, aside: String), _ track: Track) throws(SystemError) {
        try track.current.append(lists.text)
        try track.aside.append(lists.aside)
    }

    private func writeStop(_ track: Track, _ markup: any TrackMarkup) throws(SystemError) {
        guard let stop = track.stop else { return }
        track.stop = nil
        try separate(markup)
        try write(markup.stop(stop))
    }

    private func separate(_ markup: any TrackMarkup) throws(SystemError) {
        if !isFirst { try write(markup.separator) }
        isFirst = false
    }

    private func write(_ text: String) throws(SystemError) { try write(Array(text.utf8)) }

    private func write(_ bytes: [UInt8]) throws(SystemError) {
        piece += bytes
        guard piece.count >= Self.pieceBytes else { return }
        try output.write(piece)
        piece.removeAll(keepingCapacity: true)
    }
}

/// One location as a line of CSV (RFC 4180, but lines end with LF).
enum CSVLine {
    static let head = """
        time,trackable,latitude,longitude,altitude,accuracy,speed,bearing,satellites,hdop,moving,event,reason,odometer,\
        geofence_id,geofence_action

        """

    static func text(_ location: Location) -> String {
        let fields: [String?] = [
            location.time.iso8601, location.trackable.map(TrackText.csv),
            TrackText.degrees(location.coordinate.latitudeE7), TrackText.degrees(location.coordinate.longitudeE7),
            TrackText.altitude(location), TrackText.accuracy(location), TrackText.speed(location),
            TrackText.course(location), location.satellitesUsed.map(String.init), TrackText.hdop(location),
            String(location.moving), location.event.rawValue, location.reason.map(TrackText.csv),
            TrackText.odometer(location), location.geofence.map { TrackText.csv($0.id) },
            location.geofence?.action.rawValue,
        ]
        return fields.map { $0 ?? "" }.joined(separator: ",") + "\n"
    }
}
