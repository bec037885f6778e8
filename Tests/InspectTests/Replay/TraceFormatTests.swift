import Configuration
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect
@testable import WaypostCore

/// The JSON Lines of `decode` and `replay` as programs read them: every line of every log is an object with known keys
/// of known types, and what is unknown is absent.
@Suite struct TraceFormatTests {
    private enum Kind {
        case word, integer, number, flag, object, words
    }

    /// Keys that `decode` may print.
    private static let decodeKeys: [String: Kind] = [
        "time": .word, "time_of_day": .word, "time_ms": .integer, "mode": .integer, "latitude": .number,
        "longitude": .number, "altitude": .number, "speed": .number, "course": .number, "accuracy": .number,
        "hdop": .number, "satellites": .integer, "quality": .integer,
    ]

    /// Keys that `replay` may print, by type of line: always, and where the value is known.
    private static let replayKeys: [String: (required: [String: Kind], optional: [String: Kind])] = [
        "location": (
            [
                "type": .word, "time_ms": .integer, "at_ms": .integer, "latitude": .number, "longitude": .number,
                "moving": .flag, "event": .word, "reason": .word, "odometer": .number, "published": .flag,
            ],
            [
                "altitude": .number, "accuracy": .number, "speed": .number, "bearing": .number, "activity": .word,
                "geofence_id": .word, "geofence_name": .word, "geofence_server_id": .word, "geofence_action": .word,
                "geofence_source": .word,
            ]
        ),
        "halt": (["type": .word, "from_ms": .integer, "to_ms": .integer, "at_ms": .integer], [:]),
        "gap": (
            ["type": .word, "from_ms": .integer, "at_ms": .integer, "reason": .word], ["to_ms": .integer]
        ),
        "move": (["type": .word, "time_ms": .integer, "at_ms": .integer, "distance": .number], [:]),
        "refused": (
            ["type": .word, "reason": .word, "latitude": .number, "longitude": .number],
            ["time_ms": .integer, "at_ms": .integer, "accuracy": .number]
        ),
        "motionchange": (
            [
                "type": .word, "time_ms": .integer, "at_ms": .integer, "moving": .flag, "reason": .word,
                "evidence": .number, "distance": .number,
            ], ["departed_ms": .integer, "stopped_ms": .integer, "speed": .number, "accuracy": .number]
        ),
        "resolution": (["type": .word, "engine": .object, "network": .object], ["at_ms": .integer]),
        "summary": (
            [
                "type": .word, "sentences": .integer, "bytes": .integer, "fixes": .integer, "void_epochs": .integer,
                "dateless": .integer, "checksum_errors": .integer, "too_long": .integer, "bad_fields": .integer,
                "late": .integer, "admitted": .integer, "rejected": .object, "trips": .integer, "stops": .integer,
                "halts": .integer, "gaps": .integer, "locations": .integer, "published": .integer, "odometer": .number,
            ],
            [
                "first_ms": .integer, "last_ms": .integer, "repeats": .integer, "disagreeing": .integer,
                "dates_refused": .integer, "faults": .words,
            ]
        ),
    ]

    @Test(arguments: Golden.logs)
    func eachLineOfDecodeIsAnObjectOfKnownKeys(_ name: String) throws {
        let log = Golden(name: name, form: .decode).log
        var flaws: [String] = []
        for (line, object) in try objects(decoded(log, .jsonl)) {
            flaws += flawsOf(object, line, Self.decodeKeys)
            let isDated = object["time"] != nil
            let mode = try #require(object["mode"] as? Int)
            let hasPlace = object["latitude"] != nil && object["longitude"] != nil
            if isDated != (object["time_ms"] != nil) || isDated == (object["time_of_day"] != nil) {
                flaws.append("date: \(line)")
            }
            if !(1...3).contains(mode) || object["quality"] == nil || hasPlace != (mode > 1) {
                flaws.append("mode: \(line)")
            }
            if isDated, try milliseconds(object["time"]) != object["time_ms"] as? Int { flaws.append("time: \(line)") }
        }
        #expect(flaws == [])
    }

    @Test(arguments: Golden.logs)
    func eachLineOfReplayIsAnObjectOfKnownKeysInEventTimeOrder(_ name: String) throws {
        let lines = try objects(replayed([Golden(name: name, form: .replay).log], .jsonl))
        var reached = Int.min
        var flaws: [String] = []
        for (line, object) in lines {
            let type = object["type"] as? String ?? ""
            let keys = try #require(Self.replayKeys[type], "\(line)")
            flaws += flawsOf(object, line, keys.required.merging(keys.optional) { $1 })
            if !keys.required.keys.allSatisfy({ object[$0] != nil }) { flaws.append("a key is missing: \(line)") }
            // A receiver whose clock is set back takes the log's time back with it.
            if let at = object["at_ms"] as? Int, name != "clock-set-back-an-hour" {
                if at < reached { flaws.append("time goes back: \(line)") }
                reached = at
            }
            if type == "motionchange" {
                let since = object["moving"] as? Bool == true ? "departed_ms" : "stopped_ms"
                let (then, at) = (object[since] as? Int, object["at_ms"] as? Int)
                if try #require(then) > #require(at) { flaws.append("since: \(line)") }
            }
            let isWhole = resolutions(object).allSatisfy {
                Set($0.keys) == ["priority", "interval_ms", "displacement"]
            }
            if !isWhole { flaws.append("resolution: \(line)") }
        }
        #expect(flaws == [])
        try checkSummary(lines.map(\.object))
    }

