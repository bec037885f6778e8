import Configuration
import ConfigurationTestSupport
import Foundation
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import WaypostCLI

/// The requests of each profile of waypost, against the reviewed files in `fixtures/profiles`. `make expected` rewrites
/// them; the commit says why.
@Suite struct ProfileGoldenTests {
    @Test(arguments: ProfileFixture.all)
    func makesTheRequestsThatWereReviewed(_ profile: ProfileFixture) throws {
        for sample in profile.samples {
            if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" {
                try profile.rendered(sample).write(to: profile.file(sample), atomically: true, encoding: .utf8)
            }
            let expected = try String(contentsOf: profile.file(sample), encoding: .utf8)
            #expect(
                try profile.rendered(sample) == expected, "\(profile.name) \(sample); if it is meant: make expected")
        }
    }

    @Test func noReviewedFileIsLeftOver() throws {
        for folder in try FileManager.default.contentsOfDirectory(atPath: ProfileFixture.folder.path) {
            let profile = try #require(ProfileFixture.all.first { $0.name == folder }, "\(folder)")
            let known = profile.samples.map { profile.file($0).lastPathComponent } + ["waypost.toml"]
            let path = ProfileFixture.folder.appendingPathComponent(folder).path
            #expect(Set(try FileManager.default.contentsOfDirectory(atPath: path)) == Set(known), "\(folder)")
        }
    }

    static let agreed: [Agreed] = [
        Agreed(
            "waypost", .full, "POST https://fleet.example/locations",
            #"{"device":"van-7","outbox":"7f3a91c2","boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","trackable":"van-7","batch_id":"7f3a91c2-main-1041-1041","sent_at":"2023-11-14T22:13:40.500Z","locations":[{"location":{"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3,"bearing":271.0,"altitude":34.1,"time_ms":1700000000123,"seq":1041,"altitude_hae":73.7,"satellites":9,"fix_mode":"3d","quality":"dgps","moving":true,"reason":"displacement","odometer":15230.4,"battery":87,"charging":true,"external_power":true}]}"#,
            headers: ["Content-Type: application/json", #"Idempotency-Key: "7f3a91c2-main-1041-1041""#]),
        Agreed(
            "nextbillion", .full, "POST https://api.nextbillion.io/skynet/asset/a-1/track?key=***",
            #"{"device_id":"van-7","locations":[{"location":{"lat":52.5200066,"lon":13.404954},"timestamp":1700000000123,"accuracy":4.5,"altitude":34.1,"battery_level":87,"bearing":271.0,"speed":12.3}]}"#
        ),
        Agreed(
            "accesso", .full, "POST https://api.eu.te2.io/rest/user/device",
            #"{"appUserId":"u-42","appId":"app-7","userId":"42","platform":"LINUX","pushDeviceToken":"tok-1","location":{"lat":52.5200066,"lon":13.404954,"horizontalAccuracy":4.5,"locationSource":"DEVICE"},"appVersion":"1.0","label":"van-7","tags":{"moving":"true"},"timestamp":1700000000123}"#
        ),
        Agreed(
            "accesso", .eventEnter,
            "POST https://api.eu.te2.io/rest/user/device?event=ENTER&fenceId=Depot%20North&locationSource=DEVICE",
            #"{"appUserId":"u-42","appId":"app-7","userId":"42","platform":"LINUX","pushDeviceToken":"tok-1","location":{"lat":52.5200066,"lon":13.404954,"horizontalAccuracy":4.5,"locationSource":"DEVICE"},"appVersion":"1.0","label":"van-7","tags":{"moving":"true"},"timestamp":1700000000123}"#
        ),
        Agreed(
            "traccar", .full, "POST http://127.0.0.1:5055/",
            "id=van-7&timestamp=1700000000123&lat=52.5200066&lon=13.404954&speed=23.91&bearing=271.0&altitude=34.1&accuracy=4.5&hdop=0.9&batt=87&charge=true&motion=true&odometer=15230.4&sat=9",
            headers: ["Content-Type: application/x-www-form-urlencoded"]),
        Agreed(
            "traccar-json", .full, "POST http://127.0.0.1:5055/",
            #"{"location":{"timestamp":"2023-11-14T22:13:20.123Z","coords":{"latitude":52.5200066,"longitude":13.404954,"accuracy":4.5,"speed":12.3,"heading":271.0,"altitude":34.1},"is_moving":true,"odometer":15230,"battery":{"level":0.87,"is_charging":true}},"device_id":"van-7"}"#,
            headers: ["Content-Type: application/json"]),
        Agreed(
            "overland", .full, "POST https://dawarich.example/api/v1/overland/batches",
            #"{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[13.404954,52.5200066]},"properties":{"timestamp":"2023-11-14T22:13:20Z","altitude":34.1,"speed":12.3,"course":271.0,"horizontal_accuracy":4.5,"vertical_accuracy":-1,"motion":["driving"],"battery_state":"charging","battery_level":0.87,"wifi":"","device_id":"van-7","unique_id":"691fdcc0-2836-8fc1-bef1-547eaf2c36f0"}}]}"#
        ),
        Agreed(
            "owntracks-http", .full, "POST https://owntracks.example/pub?u=ada&d=van-7",
            #"{"_type":"location","tid":"V7","tst":1700000000,"lat":52.5200066,"lon":13.404954,"acc":5,"alt":34,"vel":44,"cog":271,"batt":87,"bs":2,"topic":"owntracks/ada/van-7","_id":"691fdcc0-2836-8fc1-bef1-547eaf2c36f0","created_at":1700000020}"#
        ),
        Agreed(
            "owntracks-http", .eventEnter, "POST https://owntracks.example/pub?u=ada&d=van-7",
            #"{"_type":"transition","event":"enter","tst":1700000000,"wtst":1700000000,"lat":52.5200066,"lon":13.404954,"acc":5,"desc":"Depot North","rid":"f-1","tid":"V7","t":"c","topic":"owntracks/ada/van-7/event"}"#
        ),
        Agreed(
            "thingsboard", .full, "POST https://thingsboard.example/api/v1/***/telemetry",
            #"[{"ts":1700000000123,"values":{"latitude":52.5200066,"longitude":13.404954,"speed":12.3,"bearing":271.0,"altitude":34.1,"accuracy":4.5,"satellites":9,"moving":true,"odometer":15230.4,"battery":87}}]"#
        ),
        Agreed(
            "influx", .full, "POST http://127.0.0.1:8086/write?db=fleet&precision=ms",
            "location,device=van-7 lat=52.5200066,lon=13.404954,accuracy=4.5,speed=12.3,bearing=271.0,altitude=34.1,hdop=0.9,satellites=9,odometer=15230.4,battery=87,moving=true,charging=true 1700000000123"
        ),
        Agreed(
            "geojson", .full, "POST https://geo.example/collect",
            #"{"type":"FeatureCollection","features":[{"type":"Feature","id":"691fdcc0-2836-8fc1-bef1-547eaf2c36f0","geometry":{"type":"Point","coordinates":[13.404954,52.5200066,73.7]},"properties":{"device":"van-7","time":"2023-11-14T22:13:20.123Z","accuracy":4.5,"speed":12.3,"bearing":271.0,"altitude":34.1,"moving":true,"battery":87}}]}"#,
            headers: ["Content-Type: application/geo+json"]),
        Agreed(
            "transistor", .full, "POST https://tracker.example/locations",
            #"{"location":[{"timestamp":"2023-11-14T22:13:20.123Z","uuid":"691fdcc0-2836-8fc1-bef1-547eaf2c36f0","is_moving":true,"odometer":15230.4,"coords":{"latitude":52.5200066,"longitude":13.404954,"accuracy":4.5,"speed":12.3,"heading":271.0,"altitude":34.1,"ellipsoidal_altitude":73.7},"activity":{"type":"unknown","confidence":0},"battery":{"level":0.87,"is_charging":true}}],"device_id":"van-7"}"#
        ),
        Agreed(
            "aws-location", .full,
            "POST https://tracking.geo.eu-west-1.amazonaws.com/tracking/v0/trackers/fleet/positions",
            #"{"Updates":[{"DeviceId":"van-7","SampleTime":"2023-11-14T22:13:20.123Z","Position":[13.404954,52.5200066],"Accuracy":{"Horizontal":4.5},"PositionProperties":{"speed":"12.3","bearing":"271.0","battery":"87"}}]}"#
        ),
        Agreed(
            "here", .full, "POST https://tracking.api.here.com/v3/",
            #"{"appId":"app-7","id":"van-7","data":[{"timestamp":1700000000123,"position":{"lat":52.5200066,"lng":13.404954,"alt":34.1,"accuracy":4.5}}]}"#
        ),
    ]

    /// What is published about a server, or agreed with one: never changed by `make expected`.
    @Test(arguments: agreed)
    func keepsToWhatIsAgreed(_ agreed: Agreed) throws {
        let text = try ProfileFixture(name: agreed.profile).rendered(agreed.sample)
        let parts = text.split(separator: "\n\n", maxSplits: 1).map(String.init)
        let head = parts[0].split(separator: "\n").map(String.init)
        #expect(head.first == agreed.request)
        for header in agreed.headers { #expect(head.contains(header)) }
        #expect(parts.last == agreed.body + "\n")
    }

    static let fences: [(String?, String)] = [
        (nil, "Depot%20North"), ("$geofence_id", "venue%2Ff-1"), ("$geofence_server_id", "f-1"), ("gate 7", "gate%207"),
    ]

    /// The fence is named by its name, by its id, or by the id that the venue knows; a crossing repeats all that a plain post has.
    @Test(arguments: fences)
    func accessoGetsEnterAndExitOfAFence(_ variable: String?, _ fence: String) throws {
        let fixture = try String(
            contentsOf: ProfileFixture.folder.appendingPathComponent("accesso/waypost.toml"), encoding: .utf8)
        let text = fixture.replacing("label = ", with: variable.map { "fence_id = \"\($0)\", label = " } ?? "label = ")
        let settings = try loaded(text, testEnvironment(requiresCredentials: false)).config.endpoints[0].settings
        for action in [GeofenceCrossing.Action.enter, .exit, nil] {
            var row = ProfileSample.eventEnter.rows[0]
            row.location.geofence = action.map {
                GeofenceCrossing(id: "venue/f-1", name: "Depot North", action: $0, serverID: "f-1")
            }
            if action == nil { row.location.event = .none }
            let batch = Batch(
                endpoint: "park", id: "7f3a91c2-park-1041-1041", rows: [row], sentMs: 1_700_000_020_500,
                outbox: ProfileSample.outbox)
            let request = RequestRenderer(settings, in: RenderContext(isMasked: true)).request(for: batch)
            let query = action.map { "?event=\($0.rawValue.uppercased())&fenceId=\(fence)&locationSource=DEVICE" } ?? ""
            #expect(request.url == "https://api.eu.te2.io/rest/user/device\(query)")
            #expect(
                String(decoding: request.body, as: UTF8.self)
                    == #"{"appUserId":"u-42","appId":"app-7","userId":"42","platform":"LINUX","pushDeviceToken":"tok-1","location":{"lat":52.5200066,"lon":13.404954,"horizontalAccuracy":4.5,"locationSource":"DEVICE"},"appVersion":"1.0","label":"van-7","tags":{"moving":"true"},"timestamp":1700000000123}"#
            )
        }
    }

    static let starts: [(String, String)] = [
        (
            "cloudevents",
            #"[{"specversion":"1.0","id":"691fdcc0-2836-8fc1-bef1-547eaf2c36f0","source":"/waypost/van-7","type":"waypost.location","subject":"van-7","time":"2023-11-14T22:13:20.123Z","datacontenttype":"application/json","data":{"location":{"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3"#
        ),
        (
            "kafka-rest",
            #"{"records":[{"key":"van-7","value":{"location":{"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3"#
        ),
    ]

    /// Published cut short: members that are there, and more.
    @Test(arguments: starts)
    func beginsAsAgreed(profile: String, start: String) throws {
        let text = try ProfileFixture(name: profile).rendered(.full)
        let body = try #require(text.split(separator: "\n\n", maxSplits: 1).last)
        #expect(body.hasPrefix(start))
        _ = try JSONSerialization.jsonObject(with: Data(body.utf8))
    }

    /// The canonical record is what `waypost-verbose` sends.
    @Test func locationIsTheVerboseRecord() throws {
        let verbose = try ProfileFixture(name: "waypost-verbose").rendered(.full)
        let kafka = try ProfileFixture(name: "kafka-rest").rendered(.full)
        let record = try #require(verbose.split(separator: "\"locations\":[").last).dropLast("]}\n".count)
        #expect(kafka.hasSuffix(#"{"records":[{"key":"van-7","value":\#(record)}]}"# + "\n"))
    }

    @Test func compactColumnsAreAsAgreed() throws {
        let text = try ProfileFixture(name: "waypost-compact").rendered(.batch)
        #expect(text.contains("Content-Type: application/vnd.waypost.compact+json\n"))
        // Whether the asset moves is always known here, so the last cell of the flags is 0.
        #expect(
            text.hasSuffix(
                #"{"v":2,"device":"van-7","outbox":"7f3a91c2","sent_ms":1700000020500,"n":3,"seq":[1041,1,2],"time":[1700000000123,4000,2000],"lat":[52520007,9,-5],"lon":[13404954,-724,-361],"accuracy":[45,3,null],"speed":[123,-2,null],"bearing":[271,0,null],"altitude":[34,1,null],"moving":[1,1,0]}"#
                    + "\n"))
    }
}

/// A request that others rely on.
struct Agreed: CustomTestStringConvertible, Sendable {
    var profile: String
    var sample: ProfileSample
    var request: String
    var body: String
    var headers: [String]

    init(_ profile: String, _ sample: ProfileSample, _ request: String, _ body: String, headers: [String] = []) {
        self.profile = profile
        self.sample = sample
        self.request = request
        self.body = body
        self.headers = headers
    }

    var testDescription: String { "\(profile) \(sample.rawValue)" }
}
