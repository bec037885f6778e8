import TestSupport
import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

@Suite struct DeliveryScheduleTests {
    static func settings(size: Int = 100, minBatch: Int = 1) -> EndpointSettings {
        EndpointSettings(baseURL: "http://x", device: "d", batchSize: size, minBatch: minBatch)
    }

    func schedule(size: Int = 100, minBatch: Int = 1) -> DeliverySchedule {
        DeliverySchedule(settings: Self.settings(size: size, minBatch: minBatch), at: at(0))
    }

    /// With a batch of `count` rows on its way.
    func sending(_ count: Int = 1, routes: Int = 1) -> DeliverySchedule {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: count)], routes: routes, at: at(0))
        schedule.sends("a", at: at(0))
        return schedule
    }

    let unavailable = Verdict.retry(.status(503), after: nil)
    let unreachable = Verdict.retry(.transport(.connect("")), after: nil)

    @Test func waitsForTheWindowOfTheOldestRow() {
        var schedule = schedule()
        #expect(schedule.next(at: at(0)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: at(10))
        schedule.rowsRecorded(3, at: at(40))
        #expect(schedule.next(at: at(69)) == .wait(until: at(70)))
        #expect(schedule.next(at: at(70)) == .form(limit: 100))
    }

    /// One commit less for each batch; what is sent when stays as it is.
    @Test(.bug(id: 16)) func aBatchIsFormedWithACommitThatComesSoonBefore() {
        var schedule = schedule()
        #expect(schedule.commitComes(at: at(0)) == nil)
        schedule.rowsRecorded(1, at: at(10))
        #expect(schedule.commitComes(at: at(63.9)) == nil)
        guard let batch = schedule.commitComes(at: at(64)) else { return _ = Issue.record("it waits") }
        #expect(batch == (100, at(70)))
        schedule.formRequested(sendsAt: batch.sendsAt, at: at(64))
        #expect(schedule.commitComes(at: at(64)) == nil)
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: at(64))
        #expect(schedule.next(at: at(65)) == .wait(until: at(70)))
        #expect(schedule.commitComes(at: at(66)) == nil)
        var flushed = schedule
        flushed.flushRequested(at: at(66))
        #expect(flushed.next(at: at(66)) == .send(batch: "a"))
        #expect(schedule.next(at: at(70)) == .send(batch: "a"))
    }

    @Test(.bug(id: 16), arguments: [false, true])
    func aFlushDoesNotWaitForTheTimeOfABatchThatIsBeingFormed(linkChanges: Bool) {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: at(10))
        schedule.formRequested(sendsAt: schedule.commitComes(at: at(64))?.sendsAt, at: at(64))
        if linkChanges { schedule.linkChanged(at: at(64.5)) } else { schedule.flushRequested(at: at(64.5)) }
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: at(65))
        #expect(schedule.next(at: at(65)) == .send(batch: "a"))
    }

    @Test(.bug(id: 16)) func atTheEndWhatCameAfterABatchThatWaitsGoesOutToo() {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: at(10))
        schedule.formRequested(sendsAt: schedule.commitComes(at: at(64))?.sendsAt, at: at(64))
        schedule.batchesFormed([.init(id: "a", rows: 1)], at: at(64))
        schedule.rowsRecorded(1, at: at(65))
        schedule.shutdownRequested(at: at(66), grace: .seconds(5))
        #expect(schedule.next(at: at(66)) == .send(batch: "a"))
        schedule.tries("a", .accepted, at: at(67))
        #expect(schedule.next(at: at(67)) == .form(limit: 100))
        schedule.forms([.init(id: "b", rows: 1)], at: at(67))
        schedule.sends("b", at: at(67))
        schedule.rowsRecorded(1, at: at(67))
        schedule.attemptFinished(.accepted, at: at(68))
        #expect(schedule.isShutDown)
    }

    /// Of the one the newest row counts; rows that wait for the other alone may be taken by a full queue.
    @Test(.bug(id: 16), arguments: [true, false])
    func aBatchThatMayChangeUntilItGoesOutIsNotFormedBefore(isOfTheNewest: Bool) {
        var settings = Self.settings()
        if isOfTheNewest { settings.delivery = .latest } else { settings.required = false }
        var schedule = DeliverySchedule(settings: settings, at: at(0))
        schedule.rowsRecorded(1, at: at(10))
        #expect(schedule.commitComes(at: at(69)) == nil && schedule.commitComes(joining: at(69), at: at(69)) == nil)
        #expect(schedule.next(at: at(70)) == .form(limit: 100))
    }

    /// Two endpoints go on sharing a wake-up of the radio, not only a commit.
    @Test(.bug(id: 16)) func aBatchThatJoinsAnotherIsSentWithIt() {
        var schedule = schedule()
        schedule.rowsRecorded(1, at: at(10))
        #expect(schedule.commitComes(joining: at(39), at: at(35)) == nil)
        #expect(schedule.commitComes(joining: at(41), at: at(35))?.sendsAt == at(41))
        #expect(schedule.commitComes(joining: at(75), at: at(69))?.sendsAt == at(70))
        #expect(schedule.commitComes(joining: at(300), at: at(39)) == nil)
        #expect(schedule.commitComes(joining: at(300), at: at(41))?.sendsAt == at(70))
    }

    @Test func formsAtOnceWhenTheSizeIsReached() {
        var schedule = schedule(size: 3)
        schedule.rowsRecorded(2, at: at(10))
        #expect(schedule.next(at: at(10)) == .wait(until: at(70)))
        schedule.rowsRecorded(1, at: at(11))
        #expect(schedule.next(at: at(11)) == .form(limit: 3))
    }

    @Test func waitsForTheLeastNumberOfRows() {
        var schedule = schedule(minBatch: 3)
        schedule.rowsRecorded(2, at: at(0))
        #expect(schedule.next(at: at(1000)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: at(1000))
        #expect(schedule.next(at: at(1000)) == .form(limit: 100))
    }

    @Test func sendsWhatWasFormed() {
        var schedule = schedule()
        schedule.rowsRecorded(5, at: at(0))
        schedule.formRequested(at: at(0))
        #expect(schedule.next(at: at(60)) == .wait(until: nil))
        schedule.rowsRecorded(2, at: at(61))
        schedule.batchesFormed([.init(id: "a", rows: 5)], at: at(61))
        #expect(schedule.waiting == 2)
        #expect(schedule.next(at: at(61)) == .send(batch: "a"))
        schedule.sends("a", at: at(61))
        #expect(schedule.next(at: at(61)) == .wait(until: nil))
        schedule.attemptFinished(.accepted, at: at(62))
        #expect(schedule.next(at: at(62)) == .wait(until: at(121)))
    }

    @Test func sendsABacklogWithoutPauseUntilAPartialRestRemains() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(24, at: at(5))
        for _ in 0..<2 {
            #expect(schedule.next(at: at(6)) == .form(limit: 10))
            schedule.forms([.init(id: "a", rows: 10)], at: at(6))
            schedule.tries("a", .accepted, at: at(6))
        }
        #expect(schedule.waiting == 4)
        #expect(schedule.next(at: at(6)) == .wait(until: at(65)))
    }

    @Test func knowsTheOldestRowOfALongBacklog() {
        var schedule = schedule(size: 10)
        for second in 0..<1005 { schedule.rowsRecorded(1, at: at(Double(second))) }
        for _ in 0..<100 {
            schedule.forms([.init(id: "a", rows: 10)], at: at(1005))
            schedule.tries("a", .accepted, at: at(1005))
        }
        #expect(schedule.next(at: at(1005)) == .wait(until: at(1060)))
    }

    @Test func retriesByTheRetryTimerAlone() {
        var schedule = sending()
        schedule.attemptFinished(unavailable, jitter: 0.5, at: at(1))
        #expect(schedule.next(at: at(1)) == .wait(until: at(2.5)))
        schedule.rowsRecorded(500, at: at(1.2))
        #expect(schedule.next(at: at(2.4)) == .wait(until: at(2.5)))
        #expect(schedule.next(at: at(2.5)) == .send(batch: "a"))
        for failure in 2...12 {
            schedule.tries("a", unavailable, jitter: 0.999_999, at: at(100))
            #expect(schedule.failures == failure)
        }
        #expect(schedule.next(at: at(398)) == .wait(until: schedule.nextAttemptAt))
        #expect(schedule.next(at: at(400)) == .send(batch: "a"))
    }

    @Test func doesNotResetTheWindowByAFailure() {
        var schedule = sending()
        schedule.rowsRecorded(1, at: at(1))
        schedule.attemptFinished(unavailable, at: at(50))
        schedule.tries("a", .accepted, at: at(70))
        #expect(schedule.next(at: at(70)) == .form(limit: 100))
    }

    @Test func sendsTheRestAtTheEndOfAnOutage() {
        var schedule = sending()
        schedule.attemptFinished(unavailable, at: at(1))
        schedule.rowsRecorded(3, at: at(1.5))
        schedule.tries("a", .accepted, at: at(3))
        #expect(schedule.next(at: at(3)) == .form(limit: 100))
    }

    @Test func flushesWhatWaitsNow() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(12, at: at(0))
        schedule.flushRequested(at: at(1))
        schedule.rowsRecorded(1, at: at(2))
        schedule.forms([.init(id: "a", rows: 10)], at: at(2))
        schedule.tries("a", .accepted, at: at(3))
        #expect(schedule.next(at: at(3)) == .form(limit: 10))
        schedule.forms([.init(id: "a", rows: 3)], at: at(3))
        schedule.tries("a", .accepted, at: at(4))
        #expect(schedule.next(at: at(4)) == .wait(until: nil))
    }

    @Test func flushBringsARetryForwardOnceAndNotBelowTheBase() {
        var schedule = sending()
        for _ in 0..<6 { schedule.tries("a", unavailable, jitter: 0.9, at: at(0)) }
        schedule.flushRequested(at: at(0.2))
        #expect(schedule.next(at: at(0.2)) == .wait(until: at(1)))
        #expect(schedule.next(at: at(1)) == .send(batch: "a"))
        schedule.tries("a", unavailable, jitter: 0.9, at: at(2))
        let regular = schedule.nextAttemptAt
        schedule.flushRequested(at: at(3))
        #expect(schedule.nextAttemptAt == regular)
    }

    @Test func linkUpEndsTheOwnBackoff() {
        var schedule = sending()
        for _ in 0..<9 {
            schedule.tries("a", .retry(.transport(.resolve("")), after: nil), jitter: 0.9, at: at(0))
        }
        schedule.linkChanged(at: at(5))
        #expect(schedule.failures == 0)
        #expect(schedule.next(at: at(5)) == .send(batch: "a"))
    }

    @Test func sendsTheNewestRowAheadOncePerWindow() {
        var settings = Self.settings(size: 10)
        settings.freshHead = true
        var schedule = DeliverySchedule(
            settings: settings, waiting: 25, inFlight: [.init(id: "a", rows: 10)], at: at(0))
        #expect(schedule.next(at: at(0)) == .preview)
        _ = schedule.previewStarted(25, at: at(0))
        #expect(schedule.next(at: at(0)) == .wait(until: nil))
        schedule.previewFinished(.accepted, at: at(1))
        #expect(schedule.next(at: at(1)) == .send(batch: "a"))
        #expect(schedule.next(at: at(60)) == .preview)
        _ = schedule.previewStarted(26, at: at(60))
        schedule.previewFinished(unavailable, at: at(61))
        #expect(schedule.next(at: at(61)) == .wait(until: at(62)))
        // No row is sent ahead twice, whatever came of it.
        schedule.tries("a", .accepted, at: at(63))
        schedule.forms([.init(id: "b", rows: 10)], at: at(63))
        #expect(schedule.next(at: at(120)) == .preview)
        #expect(schedule.previewStarted(26, at: at(120)) == nil)
        #expect(schedule.next(at: at(120)) == .send(batch: "b"))
    }

    @Test func takesUpWhereTheLastRunEnded() {
        let waiting = DeliverySchedule(settings: Self.settings(), waiting: 3, at: at(5))
        #expect(waiting.next(at: at(5)) == .form(limit: 100))
        let inFlight = DeliverySchedule(
            settings: Self.settings(), waiting: 3, inFlight: [.init(id: "a", rows: 2)], at: at(5))
        #expect(inFlight.next(at: at(5)) == .send(batch: "a"))
        let stopped = DeliverySchedule(
            settings: Self.settings(), state: .stopped(reason: "gone"), waiting: 3, inFlight: [.init(id: "a", rows: 2)],
            at: at(5))
        #expect(stopped.next(at: at(5)) == .wait(until: nil))
    }

    @Test func waitsBeforeItAsksAFailedDiskAgain() {
        var schedule = schedule(size: 1)
        schedule.rowsRecorded(1, at: at(0))
        schedule.formRequested(at: at(0))
        schedule.notFormed(at: at(1))
        #expect(schedule.next(at: at(1)) == .wait(until: at(11)))
        #expect(schedule.next(at: at(11)) == .form(limit: 1))
    }

    @Test func correctsItsCount() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(4, at: at(0))
        schedule.rowsRecorded(4, at: at(30))
        schedule.committed(waiting: 2)
        #expect(schedule.next(at: at(31)) == .wait(until: at(60)))
        schedule.committed(waiting: 0)
        #expect(schedule.next(at: at(1000)) == .wait(until: nil))
    }

    /// Those of another device: the queue hands them out when it is settled whose they are.
    @Test(.bug(id: 11)) func countsBatchesThatAreNotHandedOut() {
        var schedule = DeliverySchedule(settings: Self.settings(), state: .rebind, waiting: 2, unlisted: 3, at: at(0))
        #expect(schedule.waiting == 5 && schedule.next(at: at(0)) == .wait(until: nil))
        schedule.committed(waiting: 4, unlisted: 3)
        #expect(schedule.waiting == 7)
        schedule.stateChanged(to: .active, acceptedBefore: true)
        schedule.resumed(at: at(1))
        #expect(schedule.next(at: at(1)) == .form(limit: 0))
        schedule.forms([], unlisted: 3, at: at(2))
        schedule.committed(waiting: 4, unlisted: 3)
        #expect(schedule.waiting == 7)
        schedule.forms([.init(id: "a", rows: 3)], at: at(3))
        schedule.committed(waiting: 4)
        #expect(schedule.waiting == 4 && schedule.inFlight == 3)
    }

    /// No event shows that a disk can be read again.
    @Test(.bug(id: 11)) func asksAgainForABatchThatCannotBeRead() {
        var schedule = schedule(size: 1)
        schedule.committed(waiting: 0, [], unlisted: 3, lacksRows: true)
        schedule.forms([], unlisted: 3, at: at(1))
        schedule.committed(waiting: 0, unlisted: 3)
        #expect(schedule.waiting == 3 && schedule.next(at: at(1)) == .wait(until: at(11)))
        #expect(schedule.next(at: at(11)) == .form(limit: 0))
    }

    @Test(.bug(id: 11)) func tooFewRowsDoNotKeepABatchFromBeingAskedFor() {
        var schedule = schedule(minBatch: 5)
        schedule.committed(waiting: 0, [], unlisted: 3, lacksRows: true)
        schedule.forms([], unlisted: 3, at: at(1))
        schedule.rowsRecorded(2, at: at(2))
        #expect(schedule.next(at: at(2)) == .wait(until: at(11)))
        #expect(schedule.next(at: at(11)) == .form(limit: 0))
        // Listed at last, it takes nothing from the rows behind it.
        schedule.forms([.init(id: "a", rows: 3)], left: 2, at: at(12))
        #expect(schedule.waiting == 2 && schedule.inFlight == 3)
    }

    /// A damaged file that was set aside may leave a part of a batch.
    @Test(.bug(id: 11)) func asksForWhatIsLeftOfADissolvedBatch() {
        var schedule = DeliverySchedule(settings: Self.settings(), inFlight: [.init(id: "a", rows: 6)], at: at(0))
        schedule.committed(waiting: 0, [], unlisted: 1, lacksRows: true)
        #expect(schedule.waiting == 1 && schedule.next(at: at(0)) == .form(limit: 0))
    }

    /// Those that a newer one supersedes were the oldest: the window of the row that came meanwhile has just begun.
    @Test(.bug(id: 11)) func rowsThatGoUnsentAsABatchIsFormedAreTheOldest() {
        var schedule = schedule(size: 100)
        for second in 1...60 { schedule.rowsRecorded(1, at: at(Double(second))) }
        let number = schedule.formRequested(at: at(61))
        schedule.rowsRecorded(1, at: at(62))
        schedule.batchesFormed([.init(id: "a", rows: 1)], of: number, left: 1, at: at(63))
        schedule.tries("a", .accepted, at: at(64))
        #expect(schedule.next(at: at(64)) == .wait(until: at(122)))
    }

    /// A full queue that gives up the newest row for each that comes.
    @Test(.bug(id: 11)) func theWindowEndsThoughTheNewestRowsAreDropped() {
        var schedule = schedule(size: 100)
        schedule.rowsRecorded(5, at: at(0))
        for second in 1...59 {
            schedule.rowsRecorded(1, at: at(Double(second)))
            schedule.committed(waiting: 5)
        }
        #expect(schedule.next(at: at(60)) == .form(limit: 100))
    }

    /// What a server did not take is in the queue before the next commit says so too.
    @Test(.bug(id: 11)) func countsTheRowsOfABatchThatIsTakenApart() {
        var refused = sending(10)
        refused.attemptFinished(.split(status: 400), at: at(1))
        #expect(refused.waiting == 10 && refused.inFlight == 0)

        var partly = sending(10)
        partly.attemptFinished(.partlyAccepted(.init(again: [2, 3])), at: at(1))
        #expect(partly.waiting == 2 && partly.inFlight == 0)
    }

    @Test func sendsRowsThatOnlyACorrectionTold() {
        var schedule = schedule()
        schedule.committed(waiting: 5)
        #expect(schedule.next(at: at(0)) == .form(limit: 100))
    }

    @Test func makesOneLastAttemptAtShutdown() {
        var idle = schedule()
        idle.rowsRecorded(2, at: at(0))
        idle.shutdownRequested(at: at(1), grace: .seconds(5))
        #expect(!idle.isShutDown)
        #expect(idle.next(at: at(1)) == .form(limit: 100))
        idle.forms([.init(id: "a", rows: 2)], at: at(1))
        #expect(idle.next(at: at(1)) == .send(batch: "a"))
        idle.sends("a", at: at(1))
        #expect(idle.next(at: at(1)) == .wait(until: at(6)))
        #expect(idle.next(at: at(6)) == .wait(until: nil))
        idle.attemptFinished(unavailable, at: at(2))
        #expect(idle.isShutDown)
        #expect(idle.next(at: at(3)) == .wait(until: nil))

        var empty = schedule()
        empty.shutdownRequested(at: at(1), grace: .seconds(5))
        #expect(empty.isShutDown)

        var asked = sending()
        asked.attemptFinished(.retry(.status(503), after: .seconds(60)), at: at(1))
        asked.shutdownRequested(at: at(2), grace: .seconds(5))
        #expect(asked.isShutDown)

        var backingOff = sending()
        backingOff.attemptFinished(unavailable, jitter: 0.9, at: at(1))
        backingOff.shutdownRequested(at: at(1), grace: .seconds(5))
        #expect(backingOff.next(at: at(1)) == .wait(until: at(2)))
        #expect(backingOff.next(at: at(2)) == .send(batch: "a"))
    }
}
