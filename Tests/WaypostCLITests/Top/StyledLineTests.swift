import Testing

@testable import WaypostCLI

@Suite struct StyledLineTests {
    private func line(_ text: String, isASCII: Bool = false) -> StyledLine {
        var line = StyledLine(isASCII: isASCII)
        line.add(text)
        return line
    }

    /// Everything that a server, a gpsd or a file could use against a terminal.
    static let hostile: [String] = [
        "\u{1b}[2J\u{1b}[31mred", "\u{1b}]0;title\u{7}", "\u{9b}31m", "back\u{8}\u{8}\u{8}\u{8}", "line\nfeed\r\n",
        "tab\tulator",
        "\u{202e}gnp.exe", "\u{2066}isolate\u{2069}", "zero\u{200b}width", "\u{0}nul", "\u{7f}del", "\u{feff}bom",
        "\u{e0041}tag",
        "soft\u{ad}hyphen", "\u{2028}separator",
    ]

    @Test(arguments: hostile)
    func nothingFromOutsideSteersTheTerminal(_ text: String) {
        for isASCII in [false, true] {
            var line = line(text, isASCII: isASCII)
            line.add(text, .bad, width: 12)
            line.addIfItFits(text, columns: 500)
            let controls = line.text.unicodeScalars.filter {
                $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || $0.properties.generalCategory == .format
                    || $0.properties.generalCategory == .lineSeparator
            }
            #expect(controls.isEmpty, "\(line.text)")
            #expect(!isASCII || line.text.utf8.allSatisfy { $0 < 0x7F })
        }
    }

    @Test func onlyOurOwnStylesAreEscapeSequences() {
        var line = StyledLine(isASCII: false)
        line.add("\u{1b}[5m", .bad)
        line.add(" plain")
        #expect(line.escaped == "\u{1b}[1;31m\\x1b[5m\u{1b}[0m plain")
    }

    static let columns: [(String, Int)] = [
        ("abc", 3), ("größer", 6), ("e\u{301}", 1), ("東京", 4), ("a\u{301}\u{302}\u{303}\u{304}b", 2), ("🚚", 2),
        ("\u{e000}", 1),
    ]

    @Test(arguments: columns)
    func aLineKnowsItsColumns(_ text: String, _ columns: Int) { #expect(line(text).columns == columns) }

    @Test func accentsDoNotPileUp() {
        let piled = "a" + String(repeating: "\u{301}", count: 50)
        #expect(line(piled).text.unicodeScalars.count == 3)
    }

    static let cuts: [(Int, String)] = [(10, "abcdefghij"), (9, "abcdefgh…"), (1, "…"), (0, "")]

    @Test(arguments: cuts)
    func aCutLineSaysSo(_ width: Int, _ text: String) {
        var line = line("abcdefghij")
        line.cut(to: width)
        #expect(line.text == text && line.columns == text.count)
    }

    @Test func aWideCharacterIsNotCutInTwo() {
        var line = line("東京東京")
        line.cut(to: 6)
        #expect(line.text == "東京…" && line.columns == 5)
    }

    @Test func withoutUnicodeEverythingIsASCII() {
        #expect(line("±2 m, 47°, ━━──, ▁▄█, größer, 東", isASCII: true).text == "+-2 m, 47 deg, ##--, _-#, gr??er, ?")
        var cut = line("abcdefghij", isASCII: true)
        cut.cut(to: 8)
        #expect(cut.text == "abcde...")
    }

    @Test func aColumnHasItsWidth() {
        var line = StyledLine(isASCII: false)
        line.add("12", width: 5, right: true)
        line.add("abcdefgh", width: 4)
        line.add("x", width: 3)
        #expect(line.text == "   12abc…x  " && line.columns == 12)
    }
}
