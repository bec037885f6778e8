import TestSupport
import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

/// A batch that fails, whatever the answer, while others are accepted.
@Suite struct SuspicionTests {
    static let inTurns = Verdict.tooLarge(status: 413, after: .seconds(5))
    static let failures: [Verdict] = [
        .retry(.status(502), after: nil), .retry(.status(504), after: .seconds(20)), .retry(.status(500), after: nil),
        .retry(.status(200), after: nil), .retry(.transport(.broken("")), after: nil),
        .retry(.transport(.timeout("")), after: nil), .retry(.transport(.closedWithoutReply("")), after: nil),
        .retry(.notConfirmed(status: 200), after: nil), .retry(.unclear(.cut), after: nil),
        .retry(.reason(0x80), after: nil), inTurns, .tooLarge(status: 413, after: nil), .split(status: 0x99),
    ]
    /// Answers that pause an endpoint which gets them for everything.
    static let answers: [Verdict] = [
        .authStop(status: 403), .authStop(status: 0x87), .misconfigured(status: 0x90), .misconfigured(status: 501),
        .goneStop(status: 404), .goneStop(status: 410), .retry(.conflict, after: nil),
        .retry(.redirected(status: 301, host: nil), after: nil),
    ]

    /// Fails with this over each batch with one of these rows.
    private static func model(size: Int, poison: Set<Int>, _ verdict: Verdict) -> ModelDelivery {
        var isSecond = false
        return ModelDelivery(size: size, seed: 3) { rows, _ in
            guard !poison.isDisjoint(with: rows) else { return .verdict(.accepted) }
            isSecond.toggle()
            return .verdict(verdict == inTurns && isSecond ? .retry(.status(503), after: nil) : verdict)
        }
    }

    @Test(arguments: failures + answers)
    func aRowThatFailsHoldsUpNoOther(verdict: Verdict) {
        for (size, poison) in [(1, [3]), (100, [70]), (100, [97, 98, 130])] as [(Int, Set<Int>)] {
            var model = Self.model(size: size, poison: poison, verdict)
            model.run(for: .seconds(1800), aRowEach: .seconds(2))
            let late = (1...model.recorded - 100).filter { !poison.contains($0) && !model.received.contains($0) }
            #expect(late.isEmpty, "\(size)")
            #expect(model.quarantine.isEmpty)
            model.run(for: .seconds(7200), aRowEach: .seconds(5))
            #expect(Set(model.quarantine) == poison, "\(size): \(model.refusedAlone)")
            #expect(poison.allSatisfy { model.refusedAlone[$0, default: 0] >= Suspicion.failuresLeast })
            let far = model.inversions.filter { row in !poison.contains { abs($0 - row) <= size } }
            #expect(far.isEmpty, "\(size)")
        }
    }

