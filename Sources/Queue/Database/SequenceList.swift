import WaypostCore

/// Rising sequence numbers as bytes: the distance of each to the one before, seven bits a byte, the lowest first.
enum SequenceList {
    static func encode(_ seqs: [Int64], from first: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        var previous = first
        for seq in seqs {
            var rest = UInt64(bitPattern: seq &- previous)
            while rest > 0x7F {
                bytes.append(UInt8(rest & 0x7F) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
            previous = seq
        }
        return bytes
    }

    /// - Returns: nil for bytes that name no rising numbers from `first` to `last`.
    static func decode(_ bytes: [UInt8], from first: Int64, through last: Int64) -> [Int64]? {
        var seqs: [Int64] = []
        var distance: UInt64 = 0
        var shift: UInt64 = 0
        for byte in bytes {
            guard shift < 63 else { return nil }
            distance |= UInt64(byte & 0x7F) << shift
            shift += 7
            guard byte & 0x80 == 0 else { continue }
            let (seq, overflow) = (seqs.last ?? first).addingReportingOverflow(Int64(truncatingIfNeeded: distance))
            guard !overflow, seq <= last, seqs.last.map({ seq > $0 }) ?? (seq >= first) else { return nil }
            seqs.append(seq)
            (distance, shift) = (0, 0)
        }
        return shift == 0 ? seqs : nil
    }
}

/// A set of sequence numbers that mostly follow each other.
struct SequenceRanges: Hashable {
    /// Rising, without touching each other.
    private(set) var ranges: [ClosedRange<Int64>] = []

    var isEmpty: Bool { ranges.isEmpty }

    /// - Parameter seq: above all that are in it.
    /// - Returns: the range that has it now.
    @discardableResult
    mutating func append(_ seq: Int64) -> ClosedRange<Int64> {
        if let last = ranges.last, seq <= last.upperBound { return last }
        if let last = ranges.last, last.upperBound == seq - 1 {
            ranges[ranges.count - 1] = last.lowerBound...seq
        } else {
            ranges.append(seq...seq)
        }
        invariant(ranges.last?.upperBound == seq, "\(seq) is not the last")
        return ranges[ranges.count - 1]
    }

    mutating func append(_ range: ClosedRange<Int64>) {
        if let last = ranges.last, range.lowerBound <= last.upperBound { return }
        ranges.append(range)
    }

    /// - Parameter more: in any order.
    mutating func formUnion(_ more: [ClosedRange<Int64>]) {
        var merged: [ClosedRange<Int64>] = []
        for range in (ranges + more).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound || range.lowerBound - 1 == last.upperBound {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        ranges = merged
        invariant(
            zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound - 1 }, "ranges touch each other")
        invariant(more.allSatisfy { contains($0.lowerBound) && contains($0.upperBound) }, "a range was lost")
    }

    func contains(_ seq: Int64) -> Bool { range(of: seq) != nil }

    func range(of seq: Int64) -> ClosedRange<Int64>? {
        let index = firstIndex(endingFrom: seq)
        return index < ranges.count && ranges[index].lowerBound <= seq ? ranges[index] : nil
    }

    func overlaps(_ range: ClosedRange<Int64>) -> Bool {
        let index = firstIndex(endingFrom: range.lowerBound)
        return index < ranges.count && ranges[index].lowerBound <= range.upperBound
    }

    /// The parts that lie within these bounds.
    func parts(within bounds: ClosedRange<Int64>) -> [ClosedRange<Int64>] {
        ranges[firstIndex(endingFrom: bounds.lowerBound)...].prefix { $0.lowerBound <= bounds.upperBound }
            .map { max($0.lowerBound, bounds.lowerBound)...min($0.upperBound, bounds.upperBound) }
    }

    mutating func removeThrough(_ seq: Int64) {
        ranges.removeFirst(firstIndex(endingFrom: seq == .max ? seq : seq + 1))
    }

    func without(_ range: ClosedRange<Int64>) -> Self {
        var rest = self
        rest.remove(after: range.lowerBound - 1)
        var later = self
        later.removeThrough(range.upperBound)
        rest.formUnion(later.ranges)
        return rest
    }

    mutating func remove(after seq: Int64) {
        ranges = seq < 0 ? [] : parts(within: 0...seq)
    }

    private func firstIndex(endingFrom seq: Int64) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < seq { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
