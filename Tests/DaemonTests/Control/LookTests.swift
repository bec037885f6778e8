import Queue
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Daemon
@testable import WaypostControl

/// The reply to `look`.
@Suite struct LookTests {
    private let bench: DeliveryBench
    private let source = FixesOnDemand()
    private let pipeline: Pipeline

    init() throws {
        bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
        pipeline = bench.pipeline(reading: source)
    }

    private func look(at now: EventTime, after: Int? = nil) -> Look {
        LookReport(now: now, pipeline: pipeline).look(LookRequest(after: after))
    }

    @Test func beforeTheFirstFixItSaysWhatItWaitsFor() {
        let look = look(at: bench.loop.now)
        #expect(look.fix == nil && look.motion.state == "waiting" && look.decisions.isEmpty && look.refused == 0)
        pipeline.close()
    }

    @Test func positionEvidenceAndDecisionsAreThere() throws {
        let start = bench.loop.now
        source.date = UTCTime(milliseconds: 1_700_000_000_000)
        pipeline.start(at: start)
        pipeline.handle(.paceRequested(.moving), at: start)
        let look = look(at: start + .seconds(2))
        let fix = try #require(look.fix)
        let numbers: [Double?] = [fix.latitude, fix.longitude, fix.age, fix.accuracy]
        #expect(numbers == [52.5, 13.4, 2, 5])
        #expect(look.motion.state == "moving" && look.motion.stillSpeed == 0.5)
        #expect(look.engineBecause == "as published" && look.published.map(\.because) == ["default"])
        let newest = try #require(look.decisions.first)
        #expect(newest.kind == "motion" && newest.what == "departed" && newest.reason == "pace" && newest.age == 2)
        #expect(newest.time == "2023-11-14T22:13:20.000Z" && newest.evidence == 0)
        #expect(look.decisions.last?.what == "asked for balanced, every 3 s or 10 m")
        pipeline.close()
    }

    @Test func fixesThatAreNotBelievedAreCounted() {
        source.date = nil
        for second in 0..<3 { pipeline.deviceChanged(nil, at: bench.loop.now + .seconds(second)) }
        let look = look(at: bench.loop.now)
        #expect(look.fix == nil && look.refused == 3 && look.refusedReason == "dateless")
        #expect(pipeline.tracker.counters.rejected(.dateless) == 3, "each is counted once")
        pipeline.close()
    }

    @Test func itIsReadBackAsItWasWritten() throws {
        pipeline.start(at: bench.loop.now)
        pipeline.handle(.paceRequested(.moving), at: bench.loop.now)
        let frame = ControlFrame.reply(to: 1) { look(at: bench.loop.now + .seconds(1)) }
        let read: Look = try ControlFrame.read(frame)
        #expect(ControlFrame.reply(to: 1) { read } == frame)
        pipeline.close()
    }

    /// It is polled, and must not push `status` out of its frame, nor fill one of its own.
    @Test func itFitsIntoAFrameWhateverTheNames() {
        var log = DecisionLog()
        var location = Self.location("van", .geofence, reason: "crossing")
        location.geofence = GeofenceCrossing(id: "x", name: String(repeating: "é", count: 500), action: .enter)
        for second in 0..<50 { log.note(.record(location), decided: nil, at: .zero + .seconds(second)) }
        #expect(log.entries.count == DecisionLog.countMax)
        #expect(log.entries.last?.at == .zero + .seconds(49))
        let isShort: Bool = log.entries.allSatisfy { $0.what.utf8.count <= 200 }
        #expect(isShort)
    }

    private static func location(
        _ trackable: String, _ event: LocationEvent, reason: String? = nil, ms: Int64 = 0
    ) -> Location {
        Location(
            trackable: trackable, time: UTCTime(milliseconds: ms), at: .zero,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: true, event: event, reason: reason)
    }

    /// So that a poll a second costs next to nothing.
    @Test func aClientThatPollsGetsNewDecisionsOnly() {
        let now = bench.loop.now
        pipeline.start(at: now)
        let known = look(at: now).decisions.first?.number ?? 0
        #expect(look(at: now, after: known).decisions.isEmpty)
        pipeline.handle(.paceRequested(.moving), at: now)
        #expect(look(at: now, after: known).decisions.map(\.what) == ["departed"])
        for stranger in [Int.min, -1, 0, 1000, .max] {
            #expect(look(at: now, after: stranger).decisions.count == known + 1)
        }
        pipeline.close()
    }

    /// After a restart both came at once, and as if the gap had begun then.
    @Test func aGapSaysWhenItBegan() {
        var log = DecisionLog()
        let gap = Self.location("van", .gap, reason: "restart", ms: 1_700_000_000_000)
        log.note(.record(gap), decided: nil, at: .zero)
        #expect(log.entries.map(\.what) == ["no fix since 2023-11-14 22:13:20 UTC"])
    }

    /// Each trackable has a record of its own of what happened once.
    @Test func whatHappenedOnceIsOneDecision() {
        var log = DecisionLog()
        for trackable in ["a", "b", "c"] {
            let location = Self.location(trackable, .power, reason: "power-off")
            log.note(.record(location), decided: UTCTime(milliseconds: 5), at: .zero)
        }
        #expect(log.entries.map(\.what) == ["power-off"] && log.entries.first?.time?.milliseconds == 5)
    }

    @Test func fixesAndHeartbeatsAreNoDecisions() {
        var log = DecisionLog()
        for event in [LocationEvent.none, .heartbeat, .motionchange] {
            log.note(.record(Self.location("van", event)), decided: nil, at: .zero)
        }
        log.note(.count(.rejected(.age)), decided: nil, at: .zero)
        #expect(log.entries.isEmpty)
    }
}
