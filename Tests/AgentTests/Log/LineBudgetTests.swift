import Positioning
import Testing

@testable import Agent

@Suite struct LineBudgetTests {
    @Test func aFloodIsCutAndCounted() {
        var budget = LineBudget()
        var now = EventTime.zero + .seconds(100)
        let first = (0..<30).map { _ in budget.spend(at: now) }
        #expect(first == Array(repeating: .write(withheld: 0), count: 12) + Array(repeating: .withhold, count: 18))
        now = now + .seconds(59)
        #expect(budget.spend(at: now) == .withhold)
        now = now + .seconds(1)
        #expect(budget.spend(at: now) == .write(withheld: 19))
        #expect(budget.spend(at: now) == .withhold)
        // A quiet hour is forgiven, not saved up.
        now = now + .seconds(3600)
        let later = (0..<20).map { _ in budget.spend(at: now) }
        #expect(later.prefix(2) == [.write(withheld: 1), .write(withheld: 0)])
        #expect(later.filter { $0 == .withhold }.count == 8)
    }

    @Test func longPausesDoNotTrap() {
        var budget = LineBudget()
        for time in [EventTime(nanoseconds: .min / 4), .zero, EventTime(nanoseconds: .max / 4), .zero] {
            _ = budget.spend(at: time)
        }
    }
}
