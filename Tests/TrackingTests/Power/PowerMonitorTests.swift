import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct PowerMonitorTests {
    private func at(_ seconds: Int64) -> EventTime { .zero + .seconds(seconds) }

    @Test func theFirstReadingCountsAtOnceAndAChangeOnceItHasLasted() {
        var monitor = PowerMonitor(alarm: .init(), restored: nil)
        let changed = [monitor.externalPowerChanged(true, at: at(0)), monitor.externalPowerChanged(false, at: at(10))]
        #expect(changed == [true, false] && monitor.state.externalPower == true)
        #expect(monitor.awaited == false && monitor.nextDeadline == at(13))
        let confirmed = [monitor.deadlineReached(at: at(12)), monitor.deadlineReached(at: at(13))]
        #expect(confirmed == [nil, false] && monitor.state.externalPower == false)
    }

    @Test func aDipOfTheVoltageChangesNothing() {
        var monitor = PowerMonitor(alarm: .init(), restored: nil)
        _ = monitor.externalPowerChanged(true, at: at(0))
        _ = monitor.externalPowerChanged(false, at: at(10))
        _ = monitor.externalPowerChanged(true, at: at(11))
        let confirmed = monitor.deadlineReached(at: at(20))
        #expect(monitor.awaited == nil && confirmed == nil)
    }

    @Test func theAlarmIsAnnouncedOnceAndDueUntilItIsRecorded() {
        var monitor = PowerMonitor(alarm: .init(), restored: nil)
        monitor.batteryChanged(percent: 140, charging: nil)
        #expect(monitor.state.batteryPercent == 100 && !monitor.isAlarmDue)
        monitor.batteryChanged(percent: 14, charging: nil)
        #expect(monitor.isAlarmDue)
        let isFirst = [monitor.alarmAnnounced(), monitor.alarmAnnounced()]
        #expect(isFirst == [true, false])
        monitor.alarmRecorded()
        #expect(!monitor.isAlarmDue)
        var state = StoredState()
        monitor.store(in: &state)
        #expect(state.lowBatteryRecorded && PowerMonitor(alarm: .init(), restored: state).state == state.power)
    }
}
