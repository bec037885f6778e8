import Queue
import Testing
import WaypostCore
import WaypostTracking

@testable import Daemon
@testable import WaypostControl

@Suite struct TokenBucketTests {
    @Test func aBurstAndThenOneInEachSpan() {
        var bucket = TokenBucket(burst: 3, refill: .seconds(6))
        var now = EventTime.zero
        func take(_ count: Int) -> [Duration?] { (0..<count).map { _ in bucket.take(at: now) } }
        let full: [Duration?] = [nil, nil, nil, .seconds(6)]
        #expect(take(4) == full)
        now = now + .milliseconds(5999)
        #expect(take(1) == [.milliseconds(1)])
        now = now + .milliseconds(1)
        #expect(take(2) == Array(full.suffix(2)))
        // What is not used in an hour is not saved up.
        now = now + .seconds(3600)
        #expect(take(4) == full)
    }

    @Test func anEmergencyIsNeverRefused() throws {
        var budget = RequestBudget()
        let now = EventTime.zero
        for _ in 0..<10 { try budget.spend(at: now) }
        let error = #expect(throws: ControlError.self) { try budget.spend(at: now) }
        #expect(error?.code == "busy" && error?.hint == "try again in 6 s")
        let panics = [0, 5, 6, 7].map { budget.spendForPanic(at: now + .seconds($0)) }
        #expect(panics == [.recorded, .merged, .recorded, .merged])
    }
}

/// What is recorded, announced and sent to the receiver by request.
@Suite struct RequestBudgetTests {
    private final class Rig {
        let bench: DeliveryBench
        let pipeline: Pipeline
        let source = FixesOnDemand()

        init() throws {
            bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
            pipeline = bench.pipeline(reading: source)
            pipeline.start(at: bench.loop.now)
        }

        deinit { pipeline.close() }

        var records: Int { pipeline.tracker.counters.records }

        /// How many of this number of requests, all at this moment, were refused as too many.
        func refused(_ count: Int, _ request: (Int) throws -> Void) throws -> Int {
            var refused = 0
            for number in 0..<count {
                do { try request(number) } catch let error as ControlError {
                    #expect(error.code == "busy")
                    refused += 1
                }
            }
            return refused
        }
    }

    @Test func paceTogglesTenTimesAndThenWaits() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        let refused = try rig.refused(300) {
            try rig.pipeline.carryOut(.paceRequested($0 % 2 == 0 ? .moving : .stationary), at: now)
        }
        // Every other one asks for what is so.
        #expect(refused == 145)
        #expect((10...40).contains(rig.records))
        try rig.pipeline.carryOut(.paceRequested(.moving), at: now + .seconds(6))
        #expect(rig.pipeline.tracker.snapshot.motion == .moving)
    }

    @Test func whatIsSoAlreadyCostsNothing() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        try rig.pipeline.carryOut(.paceRequested(.moving), at: now)
        let records = rig.records
        let engine = Resolution(priority: .high, intervalMs: 5000, displacement: 5)
        let refused = try rig.refused(300) { _ in
            try rig.pipeline.carryOut(.paceRequested(.moving), at: now)
            try rig.pipeline.carryOut(.paceRequested(.auto), at: now)
            try rig.pipeline.carryOut(.movementSourceChanged(source: "gpio", moving: true), at: now)
            try rig.pipeline.carryOut(
                [.batteryChanged(percent: 80, charging: true), .externalPowerChanged(true)], at: now)
            try rig.pipeline.carryOut(.engineSet(engine), at: now)
            try rig.pipeline.setOdometer(metres: rig.pipeline.tracker.snapshot.odometer, at: now)
        }
        #expect(refused == 0 && rig.records == records)
    }

    @Test func powerThatComesAndGoesCostsBeforeItIsRecorded() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        try rig.pipeline.carryOut(.externalPowerChanged(true), at: now)
        #expect(try rig.refused(100) { try rig.pipeline.carryOut(.externalPowerChanged($0 % 2 == 1), at: now) } == 40)
    }

    @Test func theOdometerIsSetOnceTheDiskHasIt() throws {
        let rig = try Rig()
        for _ in 0..<2 {
            var found: [OutboxError?] = []
            try rig.pipeline.setOdometer(metres: 5_000_000, at: rig.bench.loop.now) { found.append($0) }
            #expect(found.isEmpty)
            try rig.bench.loop.run { !found.isEmpty }
            #expect(found.first == rig.bench.recorder.lastError && found != [nil], "the same again is no more on disk")
        }
        #expect(rig.pipeline.tracker.snapshot.odometer == 5_000_000)
    }

    @Test func theOdometerIsLimitedToo() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        #expect(try rig.refused(100) { try rig.pipeline.setOdometer(metres: Double(1000 + $0), at: now) } == 90)
    }

    @Test func aRequestWithSeveralPartsIsDoneWholeOrNotAtAll() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        try rig.pipeline.carryOut(.externalPowerChanged(true), at: now)
        _ = try rig.refused(10) { try rig.pipeline.setOdometer(metres: Double(1000 + $0), at: now) }
        #expect(throws: ControlError.self) {
            try rig.pipeline.carryOut(
                [.batteryChanged(percent: 7, charging: false), .externalPowerChanged(false)], at: now)
        }
        #expect(rig.pipeline.tracker.snapshot.power.batteryPercent == nil)
    }

    @Test func repeatedPanicsAreMergedOnceTheBudgetIsSpent() throws {
        let rig = try Rig()
        let now = rig.bench.loop.now
        let records = rig.records
        let outcomes = try (0..<100).map { _ in try rig.pipeline.panic(at: now) }
        #expect(
            outcomes.prefix(10).allSatisfy { $0 == .recorded } && outcomes.dropFirst(10).allSatisfy { $0 == .merged })
        #expect(rig.records == records + 10)
        // Another matter has used the budget up: the first panic in a minute goes through.
        _ = try rig.refused(10) { try rig.pipeline.setOdometer(metres: Double(1000 + $0), at: now + .seconds(66)) }
        #expect(try rig.pipeline.panic(at: now + .seconds(67)) == .recorded)
        #expect(try rig.pipeline.panic(at: now + .seconds(67)) == .merged)
    }
}
