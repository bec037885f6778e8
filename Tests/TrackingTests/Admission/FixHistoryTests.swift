import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct FixHistoryTests {
    private func append(_ history: inout FixHistory, _ seconds: Double, clock: Double = 0) -> FixHistory.Arrival {
        let (at, time) = (EventTime.zero + .seconds(seconds), Script.start + .seconds(seconds + clock))
        let fix = Fix(time: time, timeOfDay: time.timeOfDay, at: at, coordinate: Script.origin)
        return history.append(fix, time: time, at: at, measuresInterval: true)
    }

    @Test func silenceRunsOnTheEventTimeAndAcrossARestartOnTheReceiversTime() {
        let last = StoredState.LastFix(time: Script.start, coordinate: Script.origin)
        var history = FixHistory(span: .seconds(600), restored: last)
        let first = append(&history, 90)
        #expect(first.silence == 90 && first.restored == last && history.restored == nil)
        let second = append(&history, 95)
        #expect(second.silence == 5)
        #expect(FixHistory(span: .seconds(600), restored: nil).utc(at: .zero) == nil)
    }

    @Test func aClockStepIsMoreThanTwoSecondsOff() {
        var history = FixHistory(span: .seconds(600), restored: nil)
        let steps = [(0.0, 0.0), (1, 2), (2, 60)].map { append(&history, $0, clock: $1).clockStep }
        #expect(steps == [nil, nil, 58_000])
        #expect(history.utc(at: .zero + .seconds(3)) == Script.start + .seconds(63))
    }

    @Test func theRingHoldsItsSpanAndNoMoreThan64KiB() {
        var history = FixHistory(span: .seconds(100_000), restored: nil)
        for second in 0..<2000 { _ = append(&history, Double(second)) }
        #expect(history.ring.count * MemoryLayout<FixRing.Entry>.stride <= 65_536)
        history.keepNewest()
        #expect(history.ring.count == 1)
    }
}
