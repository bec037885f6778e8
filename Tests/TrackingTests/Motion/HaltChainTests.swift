import Positioning
import Testing
import Tracking

/// Halts with short movements between them: one stop where they lead nowhere, a queue where they do.
@Suite struct HaltChainTests {
    /// Ten metres in five seconds, by position and speed alike.
    private func shift(_ script: inout Script, north metres: Double) {
        for _ in 0..<5 {
            script.elapsed += 1
            script.north += metres / 5
            script.fix(speed: abs(metres) / 5, course: metres > 0 ? 0 : 180)
        }
    }

    /// Stands for a number of seconds under a receiver that reports half a metre per second, in each direction in turn.
    private func stand(_ script: inout Script, _ seconds: Int) {
        script.speed = 0
        for second in 0..<seconds {
            script.elapsed += 1
            script.fix(speed: 0.5, course: Double(second % 4) * 90)
        }
    }

    private func drive() -> Script {
        var script = Script()
        stand(&script, 120)
        script.trip(metres: 1000)
        return script
    }

    @Test func movementsThatLeadNowhereDoNotPutTheStopOff() throws {
        var script = drive()
        let standstill = script.time
        stand(&script, 110)
        shift(&script, north: 11)
        stand(&script, 30)
        shift(&script, north: -11)
        stand(&script, 220)
        let course = Course(script)
        // The timer alone, restarted at the second movement, would be due more than a minute later.
        let stop = try #require(course.changes.last)
        #expect(!stop.moving && stop.reason == .stopTimeout)
        #expect(abs(try #require(stop.since).milliseconds(since: standstill)) <= 3000)
        #expect(abs(try #require(stop.decided).milliseconds(since: standstill) - 320_000) <= 10_000)
    }

    @Test func aQueueIsNoChainInOnePlace() {
        var script = drive()
        for _ in 0..<8 {
            stand(&script, 50)
            shift(&script, north: 11)
        }
        #expect(Course(script).changes.last?.moving == true)
    }

    @Test func whoCameBackAfterLongerHaltsAgain() {
        var script = drive()
        stand(&script, 150)
        script.pullAway()
        script.drive(70)
        script.brake()
        stand(&script, 200)
        #expect(Course(script).changes.last?.moving == true)
    }
}
