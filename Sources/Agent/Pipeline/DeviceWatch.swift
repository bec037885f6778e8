import EventLoop
import Positioning
import Sensors

/// The one ear of the daemon for hotplug: passes what udev tells to whoever named the subsystem.
final class DeviceWatch {
    /// What is told: an event, or nil when some were lost and everything may be different.
    typealias Handler = (DeviceEvent?, EventTime) -> Void

    private let monitor: DeviceMonitor
    private let loop: EventLoop

    /// nil where there are no such events to be had; every device is then found by its own timer.
    init?(loop: EventLoop, _ handlers: [String: Handler]) {
        guard let monitor = DeviceMonitor(subsystems: handlers.keys.sorted()) else { return nil }
        self.loop = loop
        self.monitor = monitor
        do throws(SystemError) {
            try loop.watch(monitor.descriptor) { [unowned self] _, now in
                let isComplete = self.monitor.drain { handlers[$0.subsystem]?($0, now) }
                if !isComplete { for handler in handlers.values { handler(nil, now) } }
            }
        } catch {
            return nil
        }
    }

    func stop() { loop.forget(monitor.descriptor) }
}
