import Positioning
import Testing

@testable import Delivery

// What each answer leads to.
extension DeliveryScheduleTests {
    /// What a pause sends shows whether the server is well; the rows behind the head wait for it.
    @Test(.bug(id: 11)) func aPauseOverRowsSendsNoWholeBatchAheadOfTheHead() {
        var schedule = DeliverySchedule(
            settings: Self.settings(size: 8),
            inFlight: [
                .init(id: "a", rows: 8), .init(id: "b", rows: 8), .init(id: "c", rows: 8), .init(id: "d", rows: 1),
            ],
            at: Self.at(0))
        schedule.sends("a", at: Self.at(0))
        let refused = ItemVerdicts(refused: [1: "bad", 2: "bad", 3: "bad"])
        _ = schedule.attemptFinished(.partlyAccepted(refused), jitter: 0, at: Self.at(0))
        #expect(schedule.state == .paused(reason: "too many rejected"))
        var parts: [DeliverySchedule.InFlight] = [
            .init(id: "b", rows: 8), .init(id: "c", rows: 8), .init(id: "d", rows: 1),
        ]
        var sent: [Int] = []
        for attempt in 0..<8 {
            let now = Self.at(Double(attempt) * 1000)
            _ = schedule.formRequested(at: now)
            schedule.batchesFormed(parts, at: now)
            guard case .send(let batch) = schedule.next(at: now + .seconds(999)),
                let place = parts.firstIndex(where: { $0.id == batch })
            else {
                Issue.record("nothing is tried")
                return
            }
            #expect(place == 0 || parts[place].rows == 1)
            sent.append(parts[place].rows)
            schedule.sends(batch, at: now + .seconds(999))
            for settled in schedule.attemptFinished(.split(status: 400), jitter: 0, at: now + .seconds(999)) {
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
            settings: settings, waiting: 25, inFlight: [.init(id: "a", rows: 10)], at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .preview)
        #expect(schedule.previewStarted(nil, at: Self.at(0)) == nil)
        #expect(schedule.next(at: Self.at(0)) == .send(batch: "a"))
        #expect(schedule.next(at: Self.at(1)) == .preview)
    }

    /// Rows of a split are in flight for the one that sent the whole.
    @Test(.bug(id: 11)) func aListOfHalvesIsNoTimeForTheEndpointItself() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4, route: 1)], routes: 2, at: Self.at(0))
        let late = Self.at(2000)
        schedule.sends("a", at: late)
        let asked = Verdict.tooLarge(status: 413, after: .seconds(3000))
        #expect(schedule.attemptFinished(asked, jitter: 0, at: late).isEmpty)
        schedule.sends("a", at: late)
        #expect(schedule.attemptFinished(asked, jitter: 0, at: late) == [.init(batch: "a", how: .split)])
        #expect(schedule.next(at: late) == .form(limit: 0))
        schedule.formRequested(at: late)
        schedule.batchesFormed([.init(id: "a1", rows: 2, route: 1), .init(id: "a2", rows: 2, route: 1)], at: late)
        #expect(schedule.route == 1)
        #expect(schedule.next(at: late) == .wait(until: late + .seconds(3000)))
    }

    /// A bind goes to the endpoint itself, whoever stands in for it.
    @Test(.bug(id: 11)) func aBindHoldsForTheServerThatBinds() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4, route: 1)], routes: 2, at: Self.at(0))
        schedule.bindRequested()
        #expect(schedule.next(at: Self.at(0)) == .bind)
        _ = schedule.bindStarted(at: Self.at(0))
        schedule.bindAnswered(asked: .seconds(3000), at: Self.at(1))
        schedule.bindEnded()
        #expect(schedule.bindRestsUntil == Self.at(3001))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        // What the spare asks for is no wish of the other.
        schedule.sends("a", at: Self.at(1))
        _ = schedule.attemptFinished(.retry(.status(503), after: .seconds(9000)), jitter: 0, at: Self.at(2))
        schedule.bindRequested()
        #expect(schedule.next(at: Self.at(2)) == .wait(until: Self.at(3001)))
    }

    /// A server that fails over the head says nothing by failing over the next row too: another one may show that it is well.
    @Test(.bug(id: 11), arguments: [Verdict.retry(.status(500), after: nil), .split(status: 400)])
    func anotherRowIsTriedWhereTheFirstBehindTheHeadFailsAsWell(next: Verdict) {
        var schedule = DeliverySchedule(
            settings: Self.settings(size: 1), waiting: 9,
            inFlight: [.init(id: "head", rows: 1), .init(id: "pair", rows: 2)], at: Self.at(0))
        var parts: [DeliverySchedule.InFlight] = [.init(id: "head", rows: 1), .init(id: "pair", rows: 2)]
        var now = Self.at(0)
        var ahead: [String] = []
        var settled: [DeliverySchedule.Settled] = []
        for _ in 0..<100 where settled.isEmpty {
            now = now + .seconds(1000)
            switch schedule.next(at: now) {
            case .form:
                schedule.formRequested(at: now)
                parts.append(.init(id: "\(parts.count)", rows: 1))
                schedule.batchesFormed(parts, at: now)
            case .send(let batch):
                schedule.sends(batch, at: now)
                if batch != "head" { ahead.append(batch) }
                let failed = Verdict.retry(.status(500), after: nil)
                let verdict = batch == "head" ? failed : ahead.count < 3 ? next : .accepted
                settled = schedule.attemptFinished(verdict, jitter: 0, at: now)
            default: return #expect(Bool(false), "\(schedule.next(at: now))")
            }
        }
        #expect(ahead == ["2", "3", "4"])
        #expect(settled.contains(.init(batch: "head", how: .refused)))
    }

    /// Memory does not list batches of the quarantine; the disk that takes its rows over has them.
    @Test(.bug(id: 11)) func asksForBatchesThatAreInFlightAgain() {
        var schedule = schedule(size: 10)
        schedule.rowsRecorded(1, at: Self.at(0))
        schedule.waitingCorrected(to: 1, inFlight: 3)
        #expect(schedule.waiting == 1)
        schedule.waitingCorrected(to: 1, inFlight: 3, mayBeUnlisted: true)
        #expect(schedule.waiting == 4)
        #expect(schedule.next(at: Self.at(1)) == .form(limit: 0))
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
            schedule.sends("a", at: Self.at(Double(time)))
            _ = schedule.attemptFinished(verdict, jitter: 0.5, at: Self.at(Double(time)))
        }
        #expect(schedule.state == .paused(reason: reason))
        let probe = Self.at(Double(times) + 900)
        schedule.flushRequested(at: Self.at(20))
        #expect(schedule.next(at: Self.at(20)) == .wait(until: probe))
        #expect(schedule.nextAttemptAt == probe)
        #expect(schedule.next(at: probe) == .send(batch: "a"))
        schedule.sends("a", at: probe)
        _ = schedule.attemptFinished(unavailable, jitter: 0, at: probe)
        #expect(schedule.state == .paused(reason: reason))
        #expect(schedule.next(at: probe) == .wait(until: probe + .seconds(810)))
        schedule.sends("a", at: probe)
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: probe)
        #expect(schedule.state == .active)
    }

    @Test func aPauseSaysWhenTheServerIsTriedAgain() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), state: .paused(reason: "auth"), inFlight: [.init(id: "a", rows: 1)],
            at: Self.at(0))
        schedule.sends("a", at: Self.at(0))
        #expect(schedule.nextAttemptAt == nil)
        _ = schedule.attemptFinished(.retry(.status(503), after: .seconds(3000)), jitter: 0.5, at: Self.at(10))
        #expect(schedule.nextAttemptAt == Self.at(3010))
        // What was in flight is gone: what waits is formed then. With nothing to send there is no try.
        schedule.rowsRecorded(1, at: Self.at(20))
        schedule.batchesDissolved(["a"])
        schedule.waitingCorrected(to: 1)
        #expect(schedule.nextAttemptAt == Self.at(3010))
        #expect(schedule.next(at: Self.at(20)) == .wait(until: Self.at(3010)))
        schedule.waitingCorrected(to: 0)
        #expect(schedule.nextAttemptAt == nil)
    }

    @Test func takesAPassing404ForAFaultOfTheServer() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 1)], acceptedBefore: true, at: Self.at(0))
        for _ in 0..<4 {
            schedule.sends("a", at: Self.at(0))
            _ = schedule.attemptFinished(.goneStop(status: 404), jitter: 0, at: Self.at(0))
            #expect(schedule.state == .active)
        }
        schedule.sends("a", at: Self.at(0))
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
        _ = schedule.attemptFinished(.encodingRefused(), jitter: 0, at: Self.at(1))
        #expect(!schedule.gzip)
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.sends("a", at: Self.at(1))
        _ = schedule.attemptFinished(.encodingRefused(), jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "configuration (status 415)"))
    }

    @Test func repeatsOnceWhatExpectBroke() {
        var schedule = sending()
        _ = schedule.attemptFinished(.misconfigured(status: 417), jitter: 0, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "a"))
        schedule.sends("a", at: Self.at(1))
        _ = schedule.attemptFinished(.misconfigured(status: 417), jitter: 0, at: Self.at(1))
        #expect(schedule.state == .paused(reason: "refused 417"))
    }

    @Test func blamesNoCompressionThatWasNotUsed() {
        var schedule = sending()
        schedule.compressionUsed(false)
        _ = schedule.attemptFinished(.encodingRefused(), jitter: 0, at: Self.at(1))
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
            schedule.sends(part.id, at: Self.at(1))
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

    @Test(.bug(id: 11)) func setsASingleRecordAsideThatIsTooLargeOnceAnotherWasTaken() {
        var schedule = sending(1)
        schedule.rowsRecorded(1, at: Self.at(0))
        let settled = schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: Self.at(1))
        #expect(settled.isEmpty && schedule.state == .active)
        #expect(schedule.next(at: Self.at(1)) == .form(limit: 1))
        schedule.formRequested(at: Self.at(1))
        schedule.batchesFormed([.init(id: "a", rows: 1), .init(id: "b", rows: 1)], at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .send(batch: "b"))
        schedule.sends("b", at: Self.at(1))
        #expect(
            schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(2))
                == [.init(batch: "b", how: .accepted), .init(batch: "a", how: .refused)])
    }

    @Test func renewsTheCredentialOnceAMinute() {
        var schedule = sending()
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .refreshCredentials)
        schedule.startsRefresh(at: Self.at(1))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: nil))
        schedule.credentialsRefreshed(isNew: true, jitter: 0.5, at: Self.at(2))
        #expect(schedule.next(at: Self.at(2)) == .send(batch: "a"))
        schedule.sends("a", at: Self.at(2))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(3))
        #expect(schedule.state == .paused(reason: "auth"))
        #expect(schedule.next(at: Self.at(3)) == .wait(until: Self.at(903)))
        schedule.sends("a", at: Self.at(903))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0.5, at: Self.at(903))
        #expect(schedule.next(at: Self.at(903)) == .refreshCredentials)
        schedule.startsRefresh(at: Self.at(903))
        schedule.credentialsRefreshed(isNew: false, jitter: 0.5, at: Self.at(904))
        #expect(schedule.next(at: Self.at(904)) == .wait(until: Self.at(1804)))
    }

    @Test func aCredentialThatCannotBeHadNowIsLookedForAMinuteLater() throws {
        var schedule = sending()
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0, at: Self.at(1))
        schedule.startsRefresh(at: Self.at(1))
        schedule.credentialsRefreshed(try #require(schedule.attempt), .later, jitter: 0, at: Self.at(2))
        #expect(schedule.state == .active)
        #expect(schedule.next(at: Self.at(2)) == .wait(until: Self.at(61)))
        schedule.sends("a", at: Self.at(61))
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0, at: Self.at(61))
        #expect(schedule.next(at: Self.at(61)) == .refreshCredentials)
    }

    @Test func waitsOutTheMinuteWhenATokenEndsEarly() {
        var schedule = sending()
        _ = schedule.attemptFinished(.authStop(status: 401), jitter: 0, at: Self.at(1))
        schedule.startsRefresh(at: Self.at(1))
        schedule.credentialsRefreshed(isNew: true, jitter: 0, at: Self.at(1))
        schedule.sends("a", at: Self.at(1))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(2))
        schedule.rowsRecorded(100, at: Self.at(3))
        schedule.formRequested(at: Self.at(3))
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: Self.at(3))
        schedule.sends("b", at: Self.at(3))
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
            schedule.sends(round == 0 ? "a" : "\(round)", at: now)
            _ = schedule.attemptFinished(.accepted, jitter: 0, at: now)
            if case .wait(let until) = schedule.next(at: now) { pauses.append(until) }
            schedule.formRequested(at: now)
            schedule.batchesFormed([.init(id: "\(round + 1)", rows: 100)], at: now)
        }
        #expect(pauses == (0..<9).map { Self.at(Double(12 + $0 * 10)) })
    }

    /// Found by the simulated world: a window of 5 minutes was one of 5 hours after an hour of 429.
    @Test(.bug(id: 11)) func isNeverSlowerAfter429ThanTheLongestBackOff() {
        var schedule = sending(4)
        for _ in 0..<20 {
            _ = schedule.attemptFinished(.retry(.status(429), after: nil), jitter: 0, at: Self.at(0))
            schedule.sends("a", at: Self.at(0))
        }
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(0))
        schedule.rowsRecorded(1, at: Self.at(1000))
        #expect(schedule.next(at: Self.at(1000)) == .wait(until: Self.at(1300)))
    }

    /// Found by the simulated world: without a network, two spares made it ask every five seconds for as long as that lasted.
    @Test(.bug(id: 11)) func asksLessAndLessWhereNoWayLeadsAnywhere() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "0", rows: 4)], routes: 3, at: Self.at(0))
        var now = Self.at(0)
        var requests = 0
        var switches = 0
        while now < Self.at(4 * 3600) {
            switch schedule.next(at: now) {
            case .send(let id):
                schedule.sends(id, at: now)
                requests += 1
                _ = schedule.attemptFinished(.retry(.transport(.connect("")), after: nil), jitter: 0.5, at: now)
            case .reform:
                switches += 1
                schedule.formRequested(at: now)
                schedule.batchesFormed([.init(id: "\(switches)", rows: 4)], at: now)
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
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4)], routes: 2, at: Self.at(0))
        for failure in 1...5 {
            #expect(schedule.route == 0)
            schedule.sends("a", at: Self.at(Double(failure)))
            _ = schedule.attemptFinished(
                .retry(.transport(failure % 2 == 0 ? .timeout("") : .connect("")), after: nil), jitter: 0.5,
                at: Self.at(Double(failure)))
        }
        #expect(schedule.route == 1)
        #expect(schedule.next(at: Self.at(5)) == .reform(limit: 100))
        schedule.formRequested(at: Self.at(5))
        #expect(schedule.waiting == 4)
        schedule.batchesFormed([.init(id: "s", rows: 4, route: 1)], at: Self.at(5))
        schedule.sends("s", at: Self.at(5))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(6))
        // A quarter of an hour later the endpoint itself gets the next batch, and loses it at the first failure.
        schedule.rowsRecorded(200, at: Self.at(906))
        schedule.formRequested(at: Self.at(906))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "b", rows: 100)], at: Self.at(906))
        schedule.sends("b", at: Self.at(906))
        _ = schedule.attemptFinished(.retry(.transport(.connect("")), after: nil), jitter: 0.5, at: Self.at(907))
        #expect(schedule.route == 1)
        #expect(schedule.next(at: Self.at(907)) == .reform(limit: 100))
        // Next time it is well again and stays.
        schedule.formRequested(at: Self.at(907))
        schedule.batchesFormed([.init(id: "t", rows: 100, route: 1)], at: Self.at(907))
        schedule.sends("t", at: Self.at(907))
        _ = schedule.attemptFinished(.accepted, jitter: 0, at: Self.at(1807))
        schedule.formRequested(at: Self.at(1807))
        #expect(schedule.route == 0)
        schedule.batchesFormed([.init(id: "c", rows: 100)], at: Self.at(1807))
        schedule.sends("c", at: Self.at(1807))
        _ = schedule.attemptFinished(.retry(.status(503), after: nil), jitter: 0.5, at: Self.at(1808))
        #expect(schedule.route == 0)
    }

    /// What the queue reports later does not repair a server.
    @Test(.bug(id: 11)) func aQueueThatIsReadMeanwhileKeepsTheBackOff() {
        var schedule = DeliverySchedule(settings: Self.settings(), inFlight: [.init(id: "a", rows: 4)], at: Self.at(0))
        schedule.sends("a", at: Self.at(0))
        _ = schedule.attemptFinished(.retry(.status(503), after: nil), jitter: 0, at: Self.at(0))
        let next = Self.at(0) + Self.settings().backoff.base
        schedule.emptied()
        schedule.stateChanged(to: .active, acceptedBefore: true)
        #expect(schedule.next(at: Self.at(0)) == .form(limit: 0))
        schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([.init(id: "b", rows: 4)], at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .wait(until: next))
        schedule.flushRequested(at: Self.at(0))
        schedule.linkChanged(at: Self.at(0))
        #expect(schedule.next(at: Self.at(0)) == .wait(until: next))
    }

    /// A queue that is read late may hold batches of a way that was left: they are tried by it, and it is the one that fails.
    @Test(.bug(id: 11)) func aBatchCountsForTheWayThatItGoes() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4)], routes: 2, at: Self.at(0))
        schedule.emptied()
        schedule.formRequested(at: Self.at(0))
        schedule.batchesFormed([.init(id: "s", rows: 4, route: 1), .init(id: "b", rows: 4)], at: Self.at(0))
        #expect(schedule.route == 0)
        for failure in 1...5 {
            schedule.sends("s", at: Self.at(Double(failure)))
            #expect(schedule.route == 1)
            _ = schedule.attemptFinished(
                .retry(.transport(.connect("")), after: nil), jitter: 0, at: Self.at(Double(failure)))
        }
        #expect(schedule.route == 0 && schedule.next(at: Self.at(5)) == .reform(limit: 100))
    }

    /// One server's wish is not held against the batch that goes to another.
    @Test(.bug(id: 11)) func aBatchWaitsForTheServerThatItGoesTo() {
        var schedule = DeliverySchedule(
            settings: Self.settings(), inFlight: [.init(id: "a", rows: 4), .init(id: "s", rows: 4, route: 1)],
            routes: 2,
            at: Self.at(0))
        schedule.sends("a", at: Self.at(0))
        _ = schedule.attemptFinished(.retry(.status(503), after: .seconds(600)), jitter: 0, at: Self.at(0))
        #expect(schedule.next(at: Self.at(1)) == .wait(until: Self.at(600)) && schedule.restsUntil == Self.at(600))
        schedule.batchesDissolved(["a"])
        #expect(schedule.restsUntil < Self.at(0))
    }
}
