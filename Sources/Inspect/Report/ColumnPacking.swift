import Network

/// Numbers in few bytes: differences to the value before, zigzag, seven bits a byte.
struct ColumnPacking {
    private(set) var bytes: [UInt8] = []

    /// - Returns: how many bytes the column takes.
    mutating func append(_ column: some Sequence<Int64>) -> Int {
        let before = bytes.count
        var last: Int64 = 0
        for value in column {
            let difference = value &- last
            last = value
            append(UInt64(bitPattern: difference << 1 ^ difference >> 63))
        }
        return bytes.count - before
    }

    mutating func append(_ column: [Int32]) -> Int { append(column.lazy.map(Int64.init)) }

    private mutating func append(_ value: UInt64) {
        var rest = value
        while rest > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
