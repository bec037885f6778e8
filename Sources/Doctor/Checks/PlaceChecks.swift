import Configuration
import WaypostControl
import WaypostCore

/// What servers tell the daemon of places: check 27.
enum PlaceChecks {
    /// Of the periods of a source: a list that is older was not confirmed for long.
    private static let periodsMax = 2.0

    static func lists(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        if config.fenceSources.isEmpty, config.beaconSources.isEmpty {
            return .ok("no server lists geofences or beacon regions")
        }
        guard let status = evidence.status else { return .unknown("no daemon answers", evidence.waypost("status")) }
        let fences = config.fenceSources.map(\.list)
        let regions = config.beaconSources.map(\.list)
        let sources =
            (status.motion.geofences?.sources ?? []).map { ($0, every($0, fences)) }
            + (status.beacons?.sources ?? []).map { ($0, every($0, regions)) }
        let refresh = evidence.waypost("geofences refresh")
        for (source, every) in sources {
            if let problem = source.problem {
                let next = source.nextFetch.map { ", asked again in \(InWords.about(seconds: $0))" } ?? ""
                return .degraded("\(source.name): \(problem) (\(list(source))\(next))", refresh)
            }
            if let age = source.age, age > Self.periodsMax * every {
                return .degraded("\(source.name): the list is \(InWords.about(seconds: age)) old", refresh)
            }
        }
        return .ok(sources.map { "\($0.0.name): \(list($0.0))" }.joined(separator: "; "))
    }

    /// Seconds between two fetches.
    private static func every(_ source: ListSourceStatus, _ lists: [ListSourceConfig]) -> Double {
        lists.first { $0.name == source.name }?.every.inSeconds ?? .infinity
    }

    /// `12 geofences, 3 h old`
    private static func list(_ source: ListSourceStatus) -> String {
        let fences = source.fences.map { InWords.count($0, "geofence") }
        let regions = source.regions.map { InWords.count($0, "beacon region") }
        let age = source.age.map { ", \(InWords.about(seconds: $0)) old" } ?? ""
        return "\(fences ?? regions ?? "no list yet")\(age)"
    }
}
