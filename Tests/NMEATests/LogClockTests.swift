import NMEA
import Positioning
import Testing

@Suite("Log clock") struct LogClockTests {
    private func fix(_ second: Double?) -> Epoch {
        .fix(
            Fix(
                time: second.map { UTCTime(milliseconds: Int64($0 * 1000)) }, timeOfDay: 0, at: .zero,
                coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0)))
    }

    private let void = Epoch.void(VoidEpoch(time: nil, timeOfDay: nil, at: .zero, reason: .void))

    private func seconds(_ clock: inout LogClock, _ epochs: [Epoch]) -> [Double] {
        epochs.map { Double(clock.time(of: $0).nanoseconds) / 1e9 }
    }

    @Test func followsDatedFixes() {
        var clock = LogClock()
        #expect(clock.now == nil)
        #expect(seconds(&clock, [fix(100), fix(101), fix(101.2), fix(500)]) == [100, 101, 101.2, 500])
    }

    @Test func isZeroBeforeTheFirstDate() {
        var clock = LogClock()
        #expect(seconds(&clock, [void, fix(nil)]) == [0, 0])
        #expect(clock.now == nil)
    }

    @Test func advancesByTheMedianWithoutADate() {
        var clock = LogClock()
        #expect(seconds(&clock, [fix(100), fix(102), fix(104), fix(120), fix(122)]).last == 122)
        #expect(seconds(&clock, [void, fix(nil), void, fix(130)]) == [124, 126, 128, 130])
    }

    @Test func advancesBySecondsWhileTheIntervalIsUnknown() {
        var clock = LogClock()
        #expect(seconds(&clock, [fix(100), void, void, fix(105)]) == [100, 101, 102, 105])
    }

    @Test func holdsWhenAFixIsNotLater() {
        var clock = LogClock()
        #expect(
            seconds(&clock, [fix(100), fix(101), fix(101), fix(99), fix(100), fix(101), fix(102)]) == [
                100, 101, 101, 101, 101, 101, 102,
            ])
    }

    @Test func neverGoesBackWhenVoidEpochsRanAhead() {
        var clock = LogClock()
        let times = seconds(
            &clock, [fix(100), fix(101), void, void, void, void, fix(103), fix(104), fix(105), fix(106)])
        #expect(times == [100, 101, 102, 103, 104, 105, 105, 105, 105, 106])
    }

    @Test func followsAClockSetBackByAnHour() {
        var clock = LogClock()
        _ = seconds(&clock, [fix(7198), fix(7199), fix(7200)])
        #expect(
            seconds(&clock, (0..<13).map { fix(3600 + Double($0)) }) == Array(repeating: 7200, count: 9) + [
                7210, 7211, 7212, 7213,
            ])
        #expect(seconds(&clock, [void, fix(3614)]) == [7214, 7215])
    }

    @Test func repeatsAndStepsThatDoNotRiseNeverRebase() {
        var clock = LogClock()
        _ = seconds(&clock, [fix(100), fix(101)])
        for _ in 0..<10 { #expect(seconds(&clock, [fix(90), fix(91), fix(92)]) == [101, 101, 101]) }
        for _ in 0..<20 { #expect(seconds(&clock, [fix(95)]) == [101]) }
        #expect(seconds(&clock, [fix(102)]) == [102])
    }

    @Test func goesOnInAnotherRun() {
        var clock = LogClock(resume: ResumePoint(offset: 1, time: UTCTime(milliseconds: 100_000)))
        #expect(clock.now == EventTime(nanoseconds: 100_000_000_000))
        #expect(seconds(&clock, [fix(99), fix(100), fix(101)]) == [100, 100, 101])
        #expect(LogClock(resume: .start).now == nil)
    }

    @Test func survivesAbsurdTimes() {
        var clock = LogClock()
        for ms: Int64 in [.max, .min, 0, .max, -1] {
            _ = clock.time(
                of: .fix(
                    Fix(
                        time: UTCTime(milliseconds: ms), timeOfDay: 0, at: .zero,
                        coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0))))
            _ = clock.time(of: void)
        }
        for i: Int64 in 0..<12 {
            _ = clock.time(
                of: .fix(
                    Fix(
                        time: UTCTime(milliseconds: .min + i), timeOfDay: 0, at: .zero,
                        coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0))))
        }
        let reached = clock.now
        _ = clock.time(of: fix(2_000_000_000))
        #expect(clock.now != nil && clock.now! >= reached!)
    }
}
