import Sensors
import WaypostCore
import WaypostNMEA

@testable import Daemon

/// A fix, with twelve satellites, at the start and whenever a device changes, always at one place, dated as the test says.
final class FixesOnDemand: FixSource {
    let name = "fixes on demand"
    let descriptor: Int32? = nil
    let awaitsWritability = false
    let nextDeadline: EventTime? = nil
    let counters = NMEACounters()
    let satellites: SatelliteView? = SatelliteView(inView: 9, strong: 7, best: 45, median: 35)
    /// Said before the next fix.
    var state: SourceState?
    /// nil = the fixes are dateless.
    var date: UTCTime? = UTCTime(milliseconds: 1_700_000_000_000)

    func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        if let state { deliver(.stateChanged(state)) }
        let fix = Fix(
            time: date, timeOfDay: date?.timeOfDay ?? 0, at: now,
            coordinate: Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000), horizontalAccuracy: 5,
            satellitesUsed: 12, mode: .threeD)
        deliver(.epoch(.fix(fix), clock: .arrival(now), position: nil))
    }

    /// An asset that is taken to move, with a fix in each second.
    func move(_ pipeline: Pipeline, from start: EventTime, seconds: Int64) {
        let first = date ?? UTCTime(milliseconds: 0)
        pipeline.start(at: start)
        pipeline.handle(.paceRequested(.moving), at: start)
        for second in 1...seconds {
            date = first + .seconds(second)
            pipeline.deviceChanged(nil, at: start + .seconds(second))
        }
    }

    func deviceChanged(_ event: DeviceEvent?, at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        start(at: now, deliver)
    }

    func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}
    func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}
    func setPaused(_ paused: Bool, at now: EventTime) {}
    func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool { false }
    func close() {}
}
