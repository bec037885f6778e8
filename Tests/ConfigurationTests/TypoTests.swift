import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing

@testable import Configuration

/// A vehicle comes back from the workshop with one wrong character in its configuration: it keeps tracking, and the
/// message names the line.
@Suite struct TypoTests {
    private static let typed = Array("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789 \"'[]{}()=.,:;#_-+/\\$%".utf8)

    /// A place in a text and what to put there.
    private struct Typo: CustomStringConvertible {
        var line: Int
        var text: [UInt8]
        /// The key of the line as it is now.
        var key: String
        /// The value of the line as it is now, with its quotes.
        var value: String
        /// It changes a quote or bracket.
        var opens: Bool
        var description: String

        /// One character is left out, replaced, or added, outside of comments and line ends.
        init(in good: [UInt8], places: [Int], _ generator: inout SeededGenerator) {
            let place = places.randomElement(using: &generator) ?? 0
            let typed = TypoTests.typed.randomElement(using: &generator) ?? 0x20
            text = good
            let action = Int.random(in: 0..<3, using: &generator)
            opens = "\"'[{".utf8.contains(typed) && action > 0 || "\"']}".utf8.contains(good[place]) && action < 2
            switch action {
            case 0: text.remove(at: place)
            case 1: text[place] = typed
            default: text.insert(typed, at: place)
            }
            line = good[..<place].count { $0 == 0x0A } + 1
            let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
            let written = String(decoding: lines[line - 1], as: UTF8.self)
            value = String(written.drop { $0 != "\"" })
            if value.isEmpty { value = written }
            key = String(written.prefix { $0 != " " })
            description = "line \(line): \(written)"
        }
    }

    /// Where a typo may be: everywhere but in comments and at line ends.
    private static func places(in text: [UInt8]) -> [Int] {
        var places: [Int] = []
        var quote: UInt8?
        var isComment = false
        for (index, byte) in text.enumerated() {
            switch byte {
            case 0x0A: (quote, isComment) = (nil, false)
            case UInt8(ascii: "#") where quote == nil: isComment = true
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                if !isComment { quote = quote == nil ? byte : quote == byte ? nil : quote }
            default: break
            }
            if byte != 0x0A, !isComment { places.append(index) }
        }
        return places
    }

    static let files: [(String, Int)] = [("fixtures/configuration/everything.toml", 120), ("systemd/waypost.toml", 80)]

    @Test(arguments: files)
    func theDaemonStartsAndTheLineIsNamed(file: String, rejected wanted: Int) throws {
        let directory = try TemporaryDirectory()
        try directory.write("fleet-key", "k-1\n")
        try directory.write("fleet-token", "t-1")
        let environment = testEnvironment([
            "CREDENTIALS_DIRECTORY": directory.path, "STATE_DIRECTORY": directory.path,
        ])
        let path = "\(directory.path)/waypost.toml"
        let good = Array(try Data(contentsOf: BuiltProducts.repository.appendingPathComponent(file)))
        let lastGood = LastGoodConfiguration(of: path, environment: environment)
        let loaded = try AgentConfig.parse([(path, good)], environment: environment)
        let kept = try lastGood.bytes(of: loaded)
        try Data(kept).write(to: URL(fileURLWithPath: lastGood.path))

        var generator = SeededGenerator(seed: testSeed(13))
        let places = Self.places(in: good)
        var last = ConfigurationProblems([])
        var elsewhere: [String] = []
        var rejected = 0
        while rejected < wanted {
            let typo = Typo(in: good, places: places, &generator)
            let refused: ConfigurationProblems
            do throws(ConfigurationProblems) {
                _ = try AgentConfig.parse([(path, typo.text)], environment: environment)
                continue
            } catch { refused = error }
            rejected += 1
            last = refused
            let named = refused.byWeight.first?.position?.line ?? 0
            // What is opened and not closed shows where the reader stumbles. A reference that has lost its other end is
            // named where it is, with the word that the other end has now.
            let isElsewhere =
                typo.opens && named > typo.line || refused.problems[0].message.contains(typo.value)
                || refused.problems[0].message.contains("${secret.\(typo.key)}")
            if named != typo.line, !isElsewhere { elsewhere.append("\(typo) → \(refused)") }
        }
        #expect(elsewhere == [])
        // What stands in does not depend on what is wrong, which it only passes on.
        let started = try lastGood.load(for: last, environment: environment)
        #expect(started.effective.entries == loaded.effective.entries)
        #expect(started.refused == last)
    }
}
