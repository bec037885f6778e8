import Foundation
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

/// A line that is read as it comes and the log of it give the same fixes.
@Suite("Line and log") struct AgreementTests {
    private static let logs = [
        "zda-with-the-time-of-output", "another-source-without-a-position", "sentences-that-disagree",
        "receiver-repeats-a-fix", "clock-of-whole-minutes", "position-stands-at-speed",
        "gsa-of-several-constellations",
    ]

    /// The sentences of a fixture, cut before each one of the type that begins a cycle.
    private func cycles(_ name: String) throws -> [String] {
        let file = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(name).nmea")
        let lines = try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isNewline).filter {
            $0.hasPrefix("$")
        }
        let type = lines[0].prefix(6)
        var cycles: [String] = []
        for line in lines {
            if line.hasPrefix(type) || cycles.isEmpty { cycles.append("") }
            cycles[cycles.count - 1] += line + "\r\n"
        }
        return cycles
    }

    @Test(arguments: logs) func agree(_ name: String) throws {
        let cycles = try cycles(name)
        var line = Line()
        var watch = ReceiverWatch()
        for (second, cycle) in cycles.enumerated() { line.receive(cycle, at: second * 1000) }
        line.wait(until: 10_000_000)
        for fix in line.fixes { watch.received(fix, at: fix.at) }
        let log = decode(cycles.joined())
        #expect(log.fixes.allSatisfy { $0.time != nil && $0.speed != nil }, "\(name)")
        // A clock that stands gives an epoch for each cycle on a line, and for two in a log.
        #expect(Self.distinct(line.fixes) == Self.distinct(log.fixes), "\(name)")
        #expect(line.decoder.counters.repeats == log.counters.repeats, "\(name)")
        #expect(line.decoder.counters.disagreeing == log.counters.disagreeing, "\(name)")
    }

    private static func distinct(_ fixes: [Fix]) -> [String] {
        var words: [String] = []
        for fix in fixes {
            let time = fix.time?.iso8601 ?? "dateless \(fix.timeOfDay)"
            guard words.last?.hasPrefix(time) != true else { continue }
            words.append(
                "\(time) \(fix.coordinate) \(fix.speed ?? -1) \(fix.course ?? -1) \(fix.horizontalAccuracy ?? -1) \(fix.mode)"
            )
        }
        return words
    }

    @Test func whatIsWrongIsNamed() throws {
        let faults: [(String, String)] = [
            ("receiver-repeats-a-fix", "the receiver repeats the fix of 08:00:09"),
            ("clock-of-whole-minutes", "the receiver's clock shows whole minutes only"),
            ("position-stands-at-speed", "the position stands while the speed is 12 m/s"),
        ]
        for (name, words) in faults {
            let cycles = try cycles(name)
            var line = Line()
            for (second, cycle) in cycles.enumerated() { line.receive(cycle, at: second * 1000) }
            line.wait(until: 10_000_000)
            for fixes in [line.fixes, decode(cycles.joined()).fixes] {
                var watch = ReceiverWatch()
                var seen: [String] = []
                for fix in fixes {
                    watch.received(fix, at: fix.at)
                    if let fault = watch.fault?.words, !seen.contains(fault) { seen.append(fault) }
                }
                #expect(seen.contains(words), "\(name): \(seen)")
            }
        }
        // A clock that stands while the position moves.
        var watch = ReceiverWatch()
        for second in 0..<20 {
            let coordinate = Coordinate(latitudeE7: 520_000_000 + Int32(second) * 1000, longitudeE7: 130_000_000)
            let fix = Fix(
                time: UTCTime(milliseconds: 50_010_000), timeOfDay: 50_010_000, at: Line.instant(second * 1000),
                coordinate: coordinate, speed: 11)
            watch.received(fix, at: fix.at)
        }
        #expect(watch.fault?.words == "the receiver's clock stands at 13:53:30")
    }
}
