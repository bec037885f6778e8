import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// A log of `fixtures/field` and what is right of it: a row of cases.tsv there, which `scripts/field` reads too.
struct FieldLog: CustomTestStringConvertible, Sendable {
    static let folder = BuiltProducts.repository.appendingPathComponent("fixtures/field")

    static let all: [FieldLog] = {
        let table = (try? String(contentsOf: folder.appendingPathComponent("cases.tsv"), encoding: .utf8)) ?? ""
        return table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { row in
            let cells = row.split(separator: "\t", maxSplits: 1).map(String.init)
            let parts = ("; " + cells[1]).components(separatedBy: "; says=")
            let pairs = parts[0].components(separatedBy: "; ").filter { !$0.isEmpty }.map { pair in
                let (name, value) = (pair.prefix { $0 != "=" }, pair.drop { $0 != "=" }.dropFirst())
                return (String(name), String(value))
            }
            return FieldLog(name: cells[0], right: pairs, says: parts.count > 1 ? parts[1] : "")
        }
    }()

    var name: String
    var right: [(name: String, value: String)]
    var says: String

    var testDescription: String { name }
    var path: String { Self.folder.appendingPathComponent(name).path }
}

@Suite struct FieldLogTests {
    @Test(arguments: FieldLog.all)
    func readsALogOfTheField(_ log: FieldLog) throws {
        var says = ""
        var exit = 0
        let text = try printed {
            do throws(LogFailure) {
                says = try DecodeLog().run(log: log.path, format: .jsonl, to: $0).map(\.description)
                    .joined(separator: "\n")
            } catch {
                guard case .content(let problem) = error else { throw error }
                (says, exit) = (problem.description, 65)
            }
        }
        let epochs = try text.split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let fixes = epochs.filter { $0["latitude"] != nil }
        #expect(says.contains(log.says) || log.says.isEmpty, "\(says)")
        for (name, value) in log.right {
            switch name {
            case "exit": #expect(String(exit) == value)
            case "fixes": #expect(String(fixes.count) == value)
            case "dated": #expect(String(fixes.count { $0["time"] != nil }) == value)
            case "void": #expect(String(epochs.count - fixes.count) == value)
            case "first": #expect(fixes.first?["time"] as? String == value)
            case "last": #expect(fixes.last?["time"] as? String == value)
            default:
                let found = fixes.compactMap { ($0[name] as? NSNumber)?.doubleValue }
                let expected = try #require(Double(value))
                #expect(!found.isEmpty && Set(found) == [expected], "\(name): \(found)")
            }
        }
    }

    @Test func eachLogHasACase() throws {
        let receivers = FieldLog.folder.appendingPathComponent("receivers")
        let files = try FileManager.default.contentsOfDirectory(atPath: receivers.path)
        #expect(Set(files.map { "receivers/\($0)" }) == Set(FieldLog.all.map(\.name)))
    }

    /// Whatever is done to the lines of a log, it is read the same in pieces of any length.
    @Test(arguments: testSeeds(1...8))
    func changedLinesNeverTrap(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let logs = try ["mixed.txt", "gpspipe-r-w-t.txt", "glued-with-nuls.jsonl", "poll.jsonl"].flatMap { name in
            [UInt8](try Data(contentsOf: FieldLog.folder.appendingPathComponent("receivers/\(name)")))
        }
        let alphabet = Array("{}[]$!*,\"\\:\n\r\u{0}7a".utf8)
        for _ in 0..<20 {
            var bytes = logs
            for _ in 0...Int.random(in: 0...30, using: &random) {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0: bytes[at] = alphabet.randomElement(using: &random)!
                case 1: bytes.removeSubrange(at..<min(bytes.count, at + Int.random(in: 1...200, using: &random)))
                default: bytes.insert(alphabet.randomElement(using: &random)!, at: at)
                }
                if bytes.isEmpty { bytes = logs }
            }
            func outcome(_ pieces: Int) -> String {
                var decoder = LogDecoder(settings: .init())
                var found: [String] = []
                decoder.begin("log")
                var rest = bytes[...]
                do {
                    while !rest.isEmpty {
                        try decoder.read(Array(rest.prefix(pieces)).span) { found.append("\($0)") }
                        rest = rest.dropFirst(pieces)
                    }
                    try decoder.finish { found.append("\($0)") }
                } catch { return "\(error)" }
                decoder.end { found.append("\($0)") }
                #expect(decoder.counters.fixes + decoder.counters.voidEpochs == found.count)
                return "\(found) \(decoder.counters) \(decoder.notices)"
            }
            #expect(outcome(.max) == outcome(Int.random(in: 1...90, using: &random)), "seed \(seed)")
        }
    }
}
