import Profiles
import WaypostCore

extension Ledger {
    struct Endpoint {
        var id: Int64
        var settings: EndpointSettings
        /// Of the rows that wait for it.
        var fingerprint: String
        /// While it is another than the one of the rows: the configured one, and the last row that was recorded before.
        var wanted: Wanted?
        /// The cursor: every row up to here is finished, or in one of the batches.
        var formed: Int64
        /// Rows of its feed after `formed` that it has not had.
        var waiting: Int
        var state: EndpointState
        /// Oldest first; those from the quarantine after the others.
        var batches: [BatchRow] = []
        /// The last row that concerns an endpoint which is no longer configured; nil = configured.
        var removedAt: Int64?
        /// Batches that begin at or before this row get `generation`.
        var regeneratedThrough: Int64
        var generation: Int
        var acceptedBefore = false
        /// It is a backup for another, and has neither cursor nor rows.
        var isSpare = false
        /// Rows after the cursor that are finished for it.
        var ahead = SequenceRanges()
        /// The oldest row after the cursor.
        var oldest: Oldest = .unknown
        var quarantine = QuarantineCount()
        /// It was bound to another address, device or asset: what it sends has other bytes.
        var isRebound = false
        /// Its rows go to another address than the one that they waited for, which no operator has ordered.
        var isMoved = false
        /// Since the queue was opened.
        var finishedUnsent: [String: Int] = [:]

        struct Wanted: Hashable {
            var fingerprint: String
            var boundThrough: Int64
        }

        /// Counts a new row if it wants that.
        mutating func appended(seq: Int64, published: Bool, time: UTCTime) {
            guard wants(seq: seq, published: published) else { return }
            waiting += 1
            if case .none = oldest { oldest = .row(seq: seq, time: time) }
        }

        func wants(seq: Int64, published: Bool) -> Bool {
            seq > formed && (published || settings.feed == .engine) && seq <= removedAt ?? .max && !isSpare
                && !ahead.contains(seq)
        }
    }

    struct QuarantineCount: Hashable {
        var records = 0
        var bytes = 0
        /// To be sent again, and in no batch yet.
        var retrying = 0
    }
}

extension Ledger.Endpoint {
    /// The oldest row of the queue in a batch.
    var firstInFlight: Int64? { batches.first { $0.origin == .queue }?.first }

    /// Rows of the queue are kept for it.
    var holdsRows: Bool { waiting > 0 || firstInFlight != nil }

    var inFlight: Int { batches.reduce(0) { $0 + $1.rows } }

    /// Rows of the queue that it has not accepted.
    var unsent: Int { waiting + batches.reduce(0) { $0 + ($1.origin == .queue ? $1.rows : 0) } }

    /// Records of the quarantine that are not to be sent again: those that are count as waiting or in flight.
    private var setAside: Int {
        let inFlight = batches.reduce(0) { $0 + ($1.origin == .quarantine ? $1.rows : 0) }
        return max(0, quarantine.records - quarantine.retrying - inFlight)
    }

    var firstUnsent: Int64? {
        if let firstInFlight { return firstInFlight }
        if case .row(let seq, _) = oldest { return seq }
        return nil
    }

    /// Everything up to here is finished.
    var ackedThrough: Int64 { min(firstInFlight.map { $0 - 1 } ?? formed, formed) }

    /// The asset that the waiting rows belong to; nil where the server has none.
    var assetID: String? {
        let lines = fingerprint.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        return lines.count == 3 ? String(lines[2]) : nil
    }

    /// Whether a row is finished for it.
    func hasHad(_ seq: Int64) -> Bool {
        let isInFlight = batches.contains { batch in
            batch.origin == .queue && (batch.picked?.contains(seq) ?? (batch.first...batch.last).contains(seq))
        }
        return !isInFlight && (seq <= formed || ahead.contains(seq))
    }

    /// Above that of all its batches.
    var nextGeneration: Int { 1 + batches.reduce(max(1, generation)) { max($0, $1.generation) } }

    /// Of a batch that begins at this row.
    func generation(from seq: Int64) -> Int { seq <= regeneratedThrough ? generation : 1 }

