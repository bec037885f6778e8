import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles
@testable import Protocols

/// What the networks of a vehicle do to the times of attempts.
@Suite struct LinkTests {
    private static let unreached = Verdict.retry(.transport(.resolve("")), after: nil)
    private static let unavailable = Verdict.retry(.status(503), after: nil)

    private func sending(_ rows: Int = 1, url: String = "https://x") -> DeliverySchedule {
        DeliverySchedule(
            settings: EndpointSettings(baseURL: url, device: "d"), inFlight: [.init(id: "a", rows: rows)], at: at(0))
    }

    @Test func aRequestWhoseLinkHasGoneIsRepeatedAtOnce() {
        var schedule = sending()
        for (second, verdict) in [
            Verdict.retry(.transport(.moved("")), after: nil), .retry(.lost(.moved(""), isAlone: true), after: nil),
        ].enumerated() {
            #expect(schedule.tries("a", verdict, at: at(Double(second))).isEmpty)
            #expect(schedule.next(at: at(Double(second))) == .send(batch: "a") && schedule.failures == 0)
        }
        #expect(Verdict.retry(.transport(.moved("")), after: nil).usualBlame == .noRow)
    }

    @Test func aLinkThatFlapsDoesNotShortenTheWaitAfterAnAnswer() {
        var schedule = sending()
        var now = at(0)
        var waits: [Double] = []
        for _ in 0..<4 {
            schedule.tries("a", Self.unavailable, jitter: 0.999_999, at: now)
            schedule.linkChanged(at: now)
            guard case .wait(let next?) = schedule.next(at: now) else { return _ = Issue.record("it waits") }
            waits.append(next.seconds(since: now).rounded())
            // The link is away when the time has come.
            schedule.tries("a", Self.unreached, jitter: 0.9, at: next)
            now = next + .seconds(5)
            schedule.linkChanged(at: now)
            #expect(schedule.next(at: now) == .send(batch: "a"))
        }
        #expect(waits == [2, 60, 120, 240])
    }

    @Test func afterAnOutageAllThatWaitsGoesOut() {
        var schedule = sending()
        schedule.tries("a", Self.unreached, at: at(0))
        schedule.rowsRecorded(250, at: at(1))
        schedule.linkChanged(at: at(2))
        #expect(schedule.failures == 0)
        schedule.tries("a", .accepted, at: at(3))
        for batch in ["b", "c", "d"] {
            #expect(schedule.next(at: at(3)) == .form(limit: 100))
            schedule.forms([.init(id: batch, rows: batch == "d" ? 50 : 100)], at: at(3))
            schedule.tries(batch, .accepted, at: at(3))
        }
        #expect(schedule.waiting == 0)
    }

    /// A captive portal may have said it.
    @Test(arguments: [
        Verdict.misconfigured(status: 405), .goneStop(status: 410), .goneStop(status: 404), .encodingRefused(),
    ])
    func whatWasSaidWithoutTLSDoesNotOutliveItsLink(_ verdict: Verdict) {
        for (url, isTried) in [("http://x", true), ("HTTP://x", true), ("https://x", false)] {
            var schedule = sending(url: url)
            var last = at(0)
            for _ in 0..<6 {
                last = max(last, schedule.nextAttemptAt ?? last)
                while case .send(let id) = schedule.next(at: last) { schedule.tries(id, verdict, at: last) }
            }
            let changed = last + .seconds(2)
            #expect(schedule.nextAttemptAt.map { $0 > changed } == true)
            schedule.linkChanged(at: changed)
            #expect((schedule.next(at: changed) == .send(batch: "a")) == isTried, "\(url)")
            guard isTried else { continue }
            schedule.tries("a", .accepted, at: changed)
            #expect(schedule.state == .active)
        }
    }

    @Test func whileItMovesNothingWaitsLongForANetwork() {
        for (isMoving, verdict, longest) in [
            (true, Self.unreached, 30.0), (true, .retry(.transport(.unreachable("")), after: nil), 30),
            (false, Self.unreached, 300), (true, .retry(.transport(.connect("")), after: nil), 300),
            (true, Self.unavailable, 300),
        ] {
            var schedule = sending()
            schedule.movementChanged(isMoving)
            for _ in 0..<12 { schedule.tries("a", verdict, jitter: 0.999_999, at: at(0)) }
            #expect(schedule.nextAttemptAt?.seconds(since: at(0)).rounded() == longest)
        }
    }

    /// Twice the server did not take all of it in time, so that it has acted on none of it.
    @Test func aBatchThatDoesNotGetThroughIsTakenApartAndTheNextOnesAreSmaller() {
        let stalled = DeliverySchedule.Transmission(blame: .anyRow, wasWhole: false)
        let timeout = Verdict.retry(.transport(.timeout("")), after: nil)
        var schedule = sending(80)
        #expect(schedule.tries("a", timeout, stalled, at: at(0)).isEmpty)
        #expect(schedule.tries("a", timeout, at: at(0)).isEmpty, "the server had it all")
        #expect(schedule.tries("a", timeout, stalled, at: at(0)).isEmpty)
        #expect(schedule.tries("a", timeout, stalled, at: at(0)) == [.init(batch: "a", how: .split)])
        #expect(schedule.limit == 40 && schedule.rowsInTime == 40 && schedule.isLinkSlow)
        schedule.forms([.init(id: "b", rows: 40), .init(id: "c", rows: 40)], at: at(400))
        schedule.tries("b", .accepted, at: at(400))
        #expect(schedule.limit == 80)
        schedule.forms([.init(id: "c", rows: 40), .init(id: "e", rows: 80)], at: at(401))
        schedule.tries("c", .accepted, at: at(401))
        schedule.tries("e", .accepted, at: at(402))
        #expect(schedule.limit == 100 && !schedule.isLinkSlow)
    }

    @Test func aRowAloneIsNotTakenApart() {
        var schedule = sending(1)
        for _ in 0..<4 {
            let settled = schedule.tries(
                "a", .retry(.transport(.timeout("")), after: nil), .init(blame: .anyRow, wasWhole: false), at: at(0))
            #expect(settled.isEmpty && schedule.limit == 100)
        }
    }

    @Test func aClockThatIsSetEndsAWaitForIt() {
        var schedule = sending()
        for (failure, isTried) in [(TransportFailure.clock(""), true), (.tls(""), false)] {
            for _ in 0..<6 { schedule.tries("a", .retry(.transport(failure), after: nil), jitter: 0.9, at: at(0)) }
            schedule.clockWasSet(at: at(1))
            #expect((schedule.next(at: at(1)) == .send(batch: "a")) == isTried)
        }
    }
}
