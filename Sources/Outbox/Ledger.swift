import Delivery
import Positioning

/// What the outbox knows without asking the disk. A commit works on a copy that replaces it once the disk has said yes.
struct Ledger {
    /// The newest sequence number ever given.
    var lastSeq: Int64 = 0
    /// No row has a smaller number.
    var firstSeq: Int64 = 1
    /// `lastSeq` when counts were last written.
    var mark: Int64 = 0
    /// Rows in the queue.
    var rows = 0
    /// No plain fix that may be dropped has a smaller number.
    var droppableFrom: Int64 = 0
    /// Known endpoints: configured ones, and removed ones until they are forgotten.
    var endpoints: [Endpoint] = []
    var names = Record.Names()
    var retention = Retention()

    /// Counts are written after so many appended rows, which bounds what is counted when the file is opened.
    static let countInterval: Int64 = 4096

    struct Endpoint {
        var id: Int64
        var settings: EndpointSettings
        var fingerprint: String
        var acked: Int64
        /// Rows of its feed after `acked`, those of the batch in flight included.
        var unsettled: Int
        var state: EndpointState
        var batch: BatchRow?
        /// The last row that concerns an endpoint which is no longer configured; nil = configured.
        var removedAt: Int64?
        /// Batches that begin at or before this row get `generation`.
        var regeneratedThrough: Int64
        var generation: Int
        var oldest: Oldest

        func wants(seq: Int64, published: Bool) -> Bool {
            seq > acked && (published || settings.feed == .engine) && seq <= removedAt ?? .max
        }
    }

    enum Oldest {
        case unknown
        case none
        case row(seq: Int64, time: UTCTime)
    }

    struct BatchRow {
        var first: Int64
        var last: Int64
        var rows: Int
        var feed: EndpointSettings.Feed
        var sentMs: Int64?
        var newestSeq: Int64
        var generation: Int
        var rendering: String

        /// Names these rows in these bytes for ever.
        func id(outbox: String, endpoint: String) -> String {
            "\(outbox)-\(endpoint)-\(first)-\(last)" + (generation > 1 ? "-g\(generation)" : "")
        }
    }

    /// Everything up to here has left for all who can hold it back; nil while nobody is configured.
    ///
    /// Rows that no required endpoint ever wants (`feed = "engine"` beside a required `network`) stay for the others.
    func removableThrough() -> Int64? {
        let configured = endpoints.filter { $0.removedAt == nil }
        guard !configured.isEmpty else { return nil }
        let holding = endpoints.filter { $0.settings.required && ($0.removedAt == nil || $0.unsettled > 0) }
        let others = configured.filter { !$0.settings.required }
        let free = others.map(floor).min() ?? lastSeq
        let held = holding.map(floor).min() ?? free
        let settled = holding.isEmpty ? free : max(holding.map(\.acked).max() ?? 0, free)
        let inFlight = endpoints.compactMap { $0.batch.map { $0.first - 1 } }.min() ?? lastSeq
        return min(held, settled, inFlight)
    }

    private func floor(_ endpoint: Endpoint) -> Int64 {
        switch endpoint.oldest {
        case .row(let seq, _): seq - 1
        case .none: lastSeq
        case .unknown: endpoint.acked
        }
    }

    /// Counts a new row for all who want it.
    mutating func appended(seq: Int64, published: Bool, time: UTCTime) {
        lastSeq = seq
        rows += 1
        for index in endpoints.indices where endpoints[index].wants(seq: seq, published: published) {
            endpoints[index].unsettled += 1
            if case .none = endpoints[index].oldest { endpoints[index].oldest = .row(seq: seq, time: time) }
        }
    }

    /// Counts a row that retention removed.
    mutating func dropped(seq: Int64, published: Bool) {
        rows -= 1
        // What was counted up to the mark includes it, so that counts are due.
        mark = min(mark, lastSeq - Self.countInterval)
        for index in endpoints.indices where endpoints[index].wants(seq: seq, published: published) {
            endpoints[index].unsettled -= 1
            endpoints[index].oldest = .unknown
        }
    }

    var depths: [EndpointDepth] {
        endpoints.filter { $0.removedAt == nil }.map { endpoint in
            var depth = EndpointDepth(
                endpoint: endpoint.settings.name, state: endpoint.state,
                waiting: endpoint.unsettled - (endpoint.batch?.rows ?? 0), inFlight: endpoint.batch?.rows ?? 0,
                acked: endpoint.acked, oldestSeq: nil, oldestTime: nil)
            if case .row(let seq, let time) = endpoint.oldest {
                depth.oldestSeq = seq
                depth.oldestTime = time
            }
            return depth
        }
    }
}
