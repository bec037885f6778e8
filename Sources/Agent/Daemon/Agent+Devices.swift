import Positioning
import Sensors

// What comes and goes while it runs.
extension Agent {
    func makePowerWatch(_ config: AgentConfig) -> PowerWatch? {
        config.battery.supplies.map { supplies in
            PowerWatch(
                reader: PowerSupplyReader(root: supplies.root, selection: supplies.selection),
                low: config.tracking.batteryAlarm.low, passes: watchdog.map { .nanoseconds($0.interval) }, log: log,
                loop: loop
            ) { [unowned self] reading, now in pipeline.powerRead(reading, at: now) }
        }
    }

    /// The monitor first: what changes while the files are read for the first time is not missed.
    func watchDevices(at now: EventTime) {
        var handlers: [String: DeviceWatch.Handler] = [:]
        if power != nil {
            handlers["power_supply"] = { [unowned self] _, now in power?.devicesChanged(at: now) }
        }
        if !handlers.isEmpty { devices = DeviceWatch(loop: loop, handlers) }
        power?.start(at: now)
    }
}
