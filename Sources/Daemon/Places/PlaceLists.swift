import Configuration
import Places
import Protocols
import WaypostCore
import WaypostHost
import WaypostTracking

/// What servers list of places: geofences, and regions of beacons.
final class PlaceLists {
    let fences: ListSources<FenceSourceConfig>
    let beacons: ListSources<BeaconSourceConfig>

    init(
        _ config: AgentConfig, uplink: any Uplink, log: AgentLog, loop: EventLoop,
        makeCredentials: @escaping (EndpointConfig) -> EndpointCredentials
    ) {
        let directory = config.outbox.directory
        let turns = ListTurns()
        fences = ListSources(
            config.fenceSources, own: config.tracking.geofences.fences, directory: directory, uplink: uplink, log: log,
            loop: loop, turns: turns, makeCredentials: makeCredentials)
        beacons = ListSources(
            config.beaconSources, own: config.beacons.regions, directory: directory, uplink: uplink, log: log,
            loop: loop, turns: turns, makeCredentials: makeCredentials)
    }

    /// Each list, whatever it lists.
    var fetched: [any FetchedSource] { fences.fetched + beacons.fetched }

    var changed: () -> Void {
        get { fences.changed }
        set { (fences.changed, beacons.changed) = (newValue, newValue) }
    }

    /// The settings for beacons, with the regions of servers.
    func joined(with config: BeaconConfig) -> BeaconConfig {
        var config = config
        config.regions = beacons.joined
        return config
    }

    func start(sinceBoot: Bool, at now: EventTime) {
        fences.start(sinceBoot: sinceBoot, at: now)
        beacons.start(sinceBoot: sinceBoot, at: now)
    }

    func linksChanged(at now: EventTime) {
        fences.linksChanged(at: now)
        beacons.linksChanged(at: now)
    }

    func close() {
        fences.close()
        beacons.close()
    }
}
