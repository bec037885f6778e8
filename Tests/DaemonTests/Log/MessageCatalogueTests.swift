import Foundation
import Journal
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// `systemd/waypost.catalog` against the kinds of events that the daemon logs.
@Suite struct MessageCatalogueTests {
    private func entries() throws -> [String: String] {
        let file = BuiltProducts.repository.appendingPathComponent("systemd/waypost.catalog")
        let text = try String(contentsOf: file, encoding: .utf8)
        var entries: [String: String] = [:]
        for entry in text.components(separatedBy: "\n-- ").dropFirst() {
            let id = String(entry.prefix { $0 != "\n" })
            #expect(entries.updateValue(String(entry.dropFirst(id.count + 1)), forKey: id) == nil, "\(id) twice")
        }
        return entries
    }

    @Test func eachKindHasAnEntryAndEachEntryAKind() throws {
        #expect(Set(try entries().keys) == Set(MessageID.allCases.map(\.rawValue)))
    }

    @Test(arguments: MessageID.allCases)
    func anIDIsOneForJournald(_ id: MessageID) {
        #expect(id.rawValue.count == 32 && id.rawValue.allSatisfy { "0123456789abcdef".contains($0) })
    }

    @Test func eachEntryHasASubjectAndAText() throws {
        for (id, entry) in try entries() {
            let (head, body) = try #require(
                entry.range(of: "\n\n").map { (entry[..<$0.lowerBound], entry[$0.upperBound...]) })
            #expect(head.hasPrefix("Subject: ") && head.contains("\nDefined-By: waypost"), "\(id)")
            #expect(!body.isEmpty, "\(id)")
        }
    }

    /// A field that no line has would stay a bare `@NAME@` before the reader's eyes.
    @Test func theFieldsThatAnEntryShowsAreLogged() throws {
        let source = BuiltProducts.repository.appendingPathComponent("Sources/Daemon")
        let code = try FileManager.default.subpathsOfDirectory(atPath: source.path).filter { $0.hasSuffix(".swift") }
            .map { try String(contentsOf: source.appendingPathComponent($0), encoding: .utf8) }.joined()
        for (id, entry) in try entries() {
            for match in entry.matches(of: /@WAYPOST_([A-Z_]+)@/) {
                #expect(code.contains("\"\(match.1.lowercased())\":"), "\(id) shows \(match.0), which nothing logs")
            }
        }
    }
}
