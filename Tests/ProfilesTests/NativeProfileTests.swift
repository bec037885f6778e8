import Profiles
import ProfilesTestSupport
import Testing
import WaypostCore

/// The published examples of the native profiles, made by templates.
@Suite struct NativeProfileTests {
    static let native: Tree = [
        "url": "${base_url}/locations", "max_records": 100,
        "headers": ["Idempotency-Key": "\"${batch_id}\""],
        "body": [
            "device": "$device", "outbox": "$outbox", "boot_id": "$batch_boot_id", "trackable": "$batch_trackable",
            "batch_id": "$batch_id", "sent_at": "$sent_iso", "locations": "$records",
        ],
        "record": [
            "location": ["lat": "$lat", "lon": "$lon"], "timeStamp": "$time_s", "accuracy": "$accuracy",
            "speed": "$speed_mps", "bearing": "$bearing", "altitude": "$altitude", "time_ms": "$time_ms",
            "clock_ms": "$clock_ms", "seq": "$seq",
            "trackable": "$row_trackable", "boot_id": "$row_boot_id", "altitude_hae": "$altitude_hae",
            "satellites": "$satellites", "fix_mode": "$fix_mode", "quality": "$quality", "simulated": "$simulated",
            "moving": "$moving", "activity": ["type": "$activity", "confidence": "$activity_confidence"],
            "event": "$event",
            "geofence": [
                "id": "$geofence_id", "name": "$geofence_name", "action": "$geofence_action",
                "source": "$geofence_beacon",
            ], "reason": "$reason", "settings": "$settings", "odometer": "$odometer", "battery": "$battery_pct",
            "charging": "$charging",
            "external_power": "$external_power", "trip_start_ms": "$trip_start_ms", "trip_start_lat": "$trip_start_lat",
            "trip_start_lon": "$trip_start_lon", "trip_end_ms": "$trip_end_ms", "trip_distance": "$trip_distance",
            "trip_duration": "$trip_duration", "trip_idle": "$trip_idle", "trip_max_speed": "$trip_max_speed",
        ],
    ]

    private func body(_ rows: [QueuedLocation], sentMs: Int64? = 1_700_000_020_500) throws -> String {
        let batch = Sample.batch(rows, sentMs: sentMs)
        return String(
            decoding: try RequestRenderer(Sample.settings(Self.native), in: Sample.context).request(for: batch).body,
            as: UTF8.self)
    }

