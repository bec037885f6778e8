import ProfilesTestSupport
import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

// What each answer leads to.
extension DeliveryScheduleTests {
    /// What a pause sends shows whether the server is well; the rows behind the head wait for it.
    @Test(.bug(id: 11)) func aPauseOverRowsSendsNoWholeBatchAheadOfTheHead() {
        var parts: [DeliverySchedule.InFlight] = [
            .init(id: "b", rows: 8), .init(id: "c", rows: 8), .init(id: "d", rows: 1),
        ]
        var schedule = DeliverySchedule(
            settings: Self.settings(size: 8), inFlight: [.init(id: "a", rows: 8)] + parts, at: at(0))
        let refused = ItemVerdicts(refused: [1: "bad", 2: "bad", 3: "bad"])
        schedule.tries("a", .partlyAccepted(refused), at: at(0))
        #expect(schedule.state == .paused(reason: "too many rejected"))
        var sent: [Int] = []
        for attempt in 0..<8 {
            let now = at(Double(attempt) * 1000)
            schedule.forms(parts, at: now)
            let later = now + .seconds(999)
            guard case .send(let batch) = schedule.next(at: later),
                let place = parts.firstIndex(where: { $0.id == batch })
            else { return _ = Issue.record("nothing is tried") }
            #expect(place == 0 || parts[place].rows == 1)
            sent.append(parts[place].rows)
            for settled in schedule.tries(batch, .split(status: 400), at: later) {
                #expect(settled.how == .split)
                // The first batch of several rows is taken apart, until enough of them stand alone.
                guard let split = parts.firstIndex(where: { $0.id == settled.batch }) else { continue }
                let half = (parts[split].rows + 1) / 2
                parts[split...split] = [
                    .init(id: settled.batch + "1", rows: half),
                    .init(id: settled.batch + "2", rows: parts[split].rows - half),
                ]
            }
        }
        // A row behind one that stays refused shows that the server is well.
        #expect(sent.count { $0 == 1 } >= 4)
        #expect(parts.map(\.rows) == [1, 1, 1, 1, 1, 1, 1, 1, 8, 1])
    }

    /// Without a window there is always one to be sent, of the same row.
    @Test(.bug(id: 11)) func aPreviewIsNotDueAgainAtOnce() {
        var settings = Self.settings(size: 10)
        settings.freshHead = true
        settings.batchWindow = .zero
        var schedule = DeliverySchedule(
            settings: settings, waiting: 25, inFlight: [.init(id: "a", rows: 10)], at: at(0))
        #expect(schedule.next(at: at(0)) == .preview)
        #expect(schedule.previewStarted(nil, at: at(0)) == nil)
        #expect(schedule.next(at: at(0)) == .send(batch: "a"))
        #expect(schedule.next(at: at(1)) == .preview)
    }

