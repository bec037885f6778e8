import Positioning
import Sensors

// What comes and goes while it runs.
extension Agent {
    func makePowerWatch(_ config: AgentConfig) -> PowerWatch {
        PowerWatch(
            settings: config.powerSettings, passes: watchdog.map { .nanoseconds($0.interval) }, log: log, loop: loop
        ) { [unowned self] reading, now in pipeline.powerRead(reading, at: now) }
    }

    /// The monitor first: what changes while the files are read for the first time is not missed.
    func watchDevices(at now: EventTime) {
        devices = DeviceWatch(
            loop: loop, ["power_supply": { [unowned self] _, now in power?.devicesChanged(at: now) }])
        power?.start(at: now)
    }
}

extension AgentConfig {
    var powerSettings: PowerWatch.Settings {
        .init(supplies: battery.supplies, low: tracking.batteryAlarm.low)
    }
}
