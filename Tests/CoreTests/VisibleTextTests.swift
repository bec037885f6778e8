import TestSupport
import Testing

@testable import WaypostCore

@Suite struct VisibleTextTests {
    @Test(arguments: [
        ("plain, with ~ and {}", "plain, with ~ and {}"), ("Straße 7 · é 🚐", "Straße 7 · é 🚐"),
        ("\u{1b}[2Jgone", "\\x1b[2Jgone"), ("a\r\nb\tc", "a\\x0d\\x0ab\\x09c"), ("\u{7f}\u{0}", "\\x7f\\x00"),
        ("\u{9b}31m", "\\x9b31m"), ("\u{202e}gnp.exe\u{202c}", "\\u{202e}gnp.exe\\u{202c}"),
        ("a\u{200b}b", "a\\u{200b}b"),
        ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"), ("a\u{2028}b", "a\\u{2028}b"), ("\u{feff}", "\\u{feff}"),
        ("\u{e0041}", "\\u{e0041}"),
    ])
    func writesOutWhatSteersATerminal(_ text: String, _ shown: String) {
        #expect(text.visible(bytesMax: 100) == shown)
    }

    @Test func bytesThatAreNoTextAreReplaced() {
        #expect(
            String(decoding: [0x61, 0xFF, 0xC0, 0x80, 0x62] as [UInt8], as: UTF8.self).visible(bytesMax: 100)
                == "a\u{fffd}\u{fffd}\u{fffd}b")
    }

    @Test func linesStayWhereThereMayBeSeveral() {
        #expect("a\nb\r\u{1b}".visible(bytesMax: 100, keepingLineFeeds: true) == "a\nb\\x0d\\x1b")
    }

    /// One character of 18 kB.
    @Test func aPileOfAccentsIsBoundedInBytes() {
        let pile = "a" + String(repeating: "\u{301}", count: 9000)
        #expect(pile.count == 1)
        #expect(pile.visible(bytesMax: 400).utf8.count <= 400)
        #expect(pile.cut(toBytes: 400).utf8.count <= 400)
    }

    @Test(arguments: [
        ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc…"), ("äöü", 5, "ä…"), ("äöü", 4, "…"), ("🚐🚐", 7, "🚐…"),
        ("", 3, ""),
    ])
    func cutsBetweenTwoScalars(_ text: String, _ limit: Int, _ cut: String) {
        #expect(text.cut(toBytes: limit) == cut)
        #expect(text.visible(bytesMax: limit) == cut)
    }

    @Test func aMarkIsWrittenOutWholeOrNotAtAll() {
        #expect("abc\u{1b}\u{1b}".visible(bytesMax: 10) == "abc\\x1b…")
        #expect("abc\u{1b}\u{1b}".visible(bytesMax: 9) == "abc…")
        #expect("abc\u{1b}\u{1b}".visible(bytesMax: 11) == "abc\\x1b\\x1b")
    }

    @Test func jsonStaysJSON() {
        #expect("a,\u{9b}2J\tb\r\nc\u{202e}\r\n".visibleLines == "a,\\x9b2J\tb\r\nc\\u{202e}\r\n")
        #expect(#"{"a":"é"}"#.visibleJSON == #"{"a":"é"}"#)
        #expect("{\"a\":\"\u{9b}2J\u{202e}\u{e0041}\"}".visibleJSON == #"{"a":"\u009b2J\u202e\udb40\udc41"}"#)
    }

    @Test(arguments: testSeeds(1...4)) func isSafeAndShortWhateverCame(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<1000 {
            var bytes: [UInt8] = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { bytes += "\u{202e}\u{9b}🚐ä".utf8 }
            let text = String(decoding: bytes, as: UTF8.self)
            let limit = Int.random(in: 3...70, using: &random)
            let shown = text.visible(bytesMax: limit)
            let isSafe = shown.unicodeScalars.allSatisfy {
                $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) && $0 != "\u{202e}"
            }
            guard isSafe, shown.utf8.count <= limit, shown.visible(bytesMax: limit) == shown else {
                Issue.record("seed \(seed): \(bytes) in \(limit) bytes gives \(Array(shown.utf8))")
                return
            }
        }
    }
}
