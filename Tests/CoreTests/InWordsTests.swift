import Testing

@testable import WaypostCore

@Suite struct InWordsTests {
    @Test func quantities() {
        let distances: [Double] = [0, 849.6, 999.4, 1000, 12_345]
        #expect(distances.map { InWords.distance($0) } == ["0 m", "850 m", "999 m", "1.0 km", "12.3 km"])
        let accuracies: [Double] = [0.001, 0.034, 0.5, 1.4, 12]
        #expect(accuracies.map(InWords.accuracy) == ["0.01 m", "0.03 m", "0.50 m", "1 m", "12 m"])
        #expect([InWords.speed(0), InWords.speed(14.4)] == ["0 km/h", "52 km/h"])
        #expect(DisplayUnits.allCases.map { InWords.speed(14.4, in: $0) } == ["52 km/h", "32 mph", "28 knots"])
        #expect(DisplayUnits.allCases.map { InWords.distance(12_345, in: $0) } == ["12.3 km", "7.7 mi", "6.7 nmi"])
        #expect(InWords.distance(999, in: .imperial) == "999 m")
        let lengths: [Int64] = [400, 1000, 1500, 207_400, 9999]
        #expect(lengths.map(InWords.length) == ["400 ms", "1 s", "1.5 s", "3 min 27 s", "10 s"])
        let spans: [(Int64, String)] = [
            (0, "0 s"), (8900, "8 s"), (60_000, "1 min"), (130_000, "2 min 10 s"), (3_600_000, "1 h"),
            (3_720_000, "1 h 02 min"), (90_000_000, "25 h"), (172_799_000, "47 h 59 min"), (172_800_000, "2 d"),
            (310_734_000_000, "3596 d 11 h"),
        ]
        for (milliseconds, words) in spans { #expect(InWords.span(milliseconds: milliseconds) == words) }
        let seconds: [Double] = [-1, 0, 119.4, 120, 7100, 7200, 172_000, 345_600, .nan]
        let about: [String] = ["0 s", "0 s", "119 s", "2 min", "118 min", "2 h", "48 h", "4 days", "0 days"]
        #expect(seconds.map(InWords.about(seconds:)) == about)
        let intervals: [Int64] = [400, 1000, 1500]
        #expect(intervals.map(InWords.interval) == ["400 ms", "1 s", "1500 ms"])
        let counts: [String] = [0, 1, 2].map { InWords.count($0, "row") }
        #expect(counts == ["0 rows", "1 row", "2 rows"])
        #expect(InWords.stamp(UTCTime(milliseconds: 1_772_435_524_999)) == "2026-03-02 07:12:04")
    }

    @Test(arguments: [1e300, -1e300, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, -0.0] as [Double])
    func anyNumberHasWords(_ value: Double) {
        let words: [String] = [
            InWords.distance(value), InWords.accuracy(value), InWords.speed(value), InWords.span(seconds: value),
        ]
        #expect(words.first { !$0.contains(" ") || $0.utf8.count >= 24 } == nil)
    }

    @Test(arguments: [.min, .max, -1] as [Int64])
    func anySpanHasWords(_ milliseconds: Int64) {
        #expect(!InWords.span(milliseconds: milliseconds).isEmpty)
        #expect(!InWords.interval(milliseconds: milliseconds).isEmpty)
    }
}
