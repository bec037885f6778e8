import CSQLite

/// Makes the log of a damaged copy lead to its last commit again, past frames that are not as they were written.
///
/// With the later frames come the tables as they were last: which rows are there, their names, what servers have had, and the batches
/// on their way. Of a damaged frame nothing counts: it may hold what another page was long ago. Its page stays as it was before: rows
/// that were only on it are found by their checksums, see `SegmentPages`, and small tables that are older than others by theirs, see
/// `Schema.summed`.
enum LogRepair {
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    static func putBack(at path: String, isPatient: Bool, medium: any QueueMedium) throws(OutboxError) {
        // With a connection of its own: SQLite does not expect the log to change under it.
        let connection = try Connection(path: path, access: .readWrite, medium: medium)
        _ = try unlessDamaged(isPatient) { () throws(OutboxError) in
            // Opens the log.
            _ = try connection.integer("PRAGMA user_version")
            try putBack(in: connection)
        }
    }

    private static func putBack(in connection: Connection) throws(OutboxError) {
        let log = LogFile(connection)
        let tail = try log.tail()
        guard tail.wholeFrames > tail.frames, let header = try log.header(),
            let last = try log.frame(tail.wholeFrames - 1)
        else { return }
        func write(_ bytes: [UInt8], at offset: Int64) throws(OutboxError) {
            let code = waypost_sqlite_write_log(connection.handle, bytes, Int32(bytes.count), offset)
            guard code != SQLITE_OK else { return }
            throw OutboxError(code: code, path: connection.path, message: "its log cannot be repaired", sql: nil)
        }
        var sum = header.sum
        if !header.isWhole {
            var bytes = word(0x377F_0682 | (sum.isBigEndian ? 1 : 0)) + word(3_007_000) + word(DatabaseFile.pageSize)
            bytes += header.sequence + double(tail.salts)
            sum.add(bytes[...])
            try write(bytes + double(sum.value), at: 0)
        }
        // As the frames say it, and as they are to say it.
        var stored = sum
        // Of several old frames in a row, each continues the one before.
        var wasWhole = true
        for number in 0..<tail.wholeFrames {
            guard let frame = try log.frame(number) else { return }
            let isWhole = stored.isContinued(by: frame) && (wasWhole || frame.salts == tail.salts)
            wasWhole = isWhole
            stored = LogChecksum(continuing: frame, isBigEndian: stored.isBigEndian)
            var (page, pages, content) = (frame.page, frame.pagesAfterCommit, frame.content)
            // The last frame, which comes again, takes its place.
            if !isWhole { (page, pages, content) = (last.page, 0, last.content) }
            let head = word(page) + word(pages)
            sum.add(head[...])
            sum.add(content)
            let bytes: [UInt8] = head + double(tail.salts) + double(sum.value) + content
            if bytes[...] != frame.bytes { try write(bytes, at: LogFile.size(ofFrames: number)) }
        }
    }

    /// In a log, the highest byte comes first.
    private static func word(_ value: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: value).bigEndian, Array.init)
    }

    private static func double(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }
}