    mutating func insert(_ batch: BatchRow) {
        let key = (batch.origin.rawValue, batch.first)
        let index = batches.firstIndex { ($0.origin.rawValue, $0.first) > key } ?? batches.count
        batches.insert(batch, at: index)
    }

    /// Keeps of an answered batch only the rows that the server does not have.
    mutating func keepUnaccepted(after answer: BatchAnswer, outbox: String) {
        let index = batches.firstIndex { $0.id(outbox: outbox, endpoint: settings.name) == answer.batchID }
        guard let index else { return }
        switch answer.outcome {
        case .accepted: batches.remove(at: index)
        case .partly(let refused, let again): batches[index].picked = refused.keys.sorted() + again.sorted()
        case .split, .refused: break
        }
    }

    /// Only the address of its rows has changed, and the server there has accepted nothing: there is nothing for an operator to
    /// decide.
    var mayMove: Bool { !acceptedBefore && settings.hasIdentity(of: fingerprint) }

    /// The rows belong to what is configured from now on.
    mutating func takeBinding() {
        if fingerprint != settings.fingerprint {
            acceptedBefore = false
            isRebound = true
        }
        fingerprint = settings.fingerprint
        wanted = nil
        if state == .rebind { state = .active }
    }

    mutating func count(unsent reason: String, _ rows: Int = 1) {
        if rows > 0 { finishedUnsent[reason, default: 0] += rows }
    }

    /// Counts rows that the limits of the queue removed before they were sent.
    static let evicted = "evicted"

    /// - Parameter name: of the queue.
    func depth(ackedThrough: Int64, outbox name: String) -> EndpointDepth {
        var depth = EndpointDepth(
            endpoint: settings.name, state: state, waiting: waiting + quarantine.retrying, inFlight: inFlight,
            ackedThrough: ackedThrough, oldestSeq: nil, oldestTime: nil)
        depth.batches = batches.map { batch in
            BatchHeader(
                id: batch.id(outbox: name, endpoint: settings.name), rows: batch.rows,
                sender: batch.route ?? settings.name)
        }
        depth.quarantined = setAside
        depth.finishedUnsent = finishedUnsent
        depth.acceptedBefore = acceptedBefore
        depth.isMoved = isMoved
        depth.boundTo = wanted == nil ? nil : fingerprint
        if let batch = batches.first(where: { $0.origin == .queue }) {
            depth.oldestSeq = batch.first
            depth.oldestTime = batch.firstTime
        } else if case .row(let seq, let time) = oldest {
            depth.oldestSeq = seq
            depth.oldestTime = time
        }
        return depth
    }
}

extension Ledger.Endpoint {
    /// What holds after each transaction.
    func checkInvariants(of ledger: Ledger) {
        let name = settings.name
        invariant(waiting >= 0, "\(waiting) rows wait for \(name)")
        invariant(formed >= 0 && formed <= ledger.lastSeq, "the cursor of \(name) is at \(formed) of \(ledger.lastSeq)")
        invariant(!isSpare || batches.isEmpty && waiting == 0, "\(name) is a spare with rows")
        invariant(generation >= 1 && regeneratedThrough >= 0, "generation \(generation) of \(name)")
        invariant(wanted == nil || state == .rebind, "\(name) is held for a binding and \(state.word)")
        invariant(quarantine.records >= 0 || ledger.base > 0, "\(quarantine.records) records of \(name) in quarantine")
        invariant(quarantine.retrying >= 0, "\(quarantine.retrying) records of \(name) go out again")
        invariant(finishedUnsent.values.allSatisfy { $0 > 0 }, "a reason without rows")
        invariant(
            zip(batches, batches.dropFirst()).allSatisfy {
                ($0.origin.rawValue, $0.first) < ($1.origin.rawValue, $1.first)
            }, "the batches of \(name) are in no order")
        for batch in batches { batch.checkInvariants() }
        for (one, next) in zip(ahead.ranges, ahead.ranges.dropFirst()) {
            invariant(one.upperBound < next.lowerBound, "rows ahead of the cursor of \(name) are counted twice")
        }
    }
}
