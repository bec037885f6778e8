import Testing

@testable import Inspect

@Suite struct ReportPageTests {
    @Test func fillsEachPlaceOnce() {
        let template = Array("<a>@TITLE@</a> me@example.org @NONE@ @JS@@CSS@".utf8)
        let page = ReportPage.filled(
            template, with: ["TITLE": Array("@JS@".utf8), "JS": Array("1@".utf8), "CSS": Array("2".utf8)])
        #expect(String(decoding: page, as: UTF8.self) == "<a>@JS@</a> me@example.org @NONE@ 1@2")
    }

    @Test func aModuleLosesWhatOnlyAFileNeeds() {
        let module = "import { a } from \"./a.js\";\nexport function b() {}\nconst c = 'import x';\n  export\n"
        #expect(
            String(decoding: ReportPage.bundled(Array(module.utf8)), as: UTF8.self)
                == "function b() {}\nconst c = 'import x';\n  export\n\n")
    }

    static let servers: [(String, String?)] = [
        ("https://tile.example.org/{z}/{x}/{y}.png", "https://tile.example.org"),
        ("http://127.0.0.1:8080/{z}/{x}/{y}", "http://127.0.0.1:8080"), ("https://tile.example.org/1/2/3", nil),
        ("https://a b; script-src */{z}{x}{y}", nil), ("file:///{z}/{x}/{y}", nil),
        ("javascript://x/{z}{x}{y}", nil),
    ]

    @Test(arguments: servers)
    func onlyAServerOfTilesMayBeAsked(url: String, origin: String?) {
        #expect(ReportOptions.origin(url) == origin)
    }
}
