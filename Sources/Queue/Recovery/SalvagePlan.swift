/// How far the rows of damaged copies have been brought back. It is stored in the new queue.
struct SalvagePlan: Equatable {
    struct Part: Equatable {
        var copy: Int64
        /// Rows before this one were seen.
        var next: Int64
        /// The last row to bring back; later ones were never acknowledged and are recorded again.
        var through: Int64
        /// Of a part that was missing in the copy and is read again later; nil: it is read for the first time.
        var readings: Readings?

        /// Numbers of rows that may be there.
        var size: Int64 { max(0, through - next + 1) }
    }

    /// How often a part was read without a failed read, and its rows were not found.
    struct Readings: Equatable {
        var wrong: Int
        /// Processes in which it was; more than two are two.
        var lives: Int
        /// The last one: `Salvaging.life`.
        var life: Int64
    }

    /// Rows of a copy that an endpoint still needed.
    struct Count: Equatable {
        /// nil: not known.
        var expected: Int64?
        var returned: Int64 = 0

        /// - Parameter most: rows that may be missing, by their numbers.
        func missing(atMost most: Int64) -> Int64 { min(most, expected.map { max(0, $0 - returned) } ?? most) }
    }

    /// A batch that the new queue has with its rows, under their numbers: for its endpoint they do not come back once more.
    struct Kept: Hashable {
        var copy: Int64
        /// Its id in the copy.
        var endpoint: Int64
        /// The first row of the batch.
        var first: Int64
    }

    /// The parts that are read for the first time, in order, and those that are read again.
    var parts: [Part] = []
    /// By the number of a copy that has parts.
    var counts: [Int64: Count] = [:]
    /// Copies that may be deleted: all rows came back or were given up, and nobody else needs them.
    var finished: Set<Int64> = []

    /// Batches in flight when a copy was set aside.
    var kept: Set<Kept> = []
    /// Rows that were given up, of all copies so far. They stand in `counts` as what no copy has, since a fifth property would keep the plan
    /// out of registers: a start would look up its metadata, for 0.8 M instructions.
    var lost: Int64 {
        get { counts[Self.noCopy]?.expected ?? 0 }
        set { counts[Self.noCopy] = newValue > 0 ? Count(expected: newValue, returned: lostMs) : nil }
    }
    /// When the last of them were given up, Unix milliseconds; 0 = no time was trusted then.
    var lostMs: Int64 {
        get { counts[Self.noCopy]?.returned ?? 0 }
        set { counts[Self.noCopy]?.returned = newValue }
    }
    private static let noCopy: Int64 = 0

    /// Of a gap record in the place of rows that are given up.
    static let lostReason = "lost"
    /// Stretches that are read again; more are given up.
    static let missingMax = 512
    /// More than there can be copies on a card.
    private static let linesMax = 8192

    var copies: Set<Int64> { Set(parts.map(\.copy)) }

    /// Copies in which rows were not found, oldest first, and how many at most; nil: that is not known.
    var missing: [(copy: Int64, rows: Int64?)] {
        let later = parts.filter { $0.readings != nil }
        return Set(later.map(\.copy)).sorted().compactMap { copy in
            guard let count = counts[copy], count.expected != nil else { return (copy, nil) }
            let sizes = later.reduce(Int64(0)) { $1.copy == copy ? min(Ledger.seqMax, $0 + $1.size) : $0 }
            let rows = count.missing(atMost: sizes)
            return rows > 0 ? (copy, rows) : nil
        }
    }

    /// Rows are being brought back for the first time.
    var isUnderWay: Bool { parts.contains { $0.readings == nil } }

    init(parts: [Part] = []) { self.parts = parts }

    /// With the parts of other copies, which were set aside since.
    func adding(_ later: SalvagePlan) -> SalvagePlan {
        var plan = self
        let copies = copies
        plan.parts += later.parts.filter { !copies.contains($0.copy) }
        plan.counts.merge(later.counts) { known, _ in known }
        plan.finished.formUnion(later.finished.subtracting(copies))
        plan.kept.formUnion(later.kept.filter { !copies.contains($0.copy) })
        return plan
    }

