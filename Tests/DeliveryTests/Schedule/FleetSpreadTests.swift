import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

/// What keeps the devices of a fleet from sending at once.
@Suite struct FleetSpreadTests {
    private let unavailable = Verdict.retry(.status(503), after: nil)

    private func schedule(share: Double, window: Duration = .seconds(60), minBatch: Int = 1) -> DeliverySchedule {
        var settings = DeliveryScheduleTests.settings(minBatch: minBatch)
        settings.batchWindow = window
        return DeliverySchedule(settings: settings, share: share, at: at(0))
    }

    /// A batch of all that waits is formed, sent and accepted.
    private func deliver(_ schedule: inout DeliverySchedule, at now: EventTime) {
        schedule.forms([.init(id: "b", rows: schedule.waiting)], left: 0, at: now)
        schedule.tries("b", .accepted, at: now)
    }

    @Test func theShareIsOfTheQueueAndTheEndpoint() {
        let one = [UInt8](repeating: 1, count: 16)
        let other = [UInt8](repeating: 1, count: 15) + [2]
        let share = FleetShare.of(outbox: one, endpoint: "main")
        #expect(share == FleetShare.of(outbox: one, endpoint: "main"))
        #expect(share != FleetShare.of(outbox: other, endpoint: "main"))
        #expect(share != FleetShare.of(outbox: one, endpoint: "other"))
    }

    @Test func sharesAreEvenlySpread() {
        var tenths = [Int](repeating: 0, count: 10)
        for device in 0..<10_000 {
            let outbox = [UInt8](repeating: 0, count: 14) + [UInt8(device >> 8), UInt8(device & 255)]
            let share = FleetShare.of(outbox: outbox, endpoint: "main")
            #expect(share >= 0 && share < 1)
            tenths[Int(share * 10)] += 1
        }
        #expect(tenths.allSatisfy { (850...1150).contains($0) }, "\(tenths)")
    }

    @Test func theWindowEndsAtATimeOfTheDevice() {
        var schedule = schedule(share: 0.5)
        schedule.rowsRecorded(1, at: at(10))
        #expect(schedule.next(at: at(10)) == .wait(until: at(73)))
        #expect(schedule.next(at: at(73)) == .form(limit: 100))
    }

    @Test func theFirstWindowAfterAStartIsAPartOfOne() {
        var schedule = schedule(share: 0.25)
        schedule.startedWithHost(at: at(0))
        #expect(schedule.next(at: at(0)) == .wait(until: nil))
        schedule.rowsRecorded(1, at: at(30))
        // The turn at 15 s is over.
        #expect(schedule.next(at: at(30)) == .wait(until: at(75)))
        #expect(schedule.next(at: at(75)) == .form(limit: 100))
        deliver(&schedule, at: at(75))
        schedule.rowsRecorded(1, at: at(80))
        #expect(schedule.next(at: at(80)) == .wait(until: at(80 + 61.5)))
    }

    @Test func aSharedFlushWaitsForTheTurnOfTheDevice() {
        var schedule = schedule(share: 0.5, minBatch: 10)
        schedule.rowsRecorded(2, at: at(10))
        schedule.sharedFlushRequested(at: at(10))
        schedule.rowsRecorded(1, at: at(20))
        #expect(schedule.next(at: at(39)) == .wait(until: at(40)))
        #expect(schedule.next(at: at(40)) == .form(limit: 100))
        deliver(&schedule, at: at(40))
        schedule.rowsRecorded(1, at: at(41))
        #expect(schedule.next(at: at(200)) == .wait(until: nil))
    }

    @Test func aSharedFlushOfAnEmptyQueueConcernsTheNextRow() {
        var schedule = schedule(share: 0.5)
        schedule.sharedFlushRequested(at: at(10))
        schedule.rowsRecorded(1, at: at(100.5))
        #expect(schedule.next(at: at(100.5)) == .wait(until: at(160)))
    }

    @Test func aSecondSharedFlushDoesNotPutOffTheFirst() {
        var schedule = schedule(share: 0.5)
        schedule.rowsRecorded(1, at: at(0))
        schedule.sharedFlushRequested(at: at(0))
        schedule.sharedFlushRequested(at: at(20))
        #expect(schedule.next(at: at(20)) == .wait(until: at(30)))
    }

    /// Motion, geofences, power, panic, and an operator.
    @Test func whatConcernsTheDeviceAloneDoesNotWait() {
        var schedule = schedule(share: 0.9)
        schedule.startedWithHost(at: at(0))
        schedule.rowsRecorded(1, at: at(30))
        schedule.sharedFlushRequested(at: at(30))
        schedule.flushRequested(at: at(31))
        #expect(schedule.next(at: at(31)) == .form(limit: 100))
        // What was flushed is not flushed again.
        deliver(&schedule, at: at(31))
        schedule.rowsRecorded(1, at: at(32))
        #expect(schedule.next(at: at(90)) == .wait(until: at(32 + 65.4)))
    }