    @Test func leavesOutWhatIsUnknown() throws {
        let bare = QueuedLocation(
            seq: 1, bootID: nil, receivedMs: nil,
            location: Location(
                trackable: nil, time: UTCTime(milliseconds: -1), at: .zero,
                coordinate: Coordinate(latitudeE7: 0, longitudeE7: -1), speed: .nan, course: .infinity, moving: false))
        #expect(
            try body([bare], sentMs: nil) == """
                {"device":"van-7","outbox":"7f3a91c2","batch_id":"7f3a91c2-main-1-1","locations":[{"location":\
                {"lat":0.0,"lon":-0.0000001},"timeStamp":-1,"time_ms":-1,"seq":1,"moving":false,"odometer":0.0}]}
                """)
    }

    @Test func tellsHowTheAssetTravels() throws {
        var row = Sample.row
        row.location.activity = Activity(kind: .onBicycle, confidence: 85)
        let expected = #""moving":true,"activity":{"type":"on_bicycle","confidence":85},"reason""#
        #expect(try body([row]).contains(expected))
        #expect(try Sample.record("$location", row).contains(expected))
    }

    @Test func recordsWithoutAPositionTellWhatHappenedAndWhen() throws {
        var change = Sample.bare(seq: 1)
        change.receivedMs = 1_700_000_000_500
        change.location.event = .settings
        change.location.settings = #"{"version":17,"after":{"a":"1s"}}"#
        change.location.removePlace()
        #expect(
            try body([change], sentMs: nil).contains(
                """
                "locations":[{"clock_ms":1700000000500,"seq":1,"moving":false,"event":"settings",\
                "settings":{"version":17,"after":{"a":"1s"}},"odometer":0.0}]
                """))
    }

    @Test func namesTheTrackableInTheRowsWhereOneHasNone() throws {
        var none = Sample.row
        none.location.trackable = nil
        let text = try body([Sample.row, none])
        #expect(text.hasPrefix(#"{"device":"van-7","outbox":"7f3a91c2","boot_id":"\#(Sample.boot)","batch_id""#))
        #expect(text.contains(#""seq":1041,"trackable":"van-7","altitude_hae""#))
        #expect(text.contains(#""seq":1041,"altitude_hae""#))
    }

    @Test func tellsEventsGeofencesAndTrips() throws {
        var enter = Sample.crossing
        enter.location.quality = .simulated
        #expect(
            try body([enter]).contains(
                """
                "quality":"simulated","simulated":true,"moving":true,"event":"geofence","geofence":{"id":"f-1",\
                "name":"Depot North","action":"enter"},"reason"
                """))
        enter.location.geofence?.source = .beacon
        #expect(try body([enter]).contains(#""action":"enter","source":"BEACON"}"#))
        var trip = Sample.row
        trip.location.event = .trip
        trip.location.trip = TripSummary(
            start: UTCTime(milliseconds: 1_700_000_000_000), startCoordinate: trip.location.coordinate,
            end: UTCTime(milliseconds: 1_700_000_600_500), distance: 8123.44, idle: 61, maxSpeed: nil)
        #expect(
            try body([trip]).hasSuffix(
                """
                "external_power":true,"trip_start_ms":1700000000000,"trip_start_lat":52.5200066,\
                "trip_start_lon":13.404954,"trip_end_ms":1700000600500,"trip_distance":8123.4,"trip_duration":600.5,\
                "trip_idle":61.0}]}
                """))
    }

    @Test(arguments: [(359.96, "0.0"), (0.04, "0.0"), (359.94, "359.9"), (360, "0.0")] as [(Double, String)])
    func keepsTheBearingBelow360(course: Double, expected: String) throws {
        var row = Sample.row
        row.location.course = course
        #expect(try body([row]).contains("\"bearing\":\(expected),"))
    }

    @Test func neverSaysThatAnAccuracyIsZero() throws {
        var row = Sample.row
        row.location.horizontalAccuracy = 0.01
        #expect(try body([row]).contains(#""accuracy":0.1,"#))
        row.location.horizontalAccuracy = 0
        #expect(try !body([row]).contains("accuracy"))
    }

    @Test func tellsTheCanonicalRecordAlone() throws {
        #expect(
            try Sample.record("$location") == """
                {"location":{"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3,\
                "bearing":271.0,"altitude":34.1,"time_ms":1700000000123,"seq":1041,"trackable":"van-7",\
                "boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","altitude_hae":73.7,"satellites":9,"fix_mode":"3d",\
                "quality":"dgps","moving":true,"reason":"displacement","odometer":15230.4,"battery":87,\
                "charging":true,"external_power":true,"id":"id-1041","hdop":0.9,"received_ms":1700000000900,\
                "published":true}
                """)
        let renderer = RequestRenderer(Sample.settings(Profile()), in: Sample.context)
        let whole = String(decoding: renderer.request(for: Sample.batch([Sample.row])).body, as: UTF8.self)
        let record = try Sample.record("$location")
        #expect(whole == "[\(record)]")
    }

    @Test func compressesLargeBodiesOnly() throws {
        var settings = try Sample.settings(Self.native)
        let small = RequestRenderer(settings).request(for: Sample.batch([Sample.row]))
        #expect(!small.gzip && small.method == "POST" && small.timeout == .seconds(60))
        let large = Sample.batch(Array(repeating: Sample.row, count: 10))
        let refused = RenderContext(gzip: false)
        #expect(RequestRenderer(settings).request(for: large).gzip)
        #expect(!RequestRenderer(settings, in: refused).request(for: large).gzip)
        let bodies = [RenderContext(), refused].map { RequestRenderer(settings, in: $0).request(for: large).body }
        #expect(bodies[0] == bodies[1])
        settings.gzip = false
        #expect(!RequestRenderer(settings).request(for: large).gzip)
    }
}
