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
    }

    var rows: [Row] = []
    var lastSeq: Int64 = 0
    var endpoints: [Endpoint] = []
    var maxRecords: Int?
    var dropped = DropCounts()

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
        if accepted { endpoints[index].acked = last }
        endpoints[index].batch = []
        removeDelivered()
    }

    mutating func forget(_ name: String) {
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
        let inFlight = Set(endpoints.flatMap(\.batch))
        for lasting in [false, true] {
            for row in rows where rows.count > maxRecords && !inFlight.contains(row.seq) {
                let isLasting = row.location.event != .none && row.location.event != .heartbeat
                guard isLasting == lasting else { continue }
                rows.removeAll { $0.seq == row.seq }
                if lasting { dropped.events += 1 } else { dropped.oldest += 1 }
            }
        }
    }

    mutating func reopen(_ configured: [EndpointSettings]) {
        var known = endpoints
        endpoints = []
        for settings in configured {
            guard let index = known.firstIndex(where: { $0.settings.name == settings.name }) else {
                let acked = settings.backfill ? (rows.first?.seq ?? lastSeq + 1) - 1 : lastSeq
                endpoints.append(Endpoint(settings: settings, fingerprint: settings.fingerprint, acked: acked))
                continue
            }
            var endpoint = known.remove(at: index)
            if endpoint.settings.feed != settings.feed { endpoint.batch = [] }
            endpoint.settings = settings
            endpoint.removedAt = nil
            if unsettled(endpoint).isEmpty { endpoint.fingerprint = settings.fingerprint }
            endpoints.append(endpoint)
        }
        for var endpoint in known {
            if endpoint.removedAt == nil {
                endpoint.removedAt = lastSeq
                if !endpoint.settings.required { endpoint.batch = [] }
            }
            endpoints.append(endpoint)
        }
    }
}
