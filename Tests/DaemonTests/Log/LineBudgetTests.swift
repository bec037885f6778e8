import Testing
import WaypostCore

@testable import Daemon

@Suite struct LineBudgetTests {
    @Test func aFloodIsCutAndCounted() {
        var budget = LineBudget()
        var now = EventTime.zero + .seconds(100)
        func spend(_ count: Int) -> [LineBudget.Verdict] { (0..<count).map { _ in budget.spend(at: now) } }
        let free = [LineBudget.Verdict](repeating: .write(withheld: 0), count: 12)
        let none = [LineBudget.Verdict](repeating: .withhold, count: 18)
        #expect(spend(30) == free + none)
        now = now + .seconds(59)
        #expect(budget.spend(at: now) == .withhold)
        now = now + .seconds(1)
        #expect(budget.spend(at: now) == .write(withheld: 19))
        #expect(budget.spend(at: now) == .withhold)
        // A quiet hour is forgiven, not saved up.
        now = now + .seconds(3600)
        let later = spend(20)
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
