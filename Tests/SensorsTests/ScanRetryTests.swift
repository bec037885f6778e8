import Testing
import WaypostCore

@testable import Sensors

@Suite struct ScanRetryTests {
    /// BlueZ refuses to scan for an hour, and says something every 10 ms: what it says may end a pause.
    private static let news = [false, true]

    @Test(arguments: news) func refusalsForAnHourAreFewAttempts(isNews: Bool) {
        var retry = ScanRetry()
        var attempts = 0
        for step in 0..<360_000 {
            let now = EventTime.zero + .milliseconds(10 * step)
            _ = retry.takeDue(at: now)
            if isNews { _ = retry.newsCame(at: now) }
            guard retry.dueAt == nil else { continue }
            attempts += 1
            retry.failed(at: now)
        }
        // 1 + 2 + 4 + … + 60 s; each minute one piece of news may end a pause early.
        #expect(attempts > 60 && attempts <= (isNews ? 130 : 70), "\(attempts)")
    }

    /// The adapter scans, and goes off at once.
    @Test func scanningThatEndsAtOnceIsNoSuccess() {
        var retry = ScanRetry()
        var pauses: [Double] = []
        var now = EventTime.zero
        for _ in 0..<8 {
            retry.scanningStarted(at: now)
            now = now + .seconds(1)
            retry.failed(at: now)
            let due = retry.dueAt ?? now
            pauses.append(due.seconds(since: now))
            now = due
            let isDue = retry.takeDue(at: now)
            #expect(isDue)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
        retry.scanningStarted(at: now)
        retry.failed(at: now + .seconds(10))
        #expect(retry.dueAt == now + .seconds(11), "what lasted counts from the beginning")
    }

    @Test func newsEndsAPauseAtOnceUnlessThereWasMuch() {
        var retry = ScanRetry()
        for isOver in [true, true, true, false] {
            retry.failed(at: .zero)
            let mayTry = retry.newsCame(at: .zero)
            #expect(mayTry == isOver)
        }
    }
}
