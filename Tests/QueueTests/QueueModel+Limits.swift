import Profiles
import Queue
import WaypostCore

extension QueueModel {
    mutating func enforceLimit() {
        guard let maxRecords else { return }
        func excess() -> Int { rows.count - maxRecords }
        removeOptional(excess())
        let inFlight = Set(rows.filter(isInFlight).map(\.seq))
        func free(_ row: Row) -> Bool { !inFlight.contains(row.seq) }
        while excess() > 0, let index = rows.firstIndex(where: { free($0) && !Self.isLasting($0) }) {
            drop(index, inFlight)
            dropped.oldest += 1
        }
        while excess() > 0, let index = rows.firstIndex(where: { free($0) && Self.isGap($0) }) {
            rows.remove(at: index)
        }
        // An ENTER goes with its EXIT.
        while excess() > 0,
            let index = rows.firstIndex(where: { row in
                free(row) && !Self.isGap(row)
                    && (row.location.geofence == nil || row.location.geofence?.action == .dwell
                        || exit(of: row, inFlight) != nil)
            })
        {
            if let exit = exit(of: rows[index], inFlight) {
                rows.remove(at: exit)
                dropped.events += 1
            }
            rows.remove(at: index)
            dropped.events += 1
        }
        while excess() > 0, let index = rows.firstIndex(where: { free($0) && !Self.isGap($0) }) {
            rows.remove(at: index)
            dropped.events += 1
        }
    }

    private static func isLasting(_ row: Row) -> Bool {
        row.location.event != .none && row.location.event != .heartbeat
    }
    private static func isGap(_ row: Row) -> Bool { row.location.event == .gap && row.location.reason == "overflow" }

    private func exit(of enter: Row, _ inFlight: Set<Int64>) -> Int? {
        guard let crossing = enter.location.geofence, crossing.action == .enter else { return nil }
        let next = rows.firstIndex {
            $0.seq > enter.seq && $0.location.geofence?.id == crossing.id && $0.location.geofence?.action != .dwell
                && $0.location.trackable == enter.location.trackable
        }
        guard let next, rows[next].location.geofence?.action == .exit, !inFlight.contains(rows[next].seq) else {
            return nil
        }
        return next
    }

    /// The row is removed, or becomes the gap record in its place.
    private mutating func drop(_ index: Int, _ inFlight: Set<Int64>) {
        let row = rows[index]
        let following = rows[(index + 1)...].prefix(while: Self.isGap)
        let preceding = rows[..<index].reversed().prefix(while: Self.isGap)
        let merged = preceding.filter { $0.location.trackable == row.location.trackable && !inFlight.contains($0.seq) }
        let wasSent = endpoints.contains { $0.formed < row.seq && row.seq <= $0.takenBackThrough }
        if !row.location.published || wasSent
            || following.contains(where: { $0.location.trackable == row.location.trackable })
        {
            rows.remove(at: index)
        } else {
            rows[index].location.event = .gap
            rows[index].location.reason = "overflow"
            rows[index].location.geofence = nil
            rows[index].location.trip = nil
        }
        rows.removeAll { merged.map(\.seq).contains($0.seq) }
    }
}
