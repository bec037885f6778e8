import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct SpeedTrustTests {
    /// The second at which it turns out that the speed is none; nil = never.
    private func stuck(_ north: [Double], interval: Double = 1, speed: (Int) -> Double = { _ in 0 }) -> Double? {
        var trust = SpeedTrust()
        for (index, metres) in north.enumerated() {
            let seconds = Double(index) * interval
            let (time, at) = (Script.start + .seconds(seconds), EventTime.zero + .seconds(seconds))
            let fix = Fix(
                time: time, timeOfDay: time.timeOfDay, at: at, coordinate: Script.place(north: metres),
                speed: speed(index))
            if trust.observe(fix, at: at) { return seconds }
        }
        return nil
    }

    private func driving(_ seconds: Int, after parked: Int) -> [Double] {
        (0..<(parked + seconds)).map { Double(max(0, $0 - parked)) * 14 }
    }

    @Test func aSpeedThatIsAlwaysZeroIsNoneOnceTheFixesMoveOn() throws {
        let found = try #require(stuck(driving(60, after: 300)))
        #expect((307...325).contains(found))
        #expect(stuck((0..<10).map { Double($0) * 70 }, interval: 5) != nil)
        // A speed that lags behind says 0.02 knots for as long.
        #expect(stuck((0..<10).map { Double($0) * 70 }, interval: 12, speed: { _ in 0.01 }) == 36)
    }

    @Test func whatIsNoWayOrHadASpeedBeforeIsNone() {
        // It had another speed once.
        #expect(stuck(driving(60, after: 300), speed: { $0 == 5 ? 0.1 : 0 }) == nil)
        // A jump, there and back; noise; a crawl of less than 100 m in all.
        #expect(stuck((0..<300).map { $0 < 150 ? 0 : 300 }) == nil)
        #expect(stuck((0..<300).map { $0 % 60 < 30 ? 0 : 300 }) == nil)
        #expect(stuck((0..<300).map { Double($0 % 7) * 20 }) == nil)
        #expect(stuck((0..<300).map { Double(min($0, 90)) }) == nil)
    }

    /// 12.5 km at 50 km/h with a speed of 0 in each fix.
    @Test func aDriveWithAStuckSpeedIsOneTrip() throws {
        var script = Script.parked(300)
        script.drive(10, to: 14)
        let zero = { (script: inout Script) in
            script.elapsed += 1
            script.north += 14
            script.fix(speed: 0, course: nil)
        }
        script = Script()
        for _ in 0..<300 {
            script.elapsed += 1
            script.fix(speed: 0, course: nil)
        }
        for _ in 0..<893 { zero(&script) }
        for _ in 0..<400 {
            script.elapsed += 1
            script.fix(speed: 0, course: nil)
        }
        let course = Course(script, .fewest)
        #expect(course.changes.map(\.moving) == [false, true, false])
        let trip = try #require(course.changes.last?.trip)
        #expect(abs(trip.distance - script.north) < 150, "\(trip.distance)")
        #expect(abs(try #require(course.changes[1].since).seconds - 300) <= 10)
        #expect(abs(try #require(course.changes[2].since).seconds - 1193) <= 20)
    }
}
