import TestSupport
import Testing
import WaypostCore

@testable import Profiles
@testable import Protocols

@Suite struct BisectTests {
    private static func log2Ceiling(_ value: Int) -> Int {
        var bits = 0
        while 1 << bits < value { bits += 1 }
        return bits
    }

    /// Refuses every batch with one of these rows.
    private static func model(
        size: Int, poison: Set<Int>, seed: UInt64 = 1
    ) -> ModelDelivery {
        ModelDelivery(size: size, seed: seed) { rows, _ in
            .verdict(poison.isDisjoint(with: rows) ? .accepted : .split(status: 400))
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 30, 64, 100, 101])
    func findsOnePoisonRowWithinTheBound(size: Int) {
        var wrong: [String] = []
        for poison in 1...size {
            var model = Self.model(size: size, poison: [poison])
            model.record(size * 3)
            model.drain()
            let others = (1...size * 3).filter { $0 != poison }
            if model.quarantine != [poison] || model.received != others || model.now >= at(600) {
                wrong.append("row \(poison): \(model.quarantine) at \(model.now)")
            }
            let extra = model.requests - 3
            // The row is refused up to nine times more before it is set aside, since little else was accepted.
            if extra > 2 * Self.log2Ceiling(size) + 11 {
                wrong.append("row \(poison): \(extra) requests")
            }
        }
        #expect(wrong.isEmpty)
    }

    /// A crash repeats what was accepted and not committed.
    @Test(arguments: [2, 8, 100])
    func leavesNoMoreThanOneAcceptedPartUncommitted(size: Int) {
        var model = Self.model(size: size, poison: [size / 2])
        model.record(size * 2)
        var most = 0
        while model.received.count < size * 2 - 1 {
            model.step()
            most = max(most, model.pending.count { $0.how == .accepted })
        }
        #expect(most <= 1)
    }

    @Test(arguments: [1, 2, 3, 5, 8, 20, 100], [0, 1, 2, 5])
    func stallsOverNoTwoAdjacentPoisonRows(size: Int, offset: Int) {
        var model = Self.model(size: size, poison: [offset + 1, offset + 2])
        model.record(size * 4 + 4)
        model.drain()
        #expect(model.quarantine.sorted() == [offset + 1, offset + 2])
        #expect(model.received == (1...size * 4 + 4).filter { $0 != offset + 1 && $0 != offset + 2 })
        #expect(model.now < at(600))
        #expect(model.schedule.state == .active)
    }

