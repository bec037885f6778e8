import Testing

@testable import Profiles

@Suite struct TextPatternTests {
    static let texts: [(String, String, Bool)] = [
        ("[-._A-Za-z0-9]+", "van-7", true), ("[-._A-Za-z0-9]+", "van 7", false), ("[-._A-Za-z0-9]+", "", false),
        ("[-._\\p{L}\\p{N}]{1,100}", "Lübeck-٣", true), ("a?b*c", "c", true), ("a?b*c", "abbbc", true),
        ("a?b*c", "aac", false), ("\\d{4}", "2024", true), ("\\d{4}", "202", false), ("\\d{2,}", "2024", true),
        ("[^/]+", "a/b", false), ("a.c", "abc", true), ("a\\.c", "abc", false),
        (".*a.*a.*a.*a.*b", "aaaaaaaaaaaa", false),
        ("", "", true), ("a{2}a", "aaa", true), ("a+a", "a", false), ("a*a{2}", "aa", true),
    ]

    @Test(arguments: texts) func matchesTheWholeText(pattern: String, text: String, matches: Bool) throws {
        #expect(try #require(TextPattern(pattern)).matches(text) == matches)
    }

    @Test(arguments: [
        "(a)", "a|b", "[", "[]", "*", "a**", "a{", "a{2,1}", "\\", "\\b", "[z-a]", "^a", "a{9999}", "\\p{Greek}",
    ])
    func refusesWhatItDoesNotUnderstand(pattern: String) {
        #expect(TextPattern(pattern) == nil)
    }
}
