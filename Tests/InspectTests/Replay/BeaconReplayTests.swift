import Configuration
import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// `waypost replay --beacons`.
@Suite struct BeaconReplayTests {
    private static let folder = BuiltProducts.repository.appendingPathComponent("fixtures/beacons")
    private static let log = Golden(name: "demo-city-drive", form: .replay).log
    private static let sightings = folder.appendingPathComponent("demo-city-drive.jsonl").path
    private static let regions = """
        [beacons]
        [[beacons.regions]]
        uuid = "F7826DA6-4FA2-4E98-8024-BC5B71E0893E"
        major = 1
        name = "depot"
        [[beacons.regions]]
        uuid = "f7826da64fa24e988024bc5b71e0893e"
        major = 2

        """

    typealias Output = (text: String, notices: [String])

    private static func replayed(
        _ beacons: String?, _ format: ReplayLog.Format = .jsonl, more: String = ""
    ) throws -> Output {
        var notices: [String] = []
        let text = try printed { descriptor in
            let log = ReplayLog(try loaded(smallest + upload + regions + more))
            notices = try log.run(
                logs: [Self.log], beacons: beacons.map { try BeaconLog(path: $0) }, format: format, to: descriptor
            ).map(\.description)
        }
        return (text, notices)
    }

    private static let story = Result { try replayed(sightings, .text) }
    private static let lines = Result { try replayed(sightings) }
    private static let withoutBeacons = Result { try replayed(nil).text }

    private func crossings(_ text: String) -> [Substring] {
        text.split(separator: "\n").filter { $0.contains("\"BEACON\"") }
    }

    @Test(arguments: [(ReplayLog.Format.text, "replay.txt"), (.jsonl, "replay.expected")])
    func printsWhatWasReviewed(_ format: ReplayLog.Format, _ name: String) throws {
        let (text, notices) = try (format == .text ? Self.story : Self.lines).get()
        let file = Self.folder.appendingPathComponent("demo-city-drive.\(name)")
        if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" { try Data(text.utf8).write(to: file) }
        #expect(try text == String(contentsOf: file, encoding: .utf8), "if it is meant: make expected")
        #expect(notices == ["\(Self.sightings):86: 16 sightings before or after the log, passed over"])
    }

    /// What beacons add is all that is different.
    @Test func theDriveIsTheSame() throws {
        let with = try Self.story.get().text.split(separator: "\n")
        let without = try Self.replayed(nil, .text).text.split(separator: "\n")
        let words = ["  region ", "  beacon "]
        func trips(_ lines: [Substring]) -> [Substring] {
            lines.filter { line in line.hasPrefix("2026") && !words.contains { line.contains($0) } }
                .map { $0.prefix(60) }
        }
        #expect(trips(with) == trips(without) && with.count > without.count)
        #expect(crossings(try Self.withoutBeacons.get()).isEmpty)
    }

    @Test func secondsOfTheLogAreAnotherWayToWriteTheTime() throws {
        let folder = try TemporaryDirectory()
        let start = 1_772_434_800_000
        var lines = ""
        for line in try String(contentsOfFile: Self.sightings, encoding: .utf8).split(separator: "\n") {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let text = try #require(object["time"] as? String)
            let time = try #require(utc(text))
            guard time >= start else { continue }
            var other = object
            other["time"] = Double(time - start) / 1000
            lines += String(decoding: try JSONSerialization.data(withJSONObject: other), as: UTF8.self) + "\n"
        }
        try folder.write("seconds.jsonl", lines)
        let all = crossings(try Self.lines.get().text)
        let seconds = crossings(try Self.replayed("\(folder.path)/seconds.jsonl").text)
        // Those before the first fix have no such time.
        #expect(seconds.suffix(6) == all.suffix(6) && seconds.count == all.count)
        #expect(seconds[0].contains("\"time_ms\"") && !all[0].contains("\"time_ms\""))
    }

    private func utc(_ text: String) -> Int? {
        let parts = text.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
        guard parts.count == 7, Array(parts[..<3]) == [2026, 3, 2] else { return nil }
        return 1_772_409_600_000 + ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1000 + parts[6]
    }

