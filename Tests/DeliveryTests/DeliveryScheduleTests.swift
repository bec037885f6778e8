import Delivery
import Positioning
import TestSupport
import Testing

@Suite struct DeliveryScheduleTests {
    private static func at(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

    private static func settings(size: Int = 100, minBatch: Int = 1) -> EndpointSettings {
        EndpointSettings(baseURL: "http://x", device: "d", batchSize: size, minBatch: minBatch)
    }

    private func schedule(size: Int = 100, minBatch: Int = 1) -> DeliverySchedule {
        DeliverySchedule(settings: Self.settings(size: size, minBatch: minBatch), at: Self.at(0))
    }

    /// With a batch of `count` rows on its way.
    private func sending(_ count: Int = 10, size: Int = 100, at seconds: Double = 0) -> DeliverySchedule {
        var schedule = DeliverySchedule(settings: Self.settings(size: size), inFlight: count, at: Self.at(seconds))
        schedule.attemptStarted(at: Self.at(seconds))
        return schedule
    }

    private let unavailable = Verdict.retry(.status(503), after: nil)

    @Test func waitsForTheWindowOfTheOldestRow() {
        var schedule = schedule()
        #expect(schedule.next(at: Self.at(0)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: Self.at(10))
        schedule.rowsRecorded(3, at: Self.at(40))
        #expect(schedule.next(at: Self.at(69)) == .wait(until: Self.at(70)))
        #expect(schedule.nextDeadline == Self.at(70))
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    @Test func formsAtOnceWhenTheSizeIsReached() {
        var schedule = schedule(size: 3)
        schedule.rowsRecorded(2, at: Self.at(10))
        #expect(schedule.next(at: Self.at(10)) == .wait(until: Self.at(70)))
        schedule.rowsRecorded(1, at: Self.at(11))
        #expect(schedule.next(at: Self.at(11)) == .form(limit: 3))
    }

    @Test func waitsForTheLeastNumberOfRows() {
        var schedule = schedule(minBatch: 3)
        schedule.rowsRecorded(2, at: Self.at(0))
        #expect(schedule.next(at: Self.at(1000)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: Self.at(1000))
        #expect(schedule.next(at: Self.at(1000)) == .form(limit: 100))
    }

    @Test func sendsWhatWasFormed() {
        var schedule = schedule()
        schedule.rowsRecorded(5, at: Self.at(0))
        schedule.formRequested()
        #expect(schedule.next(at: Self.at(60)) == .wait(until: nil))
        schedule.rowsRecorded(2, at: Self.at(61))
        schedule.batchFormed(count: 5, at: Self.at(61))
        #expect(schedule.waiting == 2)
        #expect(schedule.next(at: Self.at(61)) == .send)
        schedule.attemptStarted(at: Self.at(61))
        #expect(schedule.next(at: Self.at(61)) == .wait(until: nil))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(62))
        #expect(schedule.next(at: Self.at(62)) == .wait(until: Self.at(121)))
    }

    @Test func sendsABacklogWithoutPauseUntilAPartialRestRemains() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(24, at: Self.at(5))
        for _ in 0..<2 {
            #expect(schedule.next(at: Self.at(6)) == .form(limit: 10))
            schedule.formRequested()
            schedule.batchFormed(count: 10, at: Self.at(6))
            schedule.attemptStarted(at: Self.at(6))
            schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(6))
        }
        #expect(schedule.waiting == 4)
        #expect(schedule.next(at: Self.at(6)) == .wait(until: Self.at(65)))
    }

