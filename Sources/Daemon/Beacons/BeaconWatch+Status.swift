import Sensors
import WaypostControl

extension BeaconStatus {
    private static let insideMax = 32

    init(_ beacons: BeaconWatch.Status, sources: [ListSourceStatus]?) {
        self.init()
        switch beacons.state {
        case .scanning: state = "scanning"
        case .ready: state = "ready"
        case .waiting(let why): (state, reason) = ("waiting", why)
        case .impossible(let why): (state, reason) = ("impossible", why)
        }
        regions = beacons.regions
        inside = Array(beacons.inside.prefix(Self.insideMax))
        nearest = beacons.nearest?.description
        sightings = beacons.sightings
        unrecorded = beacons.unrecorded
        self.sources = sources
    }
}
