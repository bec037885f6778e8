import Logging
import Queue
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Daemon
@testable import WaypostControl

/// What the tracker decides, as it reaches the rest of the daemon.
@Suite struct PipelineTests {
    /// Of 30 true rows that waited, 28 expired once after 80 s at 35 days ahead.
    @Test func aDateThatOnlyTheReceiverClaimsExpiresNothing() throws {
        let directory = try TemporaryDirectory()
        let bench = try DeliveryBench(path: directory.path + "/outbox.db", batchSize: 100)
        let source = FixesOnDemand()
        let clock = ReceiverClock()
        let pipeline = bench.pipeline(reading: source, clock: clock)
        let start = (at: bench.loop.now, ms: Int64(1_700_000_000_000))
        let month = Int64(35 * 86_400)
        bench.recorder.trustedTime = { now in
            clock.trustedTime(at: now, hostMs: start.ms + now.duration(since: start.at).milliseconds)?.lowerBound
        }
        func pass(_ seconds: ClosedRange<Int64>, ahead: Int64 = 0) throws {
            for second in seconds {
                let now = start.at + .seconds(second)
                let date = UTCTime(milliseconds: start.ms + (second + ahead) * 1000)
                source.date = date
                pipeline.deviceChanged(nil, at: now)
                // Whatever the tracker makes of such dates, a row waits.
                let location = Location(
                    trackable: "van", time: date, at: now, coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1),
                    moving: true)
                bench.recorder.record(NewRow(location, recordedAt: now), at: now)
                guard second % 10 == 0 else { continue }
                var isDone = false
                bench.recorder.commit(at: now) { isDone = true }
                try bench.loop.run { isDone }
            }
        }
        try pass(0...100)
        #expect(bench.recorder.trustedTime(start.at + .seconds(100))?.milliseconds == start.ms + 100_000)
        try pass(101...280, ahead: month)
        #expect(bench.recorder.trustedTime(start.at + .seconds(280)) == nil)
        try pass(281...500)
        #expect(bench.recorder.trustedTime(start.at + .seconds(500))?.milliseconds == start.ms + 500_000)
        #expect(bench.recorder.counters.dropped == DropCounts())
        pipeline.close()
    }

    /// The hours of a whole fleet end in the same second.
    @Test func theEndOfTheHoursIsSentAtATimeOfTheDevice() throws {
        let bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5, share: 0.5)
        let pipeline = bench.pipeline(reading: FixesOnDemand(), delivers: true)
        pipeline.start(at: bench.loop.now)
        pipeline.handle(.paceRequested(.moving), at: bench.loop.now)
        try bench.loop.run { bench.uplink.requestsOpen == 1 }
        bench.uplink.answer(200)
        try bench.loop.run { bench.delivery.waiting == 0 }
        let end = bench.loop.now
        pipeline.handle(.timeWindowChanged(.tracking, open: false), at: end)
        #expect(bench.delivery.waiting > 0)
        #expect(bench.delivery.schedule.next(at: end) == .wait(until: end + .seconds(30)))
        pipeline.close()
    }

    /// Half a minute of the track may be in the fix that waits for the next one.
    @Test func aLossOfPowerStoresTheFixThatWaits() throws {
        let directory = try TemporaryDirectory()
        let bench = try DeliveryBench(path: directory.path + "/outbox.db", batchSize: 100)
        let source = FixesOnDemand()
        var settings = Tracker.Settings(trackables: [.init(id: "van")])
        settings.keepFewest()
        let pipeline = bench.pipeline(reading: source, settings)
        var kept: [UTCTime] = []
        pipeline.recorded.append { location, _ in kept.append(location.time) }
        let start = bench.loop.now
        source.move(pipeline, from: start, seconds: 3)
        let newest = try #require(source.date)
        #expect(!kept.contains(newest))
        let power = PowerState(externalPower: false)
        pipeline.powerRead(.init(state: power, hasBattery: false, isLoss: true), at: start + .seconds(3))
        #expect(kept.last == newest)
        try bench.loop.run { bench.recorder.latest.rows == kept.count }
        pipeline.close()
    }

    @Test func anotherRuleIsLoggedAndShown() throws {
        let bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
        var settings = Tracker.Settings(trackables: [.init(id: "van")])
        settings.keepFewest()
        let lines = LogLines()
        let log = AgentLog(logger: Logger(label: "") { _ in lines }, positions: false)
        let pipeline = bench.pipeline(reading: FixesOnDemand(), settings, log)
        func rule() -> [String?] {
            let motion = bench.report(of: pipeline, at: bench.loop.now).status.motion
            return [motion.rule, motion.ruleBecause]
        }
        pipeline.start(at: bench.loop.now)
        #expect(rule() == ["track-error", "nothing asks for a resolution"])
        let viewer = SubscriberChange(trackable: "van", member: "ada", action: .add(nil))
        pipeline.handle(.subscriberChanged(viewer), at: bench.loop.now)
        #expect(rule() == ["either", "a subscriber watches"])
        let said: [String] = lines.text.filter { $0.hasPrefix("locations are kept by the rule ") }
        let words = "locations are kept by the rule either from now on: a subscriber watches"
        #expect(said.map { $0.hasPrefix(words) } == [true])
        pipeline.close()
    }

    /// The status line is made when the motion changes, and contains it.
    @Test func aHandlerOfAChangeMayReadTheTracker() throws {
        let bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
        let pipeline = bench.pipeline(reading: FixesOnDemand())
        var seen: [String] = []
        pipeline.changed = { seen.append(pipeline.tracker.snapshot.motion.rawValue) }
        pipeline.start(at: bench.loop.now)
        pipeline.handle(.paceRequested(.moving), at: bench.loop.now)
        pipeline.handle(.paceRequested(.stationary), at: bench.loop.now)
        #expect(seen.suffix(2) == ["moving", "stationary"])
        pipeline.close()
    }
}
