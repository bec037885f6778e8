import CSQLite

/// How far the write-ahead log of a queue has to reach, so that nothing that was committed is missing.
///
/// Recovery takes a frame that is not as it was written for the end of the log, without an error, and the next commit
/// overwrites what follows. A process knows how far its own commits reached. https://www.sqlite.org/fileformat2.html#walformat
struct LogEnd: Equatable {
    /// They name a log: it gets others each time that it begins again.
    var salts: [UInt8]
    /// Of the last commit.
    var frames: Int

    private static let headerSize = 32
    private static let frameHeaderSize = 24
    private static let frameSize = frameHeaderSize + DatabaseFile.pageSize
    private static let saltsOfHeader = 16..<24
    private static let saltsOfFrame = 8..<16

    /// Of the log that a connection has just written; nil where it cannot be read.
    init?(of connection: Connection, frames: Int) {
        var header = [UInt8](repeating: 0, count: Self.headerSize)
        guard (try? connection.readLog(&header, at: 0)) == true else { return nil }
        salts = Array(header[Self.saltsOfHeader])
        self.frames = frames
    }

    /// - Returns: whether the log has all frames; nil: there is none, or another one, which begins only once the database has
    ///   everything.
    func isThere(in connection: Connection) throws(OutboxError) -> Bool? {
        guard waypost_sqlite_log_size(connection.handle) > 0 else { return nil }
        var header = [UInt8](repeating: 0, count: Self.headerSize)
        guard try connection.readLog(&header, at: 0), header[..<3] == [0x37, 0x7F, 0x06] else { return false }
        var checksum = LogChecksum(isBigEndian: header[3] & 1 == 1)
        checksum.add(header[..<24])
        guard checksum.bytes == header[24...] else { return false }
        guard salts == Array(header[Self.saltsOfHeader]) else { return nil }
        var frame = [UInt8](repeating: 0, count: Self.frameSize)
        var isCommitted = false
        for number in 0..<frames {
            let isRead = try connection.readLog(&frame, at: Self.headerSize + number * Self.frameSize)
            checksum.add(frame[..<8])
            checksum.add(frame[Self.frameHeaderSize...])
            guard isRead, salts[...] == frame[Self.saltsOfFrame], checksum.bytes == frame[16..<24] else {
                // Where a write may touch bytes beside its own, copies of the last frame fill the sector, and the end of the
                // last copy is not flushed.
                return number == frames - 1 && isCommitted && waypost_sqlite_pads_log(connection.handle) != 0
            }
            isCommitted = frame[4..<8].contains { $0 != 0 }
        }
        return true
    }
}

extension Connection {
    /// - Returns: whether the log is as long.
    /// - Throws: where it cannot be read.
    fileprivate func readLog(_ bytes: inout [UInt8], at offset: Int) throws(OutboxError) -> Bool {
        let count = Int32(bytes.count)
        let code = bytes.withUnsafeMutableBytes {
            waypost_sqlite_read_log(handle, $0.baseAddress, count, Int64(offset))
        }
        if code == SQLITE_OK { return true }
        guard code == SQLITE_NOTFOUND || code == SQLITE_IOERR | (2 << 8) else {
            throw OutboxError(failedRead: medium.failedReads, path: path + "-wal", code: code)
        }
        return false
    }
}

/// The checksum of a write-ahead log, which each frame continues.
private struct LogChecksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    /// - Parameter bytes: a multiple of eight.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            for place in stride(from: 0, to: bytes.count - 7, by: 8) {
                first = first &+ word(bytes, place) &+ second
                second = second &+ word(bytes, place + 4) &+ first
            }
        }
    }

    private func word(_ bytes: UnsafeRawBufferPointer, _ place: Int) -> UInt32 {
        let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// As they stand in the log.
    var bytes: ArraySlice<UInt8> {
        [first, second].flatMap { sum in withUnsafeBytes(of: sum.bigEndian) { Array($0) } }[...]
    }
}
