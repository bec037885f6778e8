import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing

@testable import Configuration

/// The configurations that the papers show: a `toml` block is a whole one, a `toml fragment` completes one.
@Suite struct PapersTests {
    struct Block: CustomTestStringConvertible, Sendable {
        var paper: String
        var number: Int
        var isFragment: Bool
        var text: String

        var testDescription: String { "\(paper), block \(number)" }
    }

    static let blocks: [Block] = {
        let docs = (try? FileManager.default.contentsOfDirectory(atPath: file("docs").path)) ?? []
        let papers = ["README.md", "CONTRIBUTING.md"] + docs.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
        return papers.flatMap { paper in
            let text = (try? String(contentsOf: file(paper), encoding: .utf8)) ?? ""
            return text.components(separatedBy: "\n```toml").dropFirst().enumerated().map { index, rest in
                let body = rest.components(separatedBy: "\n```")[0]
                let head = body.prefix { $0 != "\n" }
                return Block(
                    paper: paper, number: index + 1, isFragment: head.contains("fragment"),
                    text: String(body.dropFirst(head.count + 1)) + "\n")
            }
        }
    }()

    private static func file(_ name: String) -> URL { BuiltProducts.repository.appendingPathComponent(name) }

    @Test(arguments: blocks)
    func eachConfigurationIsGood(_ block: Block) throws {
        var text = block.text
        if block.isFragment, !text.contains("[source]") { text = smallest + text }
        if block.isFragment, !text.contains("[[endpoint]]") { text += upload }
        let directory = try TemporaryDirectory()
        try directory.write("fleet-key", "k-1\n")
        try directory.write("fleet-token", "t-1")
        let environment = testEnvironment(["CREDENTIALS_DIRECTORY": directory.path])
        #expect(try loaded(text, environment).warnings.map(\.description) == [])
    }

    @Test func theReadmeHasAWholeConfigurationAndAFragment() {
        let readme = Self.blocks.filter { $0.paper == "README.md" }
        #expect(readme.map(\.isFragment) == [false, true])
    }

    @Test func defaultsThatTheReadmeNamesAreTheDefaults() throws {
        // The fragment shows defaults, but for the one that has none.
        let fragment = try #require(Self.blocks.first { $0.isFragment }).text
        let shown = try loaded(smallest + fragment).effective.entries
        let standard = try loaded(smallest + upload).effective.entries
        for entry in shown where entry.origin != nil && entry.table != "[source]" {
            if ["max_records", "batch_size"].contains(entry.key) { continue }
            let other = standard.first { $0.table == entry.table && $0.key == entry.key }
            #expect(other?.value == entry.value, "\(entry.key)")
        }
    }

    @Test func theManualIsOfThisVersion() throws {
        let manual = try String(contentsOf: Self.file("docs/waypost.8"), encoding: .utf8)
        #expect(manual.contains(".TH WAYPOST 8") && manual.contains("waypost \(AgentVersion.current)"))
    }
}
