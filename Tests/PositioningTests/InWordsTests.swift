import Testing

@testable import Positioning

@Suite struct InWordsTests {
    @Test func quantities() {
        #expect(
            [0, 849.6, 999.4, 1000, 12_345].map(InWords.distance) == ["0 m", "850 m", "999 m", "1.0 km", "12.3 km"])
        #expect([0.001, 0.034, 0.5, 1.4, 12].map(InWords.accuracy) == ["0.01 m", "0.03 m", "0.50 m", "1 m", "12 m"])
        #expect([0, 14.4].map(InWords.speed) == ["0 km/h", "52 km/h"])
        #expect(
            [0, 8.9, 60, 130, 3600, 3720, 90_000, 172_799, 172_800, 310_734_000].map {
                InWords.span(milliseconds: Int64($0 * 1000))
            }
                == [
                    "0 s", "8 s", "1 min", "2 min 10 s", "1 h", "1 h 02 min", "25 h", "47 h 59 min", "2 d",
                    "3596 d 11 h",
                ])
        #expect(
            [-1, 0, 119.4, 120, 7100, 7200, 172_000, 345_600, .nan].map(InWords.about(seconds:))
                == ["0 s", "0 s", "119 s", "2 min", "118 min", "2 h", "48 h", "4 days", "0 days"])
        #expect([400, 1000, 1500].map(InWords.interval) == ["400 ms", "1 s", "1500 ms"])
        #expect([0, 1, 2].map { InWords.count($0, "row") } == ["0 rows", "1 row", "2 rows"])
        #expect(InWords.stamp(UTCTime(milliseconds: 1_772_435_524_999)) == "2026-03-02 07:12:04")
    }

    @Test(arguments: [1e300, -1e300, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, -0.0])
    func anyNumberHasWords(_ value: Double) {
        for words in [
            InWords.distance(value), InWords.accuracy(value), InWords.speed(value), InWords.span(seconds: value),
        ] { #expect(words.contains(" ") && words.utf8.count < 24, "\(words)") }
    }

    @Test(arguments: [.min, .max, -1] as [Int64])
    func anySpanHasWords(_ milliseconds: Int64) {
        #expect(!InWords.span(milliseconds: milliseconds).isEmpty)
        #expect(!InWords.interval(milliseconds: milliseconds).isEmpty)
    }
}
