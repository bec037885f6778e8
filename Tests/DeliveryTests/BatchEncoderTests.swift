import Delivery
import Positioning
import Testing

@Suite struct BatchEncoderTests {
    private let settings = EndpointSettings(baseURL: "https://fleet.example/api", device: "van-7")
    private static let boot = "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"

    /// The published example of the native profile.
    private var sample: QueuedLocation {
        QueuedLocation(
            seq: 1041, bootID: Self.boot, receivedMs: 1_700_000_000_900,
            location: Location(
                trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_123), at: .zero,
                coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), altitudeMSL: 34.1,
                altitudeHAE: 73.7, horizontalAccuracy: 4.5, speed: 12.3, course: 271.0, hdop: 0.9, satellitesUsed: 9,
                mode: .threeD, quality: .dgps, moving: true, reason: "displacement", odometer: 15_230.4,
                power: PowerState(batteryPercent: 87, charging: true, externalPower: true)))
    }

    private func batch(_ rows: [QueuedLocation], sentMs: Int64? = 1_700_000_020_500) -> Batch {
        Batch(endpoint: "main", id: "7f3a91c2-main-1041-1041", rows: rows, sentMs: sentMs)
    }

    private func body(_ rows: [QueuedLocation], sentMs: Int64? = 1_700_000_020_500) -> String {
        let encoder = BatchEncoder(settings: settings, outbox: "7f3a91c2")
        return String(decoding: encoder.request(for: batch(rows, sentMs: sentMs)).body, as: UTF8.self)
    }

    @Test func rendersThePublishedExampleByteForByte() {
        let request = BatchEncoder(settings: settings, outbox: "7f3a91c2").request(for: batch([sample]))
        #expect(request.method == "POST")
        #expect(request.url == "https://fleet.example/api/locations")
        #expect(
            request.headers == [
                .init("Content-Type", "application/json"), .init("Idempotency-Key", "\"7f3a91c2-main-1041-1041\""),
            ])
        #expect(request.timeout == .seconds(60))
        #expect(
            String(decoding: request.body, as: UTF8.self) == """
                {"device":"van-7","outbox":"7f3a91c2","boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","trackable":"van-7",\
                "batch_id":"7f3a91c2-main-1041-1041","sent_at":"2023-11-14T22:13:40.500Z","locations":[{"location":\
                {"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3,"bearing":271.0,\
                "altitude":34.1,"time_ms":1700000000123,"seq":1041,"altitude_hae":73.7,"satellites":9,"fix_mode":"3d",\
                "quality":"dgps","moving":true,"reason":"displacement","odometer":15230.4,"battery":87,\
                "charging":true,"external_power":true}]}
                """)
    }

    @Test func leavesOutWhatIsUnknown() {
        let bare = QueuedLocation(
            seq: 1, bootID: nil, receivedMs: nil,
            location: Location(
                trackable: nil, time: UTCTime(milliseconds: -1), at: .zero,
                coordinate: Coordinate(latitudeE7: 0, longitudeE7: -1), speed: .nan, course: .infinity, moving: false))
        #expect(
            body([bare], sentMs: nil) == """
                {"device":"van-7","outbox":"7f3a91c2","batch_id":"7f3a91c2-main-1041-1041","locations":[{"location":\
                {"lat":0.0,"lon":-0.0000001},"timeStamp":-1,"time_ms":-1,"seq":1,"moving":false,"odometer":0.0}]}
                """)
    }

    @Test func namesBootAndTrackableInTheRowsWhenTheyDiffer() {
        var other = sample
        other.seq = 1042
        other.bootID = "b"
        other.location.trackable = "van-8"
        var none = sample
        none.location.trackable = nil
        let text = body([sample, other, none])
        #expect(text.hasPrefix(#"{"device":"van-7","outbox":"7f3a91c2","batch_id""#))
        #expect(
            text.contains(
                #""seq":1041,"trackable":"van-7","boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","altitude_hae""#))
        #expect(text.contains(#""seq":1042,"trackable":"van-8","boot_id":"b","altitude_hae""#))
        #expect(text.contains(#""seq":1041,"boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","altitude_hae""#))
    }

    @Test func tellsEventsGeofencesAndTrips() {
        var enter = sample
        enter.location.event = .geofence
        enter.location.quality = .simulated
        enter.location.geofence = GeofenceCrossing(id: "f-1", name: "Depot North", action: .enter)
        #expect(
            body([enter]).contains(
                """
                "quality":"simulated","simulated":true,"moving":true,"event":"geofence","geofence":{"id":"f-1",\
                "name":"Depot North","action":"enter"},"reason"
                """))
        var trip = sample
        trip.location.event = .trip
        trip.location.trip = TripSummary(
            start: UTCTime(milliseconds: 1_700_000_000_000), startCoordinate: sample.location.coordinate,
            end: UTCTime(milliseconds: 1_700_000_600_500), distance: 8123.44, idle: 61, maxSpeed: nil)
        #expect(
            body([trip]).hasSuffix(
                """
                "external_power":true,"trip_start_ms":1700000000000,"trip_start_lat":52.5200066,\
                "trip_start_lon":13.404954,"trip_end_ms":1700000600500,"trip_distance":8123.4,"trip_duration":600.5,\
                "trip_idle":61.0}]}
                """))
    }

    @Test(arguments: [(359.96, "0.0"), (0.04, "0.0"), (359.94, "359.9"), (360, "0.0")])
    func keepsTheBearingBelow360(course: Double, expected: String) {
        var row = sample
        row.location.course = course
        #expect(body([row]).contains("\"bearing\":\(expected),"))
    }

    @Test func neverSaysThatAnAccuracyIsZero() {
        var row = sample
        row.location.horizontalAccuracy = 0.01
        #expect(body([row]).contains(#""accuracy":0.1,"#))
        row.location.horizontalAccuracy = 0
        #expect(!body([row]).contains("accuracy"))
    }

    @Test func compressesLargeBodiesOnly() {
        let encoder = BatchEncoder(settings: settings, outbox: "7f3a91c2")
        #expect(!encoder.request(for: batch([sample])).gzip)
        let large = batch(Array(repeating: sample, count: 10))
        #expect(encoder.request(for: large).gzip)
        #expect(!encoder.request(for: large, gzip: false).gzip)
        #expect(encoder.request(for: large).body == encoder.request(for: large, gzip: false).body)
        var plain = settings
        plain.gzip = false
        #expect(!BatchEncoder(settings: plain, outbox: "7f3a91c2").request(for: large).gzip)
    }
}
