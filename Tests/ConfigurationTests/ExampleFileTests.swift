import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing

@testable import Configuration

/// The file that the package installs must work as it is, with everything that it offers, and so must every key that
/// there is (`fixtures/configuration`).
@Suite struct ExampleFileTests {
    private let shipped: [String]
    /// The shipped file with the server that it offers.
    private let active: [String]
    private let everything: [String]
    /// The shipped file with other tables at its end instead of those of the same names, and where they begin.
    private let alternatives: [(lines: [String], own: Int)]
    private let environment: ConfigurationEnvironment
    private let directory: TemporaryDirectory

    init() throws {
        func lines(_ path: String) throws -> [String] {
            try String(contentsOf: BuiltProducts.repository.appendingPathComponent(path), encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
        let shipped = try lines("systemd/waypost.toml")
        self.shipped = shipped
        active = shipped.map {
            ["#[[endpoint]]", "#base_url"].contains(where: $0.hasPrefix) ? String($0.dropFirst()) : $0
        }
        everything = try lines("fixtures/configuration/everything.toml")
        let active = active
        alternatives = try lines("fixtures/configuration/alternatives.toml").split(separator: "").map { block in
            let replaced = Set(block.filter { $0.hasPrefix("[") })
            var kept: [String] = []
            var isKept = true
            for line in active {
                if line.hasPrefix("[") { isKept = !replaced.contains(line) }
                if isKept { kept.append(line) }
            }
            return (kept + block, kept.count)
        }
        directory = try TemporaryDirectory()
        try directory.write("fleet-key", "k-1\n")
        try directory.write("fleet-token", "t-1")
        environment = testEnvironment(["CREDENTIALS_DIRECTORY": directory.path])
    }

    private func problems(_ lines: [String]) -> [String] {
        ConfigurationTestSupport.problems(lines.joined(separator: "\n"), environment)
    }

    /// `#key = value`, without the mark.
    private func offered(_ line: String) -> String? {
        line.hasPrefix("#") && line.dropFirst().first?.isLetter == true ? String(line.dropFirst()) : nil
    }

    @Test func worksAsShipped() throws {
        let loaded = try loaded(shipped.joined(separator: "\n"), testEnvironment())
        // Nothing goes anywhere before somebody has named a server.
        #expect(loaded.warnings.map(\.description).filter { !$0.contains("none is configured yet") } == [])
        #expect(loaded.warnings.count == 1 && loaded.config.endpoints.isEmpty)
        #expect(shipped.count < 60)
    }

    @Test func eachLineThatItOffersIsValid() {
        #expect(problems(active.map { offered($0) ?? $0 }).isEmpty)
        for (index, line) in active.enumerated() {
            guard let key = offered(line) else { continue }
            var changed = active
            changed[index] = key
            #expect(problems(changed) == [], "line \(index + 1): \(key)")
        }
    }

    @Test func defaultsThatItOffersAreTheDefaults() throws {
        let examples = [
            "[device] id", "[receiver] profile", "[[endpoint]] profile", "[[endpoint]] backfill",
            "[endpoint.auth] token",
        ]
        func values(_ lines: [String]) throws -> [String: String?] {
            let entries = try loaded(lines.joined(separator: "\n"), environment).effective.entries
            return Dictionary(entries.map { ("\($0.table) \($0.key)", $0.value) }) { first, _ in first }
        }
        let offered = try values(active.map { self.offered($0) ?? $0 })
        for (key, value) in try values(active) where !examples.contains(key) && value != nil {
            #expect(offered[key] == value, "\(key)")
        }
    }

    @Test func everyKeyWorksTogetherWithTheOthers() {
        #expect(problems(everything) == [])
        for alternative in alternatives { #expect(problems(alternative.lines) == []) }
    }

    @Test func everyKeyIsAmongThem() {
        let reader = ConfigurationReader(files: [], environment: environment)
        _ = AgentConfig(reading: reader.root(TOMLTable()))
        var table = ""
        var written: Set<String> = []
        for line in everything + alternatives.flatMap(\.lines) {
            if line.hasPrefix("[") { table = line }
            guard let equals = line.firstIndex(of: "=") else { continue }
            let key = line[..<equals].filter { $0 != " " }
            written.insert("\(table) \(key)")
            // An inline table stands for a table of its own.
            let names = line[equals...].matches(of: /[{,] ([a-z_]+) =/).map(\.output.1)
            for name in names { written.insert("[\(table.filter { !"[]".contains($0) }).\(key)] \(name)") }
        }
        // Files, and what is of a kind that a channel does not have.
        let left: Set<String> = ["[geofences] file", "[channel.auth] name", "[channel.auth] key"]
        var missing: [String] = []
        for key in reader.keys {
            let name = "\(key.table) \(key.name)"
            if written.contains(name) || left.contains(name) { continue }
            if !name.contains("tls] ca"), !name.contains("tls] client_") { missing.append(name) }
        }
        #expect(missing == [], "fixtures/configuration lacks them")
    }

    @Test func oneWrongLetterInAKeyIsFoundAndPutRight() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        var right = 0
        var wrong: [String] = []
        var documents = alternatives
        documents.append((everything, 0))
        // Four mistakes at once, far apart: a report has all of them.
        for (document, first) in documents {
            let places = document.indices.filter { $0 >= first && Self.key(in: document[$0]) != nil }
            let step = (places.count + 3) / 4
            for start in 0..<step {
                var changed = document
                var mistakes: [(place: String, key: String, mutant: String)] = []
                for index in stride(from: start, to: places.count, by: step).map({ places[$0] }) {
                    let key = Self.key(in: document[index]) ?? ""
                    let mutant = mutated(key, &random)
                    changed[index] = mutant + document[index].dropFirst(key.count)
                    mistakes.append(("w.toml:\(index + 1):1: ", key, mutant))
                }
                let found = problems(changed)
                for (place, key, mutant) in mistakes {
                    if found.contains(where: { $0.hasPrefix(place) && $0.contains("did you mean \(key)?") }) {
                        right += 1
                    } else {
                        wrong.append("\(key) as \(mutant): \(found.first { $0.hasPrefix(place) } ?? "nothing found")")
                    }
                }
            }
        }
        #expect(right * 100 >= (right + wrong.count) * 95, "seed \(seed): \(wrong)")
        #expect(right > 90)
    }

    /// nil for a line without one, and for a name that users choose.
    private static func key(in line: String) -> String? {
        guard let equals = line.firstIndex(of: "="), line.first?.isLetter == true else { return nil }
        let key = String(line[..<equals].filter { $0 != " " })
        return ["key", "X-Api-Key", "X-Device", "asset_id"].contains(key) ? nil : key
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
