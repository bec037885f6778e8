import Configuration
import Delivery
import Foundation
import Network
import Profiles
import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import WaypostCLI

/// Whatever the GNSS receiver did not report, each profile makes a request that its server can read.
@Suite struct ProfileFuzzTests {
    @Test(arguments: ProfileFixture.all)
    func anySubsetOfWhatIsKnownMakesAGoodRequest(_ profile: ProfileFixture) throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let settings = try profile.settings()
        let all: UInt32 = (1 << UInt32(Known.count)) - 1
        let one: [UInt32] = (0..<UInt32(Known.count)).map { 1 << $0 }
        var masks: [UInt32] = [0, all]
        masks.append(contentsOf: one)
        masks.append(contentsOf: one.map { all & ~$0 })
        // Any three of the names are known and unknown in every combination.
        for _ in 0..<150 { masks.append(UInt32.random(in: 0...all, using: &random)) }
        for mask in masks {
            let count = Int.random(in: 1...3, using: &random)
            let rows: [QueuedLocation] = (1...Int64(count)).map { Known.row($0, mask, &random) }
            let sentMs: Int64? = Bool.random(using: &random) ? 1_700_000_020_500 : nil
            let newest = Bool.random(using: &random) ? Known.row(9, mask, &random) : nil
            let plan = BatchPlanner(settings).plan(rows, limit: settings.batchSize, isEnd: true, ages: nil)
            try #require(plan.consumed == rows.count)
            for indices in plan.batches {
                let rows: [QueuedLocation] = indices.map { rows[$0] }
                let batch = Batch(
                    endpoint: settings.name, id: "7f3a91c2-main-1-2", rows: rows, sentMs: sentMs,
                    outbox: ProfileSample.outbox, newest: settings.profile.usesNewest ? newest : nil)
                let renderer = RequestRenderer(
                    settings, in: RenderContext(identify: RecordID.make, isMasked: true))
                let requests = Self.bodies(renderer.request(for: batch), rows)
                var flaws: [String] = []
                for (request, rows) in requests {
                    flaws += Judge(profile: profile.name, rows: rows).flaws(request)
                }
                let again = Self.bodies(renderer.request(for: batch), rows)
                let isSame = again.elementsEqual(requests) { again, first in
                    again.0.url == first.0.url && again.0.headers == first.0.headers && again.0.body == first.0.body
                }
                if !isSame { flaws.append("the second time it is another request") }
                guard flaws.isEmpty else {
                    let texts = requests.map { "\($0.0.url)\n\(String(decoding: $0.0.body, as: UTF8.self))" }
                    Issue.record("\(profile.name): \(flaws); seed \(seed), mask \(mask)\n\(texts)")
                    return
                }
            }
        }
    }
}

extension ProfileFuzzTests {
    /// Each message to a broker as a request of its own, with its rows: as many in each but the last.
    private static func bodies(
        _ request: UplinkRequest, _ rows: [QueuedLocation]
    ) -> [(UplinkRequest, ArraySlice<QueuedLocation>)] {
        guard let messages = request.broker?.messages else { return [(request, rows[...])] }
        let size = (rows.count + messages.count - 1) / max(1, messages.count)
        return messages.enumerated().map { index, message in
            var single = request
            single.body = message.payload
            single.url = message.topic
            return (single, rows[(index * size)..<min(rows.count, (index + 1) * size)])
        }
    }
}

/// The names of a record that can be nil, one bit each.
private enum Known {
    static let count = 20

