import Profiles
import WaypostCore

@testable import Queue

/// The queue as it should behave, in memory and without a clever thought.
struct QueueModel {
    struct Row: Equatable {
        var seq: Int64
        var location: Location
    }

    struct Batch: Equatable {
        var rows: [Int64]
        var feed: EndpointSettings.Feed
        var route: String?
        var isRetry = false
        /// The newest row, which goes along.
        var newest: Int64?
    }

    struct Record: Equatable {
        var seq: Int64
        var attempts: Int
        var isRetried = false
    }

    struct Endpoint: Equatable {
        var settings: EndpointSettings
        /// Address and device to which the waiting rows belong.
        var fingerprint: String
        /// While they are others than the configured ones: those, and the last row recorded before.
        var wanted: String?
        var boundThrough: Int64 = 0
        /// Everything up to here is finished or in a batch.
        var formed: Int64
        var batches: [Batch] = []
        var quarantine: [Record] = []
        /// Rows up to here may have been sent under a name that was forgotten.
        var takenBackThrough: Int64 = 0
        /// Rows that it has had.
        var had: Set<Int64> = []
        var removedAt: Int64?
        /// The server has accepted something under this fingerprint.
        var hasAccepted = false

        var isSpare: Bool { settings.backupFor != nil }
        var isHeld: Bool { fingerprint != settings.fingerprint }
        var inFlight: Int { batches.reduce(0) { $0 + $1.rows.count } }
        var firstInFlight: Int64? { batches.filter { !$0.isRetry }.map { $0.rows[0] }.min() }
        var ackedThrough: Int64 { min(formed, firstInFlight.map { $0 - 1 } ?? formed) }
        mutating func takeBinding() {
            if fingerprint != settings.fingerprint { hasAccepted = false }
            fingerprint = settings.fingerprint
            wanted = nil
        }

        /// To be sent again, and in no batch.
        var retries: [Int64] {
            let inFlight = batches.filter(\.isRetry).flatMap(\.rows)
            return quarantine.filter { $0.isRetried && !inFlight.contains($0.seq) }.map(\.seq).sorted()
        }
    }

    var rows: [Row] = []
    var lastSeq: Int64 = 0
    var boot = testBoot
    /// Numbers that the first row of this run passes over.
    var leap: Int64 = 0
    /// The same for those behind the first rows in memory, where the disk has taken none of this run.
    var laterLeap: Int64 = 0
    var endpoints: [Endpoint] = []
    var maxRecords: Int?
    var dropped = DropCounts()
    private(set) var hasForgotten = false

    func index(of name: String) -> Int? {
        endpoints.firstIndex { $0.settings.name == name && $0.removedAt == nil }
    }

    /// In no batch.
    func waiting(_ endpoint: Endpoint) -> [Int64] {
        if endpoint.isSpare { return [] }
        let (first, last) = (endpoint.formed + 1, endpoint.removedAt ?? .max)
        let takesAll = endpoint.settings.feed == .engine
        var waiting: [Int64] = []
        for index in rows.indices where rows[index].seq >= first && rows[index].seq <= last {
            if takesAll || rows[index].location.published, !endpoint.had.contains(rows[index].seq) {
                waiting.append(rows[index].seq)
            }
        }
        return waiting
    }

    func unsent(_ endpoint: Endpoint, waiting: [Int64]? = nil) -> [Int64] {
        endpoint.batches.filter { !$0.isRetry }.flatMap(\.rows).sorted() + (waiting ?? self.waiting(endpoint))
    }

    mutating func append(_ new: [NewRow]) {
        let keepsAll = endpoints.contains { $0.removedAt == nil && !$0.isSpare && $0.settings.feed == .engine }
        let new = new.filter { $0.location.published || keepsAll }
        guard !new.isEmpty else { return }
        lastSeq += leap > 0 ? leap : laterLeap
        if leap == 0 { laterLeap = 0 }
        leap = 0
        for row in new {
            lastSeq += 1
            rows.append(Row(seq: lastSeq, location: row.location))
            for name in row.finishedFor {
                guard let index = index(of: name) else { continue }
                if let primary = endpoints[index].settings.backupFor {
                    if let owner = self.index(of: primary) { endpoints[owner].had.insert(lastSeq) }
                } else {
                    endpoints[index].had.insert(lastSeq)
                }
            }
        }
    }

