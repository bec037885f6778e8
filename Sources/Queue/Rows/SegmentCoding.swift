/// Rows as the bytes of a segment: of each row only what is not as the rows before it predict.
///
/// ```
/// segment  = checksum (4 bytes, the lowest first), row…
/// row      = varint of the bits of the columns that are not as predicted (bit 19: the number), then each of these:
///            the number: varint of how much greater it is than predicted
///            a column: 0 for NULL, else 1 + the zigzag varint of its distance from the prediction
/// ```
/// A position, a time and an odometer are predicted to go on as in the last step, all others to stay, and the number to be the
/// next one. The first row is predicted to have the first number, and no other value. A varint has seven bits a byte, the
/// lowest first. docs/queue.md says the same for others.
///
/// Each location is coded and decoded at least twice on its way, so this goes over raw memory, without copies of rows.
enum SegmentCoding {
    /// Of one segment: less is lost with a damaged page, and the changed part of a page is small.
    static let rowsMax = 64
    /// One page of the queue holds a segment of this many bytes with what SQLite adds.
    static let bytesMax = 440
    /// More than one row can have.
    private static let rowBytesMax = 24 * 10

    /// Latitude, longitude, odometer and time: `StoredRow.Column`.
    private static var goingOn: UInt64 { 1 << 0 | 1 << 1 | 1 << 4 | 1 << 11 }
    private static var numberBit: UInt64 { 1 << 19 }

