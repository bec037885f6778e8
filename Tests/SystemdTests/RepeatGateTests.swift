import Testing

@testable import Systemd

@Suite struct RepeatGateTests {
    private let second: Int64 = 1_000_000_000

    @Test func tellsTheFirstThenEveryTenthMinuteThenTheEnd() {
        var gate = RepeatGate()
        let first = gate.occurred(at: 0)
        #expect(first == .first)
        var told: [Int64: RepeatGate.Verdict] = [:]
        for at in stride(from: 60, through: 1500, by: 60) {
            let verdict = gate.occurred(at: Int64(at) * second)
            if verdict != .suppressed { told[Int64(at)] = verdict }
        }
        #expect(told == [600: .again(count: 10), 1200: .again(count: 10)])
        #expect(gate.isOpen)
        let summary = gate.ended(at: 1510 * second)
        #expect(summary == RepeatGate.Summary(count: 26, nanoseconds: 1510 * second))
        #expect(!gate.isOpen)
    }

    @Test func endOfNothingIsNoNews() {
        var gate = RepeatGate()
        let summary = gate.ended(at: 5)
        #expect(summary == nil)
    }

    @Test func aProblemThatComesBackIsNewAgain() {
        var gate = RepeatGate()
        _ = gate.occurred(at: 0)
        _ = gate.ended(at: second)
        let verdict = gate.occurred(at: 2 * second)
        #expect(verdict == .first)
    }
}
