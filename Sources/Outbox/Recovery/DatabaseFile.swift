import CSQLite

/// The pages of a database file as they are on the medium, past SQLite and its log.
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
    /// - Returns: whether they could be read; what is behind the end of the file is zeros.
    func read(_ page: Int64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
        let code = waypost_sqlite_read_file(
            connection.handle, bytes.baseAddress, Int32(bytes.count), page * Int64(Self.pageSize))
        return code == SQLITE_OK || code == SQLITE_IOERR | (2 << 8)
    }

    /// - Returns: whether it was written.
    func write(_ page: Int64, _ bytes: UnsafeRawBufferPointer) -> Bool {
        let offset = page * Int64(Self.pageSize)
        return waypost_sqlite_write_file(connection.handle, bytes.baseAddress, Int32(bytes.count), offset) == SQLITE_OK
    }
}
