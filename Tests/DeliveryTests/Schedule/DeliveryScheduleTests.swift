import Positioning
import TestSupport
import Testing

@testable import Delivery

@Suite struct DeliveryScheduleTests {
    static func at(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

    static func settings(size: Int = 100, minBatch: Int = 1) -> EndpointSettings {
        EndpointSettings(baseURL: "http://x", device: "d", batchSize: size, minBatch: minBatch)
    }

    func schedule(size: Int = 100, minBatch: Int = 1) -> DeliverySchedule {
        DeliverySchedule(settings: Self.settings(size: size, minBatch: minBatch), at: Self.at(0))
    }

    /// With a batch of `count` rows on its way.
    func sending(_ count: Int = 10, size: Int = 100, at seconds: Double = 0) -> DeliverySchedule {
        var schedule = DeliverySchedule(
            settings: Self.settings(size: size), inFlight: [.init(id: "a", rows: count)], at: Self.at(seconds))
        schedule.sends("a", at: Self.at(seconds))
        return schedule
    }

    let unavailable = Verdict.retry(.status(503), after: nil)

    @Test func waitsForTheWindowOfTheOldestRow() {
        var schedule = schedule()
        #expect(schedule.next(at: Self.at(0)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: Self.at(10))
        schedule.rowsRecorded(3, at: Self.at(40))
        #expect(schedule.next(at: Self.at(69)) == .wait(until: Self.at(70)))
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    /// One commit less for each batch; what is sent when stays as it is.
    @Test(.bug(id: 16)) func aBatchIsFormedWithACommitThatComesSoonBefore() {
        var schedule = schedule()
        #expect(schedule.commitComes(at: Self.at(0)) == nil)
        schedule.rowsRecorded(1, at: Self.at(10))
        #expect(schedule.commitComes(at: Self.at(63.9)) == nil)
        guard let batch = schedule.commitComes(at: Self.at(64)) else { return _ = Issue.record("it waits") }
        #expect(batch == (100, Self.at(70)))
        schedule.formRequested(sendsAt: batch.sendsAt, at: Self.at(64))
        #expect(schedule.commitComes(at: Self.at(64)) == nil)
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: Self.at(64))
        #expect(schedule.next(at: Self.at(65)) == .wait(until: Self.at(70)))
        #expect(schedule.commitComes(at: Self.at(66)) == nil)
        var flushed = schedule
        flushed.flushRequested(at: Self.at(66))
        #expect(flushed.next(at: Self.at(66)) == .send(batch: "a"))
        #expect(schedule.next(at: Self.at(70)) == .send(batch: "a"))
    }

    @Test(.bug(id: 16), arguments: [false, true])
    func aFlushDoesNotWaitForTheTimeOfABatchThatIsBeingFormed(linkChanges: Bool) {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: Self.at(10))
        schedule.formRequested(sendsAt: schedule.commitComes(at: Self.at(64))?.sendsAt, at: Self.at(64))
        if linkChanges { schedule.linkChanged(at: Self.at(64.5)) } else { schedule.flushRequested(at: Self.at(64.5)) }
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: Self.at(65))
        #expect(schedule.next(at: Self.at(65)) == .send(batch: "a"))
    }

    @Test(.bug(id: 16)) func atTheEndWhatCameAfterABatchThatWaitsGoesOutToo() {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: Self.at(10))
        schedule.formRequested(sendsAt: schedule.commitComes(at: Self.at(64))?.sendsAt, at: Self.at(64))
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: Self.at(64))
        schedule.rowsRecorded(1, at: Self.at(65))
        schedule.shutdownRequested(at: Self.at(66), grace: .seconds(5))
        #expect(schedule.next(at: Self.at(66)) == .send(batch: "a"))
        schedule.sends("a", at: Self.at(66))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(67))
        #expect(schedule.next(at: Self.at(67)) == .form(limit: 100))
        schedule.formRequested(at: Self.at(67))
        schedule.batchesFormed([.init(id: "b", rows: 1)], at: Self.at(67))
        schedule.sends("b", at: Self.at(67))
        schedule.rowsRecorded(1, at: Self.at(67))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(68))
        #expect(schedule.isShutDown)
    }

    @Test(.bug(id: 16)) func aBatchOfWhichTheNewestRowCountsIsNotFormedBefore() {
        var settings = Self.settings()
        settings.delivery = .latest
        var schedule = DeliverySchedule(settings: settings, at: Self.at(0))
        schedule.rowsRecorded(1, at: Self.at(10))
        #expect(schedule.commitComes(at: Self.at(69)) == nil)
    }

    /// A full queue takes rows of a batch that waits only for one of these, and the rest of it is not sent any more.
    @Test(.bug(id: 16)) func aBatchOfAnEndpointThatIsNotRequiredIsNotFormedBefore() {
        var settings = Self.settings()
        settings.required = false
        var schedule = DeliverySchedule(settings: settings, at: Self.at(0))
        schedule.rowsRecorded(1, at: Self.at(10))
        #expect(schedule.commitComes(at: Self.at(69)) == nil)
        #expect(schedule.commitComes(joining: Self.at(69), at: Self.at(69)) == nil)
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    /// Two endpoints go on sharing a wake-up of the radio, not only a commit.
    @Test(.bug(id: 16)) func aBatchThatJoinsAnotherIsSentWithIt() {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: Self.at(10))
        #expect(schedule.commitComes(joining: Self.at(39), at: Self.at(35)) == nil)
        #expect(schedule.commitComes(joining: Self.at(41), at: Self.at(35))?.sendsAt == Self.at(41))
        #expect(schedule.commitComes(joining: Self.at(75), at: Self.at(69))?.sendsAt == Self.at(70))
        #expect(schedule.commitComes(joining: Self.at(300), at: Self.at(39)) == nil)
        #expect(schedule.commitComes(joining: Self.at(300), at: Self.at(41))?.sendsAt == Self.at(70))
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
        schedule.sends("a", at: Self.at(61))
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
            schedule.sends("a", at: Self.at(6))
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
            schedule.sends("a", at: Self.at(1005))
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
            schedule.sends("a", at: Self.at(100))
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
        schedule.sends("a", at: Self.at(51))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(70))
        #expect(schedule.next(at: Self.at(70)) == .form(limit: 100))
    }

    @Test func sendsTheRestAtTheEndOfAnOutage() {
        var schedule = sending()
        _ = schedule.attemptFinished(unavailable, jitter: 0, at: Self.at(1))
        schedule.rowsRecorded(3, at: Self.at(1.5))
        schedule.sends("a", at: Self.at(2))
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
        schedule.sends("a", at: Self.at(2))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(3))
        #expect(schedule.next(at: Self.at(3)) == .form(limit: 10))
        schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([.init(id: "a", rows: 3)], at: Self.at(3))
        schedule.sends("a", at: Self.at(3))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(4))
        #expect(schedule.next(at: Self.at(4)) == .wait(until: nil))
    }

    @Test func flushBringsARetryForwardOnceAndNotBelowTheBase() {
        var schedule = sending()
        for _ in 0..<6 {
            schedule.sends("a", at: Self.at(0))
            _ = schedule.attemptFinished(unavailable, jitter: 0.9, at: Self.at(0))
        }
        schedule.flushRequested(at: Self.at(0.2))
        #expect(schedule.next(at: Self.at(0.2)) == .wait(until: Self.at(1)))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.sends("a", at: Self.at(1))
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
            schedule.sends("a", at: Self.at(0))
            _ = schedule.attemptFinished(.retry(.transport(.resolve("")), after: nil), jitter: 0.9, at: Self.at(0))
        }
        schedule.linkChanged(at: Self.at(5))
        #expect(schedule.failures == 0)
        #expect(schedule.next(at: Self.at(5)) == .send(batch: "a"))
    }

    @Test func sendsTheNewestRowAheadOncePerWindow() {
        var settings = Self.settings(size: 10)
        settings.freshHead = true
        var schedule = DeliverySchedule(
            settings: settings, waiting: 25, inFlight: [.init(id: "a", rows: 10)], at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .preview)
        _ = schedule.previewStarted(25, at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .wait(until: nil))
        schedule.previewFinished(.accepted, jitter: 0, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        #expect(schedule.next(at: Self.at(60)) == .preview)
        _ = schedule.previewStarted(26, at: Self.at(60))
        schedule.previewFinished(unavailable, jitter: 0, at: Self.at(61))
        #expect(schedule.next(at: Self.at(61)) == .wait(until: Self.at(62)))
        // No row is sent ahead twice, whatever came of it.
        schedule.sends("a", at: Self.at(62))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(63))
        schedule.formRequested(at: Self.at(63))
        schedule.batchesFormed([.init(id: "b", rows: 10)], at: Self.at(63))
        #expect(schedule.next(at: Self.at(120)) == .preview)
        #expect(schedule.previewStarted(26, at: Self.at(120)) == nil)
        #expect(schedule.next(at: Self.at(120)) == .send(batch: "b"))
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
        #expect(schedule.next(at: Self.at(31)) == .wait(until: Self.at(60)))
        schedule.waitingCorrected(to: 0)
        #expect(schedule.next(at: Self.at(1000)) == .wait(until: nil))
    }

    /// Those of another device: the queue hands them out when it is settled whose they are.
    @Test(.bug(id: 11)) func countsBatchesThatAreNotHandedOut() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), state: .rebind, waiting: 2, unlisted: 3, at: Self.at(0))
        #expect(schedule.waiting == 5 && schedule.next(at: Self.at(0)) == .wait(until: nil))
        schedule.waitingCorrected(to: 4, inFlight: 3)
        #expect(schedule.waiting == 7)
        schedule.stateChanged(to: .active, acceptedBefore: true)
        schedule.resumed(at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .form(limit: 0))
        let number = schedule.formRequested(at: Self.at(1))
        schedule.batchesFormed([], of: number, unlisted: 3, at: Self.at(2))
        schedule.waitingCorrected(to: 4, inFlight: 3)
        #expect(schedule.waiting == 7)
        let other = schedule.formRequested(at: Self.at(2))
        schedule.batchesFormed([.init(id: "a", rows: 3)], of: other, at: Self.at(3))
        schedule.waitingCorrected(to: 4, inFlight: 3)
        #expect(schedule.waiting == 4 && schedule.inFlight == 3)
    }

    /// No event shows that a disk can be read again.
    @Test(.bug(id: 11)) func asksAgainForABatchThatCannotBeRead() {
        var schedule = schedule(size: 1)
        schedule.emptied()
        let number = schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([], of: number, unlisted: 3, at: Self.at(1))
        schedule.waitingCorrected(to: 0, inFlight: 3)
        #expect(schedule.waiting == 3 && schedule.next(at: Self.at(1)) == .wait(until: Self.at(11)))
        #expect(schedule.next(at: Self.at(11)) == .form(limit: 0))
    }

    @Test(.bug(id: 11)) func tooFewRowsDoNotKeepABatchFromBeingAskedFor() {
        var schedule = schedule(minBatch: 5)
        schedule.emptied()
        let number = schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([], of: number, unlisted: 3, at: Self.at(1))
        schedule.rowsRecorded(2, at: Self.at(2))
        #expect(schedule.next(at: Self.at(2)) == .wait(until: Self.at(11)))
        #expect(schedule.next(at: Self.at(11)) == .form(limit: 0))
        // Listed at last, it takes nothing from the rows behind it.
        let other = schedule.formRequested(at: Self.at(11))
        schedule.batchesFormed([.init(id: "a", rows: 3)], of: other, left: 2, at: Self.at(12))
        #expect(schedule.waiting == 2 && schedule.inFlight == 3)
    }

    /// A damaged file that was set aside may leave a part of a batch.
    @Test(.bug(id: 11)) func asksForWhatIsLeftOfADissolvedBatch() {
        var schedule = DeliverySchedule(settings: Self.settings(), inFlight: [.init(id: "a", rows: 6)], at: Self.at(0))
        schedule.batchesDissolved(["a"])
        schedule.waitingCorrected(to: 0, inFlight: 1)
        #expect(schedule.waiting == 1 && schedule.next(at: Self.at(0)) == .form(limit: 0))
    }

    /// Those that a newer one supersedes were the oldest: the window of the row that came meanwhile has just begun.
    @Test(.bug(id: 11)) func rowsThatGoUnsentAsABatchIsFormedAreTheOldest() {
        var schedule = schedule(size: 100)
        for second in 1...60 { schedule.rowsRecorded(1, at: Self.at(Double(second))) }
        let number = schedule.formRequested(at: Self.at(61))
        schedule.rowsRecorded(1, at: Self.at(62))
        schedule.batchesFormed([.init(id: "a", rows: 1)], of: number, left: 1, at: Self.at(63))
        schedule.sends("a", at: Self.at(63))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(64))
        #expect(schedule.next(at: Self.at(64)) == .wait(until: Self.at(122)))
    }

    /// A full queue that gives up the newest row for each that comes.
    @Test(.bug(id: 11)) func theWindowEndsThoughTheNewestRowsAreDropped() {
        var schedule = schedule(size: 100)
        schedule.rowsRecorded(5, at: Self.at(0))
        for second in 1...59 {
            schedule.rowsRecorded(1, at: Self.at(Double(second)))
            schedule.waitingCorrected(to: 5)
        }
        #expect(schedule.next(at: Self.at(60)) == .form(limit: 100))
    }

    /// What a server did not take is in the queue before the next commit says so too.
    @Test(.bug(id: 11)) func countsTheRowsOfABatchThatIsTakenApart() {
        var refused = sending(10)
        _ = refused.attemptFinished(.split(status: 400), jitter: 0, at: Self.at(1))
        #expect(refused.waiting == 10 && refused.inFlight == 0)

        var partly = sending(10)
        _ = partly.attemptFinished(.partlyAccepted(.init(again: [2, 3])), jitter: 0, at: Self.at(1))
        #expect(partly.waiting == 2 && partly.inFlight == 0)
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
        idle.sends("a", at: Self.at(1))
        #expect(idle.next(at: Self.at(1)) == .wait(until: Self.at(6)))
        #expect(idle.next(at: Self.at(6)) == .wait(until: nil))
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