    @Test func knowsTheOldestRowOfALongBacklog() {
        var schedule = schedule(size: 10)
        for second in 0..<1005 { schedule.rowsRecorded(1, at: Self.at(Double(second))) }
        for _ in 0..<100 {
            schedule.formRequested()
            schedule.batchFormed(count: 10, at: Self.at(1005))
            schedule.attemptStarted(at: Self.at(1005))
            schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(1005))
        }
        #expect(schedule.next(at: Self.at(1005)) == .wait(until: Self.at(1060)))
    }

    @Test func retriesByTheRetryTimerAlone() {
        var schedule = sending()
        schedule.attemptFinished(unavailable, jitter: 0.5, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: Self.at(2.5)))
        schedule.rowsRecorded(500, at: Self.at(1.2))
        #expect(schedule.next(at: Self.at(2.4)) == .wait(until: Self.at(2.5)))
        #expect(schedule.next(at: Self.at(2.5)) == .send)
        for failure in 2...12 {
            schedule.attemptStarted(at: Self.at(100))
            schedule.attemptFinished(unavailable, jitter: 0.999_999, at: Self.at(100))
            #expect(schedule.failures == failure)
        }
        #expect(schedule.next(at: Self.at(398)) == .wait(until: schedule.nextAttemptAt))
        #expect(schedule.next(at: Self.at(400)) == .send)
    }

    @Test func doesNotResetTheWindowByAFailure() {
        var schedule = sending()
        schedule.rowsRecorded(1, at: Self.at(1))
        schedule.attemptFinished(unavailable, jitter: 0, at: Self.at(50))
        schedule.attemptStarted(at: Self.at(51))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(70))
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    @Test func sendsTheRestAtTheEndOfAnOutage() {
        var schedule = sending()
        schedule.attemptFinished(unavailable, jitter: 0, at: Self.at(1))
        schedule.rowsRecorded(3, at: Self.at(1.5))
        schedule.attemptStarted(at: Self.at(2))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(3))
        #expect(schedule.next(at: Self.at(3)) == .form(limit: 100))
    }

    @Test func flushesWhatWaitsNow() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(12, at: Self.at(0))
        schedule.flushRequested(at: Self.at(1))
        schedule.rowsRecorded(1, at: Self.at(2))
        schedule.formRequested()
        schedule.batchFormed(count: 10, at: Self.at(2))
        schedule.attemptStarted(at: Self.at(2))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(3))
        #expect(schedule.next(at: Self.at(3)) == .form(limit: 10))
        schedule.formRequested()
        schedule.batchFormed(count: 3, at: Self.at(3))
        schedule.attemptStarted(at: Self.at(3))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(4))
        #expect(schedule.next(at: Self.at(4)) == .wait(until: nil))
    }

    @Test func flushBringsARetryForwardOnceAndNotBelowTheBase() {
        var schedule = sending()
        for _ in 0..<6 {
            schedule.attemptStarted(at: Self.at(0))
            schedule.attemptFinished(unavailable, jitter: 0.9, at: Self.at(0))
        }
        schedule.flushRequested(at: Self.at(0.2))
        #expect(schedule.next(at: Self.at(0.2)) == .wait(until: Self.at(1)))
        #expect(schedule.next(at: Self.at(1)) == .send)
        schedule.attemptStarted(at: Self.at(1))
        schedule.attemptFinished(unavailable, jitter: 0.9, at: Self.at(2))
        let regular = schedule.nextAttemptAt
        schedule.flushRequested(at: Self.at(3))
        #expect(schedule.nextAttemptAt == regular)
    }

    @Test func neitherFlushNorLinkGoesBeforeRetryAfter() {
        var schedule = sending()
        schedule.attemptFinished(.retry(.status(429), after: .seconds(600)), jitter: 0, at: Self.at(10))
        schedule.flushRequested(at: Self.at(20))
        schedule.linkChanged(at: Self.at(30))
        schedule.resumed(at: Self.at(40))
        #expect(schedule.next(at: Self.at(50)) == .wait(until: Self.at(610)))
    }

    @Test func linkUpEndsTheOwnBackoff() {
        var schedule = sending()
        for _ in 0..<9 {
            schedule.attemptStarted(at: Self.at(0))
            schedule.attemptFinished(.retry(.transport(.resolve("")), after: nil), jitter: 0.9, at: Self.at(0))
        }
        schedule.linkChanged(at: Self.at(5))
        #expect(schedule.failures == 0)
        #expect(schedule.next(at: Self.at(5)) == .send)
    }

    @Test(arguments: [
        (Verdict.authStop(status: 401), 1, "auth"), (.split(status: 400), 1, "refused 400"),
        (.misconfigured(status: 405), 1, "configuration (status 405)"), (.misconfigured(status: 451), 1, "refused 451"),
        (.goneStop(status: 404), 1, "not found"), (.retry(.redirected(status: 302), after: nil), 5, "redirected"),
        (.retry(.conflict, after: nil), 5, "conflict"),
        (.retry(.transport(.closedWithoutReply("")), after: nil), 5, "no reply"),
    ])
    func pausesAndProbes(verdict: Verdict, times: Int, reason: String) {
        var schedule = sending()
        for time in 1...times {
            #expect(schedule.state == .active)
            schedule.attemptStarted(at: Self.at(Double(time)))
            schedule.attemptFinished(verdict, jitter: 0.5, at: Self.at(Double(time)))
        }
        #expect(schedule.state == .paused(reason: reason))
        let probe = Self.at(Double(times) + 900)
        schedule.flushRequested(at: Self.at(20))
        #expect(schedule.next(at: Self.at(20)) == .wait(until: probe))
        #expect(schedule.next(at: probe) == .send)
        schedule.attemptStarted(at: probe)
        schedule.attemptFinished(unavailable, jitter: 0, at: probe)
        #expect(schedule.state == .paused(reason: reason))
        #expect(schedule.next(at: probe) == .wait(until: probe + .seconds(810)))
        schedule.attemptStarted(at: probe)
        schedule.attemptFinished(.accepted, jitter: 0, at: probe)
        #expect(schedule.state == .active)
    }

    @Test func takesAPassing404ForAFaultOfTheServer() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: 1, acceptedBefore: true, at: Self.at(0))
        for _ in 0..<4 {
            schedule.attemptStarted(at: Self.at(0))
            schedule.attemptFinished(.goneStop(status: 404), jitter: 0, at: Self.at(0))
            #expect(schedule.state == .active)
        }
        schedule.attemptStarted(at: Self.at(0))
        schedule.attemptFinished(.goneStop(status: 404), jitter: 0, at: Self.at(0))
        #expect(schedule.state == .paused(reason: "not found"))
    }

    @Test(arguments: [
        (Verdict.goneStop(status: 410), EndpointState.stopped(reason: "gone")), (.collision, .taken),
    ])
    func stopsUntilSomebodyResumes(verdict: Verdict, state: EndpointState) {
        var schedule = sending()
        schedule.attemptFinished(verdict, jitter: 0, at: Self.at(1))
        #expect(schedule.state == state)
        schedule.rowsRecorded(1000, at: Self.at(2))
        schedule.flushRequested(at: Self.at(2))
        #expect(schedule.next(at: Self.at(1e6)) == .wait(until: nil))
        schedule.resumed(at: Self.at(10))
        #expect(schedule.next(at: Self.at(10)) == .send)
    }

    @Test func sendsPlainOnceCompressionIsRefused() {
        var schedule = sending()
        schedule.attemptFinished(.encodingRefused, jitter: 0, at: Self.at(1))
        #expect(!schedule.gzip)
        #expect(schedule.next(at: Self.at(1)) == .send)
        schedule.attemptStarted(at: Self.at(1))
        schedule.attemptFinished(.encodingRefused, jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "configuration (status 415)"))
    }

    @Test func halvesABatchThatIsTooLarge() {
        var schedule = sending(10)
        schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .reform(limit: 5))
        schedule.formRequested()
        schedule.batchFormed(count: 5, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send)
        schedule.attemptStarted(at: Self.at(1))
        schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(2))
        #expect(schedule.waiting == 5)
        #expect(schedule.next(at: Self.at(2)) == .form(limit: 5))
    }

    @Test func pausesOverASingleRecordThatIsTooLarge() {
        var schedule = sending(1)
        schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "record too large (status 413)"))
    }

    @Test func takesUpWhereTheLastRunEnded() {
        let waiting = DeliverySchedule(settings: Self.settings(), waiting: 3, at: Self.at(5))
        #expect(waiting.next(at: Self.at(5)) == .form(limit: 100))
        let inFlight = DeliverySchedule(settings: Self.settings(), waiting: 3, inFlight: 2, at: Self.at(5))
        #expect(inFlight.next(at: Self.at(5)) == .send)
        let stopped = DeliverySchedule(
            settings: Self.settings(), state: .stopped(reason: "gone"), waiting: 3, inFlight: 2, at: Self.at(5))
        #expect(stopped.next(at: Self.at(5)) == .wait(until: nil))
    }

    @Test func waitsBeforeItAsksAFailedDiskAgain() {
        var schedule = schedule(size: 1)
        schedule.rowsRecorded(1, at: Self.at(0))
        schedule.formRequested()
        schedule.batchNotFormed(at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: Self.at(11)))
        #expect(schedule.next(at: Self.at(11)) == .form(limit: 1))
    }

    @Test func correctsItsCount() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(4, at: Self.at(0))
        schedule.rowsRecorded(4, at: Self.at(30))
        schedule.waitingCorrected(to: 2)
        #expect(schedule.next(at: Self.at(31)) == .wait(until: Self.at(90)))
        schedule.waitingCorrected(to: 0)
        #expect(schedule.next(at: Self.at(1000)) == .wait(until: nil))
    }

    @Test func sendsRowsThatOnlyACorrectionTold() {
        var schedule = schedule()
        schedule.waitingCorrected(to: 5)
        #expect(schedule.next(at: Self.at(0)) == .form(limit: 100))
    }

    @Test func makesOneLastAttemptAtShutdown() {
        var idle = schedule()
        idle.rowsRecorded(2, at: Self.at(0))
        idle.shutdownRequested(at: Self.at(1), grace: .seconds(5))
        #expect(!idle.isShutDown)
        #expect(idle.next(at: Self.at(1)) == .form(limit: 100))
        idle.formRequested()
        idle.batchFormed(count: 2, at: Self.at(1))
        #expect(idle.next(at: Self.at(1)) == .send)
        idle.attemptStarted(at: Self.at(1))
        #expect(idle.next(at: Self.at(1)) == .wait(until: Self.at(6)))
        idle.attemptFinished(unavailable, jitter: 0, at: Self.at(2))
        #expect(idle.isShutDown)
        #expect(idle.next(at: Self.at(3)) == .wait(until: nil))

        var empty = schedule()
        empty.shutdownRequested(at: Self.at(1), grace: .seconds(5))
        #expect(empty.isShutDown)

        var asked = sending()
        asked.attemptFinished(.retry(.status(503), after: .seconds(60)), jitter: 0, at: Self.at(1))
        asked.shutdownRequested(at: Self.at(2), grace: .seconds(5))
        #expect(asked.isShutDown)

        var backingOff = sending()
        backingOff.attemptFinished(unavailable, jitter: 0.9, at: Self.at(1))
        backingOff.shutdownRequested(at: Self.at(1), grace: .seconds(5))
        #expect(backingOff.next(at: Self.at(1)) == .wait(until: Self.at(2)))
        #expect(backingOff.next(at: Self.at(2)) == .send)
    }

    /// Whatever a server answers: no row is forgotten, nothing goes before its time, and it never stands still.
    @Test(arguments: [21, 22, 23].map { UInt64($0) })
    func losesNoRowUnderAnyAnswers(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var schedule = schedule(size: 7)
        var now = Self.at(0)
        var recorded = 0
        var delivered = 0
        var batch = 0
        for _ in 0..<5000 {
            now = now + .milliseconds(Int64.random(in: 0...5000, using: &generator))
            if Int.random(in: 0..<3, using: &generator) == 0 {
                let count = Int.random(in: 1...3, using: &generator)
                recorded += count
                schedule.rowsRecorded(count, at: now)
            }
            switch schedule.next(at: now) {
            case .form(let limit), .reform(let limit):
                schedule.formRequested()
                let free = recorded - delivered
                batch = min(limit, free)
                schedule.batchFormed(count: batch, at: now)
            case .send:
                schedule.attemptStarted(at: now)
                let verdicts: [Verdict] = [
                    .accepted, .accepted, unavailable, .retry(.status(429), after: .seconds(40)), .encodingRefused,
                    .tooLarge(status: 413, after: nil), .authStop(status: 401), .split(status: 400), .collision,
                ]
                let verdict = verdicts.randomElement(using: &generator)!
                schedule.attemptFinished(verdict, jitter: Double.random(in: 0..<1, using: &generator), at: now)
                if verdict == .accepted {
                    delivered += batch
                    batch = 0
                }
            case .wait(let until):
                if let until {
                    #expect(until > now, "seed \(seed)")
                    if Bool.random(using: &generator) { now = until }
                }
                if schedule.state == .taken { schedule.resumed(at: now) }
            }
            #expect(schedule.waiting + batch == recorded - delivered, "seed \(seed)")
        }
        #expect(delivered > 100, "seed \(seed)")
    }
}
