/// An input that is read as a script: the bytes that choose what is done next, then those that it is done with.
struct Input {
    private var rest: ArraySlice<UInt8>

    init(_ data: UnsafePointer<UInt8>, _ size: Int) {
        rest = Array(UnsafeBufferPointer(start: data, count: size))[...]
    }

    var isOver: Bool { rest.isEmpty }

    /// The next byte; 0 behind the end.
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// Most significant byte first.
    mutating func number(bytes: Int) -> UInt64 { (0..<bytes).reduce(0) { value, _ in value << 8 | UInt64(byte()) } }

    /// As many bytes as there are, up to this number.
    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// Bytes up to a line feed, which is taken too, or to the end.
    mutating func line() -> [UInt8] {
        let line = Array(rest.prefix { $0 != 0x0A })
        rest = rest.dropFirst(line.count + 1)
        return line
    }

    mutating func all() -> [UInt8] { bytes(rest.count) }
}
