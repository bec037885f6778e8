import Configuration
import EventLoop
import Positioning
import Sensors

// What comes and goes while it runs.
extension Agent {
    func makePowerWatch(_ config: AgentConfig) -> PowerWatch {
        PowerWatch(
            settings: config.powerSettings, passes: watchdog.map { .nanoseconds($0.interval) }, log: log, loop: loop
        ) { [unowned self] reading, now in pipeline.powerRead(reading, at: now) }
    }

    /// The monitor first: what changes while it is looked at for the first time is not missed. Without it each device is
    /// looked for by a timer of its own alone.
    func watchDevices(at now: EventTime) {
        devices = DeviceWatch(
            loop: loop,
            [
                "tty": { [unowned self] event, now in pipeline.deviceChanged(event, at: now) },
                "power_supply": { [unowned self] _, now in power?.devicesChanged(at: now) },
            ])
        if devices == nil { log.warning("devices that are plugged in are found by looking for them: no word of udev") }
        power?.start(at: now)
    }

    func linksChanged(at now: EventTime) {
        for delivery in deliveries { delivery.linksChanged(at: now) }
    }

    /// Without word of the links an endpoint is retried by its timer alone.
    func watchLinks(at now: EventTime) {
        do throws(SystemError) {
            if edges.isDaemon { links = try LinkWatch(loop: loop) { [unowned self] now in linksChanged(at: now) } }
        } catch {
            log.warning("changes of the network are not seen: \(error)")
        }
        for delivery in deliveries {
            // The boot clock counts from the start of the host: later starts are not those of a whole fleet.
            if now < EventTime.zero + Self.hostStart {
                delivery.startedWithHost(jitter: loop.host.jitter, at: now)
            }
            delivery.linksChanged(at: now)
        }
    }
}

extension AgentConfig {
    var powerSettings: PowerWatch.Settings {
        .init(supplies: battery.supplies, low: tracking.batteryAlarm.low)
    }
}