    /// More than one batch: each of them goes out.
    @Test func aSharedFlushConcernsAllThatWaits() {
        var schedule = schedule(share: 0.5)
        schedule.rowsRecorded(90, at: at(0))
        schedule.sharedFlushRequested(at: at(0))
        schedule.rowsRecorded(50, at: at(1))
        schedule.forms([.init(id: "a", rows: 100)], left: 40, at: at(1))
        schedule.tries("a", .accepted, at: at(1))
        #expect(schedule.next(at: at(2)) == .wait(until: at(30)))
        #expect(schedule.next(at: at(30)) == .form(limit: 100))
    }

    @Test func noSpreadIsLongerThanFiveMinutes() {
        var schedule = schedule(share: 0.5, window: .seconds(86_400))
        schedule.rowsRecorded(1, at: at(0))
        schedule.sharedFlushRequested(at: at(0))
        #expect(schedule.next(at: at(0)) == .wait(until: at(150)))
    }

    @Test func aServerThatIsDownIsNotAskedMoreOftenThanOneThatWorks() {
        var schedule = schedule(share: 0)
        schedule.rowsRecorded(1, at: at(0))
        schedule.forms([.init(id: "a", rows: 1)], left: 0, at: at(60))
        for (failure, wait) in [1.5, 30.5, 60.5].enumerated() {
            let now = at(60 + Double(failure) * 100)
            schedule.tries("a", unavailable, jitter: 0.5, at: now)
            #expect(schedule.next(at: now) == .wait(until: now + .milliseconds(Int(wait * 1000))))
        }
        // Our own link is back, which is no reason to ask a server again that has answered.
        schedule.linkChanged(at: at(262))
        #expect(schedule.next(at: at(262)) != .send(batch: "a"))
        schedule.tries("a", .retry(.transport(.connect("")), after: nil), jitter: 0.5, at: at(321))
        schedule.linkChanged(at: at(322))
        #expect(schedule.next(at: at(322)) == .send(batch: "a"))
    }

    @Test func aBackupIsFoundAsSoonAsEver() {
        var schedule = DeliverySchedule(
            settings: DeliveryScheduleTests.settings(), inFlight: [.init(id: "a", rows: 1)], routes: 2, at: at(0))
        for wait in [1.5, 2.5, 4.5] {
            schedule.tries("a", .retry(.transport(.connect("")), after: nil), jitter: 0.5, at: at(0))
            #expect(schedule.nextAttemptAt == at(wait))
        }
    }
}

@Suite struct ReconnectDelayTests {
    @Test(arguments: [(60, 0, 60), (60, 0.75, 15), (20, 0.5, 10)] as [(Int, Double, Int)])
    func afterAServerClosedItTheFleetComesBackOverAMinuteOrWhatIsAsked(spread: Int, jitter: Double, wait: Int) {
        var delay = ReconnectDelay(spread: .seconds(spread))
        delay.connected()
        #expect(delay.lost(jitter: jitter) == .seconds(wait))
    }

    @Test func furtherFailuresWaitLongerUpToTheCap() {
        var delay = ReconnectDelay()
        delay.connected()
        let waits: [Duration] = (0..<5).map { _ in delay.lost(jitter: 0) }
        #expect(waits == [.seconds(60), .seconds(120), .seconds(240), .seconds(300), .seconds(300)])
        delay.connected()
        #expect(delay.lost(jitter: 0) == .seconds(60))
    }

    @Test func onALinkThatHasJustComeBackItIsTriedSoon() {
        var delay = ReconnectDelay()
        delay.connected()
        _ = delay.lost(jitter: 0)
        delay.linkChanged()
        #expect((0..<3).map { _ in delay.lost(jitter: 0) } == [.seconds(1), .seconds(2), .seconds(4)])
    }

    @Test func neverLeavesItsBounds() {
        for cap in [Duration.zero, .seconds(7), .seconds(Int64.max)] {
            var delay = ReconnectDelay(spread: cap, backoff: Backoff(base: cap, cap: cap))
            for jitter in [0, 0.5, 0.999_999_999_999_9, 1, -1, .nan, .infinity] as [Double] {
                let wait = delay.lost(jitter: jitter)
                #expect(wait > .zero && wait.nanoseconds <= max(1, cap.nanoseconds))
            }
        }
    }
}
