import Testing
import WaypostCore

@Suite struct TrustedTimeTests {
    private static let start: Int64 = 1_700_000_000_000
    private static let day: Int64 = 86_400_000

    private func instant(_ second: Int) -> EventTime { EventTime(nanoseconds: Int64(second) * 1_000_000_000) }

    /// A receiver whose date is off by so many milliseconds.
    private func feed(_ trusted: inout TrustedTime, off: Int64 = 0, seconds: ClosedRange<Int>) {
        for second in seconds {
            trusted.fixReceived(
                time: UTCTime(milliseconds: Self.start + off + Int64(second) * 1000), at: instant(second))
        }
    }

    /// Milliseconds after the start, by a host whose synchronised clock is off by so many.
    private func found(_ trusted: TrustedTime, at second: Int, hostOff: Int64 = 0) -> Int64? {
        trusted.time(at: instant(second), hostMs: Self.start + Int64(second) * 1000 + hostOff)
            .map { $0.lowerBound.milliseconds - Self.start }
    }

    @Test func isWhatReceiverAndHostAgreeOn() {
        var trusted = TrustedTime()
        #expect(found(trusted, at: 0) == nil)
        feed(&trusted, seconds: 0...59)
        #expect(found(trusted, at: 59) == nil)
        feed(&trusted, seconds: 60...61)
        #expect(found(trusted, at: 61) == 61_000)
        #expect(trusted.time(at: instant(61), hostMs: nil) == nil)
    }

    @Test(arguments: [(0, 0), (60_000, 0), (-60_000, -60_000), (day, 0), (-day, -day)] as [(Int64, Int64)])
    func isTheEarlierOfTwoThatAreADayApartAtMost(hostOff: Int64, found: Int64) {
        var trusted = TrustedTime()
        feed(&trusted, seconds: 0...100)
        #expect(self.found(trusted, at: 100, hostOff: hostOff) == 100_000 + found)
        let later = trusted.time(at: instant(100), hostMs: Self.start + 100_000 + hostOff)?.upperBound
        #expect(later?.milliseconds == Self.start + 100_000 + hostOff - found)
        let more: Int64 = hostOff < 0 ? -1 : 1
        #expect(self.found(trusted, at: 100, hostOff: more * (Self.day + 1)) == nil)
    }

    @Test func goesOnWhileTheReceiverSleeps() {
        var trusted = TrustedTime()
        feed(&trusted, seconds: 0...100)
        #expect(found(trusted, at: 30_000) == 30_000_000)
    }

    @Test func doesNotBelieveADateThatOnlyTheReceiverClaims() {
        var trusted = TrustedTime()
        feed(&trusted, seconds: 0...100)
        feed(&trusted, off: 35 * Self.day, seconds: 101...3000)
        #expect(found(trusted, at: 3000) == nil)
        feed(&trusted, seconds: 3001...3060)
        #expect(found(trusted, at: 3060) == nil)
        feed(&trusted, seconds: 3061...3061)
        #expect(found(trusted, at: 3061) == 3_061_000)
    }

    /// A host that was set by a wrong server, and is then put right.
    @Test func stepsBack() {
        var trusted = TrustedTime()
        feed(&trusted, off: 20 * 3_600_000, seconds: 0...100)
        #expect(found(trusted, at: 100, hostOff: 19 * 3_600_000) == 68_500_000)
        feed(&trusted, seconds: 101...200)
        #expect(found(trusted, at: 200) == 200_000)
    }

    @Test func survivesAbsurdTimes() {
        var trusted = TrustedTime()
        for time in [Int64.min, .max, 0, .max, .min] {
            for at in [Int64.min, .max, 0, .max] {
                trusted.fixReceived(time: UTCTime(milliseconds: time), at: EventTime(nanoseconds: at))
                for host in [Int64.min, 0, .max] { _ = trusted.time(at: EventTime(nanoseconds: at), hostMs: host) }
            }
        }
    }
}
