import Configuration
import ControlProtocol
import Positioning

/// What servers tell the daemon of places: check 27.
enum PlaceChecks {
    /// Of the periods of a source: a list that is older was not confirmed for long.
    private static let periodsMax = 2.0

    static func fenceLists(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        if config.fenceSources.isEmpty { return .ok("no server lists geofences") }
        guard let status = evidence.status else { return .unknown("no daemon answers", evidence.waypost("status")) }
        let sources = status.motion.geofences?.sources ?? []
        let refresh = evidence.waypost("geofences refresh")
        for source in sources {
            let list = source.fences.map { InWords.count($0, "geofence") } ?? "no list yet"
            let age = source.age.map { ", \(InWords.about(seconds: $0)) old" } ?? ""
            let next = source.nextFetch.map { ", asked again in \(InWords.about(seconds: $0))" } ?? ""
            if let problem = source.problem {
                return .degraded("\(source.name): \(problem) (\(list)\(age)\(next))", refresh)
            }
            let every = config.fenceSources.first { $0.name == source.name }?.list.every.inSeconds ?? .infinity
            if let age = source.age, age > Self.periodsMax * every {
                return .degraded("\(source.name): the list is \(InWords.about(seconds: age)) old", refresh)
            }
        }
        let lists = sources.map { source in
            let age = source.age.map { ", \(InWords.about(seconds: $0)) old" } ?? ""
            return "\(source.name): \(source.fences.map { InWords.count($0, "geofence") } ?? "no list yet")\(age)"
        }
        return .ok(lists.joined(separator: "; "))
    }
}
