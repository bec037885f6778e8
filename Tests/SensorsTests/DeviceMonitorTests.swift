import Glibc
import Sensors
import Testing

/// What can be said of hotplug without devices: events themselves come in the lab, where devices can be made.
@Suite struct DeviceMonitorTests {
    @Test func waitsWithoutHoldingUpTheLoop() throws {
        let monitor = try #require(DeviceMonitor(subsystems: ["tty", "power_supply"]))
        #expect(fcntl(monitor.descriptor, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(monitor.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(monitor.drain { _ in })
    }

    @Test func leavesNoDescriptorBehind() throws {
        let before = try #require(DeviceMonitor(subsystems: ["power_supply"])?.descriptor)
        for _ in 0..<2000 { _ = DeviceMonitor(subsystems: ["power_supply"]) }
        // Other tests open and close at the same time, but none of them a thousand.
        let after = try #require(DeviceMonitor(subsystems: ["power_supply"])?.descriptor)
        #expect(after < before + 1000)
    }
}