    /// It counts the lines above it.
    private func checkSummary(_ lines: [[String: Any]]) throws {
        func count(_ type: String, where holds: ([String: Any]) -> Bool = { _ in true }) -> Int {
            lines.count { $0["type"] as? String == type && holds($0) }
        }
        let summary = try #require(lines.last)
        #expect(count("summary") == 1 && summary["type"] as? String == "summary")
        let wanted: [String: Int] = [
            "locations": count("location"),
            "published": count("location") { $0["published"] as? Bool == true },
            "trips": count("motionchange") { $0["moving"] as? Bool == true },
            "stops": count("motionchange") { $0["moving"] as? Bool == false && $0["reason"] as? String != "start" },
            "halts": count("halt"), "gaps": count("gap"),
        ]
        for (key, value) in wanted { #expect(summary[key] as? Int == value, "\(key)") }
        var refused: [String: Int] = [:]
        for line in lines where line["type"] as? String == "refused" {
            refused[try #require(line["reason"] as? String), default: 0] += 1
        }
        #expect(summary["rejected"] as? [String: Int] == refused)
        let (admitted, fixes) = (try #require(summary["admitted"] as? Int), try #require(summary["fixes"] as? Int))
        #expect(admitted + refused.values.reduce(0, +) <= fixes)
    }

    /// What stands within a trip is the sum of its halts, and the story counts the locations that lie within the trip.
    @Test func haltsAndLocationsAreThoseOfTheTrip() throws {
        let log = Golden(name: "demo-city-drive", form: .replay).log
        let lines = try objects(replayed([log], .jsonl)).map(\.object)
        let changes = lines.filter { $0["type"] as? String == "motionchange" }
        let story = try replayed([log], .text)
        var departed: Int?
        var claims: [String] = []
        for change in changes {
            if let time = change["departed_ms"] as? Int { departed = time }
            guard let start = departed, let end = change["stopped_ms"] as? Int else { continue }
            departed = nil
            let kept = lines.filter {
                $0["type"] as? String == "location" && (start...end).contains($0["time_ms"] as? Int ?? 0)
            }
            let halts = lines.filter {
                $0["type"] as? String == "halt" && (start..<end).contains($0["from_ms"] as? Int ?? 0)
            }
            let standing = try halts.reduce(0) { sum, halt in
                let (from, to) = (try #require(halt["from_ms"] as? Int), try #require(halt["to_ms"] as? Int))
                #expect(from <= to && to <= end)
                return sum + to - from
            }
            claims.append("\(InWords.span(seconds: Double(standing) / 1000)) of it halted")
            claims.append(", \(kept.count) locations (")
        }
        #expect(claims.count == 4)
        for claim in claims { #expect(story.contains(claim), "\(claim)") }
    }

    private func objects(_ text: String) throws -> [(line: String, object: [String: Any])] {
        #expect(text.isEmpty || text.hasSuffix("\n"))
        return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return (String(line), try #require(object as? [String: Any], "\(line)"))
        }
    }

    /// What is not in the list of keys, or of another kind there, or out of its range.
    private func flawsOf(_ object: [String: Any], _ line: String, _ keys: [String: Kind]) -> [String] {
        var flaws: [String] = []
        for (key, value) in object {
            let fits =
                switch keys[key] {
                case .word: value is String
                case .integer: value is Int && isWhole(key, line)
                case .number: value is Double
                case .flag: value is Bool
                case .object: value is [String: Any]
                case .words: value is [String]
                case nil: false
                }
            if !fits { flaws.append("key \(key): \(line)") }
        }
        let course = object["course"] ?? object["bearing"]
        if let course = course as? Double, !(0..<360).contains(course) { flaws.append("course: \(line)") }
        if let accuracy = object["accuracy"] as? Double, accuracy <= 0 { flaws.append("accuracy: \(line)") }
        return flaws
    }

    /// Written without a fraction.
    private func isWhole(_ key: String, _ line: String) -> Bool {
        guard let start = line.range(of: "\"\(key)\":")?.upperBound else { return false }
        return !line[start...].prefix { $0 != "," && $0 != "}" }.contains(".")
    }

    private func resolutions(_ object: [String: Any]) -> [[String: Any]] {
        guard object["type"] as? String == "resolution" else { return [] }
        let network = (object["network"] as? [String: [String: Any]])?.values.map { $0 } ?? []
        return network + [object["engine"] as? [String: Any] ?? [:]]
    }

    private let formatter: ISO8601DateFormatter = {
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return formatter
    }()

    private func milliseconds(_ time: Any?) throws -> Int {
        let date = try #require(formatter.date(from: time as? String ?? ""))
        return Int((date.timeIntervalSince1970 * 1000).rounded())
    }
}
