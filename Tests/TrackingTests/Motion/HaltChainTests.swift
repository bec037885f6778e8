import Testing
import WaypostCore
import WaypostTracking

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

    private func drive() -> Script {
        var script = Script()
        script.standNoisily(120)
        script.trip(metres: 1000)
        return script
    }

    @Test func movementsThatLeadNowhereDoNotPutTheStopOff() throws {
        var script = drive()
        let standstill = script.time
        script.standNoisily(110)
        shift(&script, north: 11)
        script.standNoisily(30)
        shift(&script, north: -11)
        script.standNoisily(220)
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
            script.standNoisily(50)
            shift(&script, north: 11)
        }
        #expect(Course(script).changes.last?.moving == true)
    }

    @Test func whoCameBackAfterLongerHaltsAgain() {
        var script = drive()
        script.standNoisily(150)
        script.driveOff(70)
        script.brake()
        script.standNoisily(200)
        #expect(Course(script).changes.last?.moving == true)
    }
}
