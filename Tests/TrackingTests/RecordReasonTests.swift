import Foundation
import TestSupport
import Testing
import WaypostTracking

@Suite struct RecordReasonTests {
    /// The table of reasons in `docs/profiles.md` names each that a location can have, under its event.
    @Test func theDocumentationNamesEachReason() throws {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/profiles.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "### Reasons\n").dropFirst().first)
        var documented: [String: Set<String>] = [:]
        for row in section.components(separatedBy: "\n\n")[0].split(separator: "\n").dropFirst(2) {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            for event in names(cells[0]) { documented[event, default: []].formUnion(names(cells[1])) }
        }
        var reasons: [String: Set<String>] = [
            "none": Set(LocationSampler.Trigger.allCases.map(\.rawValue) + SegmentOpening.allCases.map(\.rawValue)),
            "motionchange": Set(MotionReason.allCases.map(\.rawValue)),
            "trip": ["stop-timeout", "no-fix", "gap", "power", "pace", "schedule"],
            "geofence": Set(GeofenceMonitor.Reason.allCases.map(\.rawValue) + ["beacon"]),
            // Seen by others than the tracker.
            "beacon": ["beacon"], "gap": ["overflow", "lost"],
        ]
        for reason in RecordReason.allCases { reasons[reason.event.rawValue, default: []].insert(reason.rawValue) }
        #expect(documented == reasons)
    }

    private func names(_ cell: String) -> [String] {
        cell.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces.union(["`"])) }
    }
}
