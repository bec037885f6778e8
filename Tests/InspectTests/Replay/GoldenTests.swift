import Configuration
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// What the commands print about the logs of `fixtures/nmea`, against the reviewed files beside them. With
/// `WAYPOST_EXPECTED=write` the files are written again (`make expected`); the commit says why.
@Suite struct GoldenTests {
    private static let writes = ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write"

    @Test(arguments: Golden.all)
    func printsWhatWasReviewed(_ golden: Golden) throws {
        let output = try golden.output()
        if Self.writes { try Data(output.utf8).write(to: golden.expected) }
        let expected = try String(contentsOf: golden.expected, encoding: .utf8)
        #expect(output == expected, "\(firstDifference(output, expected)); if it is meant: make expected")
    }

    @Test func noReviewedFileIsLeftOver() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Golden.folder.path)
        let known = Set(Golden.all.map(\.expected.lastPathComponent) + Golden.logs.map { "\($0).nmea" })
        #expect(Set(files).subtracting(known).isEmpty)
        #expect(Golden.logs.count > 20)
    }

    /// JSON Lines are compared with reviewed ones above.
    @Test(arguments: Golden.logs)
    func replayGivesTheSameBytesEachTime(_ name: String) throws {
        let log = Golden(name: name, form: .replay).log
        for format in ReplayLog.Format.allCases where format != .jsonl {
            #expect(try replayed([log], format) == replayed([log], format))
        }
    }

    @Test(arguments: ["demo-city-drive", "two-second-epochs-over-midnight", "glued-and-garbled"])
    func logsInARowAreOneStream(_ name: String) throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let log = Golden(name: name, form: .replay).log
        let bytes = try Data(contentsOf: URL(fileURLWithPath: log))
        let folder = URL(fileURLWithPath: try makeTemporaryDirectory())
        defer { try? FileManager.default.removeItem(at: folder) }
        let whole = try replayed([log], .jsonl)
        for _ in 0..<3 {
            // Mostly in the middle of a sentence.
            let cut = Int.random(in: 0...bytes.count, using: &random)
            let parts = [folder.appendingPathComponent("a"), folder.appendingPathComponent("b")]
            try bytes.prefix(cut).write(to: parts[0])
            try bytes.dropFirst(cut).write(to: parts[1])
            #expect(try replayed(parts.map(\.path), .jsonl) == whole, "seed \(seed), cut at \(cut)")
        }
    }

    private func firstDifference(_ output: String, _ expected: String) -> String {
        let lines = (output.split(separator: "\n"), expected.split(separator: "\n"))
        let same = zip(lines.0, lines.1).prefix { $0 == $1 }.count
        let (now, then) = (lines.0.dropFirst(same).first ?? "(end)", lines.1.dropFirst(same).first ?? "(end)")
        return "line \(same + 1)\nnow:      \(now)\nexpected: \(then)"
    }
}
