import Configuration
import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// A log through a configuration with hours, and with settings by motion state: the dates of the log decide.
@Suite struct ScheduledReplayTests {
    private let log = Golden(name: "demo-city-drive", form: .replayText).log

    /// Lines of the story, without the numbers that decided.
    private func story(_ text: String) throws -> [String] {
        let lines = try replayed([log], .text, with: loaded(smallest + upload + text)).split(separator: "\n")
        return lines.filter { $0.hasPrefix("2026-") }.map { line in
            let reason = line.split(separator: "(").last?.prefix { $0 != ":" && $0 != ")" } ?? ""
            return line.dropFirst(11).prefix(17).split(separator: " ").joined(separator: " ") + " " + reason
        }
    }

    @Test func theHoursOfTheLogDecide() throws {
        // Two trips, 07:03:00 to 07:12:04 and 07:19:14 to 07:24:47 UTC.
        #expect(
            try story("[schedule]\ntrack = \"mon 08:00-08:21\"\ntimezone = \"Europe/Berlin\"") == [
                "07:00:29 parked start", "07:03:00 departs speed", "07:12:04 stops stop-timeout",
                "07:19:14 departs speed", "07:20:59 stops schedule",
            ])
        #expect(try story("[schedule]\ntrack = \"tue\"\ntimezone = \"Europe/Berlin\"") == [])
    }

    @Test func whoIsOnTheWayWhenTheHoursBeginDeparts() throws {
        let story = try story("[schedule]\ntrack = \"mon 07:05-07:18\"\ntimezone = \"UTC\"")
        #expect(story.count == 2)
        #expect(story.first?.hasPrefix("07:05:0") == true && story.first?.hasSuffix("departs speed") == true)
        #expect(story.last == "07:12:04 stops stop-timeout")
    }

    @Test func nothingIsRecordedOutsideTheHours() throws {
        let loaded = try loaded(smallest + upload + "[schedule]\ntrack = \"mon 07:05-07:18\"\ntimezone = \"UTC\"")
        let lines = try replayed([log], .jsonl, with: loaded).split(separator: "\n")
        let times = lines.filter { $0.contains("\"type\":\"location\"") }.compactMap { line in
            line.split(separator: "\"time_ms\":").last.flatMap { Int64($0.prefix { $0.isNumber }) }
        }
        #expect(times.count > 20)
        // 07:05 and 07:18.
        #expect(times.allSatisfy { (1_772_435_100_000...1_772_435_880_000).contains($0) })
    }

    @Test func theMovingProfileThinsTheTrack() throws {
        func kept(_ text: String) throws -> Int {
            let lines = try replayed([log], .text, with: loaded(smallest + upload + text)).split(separator: "\n")
            let line = try #require(lines.first { $0.hasPrefix("locations") })
            return try #require(line.split(separator: " ").compactMap { Int($0) }.first)
        }
        let thin = "[tracking.moving]\ninterval = \"30s\"\ndisplacement = \"200m\"\n"
        #expect(try kept(thin) * 5 < kept("[resolution]\nlocationUpdateInterval = 3000\n"))
        // What is written for the state wins over the table of the setting.
        #expect(try kept(thin + "[sampling]\npreset = \"active\"") == kept(thin))
        // Parked, and announced so, for seven minutes of the log.
        #expect(try kept("[tracking.stationary]\nheartbeat = \"1m\"") >= kept("") + 4)
    }
}