    /// - Parameters:
    ///   - rows: with rising numbers.
    ///   - isOne: all of them become one segment.
    /// - Returns: the bytes of as many of the first rows as one segment holds, at least one, and how many these are.
    static func encode(_ rows: ArraySlice<StoredRow>, isOne: Bool = false) -> (bytes: [UInt8], rows: Int) {
        rows.withUnsafeBufferPointer { rows in
            guard let first = rows.first?.seq else { return ([], 0) }
            var count = 0
            let capacity = 4 + (isOne ? rows.count * rowBytesMax : bytesMax + rowBytesMax)
            let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, size in
                var writer = Writer(bytes: buffer, next: 4)
                withScratch { scratch in
                    var prediction = Prediction(scratch)
                    var seq = first - 1
                    while count < rows.count, isOne || count < rowsMax {
                        let begin = writer.next
                        let row = rows.baseAddress! + count
                        prediction.write(row, after: seq, to: &writer)
                        if !isOne, writer.next > bytesMax, count > 0 {
                            writer.next = begin
                            break
                        }
                        seq = row.pointee.seq
                        count += 1
                    }
                }
                size = writer.next
                sign(buffer, size, first: first)
            }
            return (bytes, count)
        }
    }

    /// For tests: with a right checksum before them.
    static func checked(_ bytes: [UInt8], first: Int64) -> [UInt8] {
        var bytes = [0, 0, 0, 0] + bytes
        bytes.withUnsafeMutableBufferPointer { sign($0, $0.count, first: first) }
        return bytes
    }

    private static func sign(_ buffer: UnsafeMutableBufferPointer<UInt8>, _ size: Int, first: Int64) {
        var sum = checksum(UnsafeRawBufferPointer(buffer), 4..<size, first: first)
        for index in 0..<4 {
            buffer[index] = UInt8(truncatingIfNeeded: sum)
            sum >>= 8
        }
    }

    /// The checksum with which a segment begins.
    static func checksum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
        bytes.count < 4 ? 0 : (0..<4).reduce(0) { $0 | UInt32(bytes[$1]) << UInt32(8 * $1) }
    }

    /// - Returns: the rows; nil for bytes that no queue has written for a segment that begins with `first`.
    static func decode(_ bytes: UnsafeRawBufferPointer, first: Int64, rows count: Int) -> [StoredRow]? {
        guard bytes.count > 4, bytes.count <= 4 + rowsMax * rowBytesMax, (1...rowsMax).contains(count),
            checksum(of: bytes) == checksum(bytes, 4..<bytes.count, first: first)
        else { return nil }
        var reader = Reader(bytes: bytes, next: 4)
        let rows = [StoredRow](unsafeUninitializedCapacity: count) { rows, size in
            withScratch { scratch in
                var prediction = Prediction(scratch)
                var seq = first - 1
                while size < count, prediction.read(&reader, after: seq, to: rows.baseAddress! + size) {
                    seq = rows[size].seq
                    size += 1
                }
            }
        }
        return rows.count == count && reader.next == bytes.count ? rows : nil
    }

    private static func withScratch(_ work: (UnsafeMutableBufferPointer<Int64>) -> Void) {
        withUnsafeTemporaryAllocation(of: Int64.self, capacity: 2 * StoredRow.columnCount, work)
    }

    /// FNV-1a over eight bytes of the first number and the rest: enough to tell damage from data.
    private static func checksum(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, first: Int64) -> UInt32 {
        var sum: UInt32 = 0x811c_9dc5
        var rest = UInt64(bitPattern: first)
        for _ in 0..<8 {
            sum = (sum ^ UInt32(rest & 0xFF)) &* 0x0100_0193
            rest >>= 8
        }
        for index in range { sum = (sum ^ UInt32(bytes[index])) &* 0x0100_0193 }
        return sum
    }

    /// What the next row is expected to be.
    private struct Prediction {
        /// The last known value of each column, then how much it changed in the last step.
        private let values, steps: UnsafeMutablePointer<Int64>
        private var isNull = StoredRow(seq: 0).isNull
        private var hasBegun = false

        /// - Parameter scratch: room for two values of each column.
        init(_ scratch: UnsafeMutableBufferPointer<Int64>) {
            scratch.initialize(repeating: 0)
            values = scratch.baseAddress!
            steps = values + StoredRow.columnCount
        }

        /// What stays has no step.
        @inline(__always)
        private func expected(_ place: Int) -> Int64 { values[place] &+ steps[place] }

        @inline(__always)
        private func note(_ value: Int64, _ place: Int) {
            if goingOn >> UInt64(place) & 1 == 1, hasBegun { steps[place] = value &- values[place] }
            values[place] = value
        }

        /// - Parameter seq: of the row before.
        mutating func write(_ row: UnsafePointer<StoredRow>, after seq: Int64, to writer: inout Writer) {
            let new = StoredRow.values(of: UnsafeRawPointer(row)).assumingMemoryBound(to: Int64.self)
            let isNewNull = row.pointee.isNull
            var differs: UInt64 = row.pointee.seq == seq + 1 ? 0 : numberBit
            // Of those that have a value in both: any that is not expected; of the others: that it has one.
            differs |= UInt64(isNewNull ^ isNull)
            for place in 0..<StoredRow.columnCount
            where isNewNull >> UInt32(place) & 1 == 0 && new[place] != expected(place) {
                differs |= 1 << UInt64(place)
            }
            writer.put(differs)
            if differs & numberBit != 0 { writer.put(UInt64(bitPattern: row.pointee.seq &- seq &- 1)) }
            var left = differs & (numberBit - 1)
            while left != 0 {
                let place = left.trailingZeroBitCount
                left &= left - 1
                guard isNewNull >> UInt32(place) & 1 == 0 else {
                    writer.put(0)
                    continue
                }
                let distance = new[place] &- expected(place)
                writer.put(UInt64(bitPattern: distance << 1 ^ distance >> 63) &+ 1)
            }
            for place in 0..<StoredRow.columnCount where isNewNull >> UInt32(place) & 1 == 0 { note(new[place], place) }
            isNull = isNewNull
            hasBegun = true
        }

        /// - Parameters:
        ///   - seq: of the row before.
        ///   - row: where the row is made.
        /// - Returns: whether there was one.
        mutating func read(_ reader: inout Reader, after seq: Int64, to row: UnsafeMutablePointer<StoredRow>) -> Bool {
            guard let differs = reader.varint(), differs < numberBit << 1 else { return false }
            var next = seq + 1
            if differs & numberBit != 0 {
                guard let distance = reader.varint(), distance < 1 << 60 else { return false }
                next += Int64(distance)
            }
            guard next <= Ledger.highestSeq else { return false }
            var left = differs & (numberBit - 1) | goingOn
            while left != 0 {
                let place = left.trailingZeroBitCount
                left &= left - 1
                guard differs >> UInt64(place) & 1 == 1 else {
                    guard isNull >> UInt32(place) & 1 == 0 else { continue }
                    guard Statement.range.contains(expected(place)) else { return false }
                    note(expected(place), place)
                    continue
                }
                guard let stored = reader.varint() else { return false }
                guard stored > 0 else {
                    isNull |= 1 << UInt32(place)
                    continue
                }
                let zigzag = stored &- 1
                let value = expected(place) &+ (Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1))
                guard Statement.range.contains(value) else { return false }
                note(value, place)
                isNull &= ~(1 << UInt32(place))
            }
            hasBegun = true
            row.initialize(to: StoredRow(seq: next))
            UnsafeMutableRawPointer(mutating: StoredRow.values(of: UnsafeRawPointer(row)))
                .copyMemory(from: values, byteCount: StoredRow.columnCount * MemoryLayout<Int64>.size)
            row.pointee.isNull = isNull
            return true
        }
    }

    private struct Writer {
        let bytes: UnsafeMutableBufferPointer<UInt8>
        var next: Int

        @inline(__always)
        mutating func put(_ value: UInt64) {
            var rest = value
            while rest > 0x7F {
                bytes[next] = UInt8(truncatingIfNeeded: rest) | 0x80
                next += 1
                rest >>= 7
            }
            bytes[next] = UInt8(truncatingIfNeeded: rest)
            next += 1
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var next: Int

        @inline(__always)
        mutating func varint() -> UInt64? {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while next < bytes.count, shift < 64 {
                let byte = bytes[next]
                next += 1
                value |= UInt64(byte & 0x7F) << shift
                if byte & 0x80 == 0 { return value }
                shift += 7
            }
            return nil
        }
    }
}
