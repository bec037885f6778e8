import WaypostCore

/// Reported fixes that wait for the decision of a geofence.
///
/// A crossing is dated at the first of the fixes that decide it. So the fixes between that one and the decision are not
/// sampled before the decision: else times would run back, or the crossing would be dated late.
struct HeldBackFixes: Sendable {
    struct Entry: Sendable {
        let sighting: GeofenceMonitor.Sighting
        /// The fix comes from the ring.
        let isLate: Bool
    }

    private static let countMax = 64

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Whether a fix may wait for a decision that has been pending since an instant.
    func mayHold(_ sighting: GeofenceMonitor.Sighting, since: EventTime) -> Bool {
        entries.count < Self.countMax && sighting.at < since + GeofenceMonitor.decisionMax
    }

    mutating func hold(_ sighting: GeofenceMonitor.Sighting, late: Bool) {
        entries.append(Entry(sighting: sighting, isLate: late))
    }

    /// Removes the fixes up to and including an instant.
    mutating func release(through end: EventTime) -> [Entry] {
        guard let first = entries.first, first.sighting.at <= end else { return [] }
        let released = entries.prefix { $0.sighting.at <= end }
        entries.removeFirst(released.count)
        return Array(released)
    }

    /// When waiting ends without a decision; nil = nothing waits.
    func due(since: EventTime?) -> EventTime? {
        guard !entries.isEmpty, let since else { return nil }
        return since + GeofenceMonitor.decisionMax
    }
}
