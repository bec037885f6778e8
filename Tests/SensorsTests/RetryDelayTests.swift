import Positioning
import Testing

@testable import Sensors

@Suite struct RetryDelayTests {
    @Test func doublesToTheLongestAndBeginsAnew() {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(10))
        let pauses = (0..<6).map { _ in delay.take() }
        #expect(pauses == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
        delay.reset()
        #expect(delay.take() == .seconds(1))
    }

    @Test(arguments: [(0.0, 8.0), (0.5, 7.2), (1, 6.4), (7, 6.4), (-3, 8), (.nan, 8)])
    func spreadTakesOffAtMostAFifth(spread: Double, seconds: Double) {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(60))
        for _ in 0..<3 { _ = delay.take(spread: 1) }
        #expect(delay.take(spread: spread) == .seconds(seconds))
    }

    @Test func spreadNeverGoesBelowTheFirstPause() {
        var delay = RetryDelay(from: .seconds(1), to: .seconds(60))
        #expect(delay.take(spread: 1) == .seconds(1))
    }
}