    /// A path that is wrong for everything, say: all rows are kept, and only a row alone is tried now and then.
    @Test(arguments: answers)
    func anAnswerToEverythingHoldsAllRows(verdict: Verdict) {
        var model = ModelDelivery(size: 10, seed: 3) { _, _ in .verdict(verdict) }
        model.run(for: .seconds(86_400), aRowEach: .seconds(60))
        #expect(model.quarantine.isEmpty && model.received.isEmpty)
        #expect(model.schedule.waiting + model.schedule.inFlight == model.recorded)
        // The model resumes an endpoint that has stopped, at once.
        if verdict != .goneStop(status: 410) { #expect(model.requests < 240, "\(model.requests)") }
        let mended = model.now
        model.answer = { _, _ in .verdict(.accepted) }
        model.drain()
        #expect(model.received.count == model.recorded && model.now < mended + .seconds(1800))
    }

    /// The broker names one message of several: the others of its request show that it does not fail over everything.
    @Test func aMessageThatIsNotAllowedHoldsUpNothing() {
        for isCredential in [false, true] {
            let alone: Verdict = isCredential ? .authStop(status: 0x87) : .misconfigured(status: 0x90)
            var model = ModelDelivery(size: 10, seed: 3) { rows, _ in
                guard rows.contains(25) else { return .verdict(.accepted) }
                guard rows.count > 1 else { return .verdict(alone) }
                var items = ItemVerdicts(again: [25])
                (items.needsCredential, items.isMisconfigured) = (isCredential, !isCredential)
                return .verdict(.partlyAccepted(items))
            }
            model.run(for: .seconds(600), aRowEach: .seconds(2))
            #expect(model.received.count > 260 && model.schedule.state == .active, "\(model.received.count)")
            #expect(model.quarantine.isEmpty)
            model.run(for: .seconds(7200), aRowEach: .seconds(2))
            #expect(model.quarantine == [25])
        }
    }

    /// Without rows behind it, one half shows about the other. Nothing is set aside, since nothing is accepted after each failure.
    @Test(arguments: failures)
    func aBatchThatNothingFollowsIsTakenApart(verdict: Verdict) {
        var model = Self.model(size: 40, poison: [5, 31], verdict)
        model.record(40)
        while model.now < at(4 * 3600) { model.step() }
        #expect(model.received.sorted() == (1...40).filter { $0 != 5 && $0 != 31 })
        #expect(model.quarantine.isEmpty && model.schedule.inFlight == 2)
        // Alone, each is asked for about as often as a server that fails.
        let before = model.requests
        while model.now < at(8 * 3600) { model.step() }
        #expect(model.requests - before < 80, "\(model.requests - before)")
    }

    /// The same where rows come, and the profile leaves them out.
    @Test func aBatchThatIsFollowedByNothingToSendIsTakenApart() {
        var model = Self.model(size: 40, poison: [5, 31], .retry(.status(502), after: nil))
        model.lastSent = 40
        model.record(40)
        model.run(for: .seconds(4 * 3600), aRowEach: .seconds(600))
        #expect(model.received.sorted() == (1...40).filter { $0 != 5 && $0 != 31 })
    }

    /// Nor is a row to blame whose connection never came to be.
    static let innocent: [Verdict] = [
        .retry(.transport(.connect("")), after: nil), .retry(.transport(.resolve("")), after: nil),
    ]

    @Test(arguments: innocent)
    func whatIsNotAboutRowsBlamesNone(verdict: Verdict) {
        var model = Self.model(size: 10, poison: [5], verdict)
        model.run(for: .seconds(3 * 3600), aRowEach: .seconds(30))
        #expect(model.received.allSatisfy { $0 < 5 } && model.schedule.bisects == 0)
    }

    /// The figures before a failure could be about a row, over these seeds: 15,597 and 753 requests.
    @Test func aServerThatFailsAtRandomIsAskedNoMoreOftenAndLosesNothing() {
        var requests = 0
        for seed in 1...5 as ClosedRange<UInt64> {
            var model = ModelDelivery(size: 100, seed: seed) { _, generator in
                .verdict(Bool.random(using: &generator) ? .accepted : .retry(.status(502), after: nil))
            }
            model.run(for: .seconds(24 * 3600), aRowEach: .seconds(1))
            #expect(model.quarantine.isEmpty)
            requests += model.requests
        }
        #expect(requests < 16_000, "\(requests)")
    }

    /// A refusal that comes sometimes, and sometimes not, is not about the row.
    @Test(arguments: [Verdict.tooLarge(status: 413, after: nil), .split(status: 0x99), .split(status: 400)])
    func aServerThatRefusesAtRandomLosesNothing(verdict: Verdict) {
        for seed in 1...20 as ClosedRange<UInt64> {
            var model = ModelDelivery(size: 20, seed: seed) { _, generator in
                .verdict(Bool.random(using: &generator) ? .accepted : verdict)
            }
            model.run(for: .seconds(2 * 3600), aRowEach: .seconds(5))
            #expect(model.quarantine.isEmpty, "\(model.quarantine)")
            #expect(model.received.count > model.recorded / 2, "\(model.received.count) of \(model.recorded)")
        }
    }

    /// A server that refuses at random until as many rows fail alone as are tried last at a time, and then refuses all.
    @Test func aRowThatCannotBeTriedLastIsNotSentWithoutAPause() {
        for seed in 1...20 as ClosedRange<UInt64> {
            var model = ModelDelivery(size: 5, seed: seed) { _, generator in
                .verdict(Int.random(in: 0..<4, using: &generator) == 0 ? .accepted : .split(status: 0x99))
            }
            // A request takes no time in this model, so that a loop of them would not end.
            func run(until end: EventTime, requestsMax: Int, _ model: inout ModelDelivery) {
                while model.now < end, model.requests < requestsMax { if !model.step() { model.record(1) } }
            }
            while model.schedule.suspects.count < 32, model.now < at(3600) {
                run(until: model.now + .milliseconds(1), requestsMax: .max, &model)
            }
            model.answer = { _, _ in .verdict(.split(status: 0x99)) }
            let before = model.requests
            run(until: model.now + .seconds(600), requestsMax: before + 2000, &model)
            #expect(model.requests - before < 100, "\(seed): \(model.requests - before)")
        }
    }

    @Test func anOutageOfSixHoursCostsOneCommitForEachDoubling() {
        var requests = 0
        for seed in 1...5 as ClosedRange<UInt64> {
            var model = ModelDelivery(size: 100, seed: seed) { _, _ in .verdict(.retry(.status(502), after: nil)) }
            model.run(for: .seconds(6 * 3600), aRowEach: .seconds(1))
            // The first batch, and after 5, 10, 20, 40 and 80 failures a row.
            #expect(model.commits <= 6, "\(model.commits)")
            requests += model.requests
            model.answer = { _, _ in .verdict(.accepted) }
            model.run(for: .seconds(3600), aRowEach: .seconds(1))
            #expect(model.quarantine.isEmpty && model.received.count > model.recorded - 100)
        }
        #expect(requests < 790, "\(requests)")
    }

    /// A row that is to blame is set aside although the server fails now and then by itself.
    @Test func aFewFailuresOfTheServerOnlyDelayTheProof() {
        var model = ModelDelivery(size: 10, seed: 5) { rows, generator in
            let fails = rows.contains(40) || Int.random(in: 0..<50, using: &generator) == 0
            return .verdict(fails ? .retry(.status(502), after: nil) : .accepted)
        }
        model.run(for: .seconds(12 * 3600), aRowEach: .seconds(10))
        #expect(model.quarantine == [40])
    }

    /// The broker names the one message: one failure is enough to take its batch apart.
    @Test func oneUnansweredMessageTakesItsBatchApartSooner() {
        for (blame, attempts) in [(Blame.anyRow, 2), (.oneRow, 1)] {
            var suspicion = Suspicion()
            suspicion.otherAccepted(afterFailures: false)
            var count = 0
            while !suspicion.isReason(toDivideOver: blame) {
                suspicion.failed(pause: .zero, at: at(0))
                count += 1
            }
            #expect(count == attempts)
        }
    }
}

/// Bodies that a server fails over because they are compressed.
@Suite struct CompressionTests {
    static let answers: [Verdict] = [
        .split(status: 400), .split(status: 422), .encodingRefused(), .retry(.status(500), after: nil),
        .misconfigured(status: 501),
    ]