    mutating func form(_ request: FormRequest) {
        guard let index = index(of: request.endpoint), !endpoints[index].isHeld, !endpoints[index].isSpare else {
            return
        }
        if let route = request.route {
            guard let spare = self.index(of: route), endpoints[spare].settings.backupFor == request.endpoint else {
                return
            }
        }
        reroute(index, request)
        guard endpoints[index].batches.isEmpty else { return }
        let rows = Array(waiting(endpoints[index]).prefix(request.limit))
        if let last = rows.last {
            endpoints[index].formed = last
            add(rows, to: index, request.route)
        } else if request.route == nil {
            let retries = Array(endpoints[index].retries.prefix(request.limit))
            if !retries.isEmpty { add(retries, to: index, nil, isRetry: true) }
        }
    }

    private mutating func reroute(_ index: Int, _ request: FormRequest) {
        for batch in endpoints[index].batches where batch.route != request.route && !batch.isRetry {
            endpoints[index].batches.removeAll { $0 == batch }
            for start in stride(from: 0, to: batch.rows.count, by: request.limit) {
                add(Array(batch.rows[start...].prefix(request.limit)), to: index, request.route)
            }
        }
    }

    private mutating func add(_ rows: [Int64], to index: Int, _ route: String?, isRetry: Bool = false) {
        guard !rows.isEmpty else { return }
        let settings = endpoints[index].settings
        let sender = route.flatMap { self.index(of: $0) }.map { endpoints[$0].settings } ?? settings
        var batch = Batch(rows: rows, feed: settings.feed, route: route, isRetry: isRetry)
        if sender.profile.usesNewest, !isRetry, !waiting(endpoints[index]).isEmpty {
            batch.newest = self.rows.last { $0.location.published || settings.feed == .engine }?.seq
        }
        endpoints[index].batches.append(batch)
        endpoints[index].batches.sort { ($0.isRetry ? 1 : 0, $0.rows[0]) < ($1.isRetry ? 1 : 0, $1.rows[0]) }
    }

    mutating func acknowledge(_ index: Int, _ batch: Batch, _ how: BatchAnswer.Outcome) {
        endpoints[index].batches.removeAll { $0 == batch }
        let hasAccepted =
            switch how {
            case .accepted: true
            case .split, .refused: false
            case .partly(let refused, let again):
                batch.rows.contains { refused[$0] == nil && !again.contains($0) }
            }
        if hasAccepted { endpoints[batch.route.flatMap { self.index(of: $0) } ?? index].hasAccepted = true }
        var again: [[Int64]] = []
        var refused: [Int64] = []
        switch how {
        case .accepted: break
        case .split:
            let middle = (batch.rows.count + 1) / 2
            again = [Array(batch.rows[..<middle]), Array(batch.rows[middle...])]
        case .refused: refused = batch.rows
        case .partly(let these, let those):
            refused = batch.rows.filter { these[$0] != nil }
            again = [batch.rows.filter { those.contains($0) && these[$0] == nil }]
        }
        for rows in again where !rows.isEmpty {
            endpoints[index].batches.append(
                Batch(rows: rows, feed: batch.feed, route: batch.route, isRetry: batch.isRetry, newest: batch.newest))
        }
        endpoints[index].batches.sort { ($0.isRetry ? 1 : 0, $0.rows[0]) < ($1.isRetry ? 1 : 0, $1.rows[0]) }
        if batch.isRetry {
            let gone = Set(batch.rows).subtracting(refused).subtracting(again.flatMap { $0 })
            endpoints[index].quarantine.removeAll { gone.contains($0.seq) }
            for place in endpoints[index].quarantine.indices
            where refused.contains(endpoints[index].quarantine[place].seq) {
                endpoints[index].quarantine[place].isRetried = false
                endpoints[index].quarantine[place].attempts += 1
            }
        } else {
            quarantine(refused, of: index)
        }
    }

    /// The records of the queue are capped at a thousand, which no random history reaches.
    private mutating func quarantine(_ seqs: [Int64], of index: Int) {
        endpoints[index].quarantine += seqs.map { Record(seq: $0, attempts: 1) }
    }

