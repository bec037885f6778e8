import CSQLite

/// The pages of a database file and of its log as they are on the medium, past SQLite.
struct DatabaseFile {
    /// Each queue was made with pages of this size.
    static let pageSize = 512

    private let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    /// Pages, the last one perhaps not whole.
    var pageCount: Int64 {
        (waypost_sqlite_file_size(connection.handle) + Int64(Self.pageSize) - 1) / Int64(Self.pageSize)
    }

    /// - Parameters:
    ///   - page: 0 is the first.
    ///   - bytes: room for one page or several.
    /// - Returns: whether they could be read; what is behind the end of the file is zeros. A damaged log may name any page.
    func read(_ page: Int64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
        // SQLite takes a place before the file for one in memory.
        guard page >= 0 else { return false }
        let code = waypost_sqlite_read_file(
            connection.handle, bytes.baseAddress, Int32(bytes.count), page * Int64(Self.pageSize))
        return code == SQLITE_OK || code == SQLITE_IOERR | (2 << 8)
    }

    /// Frames of the log, the last one perhaps not whole.
    var frameCount: Int64 { max(0, waypost_sqlite_log_size(connection.handle) - Self.logHeader) / Self.frameSize }

    private static let logHeader: Int64 = 32
    private static let frameHeader = 24
    private static let frameSize = Int64(frameHeader + pageSize)

    /// The salts of the frames that belong to the log as it was last begun: those before it have others.
    ///
    /// - Returns: nil where the medium could not read them.
    func logSalts() -> [UInt8]? {
        func salts(at offset: Int64) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: 8)
            return readLog(&bytes, at: offset) ? bytes : nil
        }
        let frames = (0..<2).map { salts(at: Self.logHeader + Int64($0) * Self.frameSize + 8) }
        guard let header = salts(at: 16), let first = frames[0], let second = frames[1] else { return nil }
        // One of three may be damaged.
        return header == first || header == second ? header : second
    }

    /// - Parameters:
    ///   - frame: of the log; 0 is the first.
    ///   - bytes: room for one page.
    /// - Returns: whether it belongs to the log of these salts; nil where the medium could not read it.
    func read(frame: Int64, of salts: [UInt8], into bytes: UnsafeMutableRawBufferPointer) -> Bool? {
        var whole = [UInt8](repeating: 0, count: Int(Self.frameSize))
        guard readLog(&whole, at: Self.logHeader + frame * Self.frameSize) else { return nil }
        bytes.copyBytes(from: whole[Self.frameHeader...])
        return whole[8..<16].elementsEqual(salts)
    }

    private func readLog(_ bytes: inout [UInt8], at offset: Int64) -> Bool {
        let count = Int32(bytes.count)
        let code = bytes.withUnsafeMutableBytes {
            waypost_sqlite_read_log(connection.handle, $0.baseAddress, count, offset)
        }
        return code == SQLITE_OK || code == SQLITE_IOERR | (2 << 8) || code == SQLITE_NOTFOUND
    }

    /// - Returns: whether it was written.
    func write(_ page: Int64, _ bytes: UnsafeRawBufferPointer) -> Bool {
        let offset = page * Int64(Self.pageSize)
        return waypost_sqlite_write_file(connection.handle, bytes.baseAddress, Int32(bytes.count), offset) == SQLITE_OK
    }
}
