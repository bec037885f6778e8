import Testing
import WaypostCore

@testable import WaypostTracking

/// A position that is held while the asset creeps on would be wrong by all the creeps together.
@Suite struct CreepTests {
    /// A queue: creeps of six metres, each after half a minute of standing, then on the way again.
    private static func queue(creeps: Int) -> Script {
        var script = Script.parked(60)
        script.trip(metres: 1000, stand: 40)
        for _ in 0..<creeps {
            script.drive(2, to: 1.2)
            script.drive(4)
            script.drive(2, to: 0)
            script.stand(30)
        }
        script.driveOff(30)
        return script
    }

    /// Metres: of the fixes that move, from the line between the records around them, at most.
    private func worst(_ script: Script, _ records: [Location]) -> Double {
        var worst = 0.0
        for case .fixReceived(let fix) in script.events.map(\.event) where fix.speed ?? 0 >= 1 {
            guard let time = fix.time, let next = records.firstIndex(where: { $0.time > time }), next > 0 else {
                continue
            }
            let (before, after) = (records[next - 1], records[next])
            let share =
                Double(time.milliseconds - before.time.milliseconds)
                / Double(after.time.milliseconds - before.time.milliseconds)
            let from = Script.plane.point(before.coordinate)
            let there = from + (Script.plane.point(after.coordinate) - from) * share
            worst = max(worst, (Script.plane.point(fix.coordinate) - there).length)
        }
        return worst
    }

    @Test(arguments: 1...6) func theLineFollowsAQueue(creeps: Int) {
        let script = Self.queue(creeps: creeps)
        let course = Course(script, .fewest)
        #expect(worst(script, course.records) <= 5 + 4)
        // Creeps are no trips.
        #expect(course.changes.map(\.moving) == [false, true])
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 0.02 * script.north)
    }

}
