import Delivery
import Outbox
import Positioning

/// The queue as it should behave, in memory and without a clever thought.
struct QueueModel {
    struct Row: Equatable {
        var seq: Int64
        var location: Location
    }

    struct Endpoint: Equatable {
        var settings: EndpointSettings
        /// Address and device to which the waiting rows belong.
        var fingerprint: String
        var acked: Int64
        var batch: [Int64] = []
        var removedAt: Int64?
        /// The last row that was in a batch which was dissolved.
        var takenBackThrough: Int64 = 0

        mutating func takeBack() {
            takenBackThrough = max(takenBackThrough, batch.last ?? 0)
            batch = []
        }
    }

    var rows: [Row] = []
    var lastSeq: Int64 = 0
    var endpoints: [Endpoint] = []
    var maxRecords: Int?
    var dropped = DropCounts()
    var hasForgotten = false

    func unsettled(_ endpoint: Endpoint) -> [Int64] {
        rows.filter {
            $0.seq > endpoint.acked && ($0.location.published || endpoint.settings.feed == .engine)
                && $0.seq <= endpoint.removedAt ?? .max
        }.map(\.seq)
    }

    mutating func append(_ locations: [Location]) {
        let keepsAll = endpoints.contains { $0.removedAt == nil && $0.settings.feed == .engine }
        for location in locations where location.published || keepsAll {
            lastSeq += 1
            rows.append(Row(seq: lastSeq, location: location))
        }
    }

    mutating func form(_ name: String, limit: Int) {
        let index = endpoints.firstIndex { $0.settings.name == name && $0.removedAt == nil }
        guard let index, endpoints[index].batch.isEmpty, !isHeld(endpoints[index]) else { return }
        endpoints[index].batch = Array(unsettled(endpoints[index]).prefix(limit))
    }

    func isHeld(_ endpoint: Endpoint) -> Bool {
        endpoint.fingerprint != endpoint.settings.fingerprint
    }

    mutating func settle(_ name: String, accepted: Bool) {
        guard let index = endpoints.firstIndex(where: { $0.settings.name == name }),
            let last = endpoints[index].batch.last
        else { return }
        if accepted {
            endpoints[index].acked = last
        } else {
            endpoints[index].takenBackThrough = max(endpoints[index].takenBackThrough, last)
        }
        endpoints[index].batch = []
        removeDelivered()
    }

    mutating func forget(_ name: String) {
        hasForgotten = true
        endpoints.removeAll { $0.settings.name == name && $0.removedAt != nil }
        removeDelivered()
    }

    private func delivered(for endpoint: Endpoint) -> Int64 { (unsettled(endpoint).first ?? lastSeq + 1) - 1 }

    private mutating func removeDelivered() {
        while let through = deliveredThrough, rows.contains(where: { $0.seq <= through }) {
            rows.removeAll { $0.seq <= through }
        }
    }

    private var deliveredThrough: Int64? {
        let configured = endpoints.filter { $0.removedAt == nil }
        let required = endpoints.filter { $0.settings.required && ($0.removedAt == nil || !unsettled($0).isEmpty) }
        let optional = configured.filter { !$0.settings.required }
        if configured.isEmpty { return nil }
        let free = optional.map(delivered).min() ?? lastSeq
        var through = required.map(delivered).min() ?? free
        through = min(through, required.isEmpty ? free : max(free, required.map(\.acked).max()!))
        return min(through, endpoints.compactMap { $0.batch.first.map { $0 - 1 } }.min() ?? lastSeq)
    }

    mutating func enforceLimit() {
        guard let maxRecords else { return }
        func excess() -> Int { rows.count - maxRecords }
        let inFlight = Set(endpoints.flatMap(\.batch))
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

    /// The row goes, or becomes the gap record of where it stood.
    private mutating func drop(_ index: Int, _ inFlight: Set<Int64>) {
        let row = rows[index]
        let following = rows[(index + 1)...].prefix(while: Self.isGap)
        let preceding = rows[..<index].reversed().prefix(while: Self.isGap)
        let merged = preceding.filter { $0.location.trackable == row.location.trackable && !inFlight.contains($0.seq) }
        let wasSent = endpoints.contains { $0.acked < row.seq && row.seq <= $0.takenBackThrough }
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

    mutating func reopen(_ configured: [EndpointSettings]) {
        var known = endpoints
        endpoints = []
        for settings in configured {
            guard let index = known.firstIndex(where: { $0.settings.name == settings.name }) else {
                let acked = settings.backfill ? (rows.first?.seq ?? lastSeq + 1) - 1 : lastSeq
                var new = Endpoint(settings: settings, fingerprint: settings.fingerprint, acked: acked)
                if hasForgotten { new.takenBackThrough = lastSeq }
                endpoints.append(new)
                continue
            }
            var endpoint = known.remove(at: index)
            if endpoint.settings.feed != settings.feed { endpoint.takeBack() }
            endpoint.settings = settings
            endpoint.removedAt = nil
            if unsettled(endpoint).isEmpty { endpoint.fingerprint = settings.fingerprint }
            endpoints.append(endpoint)
        }
        for var endpoint in known {
            if endpoint.removedAt == nil {
                endpoint.removedAt = lastSeq
                if !endpoint.settings.required { endpoint.takeBack() }
            }
            endpoints.append(endpoint)
        }
    }
}