    static func row(_ seq: Int64, _ mask: UInt32, _ random: inout SeededGenerator) -> QueuedLocation {
        func known<Value>(_ bit: Int, _ value: Value) -> Value? { mask & (1 << UInt32(bit)) != 0 ? value : nil }
        let words = ["Depot North", "a,b=c d", "\"é\" \\", "x&y=z+%", "🚚", "[?a]", "${lat}"]
        let isCrossing = known(11, true) != nil
        let event = known(12, LocationEvent.allCases.randomElement(using: &random)!) ?? .none
        let location = Location(
            trackable: known(0, words.randomElement(using: &random)!),
            time: UTCTime(milliseconds: Int64.random(in: 0...4_000_000_000_000, using: &random)),
            at: EventTime(nanoseconds: 0),
            coordinate: Coordinate(
                latitudeE7: Int32.random(in: -900_000_000...900_000_000, using: &random),
                longitudeE7: Int32.random(in: -1_800_000_000...1_800_000_000, using: &random)),
            altitudeMSL: known(1, Double.random(in: -500...9000, using: &random)),
            altitudeHAE: known(2, Double.random(in: -500...9000, using: &random)),
            horizontalAccuracy: known(3, Double.random(in: 0.001...500, using: &random)),
            speed: known(4, Double.random(in: 0...100, using: &random)),
            course: known(5, Double.random(in: 0...360, using: &random)),
            hdop: known(6, Double.random(in: 0...50, using: &random)),
            satellitesUsed: known(7, Int.random(in: 0...60, using: &random)), mode: known(8, .threeD),
            quality: known(9, Bool.random(using: &random) ? .dgps : .simulated), moving: Bool.random(using: &random),
            event: isCrossing ? .geofence : event, reason: known(10, "interval"),
            odometer: Double.random(in: 0...1e7, using: &random),
            power: PowerState(
                batteryPercent: known(13, Int.random(in: 0...100, using: &random)),
                charging: known(14, Bool.random(using: &random)),
                externalPower: known(15, Bool.random(using: &random))),
            geofence: isCrossing
                ? GeofenceCrossing(
                    id: "f-1", name: known(16, words.randomElement(using: &random)!),
                    action: GeofenceCrossing.Action.allCases.randomElement(using: &random)!)
                : event == .beacon
                    ? GeofenceCrossing(
                        id: "F7826DA6-4FA2-4E98-8024-BC5B71E0893E/1/2", name: nil, action: .dwell, source: .beacon)
                    : nil,
            trip: !isCrossing && event == .trip && known(17, true) != nil
                ? TripSummary(
                    start: UTCTime(milliseconds: 1), startCoordinate: Coordinate(latitudeE7: 1, longitudeE7: 2),
                    end: UTCTime(milliseconds: 9), distance: 12.5, idle: 3, maxSpeed: known(18, 3.25))
                : nil)
        return QueuedLocation(
            seq: seq, bootID: known(19, "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"), receivedMs: known(8, 1_700_000_000_200),
            location: location)
    }
}

/// Reads a request as its server would.
private struct Judge {
    var profile: String
    var rows: ArraySlice<QueuedLocation>

