import Delivery
import Profiles
import WaypostCore

/// What the outbox knows without reading the disk. A commit works on a copy that replaces it once the commit is stored.
struct Ledger {
    /// The newest sequence number ever given.
    var lastSeq: Int64 = 0
    /// No row has a smaller number, but for those of `base`.
    var firstSeq: Int64 = 1
    /// Rows up to here are on a disk that refuses writes, below this queue in memory; 0 = there is no such disk.
    var base: Int64 = 0
    /// `lastSeq` when counts were last written.
    var mark: Int64 = 0
    /// Rows in the queue.
    var rows = 0
    /// No plain fix that may be dropped has a smaller number.
    var droppableFrom: Int64 = 0
    /// Known endpoints: configured ones, and removed ones until they are forgotten.
    var endpoints: [Endpoint] = []
    var names = Record.Names()
    var recorded = RecordingTimes()
    var retention = Retention()
    /// Rows of a damaged copy are still to be brought back.
    var isSalvaging = false

    /// Appended rows after which counts are written, which bounds what is counted when the file is opened.
    static let countInterval: Int64 = 4096

    /// No row has a greater number. Adding to it is far from overflowing.
    static let highestSeq: Int64 = 1 << 62

    /// A number from the file, which may be damaged: clamped, so that rows can follow it.
    static func clamped(_ seq: Int64) -> Int64 { max(0, min(highestSeq / 2, seq)) }

    enum Oldest {
        case unknown
        case none
        case row(seq: Int64, time: UTCTime)
    }

    /// All endpoints that keep rows have everything up to here; nil while no endpoint is configured.
    ///
    /// - Parameter isShort: room is needed. Then only configured endpoints that are required keep rows, or all
    ///   configured ones if none is.
    func removableThrough(isShort: Bool = false) -> Int64? {
        let configured = endpoints.filter { $0.removedAt == nil && !$0.isSpare }
        guard !configured.isEmpty else { return nil }
        var keeping = configured
        if isShort {
            let required = configured.filter(\.settings.required)
            if !required.isEmpty { keeping = required }
        } else {
            keeping += endpoints.filter { $0.removedAt != nil && $0.settings.required && !$0.isSpare && $0.holdsRows }
        }
        return keeping.map(floor).min()
    }

    private func floor(_ endpoint: Endpoint) -> Int64 {
        let waiting =
            switch endpoint.oldest {
            case .row(let seq, _): seq - 1
            case .none: lastSeq
            case .unknown: endpoint.formed
            }
        return min(waiting, endpoint.firstInFlight.map { $0 - 1 } ?? lastSeq)
    }

    /// All rows up to here were removed.
    var removedThrough: Int64 { base > 0 ? 0 : firstSeq - 1 }

    /// Goes on in memory above a disk that holds all rows up to now.
    mutating func leaveDisk() {
        base = lastSeq
        firstSeq = lastSeq + 1
        mark = lastSeq
        rows = 0
        droppableFrom = firstSeq
        retention = Retention()
        // The queue in memory has its own numbers for names.
        names = Record.Names()
    }

    /// Counts a new row for the endpoints that want it.
    mutating func appended(seq: Int64, published: Bool, time: UTCTime) {
        lastSeq = seq
        rows += 1
        // In its place: an endpoint is much to copy.
        for index in endpoints.indices { endpoints[index].appended(seq: seq, published: published, time: time) }
    }

    /// Counts a row that retention removed.
    mutating func dropped(seq: Int64, published: Bool) {
        rows -= 1
        // What was counted up to the mark includes it, so that counts are due.
        mark = min(mark, lastSeq - Self.countInterval)
        for index in endpoints.indices where endpoints[index].wants(seq: seq, published: published) {
            endpoints[index].waiting = max(0, endpoints[index].waiting - 1)
            endpoints[index].oldest = .unknown
            endpoints[index].count(unsent: Endpoint.evicted)
        }
    }

    /// No batch has a higher generation, nor does a new one get it by itself.
    var highestGeneration: Int { endpoints.reduce(1) { max($0, $1.nextGeneration) } }

    /// The most rows that one of the configured endpoints has not accepted.
    var mostUnsent: Int { endpoints.filter { $0.removedAt == nil && !$0.isSpare }.map(\.unsent).max() ?? 0 }

    /// Of the batches in flight.
    func batchIDs(outbox name: String) -> [String] {
        endpoints.flatMap { endpoint in endpoint.batches.map { $0.id(outbox: name, endpoint: endpoint.settings.name) } }
    }

    /// Settings that hold without a restart.
    mutating func reload(_ settings: EndpointSettings) {
        if let index = index(of: settings.name) { endpoints[index].settings.copyPace(from: settings) }
    }

    /// The configured endpoint of this name.
    func index(of name: String) -> Int? {
        endpoints.firstIndex { $0.settings.name == name && $0.removedAt == nil }
    }

    /// - Parameter name: of the queue.
    func depths(outbox name: String) -> [EndpointDepth] {
        // By their places: this is asked with each commit, and an endpoint is much to copy.
        endpoints.indices.filter { endpoints[$0].removedAt == nil }.map { place in
            let primary = endpoints[place].settings.backupFor.flatMap { index(of: $0) } ?? place
            return endpoints[place].depth(
                ackedThrough: endpoints[primary].ackedThrough, outbox: name)
        }
    }
}

extension Ledger {
    /// What holds after each transaction.
    func checkInvariants() {
        invariant(lastSeq >= 0 && lastSeq <= Self.highestSeq, "the newest row is \(lastSeq)")
        // Memory above a disk that could not be read at first has rows of its own, and cursors among those on disk.
        invariant(
            firstSeq >= 0 && (rows == 0 || firstSeq <= lastSeq), "the oldest row is \(firstSeq), the newest \(lastSeq)")
        invariant(rows >= 0, "\(rows) rows")
        invariant(mark <= lastSeq, "counts are as of \(mark), the newest row is \(lastSeq)")
        invariant(base >= 0 && base <= lastSeq, "memory begins after \(base)")
        invariant(Set(endpoints.map(\.id)).count == endpoints.count, "two endpoints have one number")
        let configured = endpoints.filter { $0.removedAt == nil }.map(\.settings.name)
        invariant(Set(configured).count == configured.count, "two endpoints have one name")
        invariant(retention.thinLevel >= 0, "a thinning of \(retention.thinLevel)")
        for endpoint in endpoints { endpoint.checkInvariants(of: self) }
    }
}
