import Testing
import WaypostCore

@testable import WaypostTracking

/// What a reader of the records may rely on, where one of them is dated back behind others.
@Suite struct RecordOrderTests {
    /// On the way at 12 m/s; the fence is entered two fixes before a gap, which only the fix after it confirms.
    private func lostAtTheEdge() -> (script: Script, settings: Tracker.Settings) {
        var script = Script.driving(40, after: 300)
        let edge = script.north - 18
        script.wait(100)
        script.north += 100
        script.drive(20)
        return (script, .car([.circle("depot", north: edge + 200, radius: 200)]))
    }

    @Test func aCrossingBeforeAGapShowsNoLessOdometerThanTheGap() throws {
        let (script, settings) = lostAtTheEdge()
        let course = Course(script, settings)
        #expect(course.passages == ["enter depot"] && course.records(.gap).count == 1)
        let odometer = course.records.map(\.odometer)
        #expect(odometer == odometer.sorted())
        #expect(odometer.last == course.tracker.snapshot.odometer)
    }

    @Test(arguments: [0.0, 1_000_000])
    func whatWaitedWhileTheOdometerWasSetTellsTheNewReading(_ metres: Double) throws {
        let settings = Tracker.Settings.car { $0.sampling.rule = .trackError }
        var script = Script.driving(100, after: 300)
        let count = Course(script, settings).records.count
        script.happen(.odometerSet(metres: metres))
        script.drive(100)
        let course = Course(script, settings)
        let odometer = course.records[count...].map(\.odometer)
        #expect(odometer.allSatisfy { (metres...metres + 1300).contains($0) } && odometer == odometer.sorted())
    }

    /// The detector has stopped the trip before what waited for a crossing is recorded.
    @Test func whatWasPendingWhenTheTripEndedWasMoving() {
        var settings = Tracker.Settings.car
        settings.motion.stopTimeout = .seconds(6)
        settings.motion.staticNavigation = false
        settings.resolution.default = Resolution(priority: .high, intervalMs: 0, displacement: 0)
        for lead in 0..<12 {
            var script = Script.parked(300)
            script.trip(metres: 500)
            // The trip ends while a crossing awaits its second fix.
            let edge = script.north + 8
            settings.geofences.fences = [.circle("yard", north: edge + 100, radius: 100)]
            script.stand(Double(lead))
            script.offset = PlanePoint(east: 0, north: 20)
            script.stand(20)
            let course = Course(script, settings)
            var moving = true
            for effect in course.effects {
                switch effect {
                case .announceMotion(let change): moving = change.moving
                case .record(let location): #expect(location.moving == moving, "\(lead)")
                default: break
                }
            }
        }
    }
}
