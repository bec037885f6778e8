import Positioning
import Testing

@Suite struct TrustedTimeTests {
    private func feed(_ trusted: inout TrustedTime, from start: Int64, seconds: ClosedRange<Int>, at offset: Int = 0) {
        for second in seconds {
            trusted.fixReceived(
                time: UTCTime(milliseconds: start + Int64(second) * 1000),
                at: EventTime(nanoseconds: Int64(second + offset) * 1_000_000_000))
        }
    }

    @Test func believesAReceiverAfterAMinuteOfEvenTime() {
        var trusted = TrustedTime()
        feed(&trusted, from: 1_700_000_000_000, seconds: 0...59)
        #expect(trusted.newest == nil)
        feed(&trusted, from: 1_700_000_000_000, seconds: 60...61)
        #expect(trusted.newest == UTCTime(milliseconds: 1_700_000_061_000))
    }

    @Test func doesNotBelieveAJumpUntilItHasLasted() {
        var trusted = TrustedTime()
        feed(&trusted, from: 1_700_000_000_000, seconds: 0...100)
        let tenYears: Int64 = 315_360_000_000
        feed(&trusted, from: 1_700_000_000_000 + tenYears, seconds: 101...130)
        #expect(trusted.newest == UTCTime(milliseconds: 1_700_000_100_000))
        feed(&trusted, from: 1_700_000_000_000, seconds: 131...150)
        #expect(trusted.newest == UTCTime(milliseconds: 1_700_000_100_000))
        feed(&trusted, from: 1_700_000_000_000, seconds: 151...300)
        #expect(trusted.newest == UTCTime(milliseconds: 1_700_000_300_000))
    }

    @Test func neverGoesBack() {
        var trusted = TrustedTime()
        feed(&trusted, from: 1_700_000_000_000, seconds: 0...100)
        feed(&trusted, from: 1_080_000_000_000, seconds: 101...900)
        #expect(trusted.newest == UTCTime(milliseconds: 1_700_000_100_000))
    }

    @Test func survivesAbsurdTimes() {
        var trusted = TrustedTime()
        for time in [Int64.min, .max, 0, .max, .min] {
            for at in [Int64.min, .max, 0] {
                trusted.fixReceived(time: UTCTime(milliseconds: time), at: EventTime(nanoseconds: at))
            }
        }
    }
}
