import Testing

@testable import Protocols

@Suite struct HTMLCheckTests {
    private func check(
        _ body: [UInt8], _ headers: [UplinkRequest.Header] = [], cut: Bool = false
    ) -> HTMLCheck {
        HTMLCheck(UplinkReply(status: 200, headers: headers, body: body, bodyIncomplete: cut))
    }

    private static let pages = [
        "<!doctype html>", "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">", "<html>", "<HTML lang=en>", "<head>",
        "<Body onload=f()>", "<title>x", "<META charset=utf-8>", "<script>", "\u{FEFF}<html>", " \r\n\t\u{0C}<html>",
        "\u{FEFF}\n<!-- a --> <!-- b --><html>", "<!--><html>", "<?xml version=\"1.0\"?>\n<!DOCTYPE html>",
        "<?XML version='1.0'?><!-- a --><html xmlns='http://www.w3.org/1999/xhtml'>", "<!DOCTYPE\nhtml>",
        "<!doctype \t html>", "\u{FEFF}\u{FEFF}<html>", "\u{A0}\n<html>", "<\0h\0t\0m\0l\0>\0", "<center>Log in",
        "<form action=/login>",
    ]
    private static let others = [
        "", " \n", "OK", "<", "<!", "<!doctype", "<p>OK</p>", "<!-- html -->", "<?xml version=\"1.0\"?><response/>",
        "<!-- <html>",
        "{\"page\":\"<html>\"}", "[]", "html", "\u{FEFF}", "x<html>", "<doctype html>",
    ]

    @Test(arguments: pages) func isAPageByItsFirstBytes(_ text: String) {
        for cut in [false, true] {
            guard case .page = check(Array(text.utf8), cut: cut) else {
                Issue.record("\(check(Array(text.utf8), cut: cut))")
                continue
            }
        }
    }

    @Test(arguments: others) func anythingElseIsNoPage(_ text: String) {
        #expect(check(Array(text.utf8), [.init("content-type", "text/html")]) == .noPage)
    }

    /// As long as a reply may be: what comes before the page is passed without a copy for each mark.
    @Test func manyMarksAndBlanksAreNoWork() {
        for lead in ["\u{FEFF}", "\u{A0}", " "] {
            guard case .page = check(Array((String(repeating: lead, count: 200_000) + "<html>").utf8)) else {
                Issue.record("\(lead.utf8.count)")
                continue
            }
        }
    }

    /// What was cut off may have made it one.
    @Test func aCutBodyIsUnknownAsLongAsItMayBecomeAPage() {
        let whole = "\u{FEFF} <!-- a --><?xml version=\"1.0\"?><!doctype html>"
        for count in 0..<whole.utf8.count - 1 {
            #expect(check(Array(whole.utf8.prefix(count)), cut: true) == .unknown(.cut), "\(count)")
        }
        for text in ["OK", "{", "<p", "<!doctype x"] {
            #expect(check(Array(text.utf8), cut: true) == .noPage, "\(text)")
        }
    }

    @Test func whatIsEncodedIsUnknownUnlessItIsEmpty() {
        let gzip: UplinkRequest.Header = .init("content-encoding", "gzip")
        #expect(check([0x1F, 0x8B, 8, 0]) == .unknown(.encoded))
        #expect(check([1], [gzip]) == .unknown(.encoded) && check([], [gzip]) == .noPage)
        #expect(check(Array("OK".utf8), [.init("content-encoding", "Identity")]) == .noPage)
    }

    @Test func readsUTF16() {
        let text = "<html><title>Ä</title>".utf16
        var little: [UInt8] = [0xFF, 0xFE]
        var big: [UInt8] = [0xFE, 0xFF]
        for unit in text {
            little += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
            big += [UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit)]
        }
        for body in [little, big] { #expect(check(body) != .noPage) }
    }

    @Test func theTitleIsSafeToShow() {
        let titles: [(String, String?)] = [
            ("<html><head><TITLE lang=en>\n Sign  in\t</title>", "Sign in"), ("<html><title></title>", nil),
            ("<html>", nil),
            ("<title>cut sh", "cut sh"), ("<html><title>\u{1B}[2J", "\\x1b[2J"),
            ("<title>\(String(repeating: "x", count: 100))", String(repeating: "x", count: 77) + "…"),
        ]
        for (text, title) in titles { #expect(check(Array(text.utf8)) == .page(title: title), "\(text)") }
    }
}
