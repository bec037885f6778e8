import Foundation
import TestSupport
import Testing

@testable import WaypostTracking

@Suite struct TimeZoneRulesTests {
    private static let folder = "/usr/share/zoneinfo"
    private static let names = [
        "Europe/Berlin", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Africa/Casablanca",
        "Asia/Kolkata",
        "Asia/Tehran", "America/Sao_Paulo", "Pacific/Apia", "Antarctica/Troll", "Asia/Gaza", "America/Nuuk",
    ]

    private static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
    }

    @Test(arguments: names)
    func agreesWithAnotherReaderOfTheDatabase(name: String) throws {
        let rules = try #require(TimeZoneRules(tzif: try Self.bytes(name)))
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        // 1971 to 2037: within the years for which every reader has the whole table.
        let times = (0..<2000).map { _ in Int64.random(in: 31_536_000...2_114_380_800, using: &random) }
        let offsets = try Self.offsetsByDate(at: times, in: name)
        try #require(offsets.count == times.count)
        let wrong = zip(times, offsets).first { rules.offset(at: $0).seconds != $1 }
        #expect(wrong == nil, "seed \(seed)")
    }

    /// Seconds east of Greenwich by the C library, which reads the same files: those of Foundation are its own, and older.
    private static func offsetsByDate(at times: [Int64], in name: String) throws -> [Int64] {
        let date = Process()
        date.executableURL = URL(fileURLWithPath: "/bin/date")
        date.arguments = ["-f", "-", "+%::z"]
        date.environment = ["TZ": name]
        let (input, output) = (Pipe(), Pipe())
        date.standardInput = input
        date.standardOutput = output
        try date.run()
        // Less than a pipe holds, in both directions.
        input.fileHandleForWriting.write(Data(times.map { "@\($0)\n" }.joined().utf8))
        try input.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        date.waitUntilExit()
        return text.split(separator: "\n").map { line in
            let parts = line.dropFirst().split(separator: ":").compactMap { Int64($0) }
            let seconds = parts.reduce(0) { $0 * 60 + $1 }
            return line.hasPrefix("-") ? -seconds : seconds
        }
    }

    @Test(arguments: names)
    func namesEachChangeOfTheClocks(name: String) throws {
        let rules = try #require(TimeZoneRules(tzif: try Self.bytes(name)))
        var time: Int64 = 0
        var changes = 0
        while let next = rules.offset(at: time).until, next < 7_258_118_400 {
            // A change may keep the offset and give it another name.
            let before = rules.offset(at: next - 1)
            guard next > time, before.until == next, before.seconds == rules.offset(at: time).seconds else {
                Issue.record("after \(time): \(next), before which \(before) holds")
                return
            }
            time = next
            changes += 1
        }
        #expect(changes > (name == "Asia/Kolkata" ? -1 : 10))
    }

    /// Daylight time ends after it has begun again: what holds at a time does not depend on when that is asked.
    @Test func followsARuleWhoseDaylightTimeIsLongerThanAYear() throws {
        let rules = try #require(TimeZoneRules(posix: "EST5EDT,0/0,365/25"))
        // 2 January 1900 and 2023, one o'clock: standard time, until the year is over.
        for time in [-2_208_884_400, 1_672_639_200] as [Int64] {
            let (seconds, until) = rules.offset(at: time)
            let end = try #require(until)
            #expect(seconds == -18_000)
            for between in [time + (end - time) / 2, end - 1] {
                #expect(rules.offset(at: between) == (seconds, end))
            }
        }
    }

    @Test(
        arguments: [
            // The last Sundays of March and October, one o'clock UTC.
            ("CET-1CEST,M3.5.0,M10.5.0/3", [1_774_746_000, 1_792_890_000]),
            // The second Sunday of March and the first of November, two o'clock local.
            ("EST5EDT,M3.2.0,M11.1.0", [1_772_953_200, 1_793_512_800]),
            // The summer of the south; the standard time of Dublin is that of its summer.
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", [1_775_318_400, 1_791_043_200]),
            ("IST-1GMT0,M10.5.0,M3.5.0/1", [1_774_746_000, 1_792_890_000]),
            ("<-03>3<-02>,J60/0,J305/0", [1_772_334_000, 1_793_498_400]),
        ] as [(String, [Int64])])
    func followsARule(text: String, changes: [Int64]) throws {
        let rules = try #require(TimeZoneRules(posix: text))
        // From 2026-01-01 on.
        let first = try #require(rules.offset(at: 1_767_225_600).until)
        #expect([first, try #require(rules.offset(at: first).until)] == changes)
    }

    @Test func aZoneWithoutARuleForTheFutureDoesNotChange() throws {
        let rules = try #require(TimeZoneRules(posix: "<+0530>-5:30"))
        #expect(rules.offset(at: 0).seconds == 19_800 && rules.offset(at: 0).until == nil)
        #expect(rules.offset(at: .max).seconds == 19_800)
        let berlin = try #require(TimeZoneRules(posix: "CET-1CEST,M3.5.0,M10.5.0/3"))
        for time in [Int64.min, .max, -1, 0] { _ = berlin.offset(at: time) }
    }

    @Test func daylightTimeAllYearNeverEnds() throws {
        let rules = try #require(TimeZoneRules(posix: "EST5EDT,0/0,J365/25"))
        var time: Int64 = 1_767_225_600 - 86_400
        for _ in 0..<10 {
            #expect(rules.offset(at: time).seconds == -4 * 3600)
            time = rules.offset(at: time).until ?? time
        }
    }

    @Test(
        arguments: [
            "", "CET", "C-1", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
            "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J5", "CET-25", "<CET-1", "CET-1CEST,M3.5.0,M10.5.0/3x",
            "CET-1CEST,M3.5.0,M10.5.0/168", "Europe/Berlin",
        ])
    func refusesWhatIsNoRule(text: String) { #expect(TimeZoneRules(posix: text) == nil) }

    @Test func damagedFilesAreRefusedOrReadButNeverTrap() throws {
        let seed = testSeed(2)
        var random = SeededGenerator(seed: seed)
        let good = try Self.bytes("Europe/Berlin")
        for count in stride(from: 0, to: good.count, by: 7) {
            #expect(TimeZoneRules(tzif: Array(good[..<count])) == nil)
        }
        for _ in 0..<1500 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let rules = TimeZoneRules(tzif: bytes) else { continue }
            for time in [Int64.min, -1, 0, 1_767_225_600, 4_102_444_800, .max] {
                let (seconds, until) = rules.offset(at: time)
                if abs(seconds) >= 30 * 3600 || until.map({ $0 <= time }) ?? false {
                    Issue.record("seed \(seed): \(seconds) until \(until ?? 0) at \(time)")
                }
            }
        }
    }
}
