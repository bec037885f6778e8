import Testing
import WaypostCore
import WaypostTracking

/// Receivers that invent speed and places, and what must not come of it.
@Suite struct NoisyReceiverTests {
    /// North at an even speed, with the same error across.
    private func roll(_ seconds: Int, at speed: Double, _ script: inout Script) {
        for second in 0..<seconds {
            script.elapsed += 1
            script.north += speed
            let error = second % 2 == 0 ? 0.5 : -0.5
            script.fix(
                speed: (speed * speed + error * error).squareRoot(), course: error > 0 ? 20 : 340)
        }
    }

    @Test func movementThatLeadsNowhereDoesNotDelayTheStop() throws {
        var script = StopTests.arrived()
        let standstill = script.elapsed
        script.stand(200)
        // Nine metres by speed and position alike, and back without a speed: a reflection.
        for _ in 0..<6 {
            script.offset.north += 1.8
            script.elapsed += 1
            script.fix(speed: 1.8)
        }
        script.offset.north = 0
        script.stand(200)
        let course = Course(script)
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        let stop = try #require(course.changes.last)
        #expect(course.tracker.counters.halts > 0, "the reflection was not taken for movement: too small for this test")
        #expect(abs(try #require(stop.since).seconds - standstill) <= 2)
        #expect(abs(stop.at.seconds - standstill - 300) <= 2)
    }

    @Test func arrivalWithinAReflectionStopsOnTimeAtTheTruePlace() throws {
        var script = StopTests.arrived()
        let standstill = script.elapsed
        script.offset.east = 60
        for _ in 0..<400 {
            script.offset.east *= 0.97
            script.elapsed += 1
            script.fix(speed: 0)
        }
        let course = Course(script)
        let stop = try #require(course.changes.last)
        #expect(!stop.moving && abs(stop.at.seconds - standstill - 300) <= 2)
        #expect(stop.coordinate.distance(to: Script.place(north: script.north)) < 15)
    }

    @Test func odometerLeavesOutTheNoiseAcrossTheWay() throws {
        var script = StopTests.arrived()
        script.standNoisily(120, directions: 2)
        let before = Course(script).tracker.state.odometer
        roll(200, at: 1.2, &script)
        let driven = Course(script).tracker.state.odometer - before
        // The lengths of the velocities alone give 8 % too much.
        #expect(abs(driven - 240) < 0.055 * 240, "\(driven) m")
    }

    @Test func queueUnderANoisySkyGetsMoreTime() throws {
        var script = StopTests.arrived()
        script.standNoisily(40, directions: 2)
        for _ in 0..<3 {
            roll(10, at: 1.5, &script)
            script.standNoisily(40, directions: 2)
        }
        let standstill = script.elapsed - 40
        script.standNoisily(500, directions: 2)
        let stop = try #require(Course(script).changes.last)
        #expect(!stop.moving && abs(stop.at.seconds - standstill - 420) <= 10, "\(stop.at.seconds - standstill)")
    }

    @Test func bareNoiseIsNeitherDepartureNorResumption() {
        var script = Script()
        script.standNoisily(600, directions: 2)
        script.driveOff(60)
        script.brake()
        script.standNoisily(400, directions: 2)
        #expect(Course(script).story == ["-start", "+speed", "-stop-timeout"])
    }
}
