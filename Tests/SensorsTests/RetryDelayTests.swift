import Testing
import WaypostCore

@testable import Sensors

@Suite struct RetryDelayTests {
    @Test func doublesToTheLongestAndBeginsAnew() {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(10))
        let pauses = (0..<6).map { _ in delay.next() }
        #expect(pauses == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
        delay.reset()
        let first = delay.next()
        #expect(first == .seconds(1))
    }

    static let spreads: [(Double, Int64)] = [(0.0, 8000), (0.5, 7200), (1, 6400), (7, 6400), (-3, 8000), (.nan, 8000)]

    @Test(arguments: spreads)
    func spreadTakesOffAtMostAFifth(spread: Double, milliseconds: Int64) {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(60))
        for _ in 0..<3 { _ = delay.next(spread: 1) }
        let pause = delay.next(spread: spread)
        #expect(pause.milliseconds == milliseconds)
    }

    @Test func spreadNeverGoesBelowTheFirstPause() {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(60))
        let pause = delay.next(spread: 1)
        #expect(pause == .seconds(1))
    }
}
