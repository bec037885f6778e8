import Logging
import NMEA
import Positioning
import Sensors
import Testing
import Tracking

@testable import Agent

/// What the tracker decides, as it is told to the rest of the daemon.
@Suite struct PipelineTests {
    /// One fix, and nothing after it.
    private final class OneFix: FixSource {
        let name = "one fix"
        let descriptor: Int32? = nil
        let awaitsWritability = false
        let nextDeadline: EventTime? = nil
        let counters = NMEACounters()

        func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
            let fix = Fix(
                time: UTCTime(milliseconds: 1_700_000_000_000), timeOfDay: 0, at: now,
                coordinate: Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000), horizontalAccuracy: 5,
                mode: .threeD)
            deliver(.epoch(.fix(fix), clock: .arrival(now), position: nil))
        }

        func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}
        func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}
        func setPaused(_ paused: Bool, at now: EventTime) {}
        func setAsleep(
            _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
        ) -> Bool { false }
        func close() {}
    }

    /// The status line is made when the motion changes, and tells of it.
    @Test func whoHearsOfAChangeMayLookAtTheTracker() throws {
        let bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
        let log = AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
        let pipeline = Pipeline(
            source: OneFix(), memory: nil,
            run: TrackerRun(tracker: Tracker(settings: .init(trackables: [.init(id: "van")]), restored: nil)),
            recorder: bench.recorder, deliveries: [], log: log, loop: bench.loop)
        var seen: [String] = []
        pipeline.changed = { seen.append(pipeline.tracker.snapshot.motion.rawValue) }
        pipeline.start(at: bench.loop.now)
        pipeline.handle(.paceRequested(.moving), at: bench.loop.now)
        pipeline.handle(.paceRequested(.stationary), at: bench.loop.now)
        #expect(seen.suffix(2) == ["moving", "stationary"])
        pipeline.close()
    }
}