    /// Outside of the hours the daemon does not scan; what others heard has no place then.
    @Test func theHoursOfTheLogDecide() throws {
        let hours = "[schedule]\ntrack = \"mon 07:05-07:18\"\ntimezone = \"UTC\"\n"
        let lines = crossings(try Self.replayed(Self.sightings, more: hours).text)
        #expect(lines.contains { $0.contains("\"time_ms\":17724355") })
        let entries = lines.filter { $0.contains("\"enter\"") && $0.contains("depot") }
        #expect(!entries.isEmpty && entries.allSatisfy { !$0.contains("latitude") })
    }

    static let wrongLines: [(String, String)] = [
        ("x", "expected a JSON object such as {\"time\":\"2026-03-02T07:00:00Z\",\"uuid\":…}"),
        ("[]", "expected a JSON object such as {\"time\":\"2026-03-02T07:00:00Z\",\"uuid\":…}"),
        (
            "{\"time\":\"yesterday\"}",
            "time: expected a UTC such as \"2026-03-02T07:00:00.250Z\", or the seconds since the first fix of the log"
        ),
        (
            "{\"time\":-1}",
            "time: expected a UTC such as \"2026-03-02T07:00:00.250Z\", or the seconds since the first fix of the log"
        ),
        ("{\"time\":9}", "uuid: expected a UUID such as \"F7826DA6-4FA2-4E98-8024-BC5B71E0893E\""),
        ("{\"time\":9,\"uuid\":\"U\"}", "major, minor: expected both"),
        ("{\"time\":9,\"uuid\":\"U\",\"major\":1}", "major, minor: expected both"),
        (
            "{\"time\":9,\"uuid\":\"U\",\"major\":65536,\"minor\":1}",
            "major: expected a whole number from 0 to 65535"
        ),
        (
            "{\"time\":9,\"uuid\":\"U\",\"major\":1,\"minor\":1,\"rssi\":20}",
            "rssi: expected a whole number from -128 to 19"
        ),
        (
            "{\"time\":9,\"uuid\":\"U\",\"major\":1,\"minor\":1,\"power\":200}",
            "power: expected a whole number from -128 to 127"
        ),
        (
            "{\"time\":7,\"uuid\":\"U\",\"major\":1,\"minor\":1}",
            "time: expected one that is not before that of the line above, and of the same kind"
        ),
        (
            "{\"time\":\"2026-03-02T07:00:00Z\",\"uuid\":\"U\",\"major\":1,\"minor\":1}",
            "time: expected one that is not before that of the line above, and of the same kind"
        ),
    ]

    @Test(arguments: wrongLines)
    func aWrongLineIsNamed(_ line: String, _ words: String) throws {
        let folder = try TemporaryDirectory()
        let uuid = "F7826DA6-4FA2-4E98-8024-BC5B71E0893E"
        let good = "{\"time\":8,\"uuid\":\"\(uuid)\",\"major\":1,\"minor\":1,\"other\":[]}\n"
        try folder.write("b.jsonl", "\n" + good + line.replacing("\"U\"", with: "\"\(uuid)\"") + "\n" + good)
        let path = "\(folder.path)/b.jsonl"
        do throws(LogFailure) {
            _ = try BeaconLog(path: path)
            Issue.record("it was read")
        } catch {
            guard case .content(let problem) = error else { throw error }
            #expect(problem.description == "\(path):3: \(words)")
        }
    }

    @Test func readsALastLineWithoutAnEndAndNoneAtAll() throws {
        let folder = try TemporaryDirectory()
        try folder.write("b", "{\"time\":8,\"uuid\":\"F7826DA64FA24E988024BC5B71E0893E\",\"major\":1,\"minor\":1}")
        #expect(try BeaconLog(path: "\(folder.path)/b").sightings.map(\.line) == [1])
        try folder.write("none", "")
        #expect(try BeaconLog(path: "\(folder.path)/none").sightings.isEmpty)
        #expect(throws: LogFailure.self) { _ = try BeaconLog(path: "\(folder.path)/missing") }
        // Sightings of another day add nothing.
        try folder.write(
            "far",
            "{\"time\":\"1970-01-01T00:00:01Z\",\"uuid\":\"F7826DA64FA24E988024BC5B71E0893E\",\"major\":1,\"minor\":1}")
        let (text, notices) = try Self.replayed("\(folder.path)/far")
        #expect(try text == Self.withoutBeacons.get())
        #expect(notices == ["\(folder.path)/far:1: 1 sighting before or after the log, passed over"])
    }
}