    /// Rows of a split are in flight for the one that sent the whole.
    @Test(.bug(id: 11)) func aListOfHalvesIsNoTimeForTheEndpointItself() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4, route: 1)], routes: 2, at: at(0))
        let late = at(2000)
        let asked = Verdict.tooLarge(status: 413, after: .seconds(3000))
        #expect(schedule.tries("a", asked, at: late).isEmpty)
        #expect(schedule.tries("a", asked, at: late) == [.init(batch: "a", how: .split)])
        #expect(schedule.next(at: late) == .form(limit: 0))
        schedule.forms([.init(id: "a1", rows: 2, route: 1), .init(id: "a2", rows: 2, route: 1)], at: late)
        #expect(schedule.route == 1)
        #expect(schedule.next(at: late) == .wait(until: late + .seconds(3000)))
    }

    /// A bind goes to the endpoint itself, whoever stands in for it.
    @Test(.bug(id: 11)) func aBindHoldsForTheServerThatBinds() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4, route: 1)], routes: 2, at: at(0))
        schedule.bindRequested()
        #expect(schedule.next(at: at(0)) == .bind)
        _ = schedule.bindStarted(at: at(0))
        schedule.bindAnswered(asked: .seconds(3000), at: at(1))
        schedule.bindEnded()
        #expect(schedule.bindRestsUntil == at(3001))
        #expect(schedule.next(at: at(1)) == .send(batch: "a"))
        // What the spare asks for is no wish of the other.
        schedule.tries("a", .retry(.status(503), after: .seconds(9000)), at: at(2))
        schedule.bindRequested()
        #expect(schedule.next(at: at(2)) == .wait(until: at(3001)))
    }

    /// A server that fails over the head says nothing by failing over the next row too: another one may show that it is well.
    @Test(.bug(id: 11), arguments: [Verdict.retry(.status(500), after: nil), .split(status: 400)])
    func anotherRowIsTriedWhereTheFirstBehindTheHeadFailsAsWell(next: Verdict) {
        var parts: [DeliverySchedule.InFlight] = [.init(id: "head", rows: 1), .init(id: "pair", rows: 2)]
        var schedule = DeliverySchedule(settings: Self.settings(size: 1), waiting: 9, inFlight: parts, at: at(0))
        var now = at(0)
        var ahead: [String] = []
        for _ in 0..<100 where schedule.suspects.isEmpty {
            now = now + .seconds(1000)
            switch schedule.next(at: now) {
            case .form:
                parts.append(.init(id: "\(parts.count)", rows: 1))
                schedule.forms(parts, at: now)
            case .send(let batch):
                if batch != "head" { ahead.append(batch) }
                let failed = Verdict.retry(.status(500), after: nil)
                let verdict = batch == "head" ? failed : ahead.count < 3 ? next : .accepted
                let settled = schedule.tries(batch, verdict, at: now)
                #expect(!settled.contains(.init(batch: "head", how: .refused)))
            default: return #expect(Bool(false), "\(schedule.next(at: now))")
            }
        }
        #expect(ahead == ["2", "3", "4"])
        // What it takes to set the head aside is more than that.
        #expect(schedule.suspects == ["head"])
    }

    /// Memory does not list batches of the quarantine; the disk that takes its rows over has them.
    @Test(.bug(id: 11)) func asksForBatchesThatAreInFlightAgain() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(1, at: at(0))
        schedule.committed(waiting: 1, unlisted: 3, lacksRows: true)
        #expect(schedule.waiting == 4)
        #expect(schedule.next(at: at(1)) == .form(limit: 0))
    }

    static let pausing: [(Verdict, Int, String)] = [
        (.misconfigured(status: 405), 1, "configuration (status 405)"),
        (.misconfigured(status: 451), 1, "refused 451"),
        (.goneStop(status: 404), 1, "not found"),
        (.retry(.redirected(status: 302, host: nil), after: nil), 5, "redirected"),
        (.retry(.conflict, after: nil), 5, "conflict"),
    ]

    @Test(arguments: DeliveryScheduleTests.pausing)
    func pausesAndProbes(verdict: Verdict, times: Int, reason: String) {
        var schedule = sending()
        for time in 1...times {
            #expect(schedule.state == .active)
            schedule.tries("a", verdict, jitter: 0.5, at: at(Double(time)))
        }
        #expect(schedule.state == .paused(reason: reason))
        // The waits are those after failures, and grow to a quarter of an hour, or less for who knows how long a portal stands.
        var now = at(Double(times))
        var waits: [Double] = []
        for _ in 0..<12 {
            schedule.flushRequested(at: now)
            guard case .wait(let probe?) = schedule.next(at: now) else { return _ = Issue.record("it waits") }
            #expect(schedule.nextAttemptAt == probe)
            waits.append(probe.seconds(since: now))
            now = probe
            schedule.tries("a", verdict, jitter: 0.5, at: now)
            #expect(schedule.state == .paused(reason: reason))
        }
        #expect(times > 1 || waits[0] <= 2, "a fault that passes costs seconds")
        #expect(zip(waits, waits.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(waits.last == (reason == "redirected" ? 100 : 900), "\(waits)")
        // Whatever else goes wrong ends the pause, and the back-off goes on.
        schedule.tries("a", unavailable, jitter: 1, at: now)
        #expect(schedule.state == .active && schedule.next(at: now) == .wait(until: now + .seconds(300)))
        schedule.tries("a", .accepted, at: now)
        #expect(schedule.state == .active)
    }

    /// What redirects is in the way on one link.
    @Test func anotherLinkEndsTheWaitAfterARedirect() {
        for times in [2, 6] {
            var schedule = sending()
            let redirected = Verdict.retry(.redirected(status: 302, host: nil), after: nil)
            for _ in 0..<times { schedule.tries("a", redirected, jitter: 0.9, at: at(0)) }
            schedule.linkChanged(at: at(5))
            #expect(schedule.next(at: at(5)) == .send(batch: "a"))
        }
    }

    /// The asset stands, and nothing else is sent that would show whether the server is well.
    @Test(arguments: [1, 60]) func aShortFaultOfTheServerCostsSeconds(rows: Int) {
        for lasts in [4.0, 12] {
            var settings = Self.settings()
            settings.batchWindow = .seconds(5)
            var schedule = DeliverySchedule(
                settings: settings, inFlight: [.init(id: "0+\(rows)", rows: rows)], at: at(0))
            // By their first row.
            var batches = [0: rows]
            var now = at(0)
            while !batches.isEmpty, now < at(3600) {
                switch schedule.next(at: now) {
                case .wait(let until?): now = until
                case .form:
                    let listed = batches.sorted { $0.key < $1.key }.map { ("\($0.key)+\($0.value)", $0.value) }
                    schedule.forms(listed.map { .init(id: $0.0, rows: $0.1) }, at: now)
                case .send(let id):
                    let verdict: Verdict = now < at(lasts) ? .split(status: 400) : .accepted
                    for settled in schedule.tries(id, verdict, jitter: 0.9, at: now) {
                        let parts = settled.batch.split(separator: "+").compactMap { Int($0) }
                        #expect(settled.how == .accepted || settled.how == .split, "\(settled)")
                        batches[parts[0]] = nil
                        guard settled.how == .split else { continue }
                        let half = (parts[1] + 1) / 2
                        (batches[parts[0]], batches[parts[0] + half]) = (half, parts[1] - half)
                    }
                    now = now + .milliseconds(50)
                default: return _ = Issue.record("\(schedule.next(at: now))")
                }
            }
            #expect(now < at(3 * lasts + 10), "\(lasts) s: \(now.seconds(since: at(0)))")
        }
    }

    @Test func aPauseSaysWhenTheServerIsTriedAgain() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), state: .paused(reason: "not found"), inFlight: [.init(id: "a", rows: 1)],
            at: at(0))
        schedule.sends("a", at: at(0))
        #expect(schedule.nextAttemptAt == nil)
        schedule.attemptFinished(.goneStop(status: 404, after: .seconds(3000)), jitter: 0.5, at: at(10))
        #expect(schedule.nextAttemptAt == at(3010))
        // What was in flight is gone: what waits is formed then. With nothing to send there is no try.
        schedule.rowsRecorded(1, at: at(20))
        schedule.committed(waiting: 1, [])
        #expect(schedule.nextAttemptAt == at(3010))
        #expect(schedule.next(at: at(20)) == .wait(until: at(3010)))
        schedule.committed(waiting: 0)
        #expect(schedule.nextAttemptAt == nil)
    }

    @Test func takesAPassing404ForAFaultOfTheServer() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 1)], acceptedBefore: true, at: at(0))
        for _ in 0..<4 {
            schedule.tries("a", .goneStop(status: 404), at: at(0))
            #expect(schedule.state == .active)
        }
        schedule.tries("a", .goneStop(status: 404), at: at(0))
        #expect(schedule.state == .paused(reason: "not found"))
    }

    static let stopping: [(Verdict, EndpointState)] = [
        (.goneStop(status: 410), .stopped(reason: "gone")), (.collision, .taken),
    ]

    /// Whoever never had the asset has lost it to nobody.
    @Test func aCollisionBeforeAnythingWasAcceptedIsNoTakeover() {
        var schedule = sending()
        schedule.attemptFinished(.collision, at: at(1))
        #expect(schedule.state == .paused(reason: "not bound"))
        guard case .wait(let probe?) = schedule.next(at: at(1)) else { return _ = Issue.record("it waits") }
        #expect(schedule.next(at: probe) == .send(batch: "a"))
        schedule.tries("a", .accepted, at: probe)
        #expect(schedule.state == .active)
        schedule.forms([.init(id: "b", rows: 1)], at: probe)
        schedule.tries("b", .collision, at: probe)
        #expect(schedule.state == .taken)
    }

    /// The same of a broker, also where it says so of a connection that carries nothing.
    @Test func aClientIDThatIsInUseBeforeAnythingWasAcceptedIsNoTakeover() throws {
        let settings = try Sample.settings(["mqtt": ["topic": "t"], "record": ["n": "$seq"]])
        var idle = DeliverySchedule(settings: settings, at: at(0))
        idle.takenOver(jitter: 0, at: at(1))
        #expect(idle.state == .paused(reason: "client id in use"))
        var schedule = DeliverySchedule(settings: settings, inFlight: [.init(id: "a", rows: 1)], at: at(0))
        var now = at(0)
        for _ in 0..<20 {
            schedule.tries("a", .collision, jitter: 0.5, at: now)
            #expect(schedule.state == .paused(reason: "client id in use"))
            guard case .wait(let probe?) = schedule.next(at: now) else { return _ = Issue.record("it waits") }
            now = probe
        }
        // Each attempt ends the connection of the other client.
        #expect(now > at(7200))
        schedule.tries("a", .accepted, at: now)
        schedule.takenOver(jitter: 0, at: now)
        #expect(schedule.state == .taken)
    }

    /// What the broker confirmed is settled first.
    @Test func aTakeoverAfterConfirmationsStops() {
        var schedule = sending(3)
        var items = ItemVerdicts()
        (items.again, items.isTaken) = ([3], true)
        #expect(schedule.attemptFinished(.partlyAccepted(items), at: at(1)).map(\.how) == [.partly(items)])
        #expect(schedule.state == .taken)
    }

    @Test func withoutASubscriberTheOldestIsTriedLessAndLessOften() {
        var schedule = sending()
        #expect(!schedule.awaitsSubscriber)
        var now = at(1)
        var waits: [Double] = []
        for _ in 0..<9 {
            schedule.tries("a", .retry(.noSubscriber, after: nil), at: now)
            #expect(schedule.awaitsSubscriber)
            // Another link changes nothing about it.
            schedule.linkChanged(at: now)
            guard case .wait(let next?) = schedule.next(at: now) else { return _ = Issue.record("it waits") }
            waits.append(next.seconds(since: now))
            now = next
        }
        #expect(waits == [10, 20, 40, 80, 160, 320, 600, 600, 600])
        #expect(schedule.bisects == 0)
        schedule.tries("a", .accepted, at: now)
        #expect(!schedule.awaitsSubscriber && schedule.failures == 0)
    }

    @Test func aPersonShortensAWaitOnceInTenSeconds() {
        var schedule = sending()
        for _ in 0..<6 { schedule.tries("a", unavailable, jitter: 0.9, at: at(0)) }
        schedule.linkChanged(at: at(2))
        #expect(schedule.failures == 6, "the server has answered")
        for (flushed, isDue) in [(3.0, true), (5, false), (14, true)] {
            schedule.flushRequested(byOperator: true, at: at(flushed))
            #expect((schedule.next(at: at(flushed)) == .send(batch: "a")) == isDue)
            if isDue { schedule.tries("a", unavailable, jitter: 0.9, at: at(flushed)) }
        }
    }

    @Test(arguments: DeliveryScheduleTests.stopping)
    func stopsUntilSomebodyResumes(verdict: Verdict, state: EndpointState) {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 1), .init(id: "b", rows: 1)],
            acceptedBefore: true, at: at(0))
        for batch in verdict == .collision ? ["a"] : ["a", "a", "a", "a", "a", "b", "a"] {
            #expect(schedule.state != state)
            schedule.tries(batch, verdict, at: at(1))
        }
        #expect(schedule.state == state)
        schedule.rowsRecorded(1000, at: at(2))
        schedule.flushRequested(at: at(2))
        #expect(schedule.next(at: at(1e6)) == .wait(until: nil))
        schedule.resumed(at: at(10))
        #expect(schedule.next(at: at(10)) == .send(batch: "a"))
    }

    /// What the only row gets may be about that row: the next one shows it.
    @Test func oneRowThatIsGoneStopsNothing() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 1)], acceptedBefore: true, at: at(0))
        var now = at(0)
        for _ in 0..<30 {
            schedule.tries("a", .goneStop(status: 410), jitter: 0.5, at: now)
            guard case .wait(let next?) = schedule.next(at: now) else { return _ = Issue.record("it waits") }
            now = next
        }
        #expect(schedule.state == .paused(reason: "gone"))
        schedule.rowsRecorded(1, at: now)
        #expect(schedule.next(at: now) == .form(limit: 1))
        schedule.forms([.init(id: "a", rows: 1), .init(id: "b", rows: 1)], at: now)
        #expect(schedule.tries("b", .accepted, at: now).map(\.how) == [.accepted])
        #expect(schedule.state == .active && schedule.suspects == ["a"])
        // The next row that gets the same answer holds up nothing.
        schedule.rowsRecorded(2, at: now)
        schedule.forms([.init(id: "a", rows: 1), .init(id: "c", rows: 1)], at: now)
        schedule.tries("c", .goneStop(status: 410), at: now)
        #expect(schedule.state == .active && schedule.next(at: now + .seconds(2)) == .form(limit: 1))
    }

    static let repeated: [(Verdict, String)] = [
        (.encodingRefused(), "configuration (status 415)"), (.misconfigured(status: 417), "refused 417"),
    ]

    /// Without compression, and without `Expect`.
    @Test(arguments: DeliveryScheduleTests.repeated)
    func repeatsOnceWhatSomethingBetweenRefused(verdict: Verdict, reason: String) {
        var schedule = sending()
        schedule.attemptFinished(verdict, .init(wasCompressed: true), at: at(1))
        #expect(schedule.compresses("a", at: at(1)) == (verdict != .encodingRefused()))
        #expect(schedule.next(at: at(1)) == .send(batch: "a"))
        schedule.tries("a", verdict, at: at(1))
        #expect(schedule.state == .paused(reason: reason))
    }

    @Test func blamesNoCompressionThatWasNotUsed() {
        var schedule = sending()
        schedule.attemptFinished(.encodingRefused(), at: at(1))
        #expect(schedule.state == .paused(reason: "configuration (status 415)"))
    }

    @Test func halvesABatchThatIsTooLargeAndRemembersTheSize() {
        var schedule = sending(10)
        let settled = schedule.attemptFinished(.tooLarge(status: 413, after: nil), at: at(1))
        #expect(settled == [.init(batch: "a", how: .split)])
        #expect(schedule.next(at: at(1)) == .form(limit: 0))
        let parts: [DeliverySchedule.InFlight] = [.init(id: "b", rows: 5), .init(id: "c", rows: 5)]
        schedule.forms(parts, at: at(1))
        for (index, part) in parts.enumerated() {
            #expect(schedule.next(at: at(2)) == .send(batch: part.id))
            #expect(schedule.tries(part.id, .accepted, at: at(2)) == [.init(batch: part.id, how: .accepted)])
            guard index == 0 else { continue }
            #expect(schedule.next(at: at(2)) == .form(limit: 0))
            schedule.forms([parts[1]], at: at(2))
        }
        // The window holds for smaller batches too, at the end of which they follow each other.
        schedule.rowsRecorded(7, at: at(2))
        guard case .wait(let ends?) = schedule.next(at: at(2)) else { return _ = Issue.record("it waits") }
        schedule.rowsRecorded(1, at: ends)
        #expect(schedule.next(at: ends) == .form(limit: 5))
        schedule.forms([.init(id: "d", rows: 5)], left: 3, at: ends)
        schedule.tries("d", .accepted, at: ends)
        #expect(schedule.next(at: ends) == .form(limit: 5))
        schedule.forms([.init(id: "e", rows: 3)], left: 0, at: ends)
        schedule.rowsRecorded(1, at: ends)
        schedule.tries("e", .accepted, at: ends)
        guard case .wait(_?) = schedule.next(at: ends) else { return _ = Issue.record("it waits again") }
    }

    /// A server that takes no more than `limit` rows and refuses the rows in `poison`, in rows of one minute each.
    private func requests(
        rows: Int, limit: (Int) -> Int = { _ in .max }, poison: Set<Int> = []
    ) -> (sizes: [Int], schedule: DeliverySchedule) {
        var schedule = DeliverySchedule(settings: Self.settings(), waiting: rows, at: at(0))
        var (waiting, inFlight, sizes, now) = (Array(0..<rows), [(id: String, rows: [Int])](), [Int](), at(0))
        func listed() -> [DeliverySchedule.InFlight] { inFlight.map { .init(id: $0.id, rows: $0.rows.count) } }
        for _ in 0..<20_000 where !waiting.isEmpty || inFlight.contains(where: { !poison.isSuperset(of: $0.rows) }) {
            switch schedule.next(at: now) {
            case .form(let limit):
                let taken = Array(waiting.prefix(limit))
                waiting.removeFirst(taken.count)
                if !taken.isEmpty { inFlight.append(("\(taken)", taken)) }
                schedule.forms(listed(), left: waiting.count, at: now)
            case .send(let id):
                guard let place = inFlight.firstIndex(where: { $0.id == id }) else { break }
                let batch = inFlight[place].rows
                let isRefused = batch.count > limit(sizes.count) || !poison.isDisjoint(with: batch)
                sizes.append(batch.count)
                let verdict: Verdict = isRefused ? .tooLarge(status: 413, after: nil) : .accepted
                for settled in schedule.tries(id, verdict, at: now) {
                    guard let place = inFlight.firstIndex(where: { $0.id == settled.batch }) else { continue }
                    let parts = settled.divide(inFlight[place].rows).parts
                    inFlight.replaceSubrange(place...place, with: parts.map { (id: "\($0)", rows: $0) })
                }
            case .wait(let until?): now = until
            default: return (sizes, schedule)
            }
        }
        return (sizes, schedule)
    }

    @Test func batchesGrowAgainOnceAProxyIsMended() {
        let (sizes, schedule) = requests(rows: 3000) { $0 < 200 ? 1 : .max }
        #expect(sizes.suffix(3).max() == 100 && sizes.count < 270 && schedule.rowsNotTooLarge == nil)
    }

    @Test func aLimitThatStaysIsTriedRarely() {
        let (sizes, schedule) = requests(rows: 12_000) { _ in 12 }
        #expect((7...14).contains(schedule.rowsNotTooLarge?.rows ?? 0) && sizes.count { $0 > 12 } < 30)
    }

    @Test func rowsThatAreTooLargeAloneLeaveTheOthersInLargeBatches() {
        let (sizes, schedule) = requests(rows: 1500, poison: [0, 149, 777, 1201])
        #expect(sizes.count < 120 && schedule.rowsNotTooLarge == nil, "\(sizes.count) requests")
    }

    @Test(.bug(id: 11)) func aSingleRecordThatIsTooLargeIsTriedLastOnceAnotherWasTaken() {
        var schedule = sending(1)
        schedule.rowsRecorded(1, at: at(0))
        let settled = schedule.attemptFinished(.tooLarge(status: 413, after: nil), at: at(1))
        #expect(settled.isEmpty && schedule.state == .active)
        #expect(schedule.next(at: at(1)) == .form(limit: 1))
        schedule.forms([.init(id: "a", rows: 1), .init(id: "b", rows: 1)], at: at(1))
        #expect(schedule.next(at: at(1)) == .send(batch: "b"))
        #expect(schedule.tries("b", .accepted, at: at(2)) == [.init(batch: "b", how: .accepted)])
        schedule.forms([.init(id: "a", rows: 1)], at: at(2))
        // Twice more, now that the server is known to be well.
        for _ in 0..<2 {
            #expect(schedule.suspects.isEmpty && schedule.next(at: at(2)) == .send(batch: "a"))
            schedule.tries("a", .tooLarge(status: 413, after: nil), at: at(2))
        }
        #expect(schedule.suspects == ["a"])
        guard case .wait(let later?) = schedule.next(at: at(2)) else { return _ = Issue.record("it waits") }
        #expect(later >= at(60))
    }

    @Test func renewsTheCredentialOnceAMinute() {
        var schedule = sending()
        schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: at(1))
        #expect(schedule.next(at: at(1)) == .refreshCredentials)
        schedule.startsRefresh(at: at(1))
        #expect(schedule.next(at: at(1)) == .wait(until: nil))
        schedule.credentialsRefreshed(isNew: true, jitter: 0.5, at: at(2))
        #expect(schedule.next(at: at(2)) == .send(batch: "a"))
        schedule.tries("a", .authStop(status: 401), jitter: 0.5, at: at(3))
        #expect(schedule.state == .paused(reason: "auth"))
        // Not so often that the server locks this device out.
        #expect(schedule.next(at: at(3)) == .wait(until: at(123)))
        for (tried, wait) in [(123.0, 240.0), (400, 480), (1000, 900), (2000, 900)] {
            schedule.tries("a", .authStop(status: 401), jitter: 0.5, at: at(tried))
            #expect(schedule.next(at: at(tried)) == .refreshCredentials)
            schedule.startsRefresh(at: at(tried))
            schedule.credentialsRefreshed(isNew: false, jitter: 0.5, at: at(tried + 1))
            #expect(schedule.next(at: at(tried + 1)) == .wait(until: at(tried + 1 + wait)))
        }
    }

    @Test func aCredentialThatCannotBeHadNowIsLookedForAMinuteLater() throws {
        var schedule = sending()
        schedule.attemptFinished(.authStop(status: 401), at: at(1))
        schedule.startsRefresh(at: at(1))
        schedule.credentialsRefreshed(try #require(schedule.attempt), .later, jitter: 0, at: at(2))
        #expect(schedule.state == .active)
        #expect(schedule.next(at: at(2)) == .wait(until: at(61)))
        schedule.tries("a", .authStop(status: 401), at: at(61))
        #expect(schedule.next(at: at(61)) == .refreshCredentials)
    }

    @Test func waitsOutTheMinuteWhenATokenEndsEarly() {
        var schedule = sending()
        schedule.attemptFinished(.authStop(status: 401), at: at(1))
        schedule.startsRefresh(at: at(1))
        schedule.credentialsRefreshed(isNew: true, at: at(1))
        schedule.tries("a", .accepted, at: at(2))
        schedule.rowsRecorded(100, at: at(3))
        schedule.forms([.init(id: "b", rows: 100)], at: at(3))
        schedule.tries("b", .authStop(status: 401), at: at(4))
        #expect(schedule.state == .active)
        #expect(schedule.next(at: at(4)) == .wait(until: at(61)))
    }

    @Test func slowsDownAfter429UntilTenAcceptances() {
        var schedule = sending(100)
        schedule.attemptFinished(.retry(.status(429), after: .seconds(5)), at: at(0))
        schedule.rowsRecorded(2000, at: at(1))
        var pauses: [EventTime?] = []
        for round in 0..<11 {
            let now = at(Double(10 + round * 10))
            schedule.tries("a", .accepted, at: now)
            if case .wait(let until) = schedule.next(at: now) { pauses.append(until) }
            schedule.forms([.init(id: "a", rows: 100)], at: now)
        }
        let expected: [EventTime?] = (0..<9).map { (round: Int) -> EventTime? in at(Double(12 + round * 10)) }
        #expect(pauses == expected)
    }

    /// Found by the simulated world: a window of 5 minutes was one of 5 hours after an hour of 429.
    @Test(.bug(id: 11)) func isNeverSlowerAfter429ThanTheLongestBackOff() {
        var schedule = sending()
        for _ in 0..<20 {
            schedule.tries("a", .retry(.status(429), after: nil), at: at(0))
        }
        schedule.tries("a", .accepted, at: at(0))
        schedule.rowsRecorded(1, at: at(1000))
        #expect(schedule.next(at: at(1000)) == .wait(until: at(1300)))
    }

    /// Found by the simulated world: without a network, two spares made it ask every five seconds for as long as that lasted.
    @Test(.bug(id: 11)) func asksLessAndLessWhereNoWayLeadsAnywhere() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "0", rows: 4)], routes: 3, at: at(0))
        var now = at(0)
        var requests = 0
        var switches = 0
        while now < at(4 * 3600) {
            switch schedule.next(at: now) {
            case .send(let id):
                requests += 1
                schedule.tries(id, unreachable, jitter: 0.5, at: now)
            case .reform:
                switches += 1
                schedule.forms([.init(id: "\(switches)", rows: 4)], at: now)
            case .wait(let until?): now = max(until, now + .milliseconds(1))
            default: now = now + .seconds(1)
            }
        }
        // Each way at once in the first round; then one request in a few minutes, whichever way it takes.
        #expect((30...130).contains(requests), "\(requests) requests")
        #expect((8...30).contains(switches), "\(switches) switches")
        schedule.linkChanged(at: now)
        #expect(schedule.failures == 0)
    }

    @Test func takesTheNextWayAfterFiveFailuresToConnect() {
        var schedule = sending(4, routes: 2)
        for failure in 1...5 {
            #expect(schedule.route == 0)
            let verdict = failure % 2 == 0 ? Verdict.retry(.transport(.timeout("")), after: nil) : unreachable
            schedule.tries("a", verdict, jitter: 0.5, at: at(Double(failure)))
        }
        #expect(schedule.route == 1)
        #expect(schedule.next(at: at(5)) == .reform(limit: 100))
        schedule.formRequested(at: at(5))
        #expect(schedule.waiting == 4)
        schedule.batchesFormed([.init(id: "s", rows: 4, route: 1)], at: at(5))
        schedule.tries("s", .accepted, at: at(6))
        // A quarter of an hour later the endpoint itself gets the next batch, and loses it at the first failure.
        schedule.rowsRecorded(200, at: at(906))
        schedule.formRequested(at: at(906))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: at(906))
        schedule.tries("b", unreachable, jitter: 0.5, at: at(907))
        #expect(schedule.route == 1)
        #expect(schedule.next(at: at(907)) == .reform(limit: 100))
        // Next time it is well again and stays.
        schedule.forms([.init(id: "t", rows: 100, route: 1)], at: at(907))
        schedule.tries("t", .accepted, at: at(1807))
        schedule.formRequested(at: at(1807))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "c", rows: 100)], at: at(1807))
        schedule.tries("c", unavailable, jitter: 0.5, at: at(1808))
        #expect(schedule.route == 0)
    }

    /// What the queue reports later does not repair a server.
    @Test(.bug(id: 11)) func aQueueThatIsReadMeanwhileKeepsTheBackOff() {
        var schedule = sending(4)
        schedule.tries("a", unavailable, at: at(0))
        let next = at(0) + Self.settings().backoff.base
        schedule.startsOver()
        schedule.stateChanged(to: .active, acceptedBefore: true)
        #expect(schedule.next(at: at(0)) == .form(limit: 0))
        schedule.forms([.init(id: "b", rows: 4)], at: at(0))
        #expect(schedule.next(at: at(0)) == .wait(until: next))
        schedule.flushRequested(at: at(0))
        schedule.linkChanged(at: at(0))
        #expect(schedule.next(at: at(0)) == .wait(until: next))
    }

    /// A queue that is read late may hold batches of a way that was left: they are tried by it, and it is the one that fails.
    @Test(.bug(id: 11)) func aBatchCountsForTheWayThatItGoes() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4)], routes: 2, at: at(0))
        schedule.startsOver()
        schedule.forms([.init(id: "s", rows: 4, route: 1), .init(id: "b", rows: 4)], at: at(0))
        #expect(schedule.route == 0)
        for failure in 1...5 {
            schedule.sends("s", at: at(Double(failure)))
            #expect(schedule.route == 1)
            schedule.attemptFinished(unreachable, at: at(Double(failure)))
        }
        #expect(schedule.route == 0 && schedule.next(at: at(5)) == .reform(limit: 100))
    }

    /// One server's wish is not held against the batch that goes to another.
    @Test(.bug(id: 11)) func aBatchWaitsForTheServerThatItGoesTo() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4), .init(id: "s", rows: 4, route: 1)],
            routes: 2, at: at(0))
        schedule.tries("a", .retry(.status(503), after: .seconds(600)), at: at(0))
        #expect(schedule.next(at: at(1)) == .wait(until: at(600)) && schedule.restsUntil == at(600))
        schedule.committed(waiting: 0, [.init(id: "s", rows: 4, route: 1)])
        #expect(schedule.restsUntil < at(0))
    }
}