    func flaws(_ request: UplinkRequest) -> [String] {
        var flaws: [String] = []
        let text = String(decoding: request.body, as: UTF8.self)
        if profile != "waypost-compact", text.contains("null") { flaws.append("null") }
        let gaps = profile == "csv" ? [] : [",,"]
        for word in ["NaN", "nan", "inf", "\"\":"] + gaps where text.contains(word) { flaws.append(word) }
        for mark in ["${vars", "${secret", "[??"] where request.url.contains(mark) || text.contains(mark) {
            flaws.append("\(mark) is left over")
        }
        if request.url.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) { flaws.append("URL") }
        if request.url.contains("=&") || request.url.hasSuffix("=") { flaws.append("empty query value") }
        for header in request.headers where header.value.contains(where: \.isNewline) { flaws.append(header.name) }
        switch profile {
        case "traccar": flaws += form(text)
        case "influx", "influx2": flaws += lines(text)
        case "csv": flaws += table(text)
        default: flaws += json(text)
        }
        return flaws
    }

    /// Keys that every body has, as the server requires them.
    private static let mandatory: [String: [String]] = [
        "waypost": ["device", "outbox", "batch_id", "locations", "lat", "lon", "timeStamp", "time_ms", "seq"],
        "waypost-verbose": [
            "device", "outbox", "batch_id", "locations", "lat", "lon", "timeStamp", "time_ms", "seq", "id",
        ],
        "waypost-compact": ["v", "device", "outbox", "n", "seq", "time", "lat", "lon"],
        "nextbillion": ["device_id", "locations", "lat", "lon", "timestamp"],
        "accesso": ["appUserId", "appId", "userId", "platform", "pushDeviceToken", "lat", "lon", "label", "timestamp"],
        "accesso beacons": ["appUserId", "appId", "timestamp", "beacons", "proximityUUID", "major", "minor"],
        "traccar-json": [
            "device_id", "timestamp", "latitude", "longitude", "accuracy", "speed", "heading", "altitude", "level",
            "is_charging",
        ],
        "overland": [
            "locations", "coordinates", "timestamp", "altitude", "speed", "course", "horizontal_accuracy",
            "vertical_accuracy", "battery_state", "battery_level", "device_id", "unique_id",
        ],
        "owntracks-http": ["_type", "tid", "tst", "lat", "lon", "topic"],
        "owntracks-mqtt": ["_type", "tid", "tst", "lat", "lon"],
        "waypost-mqtt": ["id", "device", "outbox", "seq", "lat", "lon", "time_ms"],
        "home-assistant-mqtt": ["latitude", "longitude", "gps_accuracy", "moving", "time"],
        "home-assistant": ["_type", "tst", "lat", "lon", "acc", "topic"],
        "thingsboard": ["ts", "values", "latitude", "longitude"],
        "geojson": ["type", "features", "geometry", "coordinates", "properties", "time"],
        "cloudevents": ["specversion", "id", "source", "type", "data", "timeStamp"],
        "transistor": [
            "location", "device_id", "timestamp", "uuid", "latitude", "longitude", "accuracy", "speed", "heading",
            "level",
        ],
        "aws-location": ["Updates", "DeviceId", "SampleTime", "Position"],
        "here": ["appId", "id", "data", "timestamp", "lat", "lng"],
        "kafka-rest": ["records", "key", "value"],
    ]

    private func json(_ text: String) -> [String] {
        guard let value = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) else {
            return ["no JSON"]
        }
        var flaws: [String] = []
        var keys: Set<String> = []
        walk(value, &flaws, &keys)
        let hasPlace = profile != "accesso" || rows.allSatisfy { $0.location.event != .beacon }
        let name =
            !hasPlace
            ? "accesso beacons"
            : profile == "thingsboard-mqtt"
                ? "thingsboard"
                : profile == "overland-any" ? "overland" : profile == "owntracks-open" ? "owntracks-http" : profile
        guard let mandatory = Self.mandatory[name] else {
            return ["the table `mandatory` has no entry for this profile"]
        }
        for key in mandatory where !keys.contains(key) { flaws.append("\(key) is missing") }
        if profile != "waypost-compact", hasPlace {
            for row in rows {
                let latitude = decimal(row.location.coordinate.latitudeE7)
                if !text.contains(latitude) { flaws.append("latitude \(latitude) is not there") }
            }
        }
        return flaws
    }

    private func walk(_ value: Any, _ flaws: inout [String], _ keys: inout Set<String>) {
        switch value {
        case let object as [String: Any]:
            if object.isEmpty { flaws.append("{}") }
            for (key, value) in object {
                keys.insert(key)
                walk(value, &flaws, &keys)
            }
        case let array as [Any]:
            if array.isEmpty { flaws.append("[]") }
            for value in array { walk(value, &flaws, &keys) }
        default: break
        }
    }

    private func form(_ text: String) -> [String] {
        let pairs = text.split(separator: "&", omittingEmptySubsequences: false).map {
            $0.split(separator: "=", omittingEmptySubsequences: false)
        }
        var flaws: [String] = []
        for pair in pairs where pair.count != 2 || pair.contains(where: \.isEmpty) { flaws.append("pair \(pair)") }
        let keys = pairs.map { String($0[0]) }
        if keys.first != "id" { flaws.append("id is not first") }
        for key in ["timestamp", "lat", "lon"] where !keys.contains(key) { flaws.append("\(key) is missing") }
        return flaws
    }

    private func lines(_ text: String) -> [String] {
        guard text.hasSuffix("\n") else { return ["no LF at the end"] }
        let lines = text.dropLast().split(separator: "\n", omittingEmptySubsequences: false)
        var flaws = lines.count == rows.count ? [] : ["\(lines.count) lines"]
        let field = #"[a-z]+=(-?[0-9]+(\.[0-9]+)?|true|false)"#
        let tag = #",[a-z]+=(\\.|[^ ,=\\])+"#
        let pattern = "^location(\(tag))+ \(field)(,\(field))* [0-9]+$"
        for line in lines where String(line).range(of: pattern, options: .regularExpression) == nil {
            flaws.append("line \(line)")
        }
        return flaws
    }

    private func table(_ text: String) -> [String] {
        guard text.hasSuffix("\r\n") else { return ["no CRLF at the end"] }
        var width: Int?
        var flaws: [String] = []
        // No sample has a line break in it.
        let lines = text.components(separatedBy: "\r\n").dropLast()
        if lines.count != rows.count + 1 { flaws.append("\(lines.count) lines") }
        for line in lines {
            var isQuoted = false
            var cells = 1
            for character in line.unicodeScalars {
                if character == "\"" { isQuoted.toggle() }
                if character == ",", !isQuoted { cells += 1 }
            }
            if isQuoted { flaws.append("quotes of \(line)") }
            if let width, width != cells { flaws.append("\(cells) cells instead of \(width)") }
            width = cells
        }
        // An empty cell is how CSV says nothing.
        return flaws
    }

    private func decimal(_ e7: Int32) -> String {
        let digits = String(e7.magnitude)
        let padded = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
        var fraction = String(padded.suffix(7))
        while fraction.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return (e7 < 0 ? "-" : "") + padded.dropLast(7) + "." + fraction
    }
}
