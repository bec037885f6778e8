/// The pages of a file that say which tables it has, and where.
///
/// All queues of one version have the same, since their tables were made by the same statements. They replace these pages where they
/// are damaged: without them what is in tables other than that of segments cannot be found.
enum SchemaPages {
    /// Puts the pages back if the tables can no longer be listed, or are not those of a queue, and at least one page shows that they
    /// were the same.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    static func putBack(into connection: Connection, isPatient: Bool) throws(OutboxError) {
        guard try !areTablesKnown(connection, isPatient: isPatient) else { return }
        let file = DatabaseFile(connection)
        func isThere(_ number: Int64, _ bytes: ArraySlice<UInt8>) -> Bool {
            withUnsafeTemporaryAllocation(byteCount: DatabaseFile.pageSize, alignment: 8) { there in
                number > 0 && file.read(number, into: there) && there.elementsEqual(bytes)
            }
        }
        let pages = try made(for: connection)
        guard pages.contains(where: isThere) else { return }
        // What cannot be written is as it was.
        for (number, bytes) in pages { _ = bytes.withUnsafeBytes { file.write(number, $0) } }
    }

    /// Lets a log be read whose database is lost: with the pages of a new queue in its place, which say where the tables begin. What else
    /// is not in the log is damaged.
    static func begin(_ path: String, medium: any QueueMedium) throws(OutboxError) {
        let reason = medium.create(path)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "make") }
        // Nothing is read: SQLite would delete the log of an empty database.
        let connection = try Connection(path: path, access: .readWrite, medium: medium)
        let file = DatabaseFile(connection)
        let pages = try made(for: connection)
        for (number, bytes) in pages where !bytes.withUnsafeBytes({ file.write(number, $0) }) {
            throw OutboxError(.io, path: path, message: "its first pages cannot be written")
        }
    }

    private static func areTablesKnown(_ connection: Connection, isPatient: Bool) throws(OutboxError) -> Bool {
        // A sector that cannot be read for long may be written.
        try unlessDamaged(isPatient) { () throws(OutboxError) in
            guard try connection.integer("SELECT count(*) FROM sqlite_schema") > 0 else { return false }
            // The pages of another version are not known.
            let isKnown = try connection.integer("PRAGMA user_version") == Schema.version()
            return try isKnown ? Schema.isComplete(connection) : true
        } ?? false
    }

    /// The pages of a queue in which nothing was stored: their numbers from 0 on, and their bytes.
    private static func made(for connection: Connection) throws(OutboxError) -> [(Int64, ArraySlice<UInt8>)] {
        let size = DatabaseFile.pageSize
        let new = try Connection(inMemoryFor: connection.path, medium: connection.medium)
        try new.execute("PRAGMA page_size = \(size); PRAGMA secure_delete = OFF")
        try Schema.create(in: new)
        try new.execute(
            "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version())")
        var bytes = new.serialized()
        guard bytes.count >= size else { return [] }
        // The file has a log, no free pages that matter, and as many pages as it is long.
        bytes.replaceSubrange(18..<20, with: [2, 2])
        bytes.replaceSubrange(28..<40, with: repeatElement(0, count: 12))
        return ([0] + children(of: bytes)).map { number in
            (Int64(number), bytes[number * size..<(number + 1) * size])
        }
    }

    /// The pages that the first one leads to. It has the header of the file before what any page begins with.
    private static func children(of bytes: [UInt8]) -> [Int] {
        func number(at place: Int) -> Int { bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } - 1 }
        let cells = Int(bytes[103]) << 8 | Int(bytes[104])
        let found = (0..<cells).map { cell in number(at: Int(bytes[112 + 2 * cell]) << 8 | Int(bytes[113 + 2 * cell])) }
        return found + [number(at: 108)]
    }
}
