import WaypostCore
import WaypostTracking

extension BeaconMonitor.Event {
    /// What tracking makes a record of, or takes as a hint.
    package var trackerEvent: TrackerEvent {
        switch self {
        case .entered(let region): return Self.crossing(region, .enter, "beacon")
        case .left(let region, let isRemoved): return Self.crossing(region, .exit, isRemoved ? "removed" : "beacon")
        case .sighted(let beacon):
            let seen = GeofenceCrossing(id: beacon.description, name: nil, action: .dwell, source: .beacon)
            return .observed(Observation(event: .beacon, reason: "beacon", geofence: seen))
        case .leftAll: return .movementSourceChanged(source: "beacon", moving: true)
        }
    }

    private static func crossing(
        _ region: BeaconRegion, _ action: GeofenceCrossing.Action, _ reason: String
    ) -> TrackerEvent {
        let crossing = GeofenceCrossing(id: region.id, name: region.name, action: action, source: .beacon)
        return .observed(Observation(event: .geofence, reason: reason, geofence: crossing))
    }
}
