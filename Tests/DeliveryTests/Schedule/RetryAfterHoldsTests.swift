import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

/// What a server asks for holds, whatever becomes due meanwhile and whoever is in a hurry.
@Suite struct RetryAfterHoldsTests {
    private let asked = Duration.seconds(3000)

    /// Ways in which a server asks; each ends at 10 s.
    private enum Asking: CaseIterable {
        case unavailable, whilePaused, tooLarge, tooLargeAgain, partly, partlyForACredential, preview, bind, everyRow
        case forbidden, unknown, wrongMethod, wrongEncoding
    }

    private func schedule(_ asking: Asking) -> DeliverySchedule {
        var settings = DeliveryScheduleTests.settings(size: 10)
        settings.freshHead = asking == .preview
        var schedule = DeliverySchedule(
            settings: settings, waiting: 100, inFlight: [.init(id: "a", rows: 10)], at: at(0))
        let busy = Verdict.retry(.status(503), after: asked)
        func tries(_ verdict: Verdict) { schedule.tries("a", verdict, at: at(10)) }
        switch asking {
        case .unavailable: tries(busy)
        case .whilePaused:
            tries(.misconfigured(status: 405))
            tries(busy)
        case .tooLarge: tries(.tooLarge(status: 413, after: asked))
        case .tooLargeAgain:
            tries(.tooLarge(status: 413, after: .seconds(0.1)))
            tries(.tooLarge(status: 413, after: asked))
        case .partly: tries(.partlyAccepted(.init(again: [3], after: asked)))
        case .partlyForACredential:
            tries(.partlyAccepted(.init(again: [3], needsCredential: true, after: asked)))
        case .preview:
            _ = schedule.previewStarted(99, at: at(9))
            schedule.previewFinished(busy, at: at(10))
        case .bind:
            schedule.bindRequested()
            _ = schedule.bindStarted(at: at(9))
            schedule.bindAnswered(asked: asked, at: at(10))
            schedule.bindEnded()
        case .everyRow:
            for status in [400, 422] { tries(.split(status: status)) }
            tries(busy)
        case .forbidden: tries(.authStop(status: 403, after: asked))
        case .unknown: tries(.goneStop(status: 404, after: asked))
        case .wrongMethod: tries(.misconfigured(status: 405, after: asked))
        case .wrongEncoding: tries(.encodingRefused(after: asked))
        }
        return schedule
    }

    private enum Hurry: CaseIterable {
        case none, flush, link, resume, size, shutdown, pause, bind

        func acts(on schedule: inout DeliverySchedule, at now: EventTime) {
            switch self {
            case .none, .pause: break
            case .flush: schedule.flushRequested(at: now)
            case .link: schedule.linkChanged(at: now)
            case .resume: schedule.resumed(at: now)
            case .size: schedule.rowsRecorded(100, at: now)
            case .shutdown: schedule.shutdownRequested(at: now, grace: .seconds(5))
            case .bind: schedule.bindRequested()
            }
        }
    }

    @Test(.bug(id: 11), arguments: Asking.allCases, Hurry.allCases)
    private func nothingGoesOutBefore(_ asking: Asking, _ hurry: Hurry) {
        var schedule = schedule(asking)
        #expect(schedule.restsUntil == at(3010))
        for second in stride(from: 10.0, to: 3010, by: 30) {
            let now = at(second)
            if Int(second) % 120 == 10 { hurry.acts(on: &schedule, at: now) }
            // Lists and credentials are no requests to this server.
            for _ in 0..<3 {
                switch schedule.next(at: now) {
                case .form, .reform:
                    schedule.forms([.init(id: "a", rows: 10)], at: now)
                case .refreshCredentials:
                    schedule.startsRefresh(at: now)
                    schedule.credentialsRefreshed(isNew: hurry != .pause, at: now)
                case .wait: break
                case .send, .preview, .position, .bind: Issue.record("\(schedule.next(at: now)) at \(second) s")
                }
            }
        }
        guard hurry != .shutdown else { return }
        // Then it goes on, at the latest with the probe of a pause.
        switch schedule.next(at: at(3010 + 991)) {
        case .send, .preview, .position, .bind, .form: break
        case let step: Issue.record("\(step) after the time")
        }
    }

    @Test func itIsTheWishOfOneServerOnly() {
        var schedule = DeliverySchedule(
            settings: DeliveryScheduleTests.settings(), inFlight: [.init(id: "a", rows: 4)], routes: 2, at: at(0))
        schedule.tries("a", .retry(.status(503), after: .seconds(50)), at: at(0))
        for failure in 0..<5 {
            #expect(schedule.route == 0)
            schedule.tries("a", .retry(.transport(.connect("")), after: nil), at: at(50 + Double(failure)))
        }
        #expect(schedule.route == 1 && schedule.next(at: at(54)) == .reform(limit: 100))
        schedule.forms([.init(id: "s", rows: 4, route: 1)], at: at(54))
        // The one that stands in wants to be left alone for an hour; the endpoint itself does not.
        let some = Verdict.partlyAccepted(.init(refused: [1: "bad"], after: .seconds(3600)))
        schedule.tries("s", some, at: at(55))
        schedule.rowsRecorded(200, at: at(56))
        #expect(schedule.next(at: at(500)) == .wait(until: at(864)))
        #expect(schedule.next(at: at(1000)) == .form(limit: 100))
        schedule.formRequested(at: at(1000))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: at(1000))
        #expect(schedule.next(at: at(1000)) == .send(batch: "b"))
    }
}
