import ControlProtocol
import Positioning

// Lists that servers give.
extension StatusReport {
    private static let sourcesMax = 8

    /// nil = there is none.
    var fenceSources: [FenceSourceStatus]? {
        guard let fences, !fences.fetched.isEmpty else { return nil }
        return fences.fetched.prefix(Self.sourcesMax).map { list in
            var status = FenceSourceStatus()
            status.name = list.config.name
            status.fences = fences.count(of: list.config.name)
            status.age = list.age(at: now)
            status.nextFetch = list.schedule.nextDeadline.map { max(0, $0.seconds(since: now)) }
            status.failures = list.schedule.failures
            status.problem = list.problem.map(Self.shortened)
            return status
        }
    }

    static func problem(of list: FetchedList) -> String? { list.problem.map { "\(list.config.label): \($0)" } }
}
