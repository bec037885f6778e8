import Configuration
import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA
import WaypostTracking

@testable import Inspect

@Suite struct ReportLogTests {
    private static let demo = log("demo-city-drive")
    static let data = Result { try ReportLog(nil).data(of: [demo]) }
    /// The drive beside settings of one's own, other hours, and the same settings in another file.
    private static let compared = Result {
        let own = try loaded(smallest + "[sampling]\nrule = \"interval\"\n[tracking]\nstop_timeout = \"4m\"\n")
        let tuesday = try loaded(smallest + "[schedule]\ntimezone = \"UTC\"\ntrack = \"tue\"\n")
        let same = try loaded("# Another file.\n" + smallest)
        let others: [(String, LoadedConfiguration)] = [
            ("own.toml", own), ("tuesday.toml", tuesday), ("same.toml", same),
        ]
        return try ReportLog(try loaded(smallest), comparedWith: others).data(of: [demo])
    }

    static func log(_ name: String) -> String {
        BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(name).nmea").path
    }

    /// The summary of `replay --format jsonl`.
    private static func summary(_ log: String) throws -> [String: Any] {
        let lines = try printed { try ReplayLog(nil).run(logs: [log], format: .jsonl, to: $0) }.split(separator: "\n")
        let last = try #require(lines.last)
        return try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
    }

