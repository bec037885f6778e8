/// Rows as the bytes of a segment: of each row only what is not as the rows before it predict.
///
/// ```
/// segment  = checksum (4 bytes, the lowest first), row…
/// row      = varint of the bits of the columns that are not as predicted (bit 19: the number), then each of these:
///            the number: varint of its distance from the number before, less 1; of the first row: less `first`
///            a column: 0 for NULL, else 1 + the zigzag varint of its distance from the prediction
/// ```
/// A position, a time and an odometer are predicted to go on as in the last step, all others to stay. The first row is
/// predicted from NULL and zeros. A varint has seven bits a byte, the lowest first.
enum SegmentCoding {
    /// Of one segment: less is lost with a damaged page, and the changed part of a page is small.
    static let rowsMax = 64
    /// One page of the queue holds a segment of this many bytes with what SQLite adds.
    static let bytesMax = 440
    /// More than one row can have.
    private static let rowBytesMax = 24 * 10

    private static let goesOn: [StoredRow.Column] = [.latE7, .lonE7, .odometerDm, .timeMs]
    private static let goingOn: UInt32 = goesOn.reduce(0) { $0 | 1 << UInt32($1.rawValue) }
    private static let numberBit = UInt64(1) << UInt64(StoredRow.columnCount)

    /// - Parameter rows: with rising numbers.
    /// - Returns: the bytes of as many of the first rows as one segment holds, at least one, and how many these are.
    static func encode(_ rows: ArraySlice<StoredRow>, isOne: Bool = false) -> (bytes: [UInt8], rows: Int) {
        guard let first = rows.first else { return ([], 0) }
        let capacity = isOne ? rows.count * rowBytesMax : bytesMax + rowBytesMax
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 4 + capacity) { buffer, size in
            size = 4
            var predicted = Prediction(first: first.seq)
            for row in rows {
                guard isOne || count < rowsMax else { break }
                let begin = size
                predicted.write(row, to: buffer, &size)
                if !isOne, size > bytesMax, count > 0 {
                    size = begin
                    break
                }
                count += 1
            }
            var sum = checksum(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[4..<size]), first: first.seq)
            for index in 0..<4 {
                buffer[index] = UInt8(truncatingIfNeeded: sum)
                sum >>= 8
            }
        }
        return (bytes, count)
    }

    /// - Returns: the rows; nil for bytes that no queue has written for a segment that begins with `first`.
    static func decode(_ bytes: UnsafeRawBufferPointer, first: Int64, rows count: Int) -> [StoredRow]? {
        guard bytes.count > 4, (1...bytes.count).contains(count) else { return nil }
        let stored = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[$1]) << UInt32(8 * $1) }
        guard stored == checksum(UnsafeRawBufferPointer(rebasing: bytes[4...]), first: first) else { return nil }
        var rows: [StoredRow] = []
        rows.reserveCapacity(count)
        var predicted = Prediction(first: first)
        var reader = Reader(bytes: bytes, next: 4)
        while rows.count < count {
            guard let row = predicted.read(&reader) else { return nil }
            rows.append(row)
        }
        return reader.next == bytes.count ? rows : nil
    }

    /// FNV-1a over eight bytes of the first number and the rest: enough to tell damage from data.
    private static func checksum(_ bytes: UnsafeRawBufferPointer, first: Int64) -> UInt32 {
        var sum: UInt32 = 0x811c_9dc5
        var rest = UInt64(bitPattern: first)
        for _ in 0..<8 {
            sum = (sum ^ UInt32(rest & 0xFF)) &* 0x0100_0193
            rest >>= 8
        }
        for byte in bytes { sum = (sum ^ UInt32(byte)) &* 0x0100_0193 }
        return sum
    }

    /// What the next row is expected to be.
    private struct Prediction {
        /// The row before, with the last known value where it is NULL.
        private var last: StoredRow
        private var values = InlineArray<19, Int64>(repeating: 0)
        private var steps = InlineArray<19, Int64>(repeating: 0)
        private var hasBegun = false

        init(first: Int64) { last = StoredRow(seq: first &- 1) }

        private func expected(_ place: Int) -> Int64 {
            goingOn >> UInt32(place) & 1 == 0 ? values[place] : values[place] &+ steps[place]
        }

        private mutating func note(_ value: Int64, _ place: Int) {
            if goingOn >> UInt32(place) & 1 == 1 { steps[place] = hasBegun ? value &- values[place] : 0 }
            values[place] = value
        }

        mutating func write(_ row: StoredRow, to buffer: UnsafeMutableBufferPointer<UInt8>, _ size: inout Int) {
            var differs: UInt64 = row.seq == last.seq &+ 1 ? 0 : numberBit
            for place in 0..<StoredRow.columnCount {
                let value = row[place: place]
                let isExpected =
                    if let value { last[place: place] != nil && value == expected(place) } else {
                        last[place: place] == nil
                    }
                if !isExpected { differs |= 1 << UInt64(place) }
            }
            put(differs, to: buffer, &size)
            if differs & numberBit != 0 { put(UInt64(bitPattern: row.seq &- last.seq &- 1), to: buffer, &size) }
            for place in 0..<StoredRow.columnCount {
                let value = row[place: place]
                if differs >> UInt64(place) & 1 == 1 {
                    guard let value else {
                        put(0, to: buffer, &size)
                        continue
                    }
                    let distance = value &- expected(place)
                    // 1 + zigzag would overflow for the most distant value alone, which `Statement` never gives.
                    put(UInt64(bitPattern: distance << 1 ^ distance >> 63) &+ 1, to: buffer, &size)
                }
                if let value { note(value, place) }
            }
            last = row
            hasBegun = true
        }

        mutating func read(_ reader: inout Reader) -> StoredRow? {
            guard let differs = reader.varint(), differs < numberBit << 1 else { return nil }
            var row = last
            row.seq = last.seq &+ 1
            if differs & numberBit != 0 {
                guard let distance = reader.varint(), distance < 1 << 60 else { return nil }
                row.seq = last.seq &+ 1 &+ Int64(distance)
            }
            guard row.seq > last.seq, row.seq <= Ledger.highestSeq else { return nil }
            for place in 0..<StoredRow.columnCount {
                if differs >> UInt64(place) & 1 == 1 {
                    guard let stored = reader.varint() else { return nil }
                    guard stored > 0 else {
                        row[place: place] = nil
                        continue
                    }
                    let zigzag = stored &- 1
                    let distance = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
                    let value = expected(place) &+ distance
                    guard Statement.range.contains(value) else { return nil }
                    row[place: place] = value
                    note(value, place)
                } else if row[place: place] != nil {
                    let value = expected(place)
                    row[place: place] = value
                    note(value, place)
                }
            }
            last = row
            hasBegun = true
            return row
        }

        private func put(_ value: UInt64, to buffer: UnsafeMutableBufferPointer<UInt8>, _ size: inout Int) {
            var rest = value
            while rest > 0x7F {
                buffer[size] = UInt8(truncatingIfNeeded: rest) | 0x80
                size += 1
                rest >>= 7
            }
            buffer[size] = UInt8(truncatingIfNeeded: rest)
            size += 1
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var next: Int

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
