import Testing
import WaypostCore
import WaypostTracking

@Suite struct BatteryAlarmTests {
    private func reasons(_ percents: [Int?], external: Bool? = nil) -> [String] {
        Course(script(percents, external: external)).records(.power).compactMap(\.reason)
    }

    private func script(_ percents: [Int?], external: Bool? = nil) -> Script {
        var script = Script.parked(30)
        if let external { script.happen(.externalPowerChanged(external)) }
        for percent in percents {
            script.happen(.batteryChanged(percent: percent, charging: nil))
            script.stand(10)
        }
        return script
    }

    @Test(
        arguments: [
            ([80, 16, 15], 0), ([80, 14], 1), ([14, 13, 12, 5, 0], 1),
            // Swinging around the level; then really charged, and low again.
            ([14, 15, 14, 16, 14], 1), ([14, 17, 14], 2),
            // A reading that fails says nothing.
            ([14, nil, 14, nil, 13], 1), ([nil, nil], 0), ([300, -5], 1),
        ] as [([Int?], Int)])
    func tellsOnceEachTimeThatItRunsLow(_ percents: [Int?], _ times: Int) {
        #expect(reasons(percents) == Array(repeating: "battery-low", count: times))
    }

    @Test func saysNothingWhileItIsFed() {
        let fed = Course(script([9, 10, 11], external: true))
        #expect(fed.records(.power).isEmpty && announced(fed).isEmpty)
    }

    @Test func carriesTheLevel() throws {
        let record = try #require(Course(script([40, 12])).records(.power).first)
        #expect(record.power.batteryPercent == 12)
        #expect(record.trackable == "car")
    }

    @Test func isNotRecordedAgainAfterARestart() {
        let before = Course(script([12]))
        #expect(before.records(.power).count == 1)
        var later = Script()
        later.clockStep = 3_600_000
        later.stand(10)
        for percent in [12, 16, 12] {
            later.happen(.batteryChanged(percent: percent, charging: nil))
            later.stand(10)
        }
        let after = Course(later, restored: before.tracker.state)
        #expect(after.records(.power).isEmpty && announced(after).isEmpty)
        #expect(after.tracker.snapshot.batteryLow)
        later.happen(.batteryChanged(percent: 50, charging: nil))
        later.happen(.batteryChanged(percent: 10, charging: nil))
        #expect(Course(later, restored: before.tracker.state).records(.power).count == 1)
    }

    private func announced(_ course: Course) -> [Int?] {
        course.effects.compactMap { if case .announceLowBattery(let power) = $0 { power.batteryPercent } else { nil } }
    }

    @Test func isAnnouncedAtOnceAndRecordedWithTheFirstPlace() throws {
        var script = Script()
        for percent in [8, 7] {
            script.happen(.batteryChanged(percent: percent, charging: nil))
            script.wait(30)
        }
        #expect(announced(Course(script)) == [8])
        #expect(Course(script).records(.power).isEmpty)
        script.stand(30)
        script.happen(.batteryChanged(percent: 6, charging: nil))
        script.stand(30)
        #expect(announced(Course(script)) == [8])
        let records = Course(script).records(.power)
        #expect(records.map(\.reason) == ["battery-low"])
        #expect(records.first?.power.batteryPercent == 7)
    }

    @Test(arguments: [
        TrackerEvent.batteryChanged(percent: 60, charging: nil), .externalPowerChanged(true),
    ])
    func aBatteryThatHasRecoveredBeforeThereIsAPlaceIsNotRecorded(_ recovery: TrackerEvent) {
        var script = Script()
        script.happen(.batteryChanged(percent: 8, charging: nil))
        script.wait(30)
        script.happen(recovery)
        script.stand(60)
        #expect(announced(Course(script)) == [8])
        #expect(Course(script).records(.power).isEmpty)
    }

    @Test func isAnnouncedEachTimeThatItRunsLow() {
        #expect(announced(Course(script([14, 15, 13, 17, 14]))) == [14, 14])
    }

    @Test func aLossOfPowerShowsThatItIsLow() {
        var script = script([9], external: true)
        script.happen(.externalPowerChanged(false))
        script.stand(10)
        #expect(Course(script).records(.power).map(\.reason) == ["power-off", "battery-low"])
        #expect(announced(Course(script)) == [9])
    }

    @Test func isRecordedInTheHoursAlone() {
        var script = Script.parked(30)
        script.happen(.timeWindowChanged(.tracking, open: false))
        script.happen(.batteryChanged(percent: 8, charging: nil))
        script.stand(30)
        #expect(announced(Course(script)) == [8])
        #expect(Course(script).records(.power).isEmpty)
        script.happen(.timeWindowChanged(.tracking, open: true))
        script.stand(30)
        #expect(announced(Course(script)) == [8])
        #expect(Course(script).records(.power).count == 1)
    }

    @Test func hasALevelOfItsOwnOrNone() {
        var settings = Tracker.Settings(trackables: [Trackable(id: "car")])
        settings.batteryAlarm.low = 50
        #expect(Course(script([49]), settings).records(.power).count == 1)
        settings.batteryAlarm.low = nil
        #expect(Course(script([1]), settings).records(.power).isEmpty)
    }
}