    /// - Returns: how many rows it is about; nil = refused.
    mutating func carryOut(_ order: QueueOrder) -> Int? {
        switch order {
        case .bind(let name):
            guard let index = owner(name) else { return nil }
            takeBinding(index)
            return unsent(endpoints[index]).count
        case .drop(let name):
            guard let index = owner(name), endpoints[index].isHeld else { return nil }
            let through = endpoints[index].boundThrough
            let rows = unsent(endpoints[index]).filter { $0 <= through }
            pass(index, through: through)
            takeBinding(index)
            return rows.count
        case .clear(let name):
            guard let index = owner(name) else { return nil }
            defer { pass(index, through: lastSeq) }
            return unsent(endpoints[index]).count
        case .quarantine(let name, _):
            guard let index = owner(name) else { return nil }
            let rows = unsent(endpoints[index])
            quarantine(rows, of: index)
            pass(index, through: lastSeq)
            return rows.count
        case .retryQuarantined(let name, _):
            return change(name, isRetry: true, { $0.removedAt == nil && !$0.isSpare && !$1.isRetried }) {
                $0?.isRetried = true
            }
        case .dropQuarantined(let name, _):
            return change(
                name,
                { endpoint, record in
                    !endpoint.batches.contains { $0.isRetry && $0.rows.contains(record.seq) }
                }
            ) { $0 = nil }
        case .forget(let name):
            guard let index = endpoints.firstIndex(where: { $0.settings.name == name && $0.removedAt != nil }) else {
                return nil
            }
            hasForgotten = true
            return unsent(endpoints.remove(at: index)).count
        }
    }

    private func owner(_ name: String) -> Int? { index(of: name).flatMap { endpoints[$0].isSpare ? nil : $0 } }

    private mutating func pass(_ index: Int, through last: Int64) {
        endpoints[index].batches.removeAll { !$0.isRetry }
        endpoints[index].formed = max(endpoints[index].formed, last)
    }

    private mutating func takeBinding(_ index: Int) { endpoints[index].takeBinding() }

    private mutating func change(
        _ name: String?, isRetry: Bool = false, _ concerns: (Endpoint, Record) -> Bool,
        _ change: (inout Record?) -> Void
    ) -> Int? {
        if let name {
            let named = endpoints.first { $0.settings.name == name }
            guard let named, !isRetry || (named.removedAt == nil && !named.isSpare) else { return nil }
        }
        var count = 0
        for index in endpoints.indices where name == nil || endpoints[index].settings.name == name {
            let endpoint = endpoints[index]
            endpoints[index].quarantine = endpoint.quarantine.compactMap { record in
                guard concerns(endpoint, record) else { return record }
                count += 1
                var changed: Record? = record
                change(&changed)
                return changed
            }
        }
        return count
    }

    private func delivered(for endpoint: Endpoint) -> Int64 { (unsent(endpoint).first ?? lastSeq + 1) - 1 }

    mutating func removeDelivered() {
        while let through = deliveredThrough(isShort: false), rows.contains(where: { $0.seq <= through }) {
            remove(through: through)
        }
    }

    /// Removes about this many rows that only optional endpoints and those that are no longer configured wait for.
    mutating func removeOptional(_ count: Int) {
        guard count > 0, let through = deliveredThrough(isShort: true) else { return }
        let going = rows.filter { $0.seq <= through }.prefix(count)
        guard let last = going.last?.seq else { return }
        remove(through: last)
    }

    /// With the batches in flight of those who do not keep them.
    private mutating func remove(through last: Int64) {
        for index in endpoints.indices {
            endpoints[index].batches.removeAll { !$0.isRetry && $0.rows[0] <= last }
        }
        rows.removeAll { $0.seq <= last }
    }

    private func deliveredThrough(isShort: Bool) -> Int64? {
        let configured = endpoints.filter { $0.removedAt == nil && !$0.isSpare }
        if configured.isEmpty { return nil }
        let required = configured.filter(\.settings.required)
        if isShort { return (required.isEmpty ? configured : required).map(delivered).min() }
        let removed = endpoints.filter {
            $0.removedAt != nil && $0.settings.required && !$0.isSpare && !unsent($0).isEmpty
        }
        return (configured + removed).map(delivered).min()
    }

    func isInFlight(_ row: Row) -> Bool {
        endpoints.flatMap(\.batches).contains {
            !$0.isRetry
                && ($0.newest == row.seq
                    || ($0.rows[0]...$0.rows.last!).contains(row.seq)
                        && (row.location.published || $0.feed == .engine))
        }
    }
}
