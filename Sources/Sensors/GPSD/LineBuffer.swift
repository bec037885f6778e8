import WaypostCore

/// Bytes of a stream until the line that they belong to is complete. Its memory is that of the longest line.
struct LineBuffer {
    private var bytes: [UInt8]
    /// The first byte that was not taken, and the end of what has come.
    private var start = 0
    private var end = 0
    /// Before it there is no line end.
    private var searched = 0

    init(longestLine: Int) { bytes = [UInt8](repeating: 0, count: longestLine) }

    /// The next complete line, without its end (LF, or CR LF); nil when there is none yet.
    mutating func nextLine() -> [UInt8]? {
        while searched < end {
            searched += 1
            guard bytes[searched - 1] == 0x0A else { continue }
            defer { start = searched }
            let hasReturn = searched - 1 > start && bytes[searched - 2] == 0x0D
            return Array(bytes[start..<searched - (hasReturn ? 2 : 1)])
        }
        return nil
    }

    /// Lets `read` append bytes to what is there; take the lines first.
    ///
    /// - Parameter read: gets free space and returns how much of it was filled, or at most 0.
    /// - Returns: what `read` did; nil when a line fills everything and does not end.
    mutating func fill(_ read: (UnsafeMutableRawBufferPointer) -> Int) -> Int? {
        if start > 0 {
            bytes.withUnsafeMutableBytes { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
            (searched, end, start) = (searched - start, end - start, 0)
        }
        guard end < bytes.count else { return nil }
        let count = bytes.withUnsafeMutableBytes { read(UnsafeMutableRawBufferPointer(rebasing: $0[end...])) }
        end += max(0, count)
        invariant(start <= searched && searched <= end, "\(start) was taken, \(searched) searched, of \(end)")
        invariant(end <= bytes.count, "\(end) bytes in \(bytes.count)")
        return count
    }
}
