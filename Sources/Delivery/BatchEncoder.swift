import Positioning

/// Renders a batch into the request of the profile `waypost`. The same batch always gives the same bytes.
public struct BatchEncoder: Sendable {
    /// Names profile and version that rendered a batch: when it changes, a waiting batch goes out under a new id.
    public static let rendering = "waypost/1"

    /// Small bodies do not gain from compression.
    public static let gzipFrom = 1024

    public let settings: EndpointSettings
    /// First 8 hex digits of the queue's uuid.
    public let outbox: String

    public init(settings: EndpointSettings, outbox: String) {
        self.settings = settings
        self.outbox = outbox
    }

    /// - Parameter gzip: false once the server has refused compressed bodies.
    public func request(for batch: Batch, gzip: Bool = true) -> UplinkRequest {
        let body = body(of: batch)
        return UplinkRequest(
            url: settings.baseURL + "/locations",
            headers: [
                .init("Content-Type", "application/json"),
                // A structured-field string, so with quotes (draft-ietf-httpapi-idempotency-key-header-07).
                .init("Idempotency-Key", "\"\(batch.id)\""),
            ],
            body: body, gzip: gzip && settings.gzip && body.count > Self.gzipFrom, timeout: settings.timeout)
    }

    func body(of batch: Batch) -> [UInt8] {
        var writer = JSONWriter(reserving: 256 + batch.rows.count * 320)
        let first = batch.rows.first
        let oneBoot = batch.rows.allSatisfy { $0.bootID == first?.bootID }
        let oneTrackable = batch.rows.allSatisfy { $0.location.trackable == first?.location.trackable }
        writer.beginObject()
        writer.field("device", settings.device)
        writer.field("outbox", outbox)
        if oneBoot { writer.field("boot_id", first?.bootID) }
        if oneTrackable { writer.field("trackable", first?.location.trackable) }
        writer.field("batch_id", batch.id)
        writer.field("sent_at", batch.sentMs.map { UTCTime(milliseconds: $0).iso8601 })
        writer.key("locations")
        writer.beginArray()
        for row in batch.rows { writer.record(row, namesBoot: !oneBoot, namesTrackable: !oneTrackable) }
        writer.endArray()
        writer.endObject()
        return writer.bytes
    }
}

extension JSONWriter {
    /// A row as the profile `waypost` writes it, as one object.
    public mutating func record(_ row: QueuedLocation, namesBoot: Bool, namesTrackable: Bool) {
        let location = row.location
        beginObject()
        key("location")
        position("lat", "lon", location.coordinate)
        let ms = location.time.milliseconds
        // Whole seconds, rounded down also before 1970.
        field("timeStamp", ms >= 0 ? ms / 1000 : (ms + 1) / 1000 - 1)
        field("accuracy", scaled: Scaled.accuracy(location.horizontalAccuracy), places: 1)
        field("speed", scaled: Scaled.speed(location.speed), places: 2)
        field("bearing", scaled: Scaled.course(location.course), places: 1)
        field("altitude", scaled: Scaled.altitude(location.altitudeMSL), places: 2)
        field("time_ms", ms)
        field("seq", row.seq)
        if namesTrackable { field("trackable", location.trackable) }
        if namesBoot { field("boot_id", row.bootID) }
        field("altitude_hae", scaled: Scaled.altitude(location.altitudeHAE), places: 2)
        field("satellites", location.satellitesUsed)
        switch location.mode {
        case .twoD: field("fix_mode", word: "2d")
        case .threeD: field("fix_mode", word: "3d")
        case .some(.none), nil: break
        }
        field("quality", location.quality?.word)
        if location.simulated { field("simulated", true) }
        field("moving", location.moving)
        if location.event != .none { field("event", location.event.rawValue) }
        if let crossing = location.geofence { geofence(crossing) }
        field("reason", location.reason)
        field("odometer", scaled: Scaled.odometer(location.odometer), places: 1)
        field("battery", location.power.batteryPercent)
        field("charging", location.power.charging)
        field("external_power", location.power.externalPower)
        if let summary = location.trip { trip(summary) }
        endObject()
    }

    private mutating func position(_ latitude: StaticString, _ longitude: StaticString, _ coordinate: Coordinate) {
        beginObject()
        field(latitude, scaled: Int64(coordinate.latitudeE7), places: 7)
        field(longitude, scaled: Int64(coordinate.longitudeE7), places: 7)
        endObject()
    }

    private mutating func geofence(_ crossing: GeofenceCrossing) {
        key("geofence")
        beginObject()
        field("id", crossing.id)
        field("name", crossing.name)
        field("action", crossing.action.rawValue)
        if crossing.source == .beacon { field("source", word: "BEACON") }
        endObject()
    }

    private mutating func trip(_ trip: TripSummary) {
        field("trip_start_ms", trip.start.milliseconds)
        field("trip_start_lat", scaled: Int64(trip.startCoordinate.latitudeE7), places: 7)
        field("trip_start_lon", scaled: Int64(trip.startCoordinate.longitudeE7), places: 7)
        field("trip_end_ms", trip.end.milliseconds)
        field("trip_distance", scaled: Scaled.odometer(trip.distance), places: 1)
        field("trip_duration", Double(trip.end.milliseconds(since: trip.start)) / 1000, places: 1)
        field("trip_idle", trip.idle, places: 1)
        field("trip_max_speed", scaled: Scaled.speed(trip.maxSpeed), places: 2)
    }
}
