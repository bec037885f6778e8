import Foundation
import TestSupport
import Testing

@Suite struct ReferencePageTests {
    private let file = BuiltProducts.repository.appendingPathComponent("docs/configuration.md")

    @Test func thePageIsWhatTheCodeReads() throws {
        let text = try String(contentsOf: file, encoding: .utf8)
        let updated = ReferencePage(text).updated
        if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" {
            try updated.write(to: file, atomically: true, encoding: .utf8)
            return
        }
        let lines = (text.components(separatedBy: "\n"), updated.components(separatedBy: "\n"))
        let different = zip(lines.0, lines.1).first { $0 != $1 }.map { "found \($0), expected \($1)" }
        #expect(updated == text, "docs/configuration.md: \(different ?? "lines are missing"): run make expected")
        #expect(ReferencePage(text).undescribed.isEmpty, "docs/configuration.md: say what these keys do")
    }

    @Test func aNewKeyIsAddedAndAnOldOneLeftOut() {
        let page = ReferencePage("## `[log]`\n- `levle`: a word; restart.\n  How much.\n\nEnd.")
        let log = page.updated.components(separatedBy: "\n").prefix(5)
        #expect(
            log == [
                "## `[log]`",
                "- `level`: \"critical\", \"error\", \"warning\", \"notice\", \"info\", \"debug\" or \"trace\"; default: `\"info\"`; reload.",
                "- `positions`: true or false; default: `false`; reload.", "", "End.",
            ])
    }
}
