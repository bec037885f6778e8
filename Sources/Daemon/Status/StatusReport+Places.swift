import WaypostControl
import WaypostCore

// Lists that servers give.
extension StatusReport {
    private static let sourcesMax = 8

    /// nil = there is none.
    var fenceSources: [ListSourceStatus]? {
        sources(places?.fences.fetched) { status, list in status.fences = list.count }
    }

    /// nil = there is none.
    var beaconSources: [ListSourceStatus]? {
        sources(places?.beacons.fetched) { status, list in status.regions = list.count }
    }

    private func sources(
        _ lists: [any FetchedSource]?, _ count: (inout ListSourceStatus, any FetchedSource) -> Void
    ) -> [ListSourceStatus]? {
        guard let lists, !lists.isEmpty else { return nil }
        return lists.prefix(Self.sourcesMax).map { list in
            var status = ListSourceStatus()
            status.name = list.config.name
            count(&status, list)
            status.age = list.age(at: now)
            status.nextFetch = list.schedule.nextDeadline.map { max(0, $0.seconds(since: now)) }
            status.failures = list.schedule.failures
            status.problem = list.problem.map(Self.shortened)
            return status
        }
    }

    static func problem(of list: any FetchedSource) -> String? { list.problem.map { "\(list.config.label): \($0)" } }
}
