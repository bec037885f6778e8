import Testing
import WaypostCore
import WaypostNMEA

@Suite("Log clock") struct LogClockTests {
    private func fix(_ second: Double?) -> Epoch { fix(at: second.map { Int64($0 * 1000) }) }

    private func fix(at milliseconds: Int64?) -> Epoch {
        .fix(
            Fix(
                time: milliseconds.map { UTCTime(milliseconds: $0) }, timeOfDay: 0, at: .zero,
                coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0)))
    }

    private let void = Epoch.void(VoidEpoch(time: nil, timeOfDay: nil, at: .zero, reason: .void))

    private func seconds(_ clock: inout LogClock, _ epochs: [Epoch]) -> [Double] {
        epochs.map { Double(clock.time(of: $0).nanoseconds) / 1e9 }
    }

    @Test func followsWhatIsDatedAndAdvancesOtherwise() {
        let rows: [(String, [Epoch], [Double])] = [
            ("dated fixes", [fix(100), fix(101), fix(101.2), fix(500)], [100, 101, 101.2, 500]),
            (
                "by the median without a date",
                [fix(100), fix(102), fix(104), fix(120), fix(122), void, fix(nil), void, fix(130)],
                [100, 102, 104, 120, 122, 124, 126, 128, 130]
            ),
            ("by seconds while no interval is known", [fix(100), void, void, fix(105)], [100, 101, 102, 105]),
            (
                "holds when a fix is not later",
                [fix(100), fix(101), fix(101), fix(99), fix(100), fix(101), fix(102)],
                [100, 101, 101, 101, 101, 101, 102]
            ),
            (
                "never goes back when void epochs ran ahead",
                [fix(100), fix(101), void, void, void, void, fix(103), fix(104), fix(105), fix(106)],
                [100, 101, 102, 103, 104, 105, 105, 105, 105, 106]
            ),
        ]
        for (situation, epochs, times) in rows {
            var clock = LogClock()
            #expect(clock.now == nil && seconds(&clock, epochs) == times, "\(situation)")
        }
    }

    @Test func isZeroBeforeTheFirstDate() {
        var clock = LogClock()
        #expect(seconds(&clock, [void, fix(nil)]) == [0, 0])
        #expect(clock.now == nil)
    }

    @Test func followsAClockSetBackByAnHour() {
        var clock = LogClock()
        _ = seconds(&clock, [fix(7198), fix(7199), fix(7200)])
        let back: [Epoch] = (0..<13).map { fix(3600 + Double($0)) }
        let held = [Double](repeating: 7200, count: 9)
        #expect(seconds(&clock, back) == held + [7210, 7211, 7212, 7213] as [Double])
        #expect(seconds(&clock, [void, fix(3614)]) == [7214, 7215])
    }

    @Test func repeatsAndStepsThatDoNotRiseNeverRebase() {
        var clock = LogClock()
        _ = seconds(&clock, [fix(100), fix(101)])
        var times: [Double] = []
        for _ in 0..<10 { times += seconds(&clock, [fix(90), fix(91), fix(92)]) }
        for _ in 0..<20 { times += seconds(&clock, [fix(95)]) }
        #expect(times == [Double](repeating: 101, count: 50))
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
        for ms in [.max, .min, 0, .max, -1] as [Int64] { _ = seconds(&clock, [fix(at: ms), void]) }
        for i in 0..<12 as Range<Int64> { _ = clock.time(of: fix(at: .min + i)) }
        let reached = clock.now
        _ = clock.time(of: fix(2_000_000_000))
        #expect(clock.now != nil && clock.now! >= reached!)
    }
}