    @Test(arguments: answers)
    func aServerThatFailsOverThemGetsPlainOnes(verdict: Verdict) {
        var model = ModelDelivery(size: 100, seed: 1) { _, _ in .verdict(.accepted) }
        model.refusesCompressed = verdict
        model.record(900)
        model.drain()
        #expect(model.received == Array(1...900) && model.quarantine.isEmpty)
        // Nine batches, and twice what shows that it is compression.
        #expect(model.requests <= 9 + (verdict.word.contains("50") ? 4 : 2), "\(model.requests)")
        #expect(model.schedule.isCompressionOff(at: model.now))
        #expect(model.sent.suffix(7).allSatisfy { !$0.wasCompressed })
        // A day later it is tried again.
        #expect(model.schedule.compresses("", at: model.now + Compression.rest))
    }

    /// Large bodies are what a server reads too slowly, too: the line may be to blame, and so may a row.
    @Test func aServerThatNeverAnswersToThemGetsPlainOnes() {
        var model = ModelDelivery(size: 100, seed: 1) { _, _ in .verdict(.accepted) }
        model.refusesCompressed = .retry(.transport(.timeout("")), after: nil)
        model.record(900)
        model.drain()
        #expect(model.received == Array(1...900) && model.quarantine.isEmpty)
        #expect(model.requests <= 9 + 6 && model.schedule.isCompressionOff(at: model.now), "\(model.requests)")
        var compression = Compression(isWanted: true)
        for _ in 0..<9 {
            _ = compression.answered(
                .retry(.transport(.timeout("")), after: nil), to: "a", .init(wasCompressed: true, wasWhole: false),
                at: at(0))
        }
        #expect(compression.applies(to: "a", at: at(0)), "nothing shows that the server has read it")
    }