    @Test func countsAsReplayDoes() throws {
        let data = try Self.data.get()
        let summary = try Self.summary(Self.demo)
        let trips = data.journey.trips
        let counts: [String: Int] = [
            "trips": trips.count, "stops": trips.count { !$0.isOpen }, "halts": data.journey.halts.count,
            "published": data.kept.count, "fixes": data.table.count,
        ]
        for (key, count) in counts { #expect(summary[key] as? Int == count, "\(key)") }
        let written = try head(data)["summary"] as? [String: Any]
        #expect(written.map(NSDictionary.init(dictionary:)) == NSDictionary(dictionary: summary))
    }

    @Test func tellsWhyATripBeganAndEnded() throws {
        let trip = try #require(try Self.data.get().journey.trips.first)
        let (departure, arrival) = (trip.departure, trip.arrival)
        #expect(trip.kept == 34 && departure.reason == .speed && departure.evidenceMin == 8)
        #expect(departure.decided == trip.start + 5000)
        #expect(departure.words == "Fixes agreed on 20 m of movement; at this speed 8 m start a trip.")
        #expect(arrival?.reason == .stopTimeout && arrival?.other?.contains("8 m of agreed movement") == true)
    }

    @Test func everyKeptLocationIsMarkedWithItsReason() throws {
        let data = try Self.data.get()
        let (table, kinds) = (data.table, data.kinds)
        let marked: [Int64] = (0..<table.count).filter { table.verdict($0).kind == .kept }.map { table.times[$0] }
        let kept: Set<Int64> = Set(data.kept.map(\.time))
        #expect(marked == kept.sorted())
        let count: Int = kinds.values.reduce(0, +)
        #expect(kinds.max { $0.value < $1.value }?.key == "track-error" && count == data.kept.count)
    }

    @Test func refusedFixesKeepTheirReason() throws {
        let data = try ReportLog(nil).data(of: [Self.log("simulator-and-manual-mode")])
        let refused = (0..<data.table.count).map(data.table.verdict).filter { $0.kind == .refused }
        #expect(refused.count == data.tracked.rejected(.simulated) && refused.count > 0)
        #expect(refused.allSatisfy { $0.reason == "simulated" })
    }

    @Test func otherSettingsKeepOtherFixes() throws {
        let outcomes = try Self.data.get().outcomes
        let usual = ["now", "active", "balanced", "passive", "either", "track-error-20", "interval-30", "significant"]
        #expect(outcomes.map(\.whatIf.key) == usual)
        #expect(outcomes[4].whatIf.words == "after 3 s or 10 m")
        let bounded = outcomes[0]
        // Positions are rounded to 1e-7 degree.
        #expect(try #require(bounded.error).worst <= 5.1)
        #expect(bounded.kept.count * 5 < outcomes[1].kept.count && bounded.kept.count * 5 < outcomes[4].kept.count)
        #expect(outcomes.allSatisfy { $0.compact < $0.bytes && $0.bytes > 0 })
        // A rule of one's own is not compared with itself, also where it is given a second time.
        let other = try loaded(smallest + "[sampling]\nrule = \"either\"\n")
        let data = try ReportLog(other, comparedWith: [("own.toml", other)]).data(of: [Self.demo])
        let keys: [String] = data.outcomes.map(\.whatIf.key)
        #expect(keys.contains("track-error-5") && !keys.contains("either"))
        let rule = data.settings.first { $0.table == "[sampling]" && $0.key == "rule" }
        #expect(rule?.origin?.line == 5)
    }

    /// In a halt the position is held while the receiver's creeps: there the bound is not meant.
    @Test(arguments: [235, 330])
    func theBoundHoldsThroughAHaltInWhichPositionsCreep(second: Int) throws {
        var drive = try AlteredDrive()
        // A stop of five minutes is a trip's end.
        drive.cut(after: 1100)
        drive.change(second..<second + 60) { sentence in
            var fields: [String] = sentence.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            // hhmmss.ss
            let time: [Int] = fields[1].prefix(6).utf8.map { Int($0) - 48 }
            let steps: Int = min(3, 600 * time[2] + 60 * time[3] + 10 * time[4] + time[5] - second + 1)
            let place = sentence.hasPrefix("GNRMC") ? 3 : 2
            let minutes: Double = (Double(fields[place]) ?? 0) + Double(2 * steps) / 1852
            fields[place] = String(format: "%010.5f", minutes)
            if place == 3, steps < 3 { fields.replaceSubrange(7...8, with: ["3.90", "0.0"]) }
            return fields.joined(separator: ",")
        }
        let text = smallest + "[sampling]\nrule = \"track-error\"\nbound = \"3m\"\n"
        let data = try drive.data(ReportLog(try loaded(text)))
        #expect(data.journey.halts.count == 3)
        #expect(try #require(data.outcomes[0].error).worst <= 3.05)
        let everywhere = LineError(of: data.table, along: data.kept, in: data.journey, heldAsIn: Journey())
        #expect(try #require(everywhere).worst > 4)
    }

    @Test func ownSettingsAreComparedSecond() throws {
        let outcomes = try Self.compared.get().outcomes
        let own = outcomes[1].whatIf
        let words = #"; differs in [tracking] stop_timeout = "4m", [sampling] rule = "interval""#
        #expect(own.label == "own.toml" && own.words.hasSuffix(words), "\(own)")
        #expect(outcomes[1].kept.count != outcomes[0].kept.count)
    }

    @Test func ownHoursAreCompared() throws {
        let outcomes = try Self.compared.get().outcomes
        #expect(outcomes[2].whatIf.words.contains(#"[schedule] track = "tue""#))
        #expect(outcomes[2].kept.isEmpty && !outcomes[0].kept.isEmpty)
    }

    @Test func whatDoesNotDifferIsNotComparedButNamed() throws {
        let data = try Self.compared.get()
        #expect(data.same == ["same.toml"] && data.outcomes.count == 10)
        #expect(WhatIfTables.html(of: data).contains("<p>same.toml: the same settings as those in force.</p>"))
        #expect(try Self.data.get().same.isEmpty)
    }

    @Test func theTablesCanBeReadWithoutScripts() throws {
        let data = try Self.data.get()
        let tables = WhatIfTables.html(of: data)
        for outcome in data.outcomes {
            let cells = "<td>\(outcome.whatIf.label): \(outcome.whatIf.words)</td><td class=\"n\">\(outcome.published)<"
            #expect(tables.contains(cells))
        }
        #expect(tables.contains("<td>5 min (in force)</td><td class=\"n\">2</td>"))
        let health = HealthTables.html(of: data, made: 0)
        for row in [
            "sentences</td><td class=\"n\">3\u{202F}754<", "a fix every</td><td class=\"n\">1 s<",
            "accuracy, median</td><td class=\"n\">5.8 m<", "Made 1970-01-01 00:00 UTC",
        ] { #expect(health.contains(row), "\(row)") }
        let chosen = try loaded(smallest + "[tracking]\nstop_timeout = \"4m\"\n")
        let settings = HealthTables.html(of: try ReportLog(chosen).data(of: [Self.demo]), made: 0)
        let details = try #require(settings.range(of: "<details"))
        #expect(settings[..<details.lowerBound].contains("<td>[tracking] stop_timeout</td><td>&quot;4m&quot;</td>"))
        #expect(!settings[..<details.lowerBound].contains("stationary_radius"))
        #expect(settings[details.lowerBound...].contains("<summary>60 settings have their default</summary>"))
    }

    @Test func aLongerStopTimeoutMakesFewerStops() throws {
        let timeouts = try Self.data.get().stopTimeouts
        #expect(timeouts.map { $0.value.milliseconds } == [150_000, 300_000, 600_000])
        #expect(timeouts.map(\.isInForce) == [false, true, false])
        #expect(timeouts[0].stops >= timeouts[1].stops && timeouts[1].stops >= timeouts[2].stops)
    }

    @Test func aLogWithoutADateHasNoPage() {
        #expect(throws: ReportLog.Failure.self) {
            try ReportLog(nil).page(of: [Self.log("no-date-in-the-whole-stream")], made: 0)
        }
        #expect(throws: ReportLog.Failure.self) { try ReportLog(nil).page(of: ["/nowhere/at/all.nmea"], made: 0) }
    }

    @Test func saysWhatOfALogWasSkipped() throws {
        let folder = try TemporaryDirectory()
        let log = "\(folder.path)/gpsd.json"
        let fix = #"{"class":"TPV","mode":3,"time":"2026-03-02T07:00:00.000Z","lat":52.5,"lon":13.4}"#
        try Data("\(fix)\nno JSON\n".utf8).write(to: URL(fileURLWithPath: log))
        let page = try ReportLog(nil).page(of: [log], made: 0)
        #expect(page.notices.map(\.line) == [2])
        #expect(String(decoding: page.html, as: UTF8.self).contains("<title>gpsd"))
    }

    @Test func saysHowFarTheReadingIs() throws {
        var read = 0
        let logs = [Self.demo, Self.log("clock-set-back-an-hour")]
        _ = try ReportLog(nil).page(of: logs, made: 0) { read += $0 }
        let sizes = try logs.map { try FileManager.default.attributesOfItem(atPath: $0)[.size] as? Int ?? 0 }
        #expect(read == sizes[0] + sizes[1])
    }

    @Test func columnsReadBack() throws {
        let data = try Self.data.get()
        var writer = ReportDataWriter(data)
        let bytes = writer.bytes()
        let length: Int = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
        let head = try head(data)
        let columns = try #require(head["columns"] as? [[String: Any]])
        let names: [String] = columns.compactMap { $0["name"] as? String }
        #expect(names == ["t", "lat", "lon", "speed", "accuracy", "satellites", "altitude", "verdict"])
        let sizes: [Int] = columns.compactMap { $0["bytes"] as? Int }
        let values = bytes[(4 + length)...]
        #expect(unpacked(values.prefix(sizes[0])) == data.table.times)
        let whatIf = head["whatIf"] as? [[String: Any]]
        let indices = try #require(whatIf?.first?["bytesColumn"] as? Int)
        let kept: [Int64] = unpacked(values.dropFirst(sizes.reduce(0, +)).prefix(indices))
        let rows: [Int64] = data.kept.compactMap { data.table.row(at: $0.time).map(Int64.init) }
        #expect(kept == rows)
    }

    /// A clock that was set back dates some locations twice: shares are of locations, not of rows.
    @Test func keptWhileStandingIsAPartOfWhatWasKept() throws {
        let data = try ReportLog(nil).data(of: [Self.log("clock-set-back-an-hour")])
        #expect(data.keptStanding <= data.published)
        let whole = try Self.data.get()
        let slow = whole.kept.count { point in
            !whole.journey.trips.contains { $0.start <= point.time && point.time <= $0.end }
                || whole.journey.halts.contains { $0.start <= point.time && point.time <= $0.end }
        }
        #expect(whole.keptStanding == slow && slow > 0)
    }

    /// What was refused is no speed of a trip.
    @Test func anOpenTripHasTheSpeedOfItsBelievedFixes() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 400)
        drive.append([
            "GNRMC,070640.00,A,5331.00000,N,01324.00000,E,400.0,90.0,020326,,,A",
            "GNGGA,070640.00,5331.00000,N,01324.00000,E,1,09,1.00,39.0,M,39.6,M,,",
        ])
        let data = try drive.data()
        let trip = try #require(data.journey.trips.last)
        #expect(trip.isOpen)
        #expect(try #require(trip.maxSpeed) < 20)
        #expect(data.table.speeds.contains { $0 > 20_000 })
    }

    @Test func saysWhyThereIsNeitherTripNorStop() throws {
        let text = smallest + "[schedule]\ntimezone = \"UTC\"\ntrack = \"tue\"\n"
        let data = try ReportLog(try loaded(text)).data(of: [Self.demo])
        #expect(data.nothing == ReplayStory.noPlace)
        #expect(try head(data)["nothing"] as? String == ReplayStory.noPlace)
        #expect(ReportTables.html(of: data).contains("outside of [schedule]"))
        #expect(data.table.verdict(0) == .outsideHours)
        #expect(try Self.data.get().nothing == nil)
        #expect(try ReportLog(nil).data(of: [Self.log("simulator-and-manual-mode")]).nothing == "no fix was believed")
    }

    @Test func saysWhetherTheLogHasSentences() throws {
        let folder = try TemporaryDirectory()
        let fix = #"{"class":"TPV","mode":3,"time":"2026-03-02T07:00:00.000Z","lat":52.5,"lon":13.4}"#
        try folder.write("gpsd.json", fix + "\n")
        #expect(try !ReportLog(nil).data(of: ["\(folder.path)/gpsd.json"]).isNMEA)
        #expect(try Self.data.get().isNMEA)
    }
}

/// The head of what the page reads.
func head(_ data: ReportData) throws -> [String: Any] {
    var writer = ReportDataWriter(data)
    let bytes = writer.bytes()
    let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
    return try #require(try JSONSerialization.jsonObject(with: Data(bytes[4..<(4 + length)])) as? [String: Any])
}