    /// Endpoints as they were when a copy was set aside, without batches that the new queue has.
    func withoutKept(_ endpoints: [Ledger.Endpoint]) -> [Ledger.Endpoint] {
        endpoints.map { endpoint in
            var endpoint = endpoint
            endpoint.batches.removeAll { batch in
                batch.origin == .queue && kept.contains { $0.endpoint == endpoint.id && $0.first == batch.first }
            }
            return endpoint
        }
    }

    /// Gives parts up, of one copy.
    ///
    /// - Parameter most: rows that they can hold, by the size of the file.
    /// - Returns: how many rows that costs.
    mutating func giveUp(_ lost: [Part], atMost most: Int64) -> Int {
        guard let copy = lost.first?.copy else { return 0 }
        parts.removeAll { lost.contains($0) }
        let sizes = lost.reduce(Int64(0)) { min(Ledger.seqMax, $0 + $1.size) }
        let rows = (counts[copy] ?? Count()).missing(atMost: min(most, sizes))
        if let expected = counts[copy]?.expected { counts[copy]?.expected = max(0, expected - rows) }
        self.lost = min(Ledger.seqMax, self.lost + rows)
        return Int(rows)
    }

    // Lines of numbers, which earlier versions read as far as they have three of them.

    var bytes: [UInt8] {
        var lines = parts.map { part in
            "\(part.copy) \(part.next) \(part.through)"
                + (part.readings.map { " \($0.wrong) \($0.lives) \($0.life)" } ?? "")
        }
        for copy in copies.sorted() {
            if let count = counts[copy] { lines.append("n\(copy) \(count.expected ?? -1) \(count.returned)") }
        }
        lines += kept.filter { copies.contains($0.copy) }.map { "k\($0.copy) \($0.endpoint) \($0.first)" }.sorted()
        lines += finished.sorted().map { "f\($0)" }
        if lost > 0 { lines.append("l\(lost) \(lostMs)") }
        return Array(lines.joined(separator: "\n").utf8)
    }

    init(bytes: [UInt8]) {
        for line in bytes.split(separator: UInt8(ascii: "\n")).prefix(Self.linesMax) {
            let letter = line.first.flatMap { $0 > UInt8(ascii: "9") ? $0 : nil }
            let numbers = line.dropFirst(letter == nil ? 0 : 1).split(separator: UInt8(ascii: " ")).map {
                Int64(String(decoding: $0, as: UTF8.self)) ?? .min
            }
            // The number of a copy, but for the count of lost rows.
            guard let copy = numbers.first, numbers.allSatisfy({ (-1...Ledger.seqMax).contains($0) }), copy >= 0 else {
                continue
            }
            switch (letter, numbers.count) {
            case (nil, 3), (nil, 6):
                guard numbers.allSatisfy({ $0 >= 0 }) else { continue }
                var part = Part(copy: copy, next: numbers[1], through: numbers[2])
                if numbers.count == 6 {
                    part.readings = Readings(
                        wrong: Int(min(numbers[3], 99)), lives: Int(min(numbers[4], 2)), life: numbers[5])
                }
                parts.append(part)
            case (UInt8(ascii: "n"), 3):
                counts[copy] = Count(expected: numbers[1] < 0 ? nil : numbers[1], returned: max(0, numbers[2]))
            case (UInt8(ascii: "k"), 3):
                kept.insert(Kept(copy: copy, endpoint: numbers[1], first: numbers[2]))
            case (UInt8(ascii: "f"), 1): finished.insert(copy)
            case (UInt8(ascii: "l"), 1...2):
                lost = copy
                lostMs = numbers.count > 1 ? max(0, numbers[1]) : 0
            default: continue
            }
        }
    }
}