    @Test func oneFailureThatPassesTurnsNothingOff() {
        var left = 3
        var model = ModelDelivery(size: 100, seed: 1) { _, _ in
            left -= 1
            return .verdict(left >= 0 ? .retry(.status(500), after: nil) : .accepted)
        }
        model.record(900)
        model.drain()
        #expect(model.sent.map(\.wasCompressed) == [true, true, false] + [Bool](repeating: true, count: 9))
    }

    /// A refusal that is about a row costs one plain request at most, wherever in the batch the row is.
    @Test(arguments: [1, 3, 9, 40, 64])
    func aRowThatIsRefusedIsFoundAllTheSame(poison: Int) {
        var model = ModelDelivery(size: 64, seed: 1) { rows, _ in
            .verdict(rows.contains(poison) ? .split(status: 400) : .accepted)
        }
        model.record(192)
        model.drain()
        #expect(model.quarantine == [poison] && model.requests <= 3 + 22)
        #expect(model.sent.count { !$0.wasCompressed && $0.rows.count > 4 } <= 1)
    }

    @Test func aServerThatFailsAtRandomGetsCompressedBodies() {
        for seed in 1...5 as ClosedRange<UInt64> {
            var model = ModelDelivery(size: 100, seed: seed) { _, generator in
                .verdict(Bool.random(using: &generator) ? .accepted : .retry(.status(500), after: nil))
            }
            model.record(1)
            model.run(for: .seconds(24 * 3600), aRowEach: .seconds(1))
            #expect(
                model.sent.count(where: \.wasCompressed) * 10 > model.sent.count { $0.rows.count > 4 } * 8, "\(seed)")
        }
    }
}

/// A server that answers to large batches too late.
@Suite struct SlowServerTests {
    @Test func batchesShrinkToWhatIsAnsweredInTimeAndGrowAgain() {
        var settings = DeliveryScheduleTests.settings()
        settings.timeout = .seconds(40)
        var schedule = DeliverySchedule(
            settings: settings, waiting: 300, inFlight: [.init(id: "a", rows: 100)], at: at(0))
        var now = at(0)
        func pass(_ seconds: Int64) { now = now + .seconds(seconds) }
        for _ in 0..<5 { schedule.tries("a", .retry(.transport(.timeout("")), after: nil), at: now) }
        pass(1000)
        #expect(schedule.next(at: now) == .form(limit: 1) && schedule.limit == 100)
        schedule.forms([.init(id: "a", rows: 100), .init(id: "b", rows: 1)], at: now)
        #expect(schedule.tries("b", .accepted, at: now).map(\.how) == [.accepted, .split])
        #expect(schedule.limit == 50 && schedule.rowsInTime == 50)
        schedule.forms([.init(id: "a1", rows: 50), .init(id: "a2", rows: 50)], at: now)
        for part in ["a1", "a2"] {
            schedule.sends(part, at: now)
            pass(30)
            schedule.attemptFinished(.accepted, at: now)
            schedule.forms(part == "a1" ? [.init(id: "a2", rows: 50)] : [], at: now)
        }
        #expect(schedule.limit == 50)
        schedule.forms([.init(id: "c", rows: 50)], at: now)
        schedule.sends("c", at: now)
        pass(5)
        schedule.attemptFinished(.accepted, at: now)
        #expect(schedule.limit == 100 && schedule.rowsInTime == nil)
    }
}
