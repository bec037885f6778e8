import Testing
import WaypostCore

@testable import Places

@Suite struct FetchScheduleTests {
    private let every = Duration.seconds(6 * 3600)

    private func at(_ seconds: Double) -> EventTime { .zero + .seconds(seconds) }

    private func fetched(jitter: Double = 0.5) -> FetchSchedule {
        var schedule = FetchSchedule(every: every)
        schedule.started(sinceBoot: false, at: at(0), jitter: 0)
        schedule.fetchStarted()
        schedule.fetched(at: at(10), jitter: jitter)
        return schedule
    }

    @Test func asksAtOnceAndThenOncePerPeriodWithATenthToEitherSide() {
        var schedule = FetchSchedule(every: every)
        #expect(schedule.nextDeadline == nil)
        schedule.started(sinceBoot: false, at: at(5), jitter: 0.9)
        #expect(schedule.nextDeadline == at(5))
        schedule.fetchStarted()
        #expect(schedule.nextDeadline == nil && schedule.isFetching)
        #expect([0, 0.5].map { fetched(jitter: $0).nextDeadline } == [at(19_450), at(21_610)])
        #expect(fetched(jitter: 0.999).nextDeadline! < at(23_770))
        #expect(fetched().confirmedAt == at(10))
    }

    @Test func aFleetThatIsSwitchedOnSpreads() {
        var schedule = FetchSchedule(every: every)
        schedule.started(sinceBoot: true, isUnfinished: true, at: at(0), jitter: 0.5)
        #expect(schedule.nextDeadline == at(915))
        schedule.started(sinceBoot: true, at: at(0), jitter: 0.5)
        #expect(schedule.nextDeadline == at(15))
    }

    @Test func backsOffAfterFailuresUpToAnHour() {
        var schedule = fetched()
        var delays: [Double] = []
        for _ in 0..<10 {
            schedule.fetchStarted()
            schedule.failed(asked: nil, at: at(100), jitter: 1)
            delays.append(schedule.nextDeadline!.seconds(since: at(100)))
        }
        #expect(delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600])
        #expect(schedule.failures == 10 && schedule.confirmedAt == at(10))
        schedule.fetchStarted()
        schedule.fetched(at: at(200), jitter: 0.5)
        #expect(schedule.failures == 0)
    }

    @Test func aShortPeriodIsNotStretchedByFailures() {
        var schedule = FetchSchedule(every: .seconds(60))
        schedule.started(sinceBoot: false, at: at(0), jitter: 0)
        for _ in 0..<5 {
            schedule.fetchStarted()
            schedule.failed(asked: nil, at: at(0), jitter: 1)
        }
        #expect(schedule.nextDeadline == at(60))
    }

    @Test func theServerMayAskForAPauseOfUpToADay() {
        var schedule = fetched()
        schedule.fetchStarted()
        schedule.failed(asked: .seconds(7200), at: at(100), jitter: 0)
        #expect(schedule.nextDeadline == at(7300))
        // Neither an operator nor a link cuts it short.
        #expect(schedule.requested(at: at(200)) == at(7300) && schedule.nextDeadline == at(7300))
        schedule.linkChanged(at: at(300))
        #expect(schedule.nextDeadline == at(7300))
        #expect(schedule.requested(at: at(7400)) == nil && schedule.nextDeadline == at(7400))
        schedule.fetchStarted()
        schedule.failed(asked: .seconds(10 * 86_400), at: at(7400), jitter: 0)
        #expect(schedule.nextDeadline == at(7400 + 86_400))
    }

    @Test func aWishWhileARequestIsUnderWayIsARequestOfItsOwn() {
        var schedule = fetched()
        schedule.fetchStarted()
        #expect(schedule.requested(at: at(50)) == nil && schedule.nextDeadline == nil)
        schedule.fetched(at: at(60), jitter: 0.5)
        #expect(schedule.nextDeadline == at(60))
        schedule.fetchStarted()
        schedule.fetched(at: at(70), jitter: 0.5)
        #expect(schedule.nextDeadline == at(70 + 21_600))
    }

    @Test func aNewLinkBringsForwardWhatFailed() {
        var schedule = fetched()
        schedule.linkChanged(at: at(20))
        #expect(schedule.nextDeadline == at(10 + 21_600))
        for _ in 0..<6 {
            schedule.fetchStarted()
            schedule.failed(asked: nil, at: at(100), jitter: 1)
        }
        schedule.linkChanged(at: at(110))
        #expect(schedule.nextDeadline == at(130))
        schedule.linkChanged(at: at(125))
        #expect(schedule.nextDeadline == at(130))
    }
}