    /// An unknown device, say, which is known later.
    @Test(arguments: [1, 2, 3, 8, 100], [1, 2, 3, 50, 1000])
    func quarantinesNothingWhenEveryRowIsRefused(size: Int, rows: Int) {
        var isKnown = false
        var model = ModelDelivery(size: size, seed: 1) { _, _ in .verdict(isKnown ? .accepted : .split(status: 400)) }
        model.record(rows)
        for _ in 0..<300 { model.step() }
        #expect(model.quarantine.isEmpty && model.received.isEmpty)
        #expect(model.schedule.waiting + model.schedule.inFlight == rows)
        if rows > 1 { #expect(model.schedule.state == .paused(reason: "records refused")) }
        isKnown = true
        model.drain()
        #expect(model.quarantine.isEmpty && model.received.sorted() == Array(1...rows))
    }

    /// A proxy in between whose limit is wrong, say.
    @Test(.bug(id: 11), arguments: [1, 2, 5, 100])
    func quarantinesNothingWhereEverythingIsTooLarge(size: Int) {
        var known = false
        var model = ModelDelivery(size: size, seed: 6) { _, _ in
            .verdict(known ? .accepted : .tooLarge(status: 413, after: nil))
        }
        model.record(400)
        while model.schedule.state == .active, model.requests < 100 { model.step() }
        #expect(model.schedule.state == .paused(reason: "records refused"))
        #expect(model.requests <= Self.log2Ceiling(size) + 5, "\(model.requests)")
        #expect(model.refusedAlone.count == 3)
        let (requests, since) = (model.requests, model.now)
        while model.now < since + .seconds(86_400) { model.step() }
        #expect(model.quarantine.isEmpty && model.received.isEmpty)
        #expect(model.schedule.waiting + model.schedule.inFlight == 400)
        #expect(model.requests - requests <= 110, "\(model.requests - requests) in a day")
        known = true
        let mended = model.now
        model.drain()
        #expect(model.quarantine.isEmpty && model.received.count == 400)
        #expect(model.now < mended + .seconds(3600))
    }

    @Test func waitsWithALonePoisonRowForTheNextOne() {
        var model = Self.model(size: 100, poison: [1])
        model.record(1)
        while model.now < at(86_400) { model.step() }
        #expect((90...125).contains(model.requests), "\(model.requests) in a day")
        #expect(model.quarantine.isEmpty)
        model.record(1)
        model.drain()
        #expect(model.quarantine == [1])
        #expect(model.received == [2])
    }

    @Test func pausesWhenMoreThanATenthIsRejected() {
        let poison = Set((1...100).filter { $0 % 3 == 0 })
        var model = Self.model(size: 100, poison: poison)
        model.record(100)
        for _ in 0..<3000 where model.schedule.state == .active { model.step() }
        #expect(model.schedule.state == .paused(reason: "too many rejected"))
        #expect(model.quarantine.count <= 11)
        model.drain()
        #expect(Set(model.quarantine) == poison)
        #expect(Set(model.received).union(poison) == Set(1...100))
    }

    @Test func pausesAfterAHundredRejectedRowsWithinAnHour() {
        var model = ModelDelivery(size: 1, seed: 4) { rows, _ in
            .verdict(rows[0] % 2 == 0 ? .split(status: 400) : .accepted)
        }
        model.record(1000)
        for _ in 0..<3000 where model.schedule.state == .active { model.step() }
        #expect(model.schedule.state == .paused(reason: "too many rejected"))
        #expect((100...102).contains(model.quarantine.count))
    }

    @Test func settlesWhatTheServerSaysOfSingleRows() {
        var busy = true
        var model = ModelDelivery(size: 10, seed: 4) { rows, _ in
            var items = ItemVerdicts()
            if rows.contains(4) { items.refused[4] = "bad" }
            if busy, rows.contains(7) { items.again = [7] }
            busy = false
            return .verdict(items == ItemVerdicts() ? .accepted : .partlyAccepted(items))
        }
        model.record(20)
        model.drain()
        #expect(model.quarantine == [4])
        #expect(model.received.sorted() == (1...20).filter { $0 != 4 })
        #expect(model.requests == 3)
    }

    /// Whatever a server answers and whenever the power fails: each row is stored, or in quarantine because it was refused
    /// alone; nothing leaves without proof; and in the end all is done.
    @Test(arguments: 41...60)
    func losesNoRowUnderAnyAnswers(seed: Int) {
        var healthy = false
        let size = [1, 2, 7, 30][seed % 4]
        let delivery: EndpointSettings.Delivery = seed % 5 == 0 ? .latest : .all
        var model = ModelDelivery(size: size, seed: UInt64(seed), delivery: delivery) { rows, generator in
            if healthy || Int.random(in: 0..<3, using: &generator) == 0 { return .verdict(.accepted) }
            return Self.anyAnswer(rows, &generator)
        }
        var missing = 0
        for _ in 0..<4000 {
            if Int.random(in: 0..<3, using: &model.generator) == 0 {
                model.record(Int.random(in: 1...3, using: &model.generator))
            }
            if Int.random(in: 0..<20, using: &model.generator) == 0 { model.schedule.flushRequested(at: model.now) }
            if Int.random(in: 0..<50, using: &model.generator) == 0 { model.schedule.linkChanged(at: model.now) }
            model.step(crashes: Int.random(in: 0..<40, using: &model.generator) == 0)
            var held = model.disk.waiting.count + model.quarantine.count + model.received.count
            for batch in model.disk.batches { held += batch.rows.count }
            missing = max(missing, model.recorded - held)
        }
        #expect(missing == 0, "seed \(seed)")
        healthy = true
        model.drain()
        #expect(model.lost.isEmpty, "seed \(seed)")
        #expect(model.schedule.waiting + model.schedule.inFlight == 0, "seed \(seed): \(model.schedule.state)")
        #expect(Set(model.received).union(model.quarantine) == Set(1...model.recorded), "seed \(seed)")
        #expect(model.quarantine.allSatisfy { model.refusedAlone[$0, default: 0] > 0 }, "seed \(seed)")
        #expect(model.received.count > 50, "seed \(seed)")
    }

    private static func anyAnswer(_ rows: [Int], _ generator: inout SeededGenerator) -> ModelDelivery.Answer {
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: return .storedThenLost
        case 1:
            let failures: [TransportFailure] = [
                .resolve(""), .connect(""), .tls(""), .timeout(""), .closedWithoutReply(""), .broken(""),
            ]
            return .verdict(.retry(.transport(failures.randomElement(using: &generator)!), after: nil))
        case 2 where rows.count > 2:
            return .verdict(.partlyAccepted(.init(refused: [Int64(rows[0]): "x"], again: [Int64(rows[1])])))
        default:
            let status = Int.random(in: 100...599, using: &generator)
            let settings = EndpointSettings(baseURL: "http://x", device: "d", profile: Profile(response: .waypost))
            let verdict = AnswerJudge(settings, in: RenderContext()).verdict(
                for: UplinkOutcome(.reply(UplinkReply(status: status, body: []))),
                of: Batch(endpoint: "main", id: "7f3a91c2-main-1-10", rows: [], sentMs: nil))
            return verdict == .accepted ? .storedThenLost : .verdict(verdict)
        }
    }

    /// With poison rows at random, lost replies and power cuts, and no other refusals: exactly the poison is set aside, and
    /// what is stored first comes in order but for what stood beside poison.
    @Test(arguments: 61...75)
    func keepsOrderAroundPoison(seed: Int) {
        let size = [1, 4, 10, 64][seed % 4]
        var generator = SeededGenerator(seed: UInt64(seed))
        let poison = Set((0..<6).map { _ in Int.random(in: 1...900, using: &generator) })
        var model = ModelDelivery(size: size, seed: UInt64(seed)) { rows, generator in
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: return .verdict(.retry(.status(503), after: nil))
            case 1:
                return poison.isDisjoint(with: rows)
                    ? .storedThenLost : .verdict(.retry(.transport(.timeout("")), after: nil))
            default: return .verdict(poison.isDisjoint(with: rows) ? .accepted : .split(status: 400))
            }
        }
        for _ in 0..<600 {
            if model.recorded < 1000 { model.record(Int.random(in: 0...5, using: &model.generator)) }
            model.step(crashes: Int.random(in: 0..<30, using: &model.generator) == 0)
        }
        model.record(1000 - min(1000, model.recorded))
        model.drain()
        #expect(Set(model.quarantine) == poison, "seed \(seed)")
        #expect(model.lost.isEmpty, "seed \(seed)")
        #expect(Set(model.received) == Set(1...model.recorded).subtracting(poison), "seed \(seed)")
        let far = model.inversions.filter { row in !poison.contains { $0 < row && row - $0 <= size } }
        #expect(far.isEmpty, "seed \(seed), \(poison.sorted())")
    }
}
