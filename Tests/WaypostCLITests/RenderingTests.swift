import Configuration
import Delivery
import Foundation
import Hash
import Network
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import WaypostCLI

/// One id never names two bodies: where a version of waypost renders the same rows to other bytes, `Profile.rendering` is
/// another one. `fixtures/renderings.tsv` has the digest of what each profile made of the rows below under its rendering.
@Suite struct RenderingTests {
    private static let file = BuiltProducts.repository.appendingPathComponent("fixtures/renderings.tsv")

    private struct Line: Equatable {
        var profile: String
        var rendering: String
        var digest: String

        var text: String { "\(profile)\t\(rendering)\t\(digest)\n" }
    }

    @Test func sameRenderingSameBytes() throws {
        let known = try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n").map { text in
            let fields = text.split(separator: "\t").map(String.init)
            return Line(profile: fields[0], rendering: fields[1], digest: fields[2])
        }
        let plain = EndpointSettings(name: "main", baseURL: "http://127.0.0.1", device: "van-7")
        let all = try ProfileFixture.all.map { ($0.name, try $0.settings()) } + [("plain", plain)]
        let lines = all.map { name, settings in
            let digest = String(hexOf: SHA256.hash(Self.bodies(of: settings)).prefix(16))
            return Line(profile: name, rendering: settings.profile.rendering, digest: digest)
        }
        for line in lines {
            guard let before = known.first(where: { $0.rendering == line.rendering }) else { continue }
            // Waiting batches would go out with other bytes under the id that they had.
            #expect(before.digest == line.digest, "\(line.profile) renders otherwise: raise Profile.rendererVersion")
        }
        if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" {
            // What is known of a rendering that is in force stays: it is what went out under these ids.
            let kept = lines.map { line in known.first { $0.rendering == line.rendering } ?? line }
            return try kept.map(\.text).joined().write(to: Self.file, atomically: true, encoding: .utf8)
        }
        #expect(known.map(\.rendering) == lines.map(\.rendering), "if it is meant: make expected")
    }

    @Test func theVersionIsPartOfEachRendering() throws {
        #expect(Profile().rendering == "plain/3")
        #expect(Profile(rendering: "other").rendering == "other")
    }

    static let activities: [(String, String, String)] = [
        (
            "transistor", #""activity":{"type":"on_foot","confidence":85}"#,
            #""activity":{"type":"unknown","confidence":0}"#
        ),
        ("overland", #""motion":["walking"]"#, #""motion":["driving"]"#),
        ("traccar-json", #""activity":{"type":"on_foot"}"#, #""is_moving":true,"odometer""#),
        ("waypost", #""activity":{"type":"on_foot","confidence":85}"#, #""moving":true,"reason""#),
        ("waypost-verbose", #""activity":{"type":"on_foot","confidence":85}"#, #""moving":true,"reason""#),
        ("waypost-mqtt", #""activity":{"type":"on_foot","confidence":85}"#, #""moving":true,"reason""#),
    ]

    @Test(arguments: activities)
    func saysHowTheAssetTravelsAndWhenThatIsUnknown(profile: String, known: String, unknown: String) throws {
        let settings = try ProfileFixture(name: profile).settings()
        func body(_ activity: Activity?) throws -> String {
            var row = try #require(ProfileSample.full.rows.first)
            row.location.activity = activity
            let batch = Batch(
                endpoint: settings.name, id: "7f3a91c2-main-1-1", rows: [row], sentMs: nil,
                outbox: ProfileSample.outbox)
            let context = RenderContext(identify: RecordID.make, isMasked: true)
            let request = RequestRenderer(settings, in: context).request(for: batch)
            let bytes = request.broker.map { $0.messages.flatMap(\.payload) } ?? request.body
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(try body(Activity(kind: .onFoot, confidence: 85)).contains(known))
        #expect(try body(nil).contains(unknown))
    }

    private static func bodies(of settings: EndpointSettings) -> [UInt8] {
        var random = SeededGenerator(seed: 1)
        var all: [UInt8] = []
        let samples = ProfileSample.allCases.map(\.rows)
        let made = (0..<100).map { _ in (1...3).map { row(Int64($0), &random) } }
        for (index, rows) in (samples + made).enumerated() {
            let plan = BatchPlanner(settings).plan(rows, limit: settings.batchSize, isEnd: true, ages: nil)
            for indices in plan.batches {
                let batch = Batch(
                    endpoint: settings.name, id: "7f3a91c2-main-1-2", rows: indices.map { rows[$0] },
                    sentMs: index % 3 == 0 ? nil : 1_700_000_020_500, outbox: ProfileSample.outbox,
                    newest: settings.profile.usesNewest && index % 2 == 0 ? rows.last : nil)
                let context = RenderContext(identify: RecordID.make, isMasked: true)
                let request = RequestRenderer(settings, in: context).request(for: batch)
                all += (request.broker.map { $0.messages.flatMap(\.payload) } ?? request.body) + [0]
            }
        }
        return all
    }

    /// Drawn from the raw numbers of the generator, so that the rows stay the same under another Swift.
    private static func row(_ seq: Int64, _ random: inout SeededGenerator) -> QueuedLocation {
        func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        func number(_ from: Double, _ to: Double) -> Double {
            from + (to - from) * Double(below(1_000_001)) / 1_000_000
        }
        func known<Value>(_ value: Value) -> Value? { below(4) > 0 ? value : nil }
        let words = ["van-7", "a,b=c d", "\"é\" ", "x&y=z+%", "🚚", "[?a]", "${lat}", "tab\there"]
        let events: [LocationEvent] = [.none, .none, .motionchange, .heartbeat, .geofence, .power, .gap, .trip]
        let event = events[below(events.count)]
        let coordinate = Coordinate(
            latitudeE7: Int32(below(1_800_000_001) - 900_000_000),
            longitudeE7: Int32(below(1_800_000_001) - 900_000_000))
        let location = Location(
            trackable: known(words[below(words.count)]),
            time: UTCTime(milliseconds: Int64(below(4_000_000_000)) * 1000 + Int64(below(1000))),
            at: EventTime(nanoseconds: 0), coordinate: coordinate, altitudeMSL: known(number(-500, 9000)),
            altitudeHAE: known(number(-500, 9000)), horizontalAccuracy: known(number(0.05, 500)),
            speed: known(number(0, 100)), course: known(number(0, 360)), hdop: known(number(0, 50)),
            satellitesUsed: known(below(60)), mode: known(.threeD), quality: known(.dgps), moving: below(2) == 0,
            event: event, reason: known("interval"), odometer: number(0, 1e7),
            power: PowerState(
                batteryPercent: known(below(101)), charging: known(below(2) == 0), externalPower: known(below(2) == 0)),
            geofence: event == .geofence
                ? GeofenceCrossing(
                    id: "f-1", name: known(words[below(words.count)]), action: [.enter, .exit, .dwell][below(3)])
                : nil,
            trip: event == .trip
                ? TripSummary(
                    start: UTCTime(milliseconds: 1), startCoordinate: coordinate, end: UTCTime(milliseconds: 9_000_123),
                    distance: number(0, 1e6), idle: number(0, 900), maxSpeed: known(number(0, 60)))
                : nil)
        return QueuedLocation(
            seq: seq, bootID: known("5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"), receivedMs: known(1_700_000_000_200),
            location: location)
    }
}
