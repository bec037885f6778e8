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
        var schedule = DeliverySchedule(
            settings: Self.settings(size: size), inFlight: [.init(id: "a", rows: count)], at: Self.at(seconds))
        schedule.attemptStarted("a", at: Self.at(seconds))
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
        schedule.formRequested(at: Self.at(0))
        #expect(schedule.next(at: Self.at(60)) == .wait(until: nil))
        schedule.rowsRecorded(2, at: Self.at(61))
        schedule.batchesFormed([.init(id: "a", rows: 5)], at: Self.at(61))
        #expect(schedule.waiting == 2)
        #expect(schedule.next(at: Self.at(61)) == .send(batch: "a"))
        schedule.attemptStarted("a", at: Self.at(61))
        #expect(schedule.next(at: Self.at(61)) == .wait(until: nil))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(62))
        #expect(schedule.next(at: Self.at(62)) == .wait(until: Self.at(121)))
    }

    @Test func sendsABacklogWithoutPauseUntilAPartialRestRemains() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(24, at: Self.at(5))
        for _ in 0..<2 {
            #expect(schedule.next(at: Self.at(6)) == .form(limit: 10))
            schedule.formRequested(at: Self.at(0))
            schedule.batchesFormed([.init(id: "a", rows: 10)], at: Self.at(6))
            schedule.attemptStarted("a", at: Self.at(6))
            _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(6))
        }
        #expect(schedule.waiting == 4)
        #expect(schedule.next(at: Self.at(6)) == .wait(until: Self.at(65)))
    }

    @Test func knowsTheOldestRowOfALongBacklog() {
        var schedule = schedule(size: 10)
        for second in 0..<1005 { schedule.rowsRecorded(1, at: Self.at(Double(second))) }
        for _ in 0..<100 {
            schedule.formRequested(at: Self.at(0))
            schedule.batchesFormed([.init(id: "a", rows: 10)], at: Self.at(1005))
            schedule.attemptStarted("a", at: Self.at(1005))
            _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(1005))
        }
        #expect(schedule.next(at: Self.at(1005)) == .wait(until: Self.at(1060)))
    }

    @Test func retriesByTheRetryTimerAlone() {
        var schedule = sending()
        _ = schedule.attemptFinished(unavailable, jitter: 0.5, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: Self.at(2.5)))
        schedule.rowsRecorded(500, at: Self.at(1.2))
        #expect(schedule.next(at: Self.at(2.4)) == .wait(until: Self.at(2.5)))
        #expect(schedule.next(at: Self.at(2.5)) == .send(batch: "a"))
        for failure in 2...12 {
            schedule.attemptStarted("a", at: Self.at(100))
            _ = schedule.attemptFinished(unavailable, jitter: 0.999_999, at: Self.at(100))
            #expect(schedule.failures == failure)
        }
        #expect(schedule.next(at: Self.at(398)) == .wait(until: schedule.nextAttemptAt))
        #expect(schedule.next(at: Self.at(400)) == .send(batch: "a"))
    }

    @Test func doesNotResetTheWindowByAFailure() {
        var schedule = sending()
        schedule.rowsRecorded(1, at: Self.at(1))
        _ = schedule.attemptFinished(unavailable, jitter: 0, at: Self.at(50))
        schedule.attemptStarted("a", at: Self.at(51))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(70))
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    @Test func sendsTheRestAtTheEndOfAnOutage() {
        var schedule = sending()
        _ = schedule.attemptFinished(unavailable, jitter: 0, at: Self.at(1))
        schedule.rowsRecorded(3, at: Self.at(1.5))
        schedule.attemptStarted("a", at: Self.at(2))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(3))
        #expect(schedule.next(at: Self.at(3)) == .form(limit: 100))
    }

    @Test func flushesWhatWaitsNow() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(12, at: Self.at(0))
        schedule.flushRequested(at: Self.at(1))
        schedule.rowsRecorded(1, at: Self.at(2))
        schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([.init(id: "a", rows: 10)], at: Self.at(2))
        schedule.attemptStarted("a", at: Self.at(2))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(3))
        #expect(schedule.next(at: Self.at(3)) == .form(limit: 10))
        schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([.init(id: "a", rows: 3)], at: Self.at(3))
        schedule.attemptStarted("a", at: Self.at(3))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(4))
        #expect(schedule.next(at: Self.at(4)) == .wait(until: nil))
    }

    @Test func flushBringsARetryForwardOnceAndNotBelowTheBase() {
        var schedule = sending()
        for _ in 0..<6 {
            schedule.attemptStarted("a", at: Self.at(0))
            _ = schedule.attemptFinished(unavailable, jitter: 0.9, at: Self.at(0))
        }
        schedule.flushRequested(at: Self.at(0.2))
        #expect(schedule.next(at: Self.at(0.2)) == .wait(until: Self.at(1)))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.attemptStarted("a", at: Self.at(1))
        _ = schedule.attemptFinished(unavailable, jitter: 0.9, at: Self.at(2))
        let regular = schedule.nextAttemptAt
        schedule.flushRequested(at: Self.at(3))
        #expect(schedule.nextAttemptAt == regular)
    }

    @Test func neitherFlushNorLinkGoesBeforeRetryAfter() {
        var schedule = sending()
        _ = schedule.attemptFinished(.retry(.status(429), after: .seconds(600)), jitter: 0, at: Self.at(10))
        schedule.flushRequested(at: Self.at(20))
        schedule.linkChanged(at: Self.at(30))
        schedule.resumed(at: Self.at(40))
        #expect(schedule.next(at: Self.at(50)) == .wait(until: Self.at(610)))
    }

    @Test func linkUpEndsTheOwnBackoff() {
        var schedule = sending()
        for _ in 0..<9 {
            schedule.attemptStarted("a", at: Self.at(0))
            _ = schedule.attemptFinished(.retry(.transport(.resolve("")), after: nil), jitter: 0.9, at: Self.at(0))
        }
        schedule.linkChanged(at: Self.at(5))
        #expect(schedule.failures == 0)
        #expect(schedule.next(at: Self.at(5)) == .send(batch: "a"))
    }

    @Test(arguments: [
        (Verdict.misconfigured(status: 405), 1, "configuration (status 405)"),
        (.misconfigured(status: 451), 1, "refused 451"),
        (.goneStop(status: 404), 1, "not found"),
        (.retry(.redirected(status: 302, host: nil), after: nil), 5, "redirected"),
        (.retry(.conflict, after: nil), 5, "conflict"),
    ])
    func pausesAndProbes(verdict: Verdict, times: Int, reason: String) {
        var schedule = sending()
        for time in 1...times {
            #expect(schedule.state == .active)
            schedule.attemptStarted("a", at: Self.at(Double(time)))
            _ = schedule.attemptFinished(verdict, jitter: 0.5, at: Self.at(Double(time)))
        }
        #expect(schedule.state == .paused(reason: reason))
        let probe = Self.at(Double(times) + 900)
        schedule.flushRequested(at: Self.at(20))
        #expect(schedule.next(at: Self.at(20)) == .wait(until: probe))
        #expect(schedule.next(at: probe) == .send(batch: "a"))
        schedule.attemptStarted("a", at: probe)
        _ = schedule.attemptFinished(unavailable, jitter: 0, at: probe)
        #expect(schedule.state == .paused(reason: reason))
        #expect(schedule.next(at: probe) == .wait(until: probe + .seconds(810)))
        schedule.attemptStarted("a", at: probe)
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: probe)
        #expect(schedule.state == .active)
    }

    @Test func takesAPassing404ForAFaultOfTheServer() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 1)], acceptedBefore: true, at: Self.at(0))
        for _ in 0..<4 {
            schedule.attemptStarted("a", at: Self.at(0))
            _ = schedule.attemptFinished(.goneStop(status: 404), jitter: 0, at: Self.at(0))
            #expect(schedule.state == .active)
        }
        schedule.attemptStarted("a", at: Self.at(0))
        _ = schedule.attemptFinished(.goneStop(status: 404), jitter: 0, at: Self.at(0))
        #expect(schedule.state == .paused(reason: "not found"))
    }

    @Test(arguments: [
        (Verdict.goneStop(status: 410), EndpointState.stopped(reason: "gone")), (.collision, .taken),
    ])
    func stopsUntilSomebodyResumes(verdict: Verdict, state: EndpointState) {
        var schedule = sending()
        _ = schedule.attemptFinished(verdict, jitter: 0, at: Self.at(1))
        #expect(schedule.state == state)
        schedule.rowsRecorded(1000, at: Self.at(2))
        schedule.flushRequested(at: Self.at(2))
        #expect(schedule.next(at: Self.at(1e6)) == .wait(until: nil))
        schedule.resumed(at: Self.at(10))
        #expect(schedule.next(at: Self.at(10)) == .send(batch: "a"))
    }

    @Test func sendsPlainOnceCompressionIsRefused() {
        var schedule = sending()
        _ = schedule.attemptFinished(.encodingRefused, jitter: 0, at: Self.at(1))
        #expect(!schedule.gzip)
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.attemptStarted("a", at: Self.at(1))
        _ = schedule.attemptFinished(.encodingRefused, jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "configuration (status 415)"))
    }

    @Test func repeatsOnceWhatExpectBroke() {
        var schedule = sending()
        _ = schedule.attemptFinished(.misconfigured(status: 417), jitter: 0, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.attemptStarted("a", at: Self.at(1))
        _ = schedule.attemptFinished(.misconfigured(status: 417), jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "refused 417"))
    }

    @Test func blamesNoCompressionThatWasNotUsed() {
        var schedule = sending()
        schedule.compressionUsed(false)
        _ = schedule.attemptFinished(.encodingRefused, jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "configuration (status 415)"))
    }

    @Test func halvesABatchThatIsTooLargeAndRemembersTheSize() {
        var schedule = sending(10)
        let settled = schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: Self.at(1))
        #expect(settled == [.init(batch: "a", how: .split)])
        #expect(schedule.next(at: Self.at(1)) == .form(limit: 0))
        schedule.formRequested(at: Self.at(1))
        let parts = [DeliverySchedule.InFlight(id: "b", rows: 5), .init(id: "c", rows: 5)]
        schedule.batchesFormed(parts, at: Self.at(1))
        for (index, part) in parts.enumerated() {
            #expect(schedule.next(at: Self.at(2)) == .send(batch: part.id))
            schedule.attemptStarted(part.id, at: Self.at(1))
            #expect(
                schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(2))
                    == [.init(batch: part.id, how: .accepted)])
            guard index == 0 else { continue }
            #expect(schedule.next(at: Self.at(2)) == .form(limit: 0))
            schedule.formRequested(at: Self.at(2))
            schedule.batchesFormed([parts[1]], at: Self.at(2))
        }
        schedule.rowsRecorded(7, at: Self.at(2))
        #expect(schedule.next(at: Self.at(2)) == .form(limit: 5))
    }

    @Test func setsASingleRecordAsideThatIsTooLarge() {
        var schedule = sending(1)
        let settled = schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: Self.at(1))
        #expect(settled == [.init(batch: "a", how: .refused)])
        #expect(schedule.state == .active)
    }

    @Test func renewsTheCredentialOnceAMinute() {
        var schedule = sending()
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .refreshCredentials)
        schedule.refreshStarted(at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: nil))
        schedule.credentialsRefreshed(isNew: true, jitter: 0.5, at: Self.at(2))
        #expect(schedule.next(at: Self.at(2)) == .send(batch: "a"))
        schedule.attemptStarted("a", at: Self.at(2))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(3))
        #expect(schedule.state == .paused(reason: "auth"))
        #expect(schedule.next(at: Self.at(3)) == .wait(until: Self.at(903)))
        schedule.attemptStarted("a", at: Self.at(903))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(903))
        #expect(schedule.next(at: Self.at(903)) == .refreshCredentials)
        schedule.refreshStarted(at: Self.at(903))
        schedule.credentialsRefreshed(isNew: false, jitter: 0.5, at: Self.at(904))
        #expect(schedule.next(at: Self.at(904)) == .wait(until: Self.at(1804)))
    }

    @Test func waitsOutTheMinuteWhenATokenEndsEarly() {
        var schedule = sending()
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0, at: Self.at(1))
        schedule.refreshStarted(at: Self.at(1))
        schedule.credentialsRefreshed(isNew: true, jitter: 0, at: Self.at(1))
        schedule.attemptStarted("a", at: Self.at(1))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(2))
        schedule.rowsRecorded(100, at: Self.at(3))
        schedule.formRequested(at: Self.at(3))
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: Self.at(3))
        schedule.attemptStarted("b", at: Self.at(3))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0, at: Self.at(4))
        #expect(schedule.state == .active)
        #expect(schedule.next(at: Self.at(4)) == .wait(until: Self.at(61)))
    }

    @Test func slowsDownAfter429UntilTenAcceptances() {
        var schedule = sending(100)
        _ = schedule.attemptFinished(.retry(.status(429), after: .seconds(5)), jitter: 0, at: Self.at(0))
        schedule.rowsRecorded(2000, at: Self.at(1))
        var pauses: [EventTime?] = []
        for round in 0..<11 {
            let now = Self.at(Double(10 + round * 10))
            schedule.attemptStarted(round == 0 ? "a" : "\(round)", at: now)
            _ = schedule.attemptFinished(.accepted, jitter: 0, at: now)
            if case .wait(let until) = schedule.next(at: now) { pauses.append(until) }
            schedule.formRequested(at: now)
            schedule.batchesFormed([.init(id: "\(round + 1)", rows: 100)], at: now)
        }
        #expect(pauses == (0..<9).map { Self.at(Double(12 + $0 * 10)) })
    }

    @Test func takesTheNextWayAfterFiveFailuresToConnect() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4)], routes: 2, at: Self.at(0))
        for failure in 1...5 {
            #expect(schedule.route == 0)
            schedule.attemptStarted("a", at: Self.at(Double(failure)))
            _ = schedule.attemptFinished(
                .retry(.transport(failure % 2 == 0 ? .timeout("") : .connect("")), after: nil), jitter: 0.5,
                at: Self.at(Double(failure)))
        }
        #expect(schedule.route == 1)
        #expect(schedule.next(at: Self.at(5)) == .reform(limit: 100))
        schedule.formRequested(at: Self.at(5))
        #expect(schedule.waiting == 4)
        schedule.batchesFormed([.init(id: "s", rows: 4)], at: Self.at(5))
        schedule.attemptStarted("s", at: Self.at(5))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(6))
        // A quarter of an hour later the endpoint itself gets the next batch, and loses it at the first failure.
        schedule.rowsRecorded(200, at: Self.at(906))
        schedule.formRequested(at: Self.at(906))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: Self.at(906))
        schedule.attemptStarted("b", at: Self.at(906))
        _ = schedule.attemptFinished(.retry(.transport(.connect("")), after: nil), jitter: 0.5, at: Self.at(907))
        #expect(schedule.route == 1)
        #expect(schedule.next(at: Self.at(907)) == .reform(limit: 100))
        // Next time it is well again and stays.
        schedule.formRequested(at: Self.at(907))
        schedule.batchesFormed([.init(id: "t", rows: 100)], at: Self.at(907))
        schedule.attemptStarted("t", at: Self.at(907))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(1807))
        schedule.formRequested(at: Self.at(1807))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "c", rows: 100)], at: Self.at(1807))
        schedule.attemptStarted("c", at: Self.at(1807))
        _ = schedule.attemptFinished(.retry(.status(503), after: nil), jitter: 0.5, at: Self.at(1808))
        #expect(schedule.route == 0)
    }

    @Test func sendsTheNewestRowAheadOncePerWindow() {
        var settings = Self.settings(size: 10)
        settings.freshHead = true
        var schedule = DeliverySchedule(
            settings: settings, waiting: 25, inFlight: [.init(id: "a", rows: 10)], at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .preview)
        schedule.previewStarted(at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .wait(until: nil))
        schedule.previewFinished(.accepted, jitter: 0, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        #expect(schedule.next(at: Self.at(60)) == .preview)
        schedule.previewStarted(at: Self.at(60))
        schedule.previewFinished(unavailable, jitter: 0, at: Self.at(61))
        #expect(schedule.next(at: Self.at(61)) == .wait(until: Self.at(62)))
    }

    @Test func startsWithADelay() {
        let inFlight = DeliverySchedule(
            settings: Self.settings(), waiting: 3, inFlight: [.init(id: "a", rows: 2)], startDelay: .seconds(20),
            at: Self.at(5))
        #expect(inFlight.next(at: Self.at(5)) == .wait(until: Self.at(25)))
        let waiting = DeliverySchedule(
            settings: Self.settings(), waiting: 500, startDelay: .seconds(20), at: Self.at(5))
        #expect(waiting.next(at: Self.at(5)) == .wait(until: Self.at(25)))
    }

    @Test func takesUpWhereTheLastRunEnded() {
        let waiting = DeliverySchedule(settings: Self.settings(), waiting: 3, at: Self.at(5))
        #expect(waiting.next(at: Self.at(5)) == .form(limit: 100))
        let inFlight = DeliverySchedule(
            settings: Self.settings(), waiting: 3, inFlight: [.init(id: "a", rows: 2)], at: Self.at(5))
        #expect(inFlight.next(at: Self.at(5)) == .send(batch: "a"))
        let stopped = DeliverySchedule(
            settings: Self.settings(), state: .stopped(reason: "gone"), waiting: 3, inFlight: [.init(id: "a", rows: 2)],
            at: Self.at(5))
        #expect(stopped.next(at: Self.at(5)) == .wait(until: nil))
    }

    @Test func waitsBeforeItAsksAFailedDiskAgain() {
        var schedule = schedule(size: 1)
        schedule.rowsRecorded(1, at: Self.at(0))
        schedule.formRequested(at: Self.at(0))
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
        idle.formRequested(at: Self.at(0))
        idle.batchesFormed([.init(id: "a", rows: 2)], at: Self.at(1))
        #expect(idle.next(at: Self.at(1)) == .send(batch: "a"))
        idle.attemptStarted("a", at: Self.at(1))
        #expect(idle.next(at: Self.at(1)) == .wait(until: Self.at(6)))
        _ = idle.attemptFinished(unavailable, jitter: 0, at: Self.at(2))
        #expect(idle.isShutDown)
        #expect(idle.next(at: Self.at(3)) == .wait(until: nil))

        var empty = schedule()
        empty.shutdownRequested(at: Self.at(1), grace: .seconds(5))
        #expect(empty.isShutDown)

        var asked = sending()
        _ = asked.attemptFinished(.retry(.status(503), after: .seconds(60)), jitter: 0, at: Self.at(1))
        asked.shutdownRequested(at: Self.at(2), grace: .seconds(5))
        #expect(asked.isShutDown)

        var backingOff = sending()
        _ = backingOff.attemptFinished(unavailable, jitter: 0.9, at: Self.at(1))
        backingOff.shutdownRequested(at: Self.at(1), grace: .seconds(5))
        #expect(backingOff.next(at: Self.at(1)) == .wait(until: Self.at(2)))
        #expect(backingOff.next(at: Self.at(2)) == .send(batch: "a"))
    }
}
