import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

/// An answer acts on the attempt that it is to, or on nothing.
@Suite struct AttemptTests {
    private func schedule(_ batches: [DeliverySchedule.InFlight] = [.init(id: "a", rows: 10)]) -> DeliverySchedule {
        DeliverySchedule(settings: DeliveryScheduleTests.settings(), waiting: 3, inFlight: batches, at: at(0))
    }

    private enum Kind: CaseIterable {
        case batch, preview, refresh, bind

        func start(_ schedule: inout DeliverySchedule, at now: EventTime) -> Attempt? {
            switch self {
            case .batch: return schedule.attemptStarted("a", at: now)
            case .preview: return schedule.previewStarted(99, at: now)
            case .refresh: return schedule.refreshStarted(at: now)
            case .bind:
                schedule.bindRequested()
                return schedule.bindStarted(at: now)
            }
        }

        func answer(_ schedule: inout DeliverySchedule, _ attempt: Attempt, at now: EventTime) {
            switch self {
            case .batch: #expect(schedule.attemptFinished(attempt, .accepted, .init(), jitter: 0, at: now) == nil)
            case .preview:
                schedule.previewFinished(attempt, .retry(.status(503), after: .seconds(60)), jitter: 0, at: now)
            case .refresh: schedule.credentialsRefreshed(attempt, .none, jitter: 0, at: now)
            case .bind: #expect(schedule.receives(attempt) == false)
            }
        }
    }

    @Test(arguments: Kind.allCases, Kind.allCases)
    private func whatWasGivenUpChangesNothingThatRunsNow(_ late: Kind, _ current: Kind) throws {
        var schedule = schedule()
        let old = try #require(late.start(&schedule, at: at(1)))
        #expect(schedule.abandonAttempt() == old && schedule.attempt == nil)
        if late == .preview, current == .preview { _ = schedule.previewStarted(nil, at: at(1)) }
        let new = current == .preview ? schedule.previewStarted(100, at: at(2)) : current.start(&schedule, at: at(2))
        let attempt = try #require(new)
        #expect(attempt != old)
        let before = (schedule.inFlight, schedule.waiting, schedule.state, schedule.restsUntil)
        late.answer(&schedule, old, at: at(3))
        #expect(schedule.attempt == attempt && schedule.strayAnswers == 1)
        #expect(before == (schedule.inFlight, schedule.waiting, schedule.state, schedule.restsUntil))
        #expect(schedule.next(at: at(4)) == .wait(until: nil))
    }

    @Test func theSameBatchTwiceIsTwoAttempts() {
        var schedule = schedule()
        let first = schedule.attemptStarted("a", at: at(0))
        _ = schedule.attemptFinished(first, .retry(.status(503), after: nil), .init(), jitter: 0, at: at(1))
        let second = schedule.attemptStarted("a", at: at(2))
        #expect(first.purpose == second.purpose && first.number < second.number && first.endpoint == "main")
        #expect(
            schedule.attemptFinished(first, .accepted, .init(), jitter: 0, at: at(3)) == nil && schedule.inFlight == 10)
    }

    /// What the queue says counts whenever it says it; only the request that was waited for ends with its answer.
    @Test func aListThatIsNotWaitedForCountsAndEndsNothing() {
        var schedule = schedule([])
        let asked = schedule.formRequested(at: at(0))
        #expect(schedule.batchesFormed([], of: asked + 1, at: at(1)) == false)
        schedule.notFormed(asked + 1, at: at(1))
        #expect(schedule.formNumber == asked)
        #expect(schedule.batchesFormed([.init(id: "a", rows: 3)], of: asked, at: at(2)) == true)
        let attempt = schedule.attemptStarted("a", at: at(2))
        #expect(schedule.batchesFormed([], of: asked, at: at(3)) == false)
        #expect(schedule.attempt == attempt && schedule.inFlight == 0)
        #expect(schedule.attemptFinished(attempt, .accepted, .init(), jitter: 0, at: at(4)) == [])
        #expect(schedule.next(at: at(4)) == .wait(until: nil))
    }

    @Test func whatIsEmptiedEndsNoAttempt() {
        var schedule = schedule()
        let attempt = schedule.attemptStarted("a", at: at(0))
        schedule.startsOver()
        #expect(schedule.attempt == attempt)
        #expect(schedule.next(at: at(1)) == .wait(until: nil))
    }

    static let answers: [(Verdict, EndpointState, Int)] = [
        (.accepted, .active, 0), (.split(status: 400), .active, 1),
        (.tooLarge(status: 413, after: nil), .active, 1), (.retry(.status(503), after: nil), .active, 1),
        (.partlyAccepted(.init(refused: [1: "bad"])), .active, 0),
        (.goneStop(status: 410), .paused(reason: "gone"), 1),
        (.misconfigured(status: 405), .paused(reason: "configuration (status 405)"), 1),
    ]

    /// The queue may dissolve the batch of an endpoint that is not required while it is on its way.
    @Test(arguments: AttemptTests.answers)
    func anAnswerToADissolvedBatchSaysHowTheServerIs(verdict: Verdict, state: EndpointState, failures: Int) {
        var schedule = schedule()
        let attempt = schedule.attemptStarted("a", at: at(0))
        schedule.startsOver()
        #expect(schedule.attemptFinished(attempt, verdict, .init(), jitter: 0, at: at(1)) == [])
        #expect(schedule.state == state && schedule.failures == failures)
        schedule.resumed(at: at(2))
        #expect(schedule.next(at: at(2)) == .form(limit: 0))
    }

    @Test func otherCredentialsMayBeRenewedAtOnce() {
        var schedule = schedule()
        schedule.tries("a", .authStop(status: 401), at: at(1))
        schedule.startsRefresh(at: at(1))
        #expect(schedule.abandonAttempt()?.purpose == .refresh)
        schedule.credentialsReplaced()
        #expect(schedule.next(at: at(2)) == .send(batch: "a"))
        schedule.tries("a", .authStop(status: 401), at: at(3))
        #expect(schedule.state == .active && schedule.next(at: at(3)) == .refreshCredentials)
    }

    @Test func aBindComesNextAndHoldsEverythingElseUntilItEnds() {
        var schedule = schedule()
        let sent = schedule.attemptStarted("a", at: at(0))
        schedule.bindRequested()
        #expect(schedule.next(at: at(1)) == .wait(until: nil))
        _ = schedule.attemptFinished(sent, .retry(.status(503), after: .seconds(5)), .init(), jitter: 0, at: at(1))
        #expect(schedule.next(at: at(1)) == .wait(until: at(6)))
        #expect(schedule.next(at: at(6)) == .bind)
        _ = schedule.bindStarted(at: at(6))
        schedule.bindAnswered(asked: .seconds(20), at: at(7))
        #expect(schedule.next(at: at(100)) == .wait(until: nil))
        schedule.bindEnded()
        #expect(schedule.next(at: at(8)) == .wait(until: at(27)))
        #expect(schedule.next(at: at(27)) == .send(batch: "a"))
        schedule.bindRequested()
        schedule.bindWithdrawn()
        #expect(schedule.next(at: at(27)) == .send(batch: "a"))
    }
}
