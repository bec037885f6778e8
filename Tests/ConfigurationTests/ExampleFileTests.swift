import Foundation
import TestSupport
import Testing

@testable import Configuration

/// The file that the package installs: it must work as it is, and so must everything that it offers.
@Suite struct ExampleFileTests {
    private let text: String
    private let environment: ConfigurationEnvironment
    private let directory: TemporaryDirectory

    init() throws {
        text = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("systemd/waypost.toml"), encoding: .utf8)
        directory = try TemporaryDirectory()
        try directory.write("fleet-key", "k-1\n")
        try directory.write("fleet-token", "t-1")
        environment = testEnvironment(["CREDENTIALS_DIRECTORY": directory.path])
    }

    private var lines: [String] { text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }

    /// `#key = value` and `#[table]`, without the mark.
    private func offered(_ line: String) -> String? {
        guard line.hasPrefix("#"), let second = line.dropFirst().first, second.isLetter || second == "[" else {
            return nil
        }
        return String(line.dropFirst())
    }

    /// Everything that is offered at once.
    private var everything: [String] { lines.map { offered($0) ?? $0 } }

    /// The file with one of its `#- ` blocks instead of the tables of the same names.
    private var alternatives: [[String]] {
        lines.split { !$0.hasPrefix("#- ") }.map { block in
            let block = block.map { String($0.dropFirst(3)) }
            let replaced = Set(block.filter { $0.hasPrefix("[") })
            var kept: [String] = []
            var isKept = true
            for line in lines {
                if line.hasPrefix("[") { isKept = !replaced.contains(line) }
                if isKept { kept.append(line) }
            }
            return kept + block
        }
    }

    @Test func worksAsShipped() throws {
        let loaded = try loaded(text, testEnvironment())
        #expect(loaded.warnings.isEmpty)
        #expect(loaded.config.endpoints.count == 1)
    }

    @Test func everythingThatItOffersIsValidTogether() {
        #expect(problems(everything.joined(separator: "\n"), environment).isEmpty)
        #expect(everything.filter { $0.contains("=") && !$0.hasPrefix("#") }.count > 60)
    }

    @Test func eachLineThatItOffersIsValidByItself() {
        for (index, line) in lines.enumerated() {
            guard let key = offered(line), !key.hasPrefix("[") else { continue }
            var changed = lines
            changed[index] = key
            // A table that is commented out comes with all its lines.
            var header = index
            while !lines[header].hasPrefix("["), offered(lines[header])?.hasPrefix("[") != true { header -= 1 }
            if offered(lines[header]) != nil { continue }
            #expect(problems(changed.joined(separator: "\n"), environment) == [], "line \(index + 1): \(key)")
        }
    }

    @Test func everyAlternativeIsValid() {
        #expect(alternatives.count >= 9)
        for alternative in alternatives {
            #expect(problems(alternative.joined(separator: "\n"), environment) == [])
        }
    }

    @Test func commentedDefaultsAreTheDefaults() throws {
        // Settings that are shown as an example because their default is "none" or depends on the host.
        let examples: Set = [
            "talker", "preset", "max_records", "device", "group", "token", "key", "X-Api-Key", "X-Device", "id", "kind",
            "timezone", "latitude", "longitude", "battery_threshold", "low_battery_multiplier", "spatial", "temporal",
            "asset_id",
        ]
        func values(_ text: String) throws -> [String: String?] {
            let entries = try loaded(text, environment).effective.entries
            return Dictionary(entries.map { ("\($0.table) \($0.key)", $0.value) }) { first, _ in first }
        }
        let shipped = try values(text)
        let offered = try values(everything.joined(separator: "\n"))
        for (key, value) in shipped where value != nil {
            let name = key.split(separator: " ").last.map(String.init) ?? ""
            if examples.contains(name) || key.contains("resolution") || key.contains("trackable") { continue }
            #expect(offered[key] == value, "\(key)")
        }
    }

    @Test func oneWrongLetterInAKeyIsFoundAndPutRight() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        var right = 0
        var wrong: [String] = []
        for document in [everything] + alternatives {
            for (index, line) in document.enumerated() {
                guard let equals = line.firstIndex(of: "="), line.first?.isLetter == true else { continue }
                let key = String(line[..<equals].filter { $0 != " " })
                let mutant = mutated(key, &random)
                var changed = document
                changed[index] = mutant + line.dropFirst(key.count)
                let found = problems(changed.joined(separator: "\n"), environment)
                let place = "w.toml:\(index + 1):1: "
                let isUsersOwn = ["key", "X-Api-Key", "X-Device", "asset_id"].contains(key)
                if isUsersOwn { continue }
                if found.contains(where: { $0.hasPrefix(place) && $0.contains("did you mean \(key)?") }) {
                    right += 1
                } else {
                    wrong.append("\(key) as \(mutant): \(found.first ?? "nothing found")")
                }
            }
        }
        #expect(right * 100 >= (right + wrong.count) * 95, "seed \(seed): \(wrong)")
        #expect(right > 90)
    }

    /// One letter left out, put in, replaced, or swapped with the next; never another key's name.
    private func mutated(_ key: String, _ random: inout SeededGenerator) -> String {
        var letters = Array(key)
        let letter = "abcdefghijklmnopqrstuvwxyz_".randomElement(using: &random)!
        let index = Int.random(in: 0..<letters.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: letters.remove(at: index)
        case 1: letters.insert(letter, at: index)
        case 2: letters[index] = letter
        default: letters.swapAt(index, min(index + 1, letters.count - 1))
        }
        let mutant = String(letters)
        return mutant == key || mutant.isEmpty ? key + "x" : mutant
    }
}
