import CLinux
import Glibc
import Sensors
import WaypostCore
import WaypostHost

/// What happens on this host while the daemon runs: signals, devices, links, batteries and external power.
final class HostWatch {
    struct Handlers {
        var signal: (Int32, EventTime) -> Void
        /// nil = events were lost, and any device may have changed.
        var device: (DeviceEvent?, EventTime) -> Void
        var power: (PowerWatch.Reading, EventTime) -> Void
        var links: (EventTime) -> Void
        var clock: (EventTime) -> Void
    }

    private let signals: Int32
    private var devices: DeviceWatch?
    private var links: LinkWatch?
    /// Becomes readable when the wall clock is set; nil where the kernel does not tell.
    private var clock: Int32?
    private let power: PowerWatch
    private let handlers: Handlers
    private let log: AgentLog
    private let loop: EventLoop

    /// - Parameter wakeInterval: how often `loopWoke(at:)` is called; nil = never.
    /// - Throws: `SystemError` where signals cannot be received by descriptor.
    init(
        power settings: PowerWatch.Settings, wakeInterval: Duration?, log: AgentLog, loop: EventLoop, handlers: Handlers
    ) throws(SystemError) {
        let signals = waypost_signalfd()
        guard signals >= 0 else { throw SystemError("signalfd") }
        self.signals = signals
        self.handlers = handlers
        self.log = log
        self.loop = loop
        power = PowerWatch(
            settings: settings, wakeInterval: wakeInterval, log: log, loop: loop, changed: handlers.power)
        try loop.watch(signals) { _, now in handlers.signal(waypost_signalfd_read(signals), now) }
    }

    /// Starts the monitor before the first look, so that no change is missed. Without a monitor, devices are found by
    /// their own timers alone.
    func watchDevices(at now: EventTime) {
        devices = DeviceWatch(
            loop: loop,
            ["tty": handlers.device, "power_supply": { [unowned self] _, now in power.devicesChanged(at: now) }])
        if devices == nil {
            log.warning("udev events are not available: devices that are plugged in are found by polling")
        }
        power.start(at: now)
    }

    /// Without news of the links an endpoint is retried by its timer alone.
    func watchLinks() {
        do throws(SystemError) { links = try LinkWatch(loop: loop, changed: handlers.links) } catch {
            log.warning("changes of the network cannot be watched, so uploads are retried by timer alone: \(error)")
        }
    }

    /// Without news of the clock what failed over it is retried by timer alone. Nothing is polled.
    func watchClock() {
        let descriptor = waypost_clock_watch()
        guard descriptor >= 0 else { return }
        do throws(SystemError) {
            try loop.watch(descriptor) { [unowned self] _, now in
                if waypost_clock_watch_read(descriptor) { handlers.clock(now) }
            }
            clock = descriptor
        } catch { close(descriptor) }
    }

    /// What the supplies said last, by name; nil where none are read.
    var supplies: [(name: String, words: String)]? { power.supplies }

    /// The loop is awake for something else.
    func loopWoke(at now: EventTime) { power.loopWoke(at: now) }

    func reload(_ settings: PowerWatch.Settings, at now: EventTime) { power.reload(settings, at: now) }

    /// Reads the supplies again.
    func readPower(at now: EventTime) { power.devicesChanged(at: now) }

    func stop() {
        power.stop()
        devices?.stop()
        links?.stop()
        if let clock {
            loop.forget(clock)
            close(clock)
        }
        loop.forget(signals)
        close(signals)
    }
}
