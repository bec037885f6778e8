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

    /// No row has a greater number. Adding to it is far from overflowing.
    static let highestSeq: Int64 = 1 << 62

    /// A number from the file, which may be damaged: there is room for rows behind it.
    static func clamped(_ seq: Int64?) -> Int64 { max(0, min(highestSeq / 2, seq ?? 0)) }

    enum Oldest {
        case unknown
        case none
        case row(seq: Int64, time: UTCTime)
    }

    /// Everything up to here has left for all who can hold it back; nil while nobody is configured.
    ///
    /// Rows that no required endpoint ever wants (`feed = "engine"` beside a required `network`) stay for the others.
    func removableThrough() -> Int64? {
        let configured = endpoints.filter { $0.removedAt == nil && !$0.isSpare }
        guard !configured.isEmpty else { return nil }
        let holding = endpoints.filter { $0.settings.required && !$0.isSpare && ($0.removedAt == nil || $0.holdsRows) }
        let others = configured.filter { !$0.settings.required }
        let free = others.map(floor).min() ?? lastSeq
        let held = holding.map(floor).min() ?? free
        let settled = holding.isEmpty ? free : max(holding.map(\.formed).max() ?? 0, free)
        let inFlight = (configured + holding).compactMap { $0.firstInFlight.map { $0 - 1 } }.min() ?? lastSeq
        return min(held, settled, inFlight)
    }

    private func floor(_ endpoint: Endpoint) -> Int64 {
        if let first = endpoint.firstInFlight { return first - 1 }
        return switch endpoint.oldest {
        case .row(let seq, _): seq - 1
        case .none: lastSeq
        case .unknown: endpoint.formed
        }
    }

    /// Counts a new row for all who want it.
    mutating func appended(seq: Int64, published: Bool, time: UTCTime) {
        lastSeq = seq
        rows += 1
        for index in endpoints.indices where endpoints[index].wants(seq: seq, published: published) {
            endpoints[index].waiting += 1
            if case .none = endpoints[index].oldest { endpoints[index].oldest = .row(seq: seq, time: time) }
        }
    }

    /// Counts a row that retention removed.
    mutating func dropped(seq: Int64, published: Bool) {
        rows -= 1
        // What was counted up to the mark includes it, so that counts are due.
        mark = min(mark, lastSeq - Self.countInterval)
        for index in endpoints.indices where endpoints[index].wants(seq: seq, published: published) {
            endpoints[index].waiting = max(0, endpoints[index].waiting - 1)
            endpoints[index].oldest = .unknown
        }
    }

    /// The configured endpoint of this name.
    func index(of name: String) -> Int? {
        endpoints.firstIndex { $0.settings.name == name && $0.removedAt == nil }
    }

    var depths: [EndpointDepth] {
        endpoints.filter { $0.removedAt == nil }.map { endpoint in
            let primary = endpoint.settings.backupFor.flatMap { name in index(of: name).map { endpoints[$0] } }
            return endpoint.depth(acked: (primary ?? endpoint).acked)
        }
    }
}
