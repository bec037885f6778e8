import Testing
import WaypostCore
import WaypostTracking

@Suite struct ClockTests {
    static let steps: [Int64] = [-86_400, -18, 18, 86_400].map { $0 * 1000 }

    @Test(arguments: steps)
    func aClockStepWhileMovingNeitherSplitsNorFreezesTheTrack(step: Int64) throws {
        var script = Script.driving(120, after: 100)
        let before = script.elapsed
        script.clockStep = step
        script.drive(120)
        script.brake()
        let standstill = script.time
        script.stand(310)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        let after = course.records.filter { $0.at.seconds > before + 11 && $0.at.seconds < before + 120 }
        #expect(after.count > 90)
        #expect(abs(try #require(course.changes.last?.since).milliseconds(since: standstill)) <= 2000)
        #expect(abs(course.tracker.snapshot.odometer - script.north) < 20)
    }

    @Test(arguments: steps)
    func aClockStepWhileParkedChangesNothingAndTheNextTripIsDatedByTheNewClock(step: Int64) throws {
        var script = Script.parked(1000)
        script.clockStep = step
        script.stand(1000)
        let departure = script.time
        script.driveOff(60)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed"])
        #expect(abs(try #require(course.changes.last?.since).milliseconds(since: departure)) <= 2000)
        #expect(course.records(.heartbeat).map(\.at.seconds) == [630, 1230, 1830])
    }

    @Test(arguments: steps)
    func aClockStepInAHaltKeepsTheStopOnTime(step: Int64) throws {
        var script = StopTests.arrived()
        let standstill = script.elapsed
        script.stand(100)
        script.clockStep = step
        script.stand(210)
        let stop = try #require(Course(script).changes.last)
        #expect(stop.reason == .stopTimeout && abs(stop.at.seconds - standstill - 300) <= 1)
        let expected = Script.start + .milliseconds(Int64(standstill * 1000) + step)
        #expect(abs(try #require(stop.since).milliseconds(since: expected)) <= 1100)
    }

    @Test func eventTimeThatIsSlightlyOlderCountsAsTheSame() {
        var tracker = Tracker(settings: .car, restored: nil)
        var changes = 0
        for (index, (at, event)) in Script.parked(50).events.enumerated() {
            _ = tracker.handle(.sourceStateChanged(.receiving), at: at + .milliseconds(40))
            for effect in tracker.handle(event, at: at) {
                if case .announceMotion(let change) = effect {
                    changes += 1
                    #expect(change.at == at + .milliseconds(40), "fix \(index)")
                }
            }
        }
        #expect(changes == 1)
    }

    @Test func utcRunsOnFromTheLastFix() {
        var script = Script()
        #expect(Course(script).tracker.utc(at: .zero) == nil)
        script.stand(10)
        let tracker = Course(script).tracker
        #expect(tracker.utc(at: script.now + .seconds(3600)) == script.time + .seconds(3600))
    }

    @Test func anOldLogOfADistantCenturyDoesNotTrap() {
        var script = Script.parked(10)
        script.clockStep = 4_000_000_000_000
        script.stand(60)
        script.clockStep = -1_700_000_000_000
        script.stand(60)
        #expect(Course(script).tracker.counters.clockSteps == 1)
    }
}
