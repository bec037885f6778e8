import Protocols
import Testing
import WaypostCore

@Suite struct BackoffTests {
    static let delays: [(Int, Double, Duration)] = [
        (1, 0.0, .seconds(1)), (1, 0.5, .milliseconds(1500)), (2, 0.5, .milliseconds(2500)),
        (3, 0.25, .milliseconds(2750)), (8, 0.0, .seconds(1)), (8, 1.0, .seconds(256)), (9, 1.0, .seconds(300)),
        (63, 0.5, .milliseconds(150_500)), (64, 0.5, .milliseconds(150_500)), (.max, 0.5, .milliseconds(150_500)),
        (0, 0.9, .seconds(1)), (.min, 0.9, .seconds(1)), (5, .nan, .seconds(1)), (5, -3, .seconds(1)),
        (5, .infinity, .seconds(32)),
    ]

    @Test(arguments: delays)
    func growsFromBaseToCap(failures: Int, jitter: Double, expected: Duration) {
        #expect(Backoff().delay(failures: failures, jitter: jitter) == expected)
    }

    @Test(
        arguments: [
            (2, 0.5, .milliseconds(30_500)), (3, 1.0, .seconds(120)), (9, 1.0, .seconds(300)), (2, 0.0, .seconds(1)),
        ] as [(Int, Double, Duration)])
    func isSpreadAsFarAsIsAsked(failures: Int, jitter: Double, expected: Duration) {
        #expect(Backoff().delay(failures: failures, jitter: jitter, spread: .seconds(60)) == expected)
        #expect(Backoff().delay(failures: 2, jitter: 1, spread: .seconds(86_400)) == .seconds(300))
    }

    @Test func neverLeavesItsBoundsWhateverTheSettings() {
        for base in [.zero, .nanoseconds(1), .seconds(1), .seconds(Int64.max)] as [Duration] {
            for cap in [.zero, .seconds(7), .seconds(Int64.max)] as [Duration] {
                let backoff = Backoff(base: base, cap: cap)
                let bounds: ClosedRange<Int64> = base.nanoseconds...max(base, cap).nanoseconds
                for failures in [0, 1, 31, 62, 63, 1000] {
                    let delay = backoff.delay(failures: failures, jitter: 0.999_999_999_999)
                    #expect(bounds.contains(delay.nanoseconds), "\(base), \(cap), \(failures)")
                }
            }
        }
    }

    @Test(
        arguments: [
            (nil, .seconds(4)), (.seconds(2), .seconds(4)), (.seconds(90), .seconds(90)),
            (.seconds(1_000_000), .seconds(3600)),
        ] as [(Duration?, Duration)])
    func waitsAsLongAsTheServerAsksWithinAnHour(asked: Duration?, expected: Duration) {
        #expect(Backoff(base: .seconds(4), cap: .seconds(4)).delay(failures: 1, jitter: 0, asked: asked) == expected)
    }
}

@Suite struct RetryAfterTests {
    private func parse(_ values: String..., date: String? = "Sun, 06 Nov 1994 08:49:37 GMT") -> Duration? {
        var headers = values.map { UplinkRequest.Header("retry-after", $0) }
        if let date { headers.append(.init("date", date)) }
        return RetryAfter.parse(headers)
    }

    static let values: [(String, Duration?)] = [
        ("120", .seconds(120)), ("0", nil), ("0007", .seconds(7)),
        ("9999999999", .seconds(9_999_999_999)),
        ("99999999999", nil), ("+5", nil), ("-5", nil), ("1.5", nil), ("1e3", nil), ("", nil), (" ", nil), ("12 ", nil),
        ("soon", nil),
        ("Sun, 06 Nov 1994 08:51:37 GMT", .seconds(120)), ("Sunday, 06-Nov-94 08:51:37 GMT", .seconds(120)),
        ("Sun Nov  6 08:51:37 1994", .seconds(120)), ("Sun, 06 Nov 1994 08:49:37 GMT", nil),
        ("Sat, 05 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:51:37 UTC", nil),
        ("Sun, 31 Feb 1995 08:51:37 GMT", nil), ("Sun, 06 Nov 1994 24:51:37 GMT", nil),
        ("Sun, 06 Nov 99999999999999999999 08:51:37 GMT", nil),
        ("Friday, 06-Nov-44 08:49:37 GMT", .seconds(1_577_923_200)), ("Sunday, 06-Nov-45 08:49:37 GMT", nil),
    ]

    @Test(arguments: values)
    func readsSecondsAndDates(value: String, expected: Duration?) {
        #expect(parse(value) == expected)
    }

    @Test func comparesDatesWithTheReplyOnly() {
        #expect(parse("Sun, 06 Nov 1994 08:51:37 GMT", date: nil) == nil)
        #expect(parse("Sun, 06 Nov 1994 08:51:37 GMT", date: "yesterday") == nil)
        #expect(parse("Sun, 06 Nov 1994 08:51:37 GMT", date: "Sunday, 06-Nov-94 08:51:07 GMT") == .seconds(30))
    }

    @Test func takesTheFirstValidOfRepeatedFields() {
        #expect(parse("soon", "20", "5") == .seconds(20))
        #expect(parse("0", "20") == nil)
        #expect(RetryAfter.parse([]) == nil)
    }
}
