import Sensors
import WaypostCore
import WaypostHost

/// Listens for hotplug events of udev, and passes each to the handler of its subsystem.
final class DeviceWatch {
    /// Called with an event, or with nil when some were lost and everything may be different.
    typealias Handler = (DeviceEvent?, EventTime) -> Void

    private let monitor: DeviceMonitor
    private let loop: EventLoop

    /// nil where no such events are available; each device is then found by its own timer.
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
