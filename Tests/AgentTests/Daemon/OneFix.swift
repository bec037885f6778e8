import NMEA
import Positioning
import Sensors

@testable import Agent

/// One fix, and nothing after it.
final class OneFix: FixSource {
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
