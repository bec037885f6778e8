import Foundation

/// What has arrived: one row for each (device, outbox, seq), and one answer for each idempotency key.
struct LocationStore {
    struct Counters: Codable {
        var batches = 0
        var locations = 0
        /// Requests with a key that was stored before.
        var duplicateBatches = 0
        /// Rows with a (device, outbox, seq) that was stored before.
        var duplicateLocations = 0
        /// Duplicate rows whose record differs from the stored one.
        var changedLocations = 0
        /// New rows with a seq below the highest of their outbox.
        var inversions = 0
    }

    enum Verdict {
        /// With the rows that were not known.
        case stored(new: [NativeBatch.Row])
        case duplicate
        /// The key has named other bytes before.
        case keyReused
    }

    private(set) var counters = Counters()
    private var outboxes: [String: SeenRows] = [:]
    private var keys: [String: Int] = [:]
    private var keyOrder: [String] = []
    private let output: FileHandle?

    /// Beyond this the oldest half of the keys is forgotten; their rows are still known by seq.
    private static let mostKeys = 200_000

    init(output: FileHandle?) { self.output = output }

    /// - Parameter key: the idempotency key, nil when the request has none.
    /// - Throws: when the output cannot be written; nothing is counted then.
    mutating func take(_ batch: NativeBatch, key: String?, body: [UInt8]) throws -> Verdict {
        let fingerprint = body.hashValue
        if let key, let known = keys[key] {
            guard known == fingerprint else { return .keyReused }
            counters.duplicateBatches += 1
            return .duplicate
        }
        var seen = outboxes["\(batch.device)\u{0}\(batch.outbox)"] ?? SeenRows()
        var after = counters
        var lines = Data()
        var new: [NativeBatch.Row] = []
        after.batches += 1
        for row in batch.rows {
            switch seen.take(row.seq, fingerprint: row.line.hashValue) {
            case .new(let inOrder):
                after.locations += 1
                if !inOrder { after.inversions += 1 }
                new.append(row)
                lines.append(contentsOf: row.line)
                lines.append(0x0A)
            case .known(let changed):
                after.duplicateLocations += 1
                if changed { after.changedLocations += 1 }
            }
        }
        try output?.write(contentsOf: lines)
        counters = after
        outboxes["\(batch.device)\u{0}\(batch.outbox)"] = seen
        if let key { remember(key, fingerprint) }
        return .stored(new: new)
    }

    private mutating func remember(_ key: String, _ fingerprint: Int) {
        if keyOrder.count >= Self.mostKeys {
            for old in keyOrder.prefix(Self.mostKeys / 2) { keys[old] = nil }
            keyOrder.removeFirst(Self.mostKeys / 2)
        }
        keys[key] = fingerprint
        keyOrder.append(key)
    }
}

/// The rows of one outbox: 16 bytes each, appended as long as they come in order.
struct SeenRows {
    enum Verdict {
        case new(inOrder: Bool)
        case known(changed: Bool)
    }

    private var seqs: [Int64] = []
    private var fingerprints: [Int] = []

    mutating func take(_ seq: Int64, fingerprint: Int) -> Verdict {
        guard let last = seqs.last, seq <= last else {
            seqs.append(seq)
            fingerprints.append(fingerprint)
            return .new(inOrder: true)
        }
        let place = firstIndex(notBelow: seq)
        if seqs[place] == seq { return .known(changed: fingerprints[place] != fingerprint) }
        seqs.insert(seq, at: place)
        fingerprints.insert(fingerprint, at: place)
        return .new(inOrder: false)
    }

    private func firstIndex(notBelow seq: Int64) -> Int {
        var (low, high) = (0, seqs.count)
        while low < high {
            let middle = (low + high) / 2
            if seqs[middle] < seq { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
