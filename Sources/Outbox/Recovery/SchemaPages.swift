/// The pages of a file that say which tables it has, and where.
///
/// All queues that this version has made have the same, since their tables were made by the same steps. Those of a new queue
/// replace them where they are damaged: without them what is in tables other than that of segments cannot be found.
enum SchemaPages {
    /// Puts the pages back if the tables can no longer be listed, or are not those of a queue, and at least one page shows that they
    /// were the same.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    static func putBack(into connection: Connection, isPatient: Bool) throws(OutboxError) {
        guard try !areTablesKnown(connection, isPatient: isPatient) else { return }
        let pages = try made(for: connection)
        let file = DatabaseFile(connection)
        let isTheSame = pages.contains { number, bytes in
            withUnsafeTemporaryAllocation(byteCount: DatabaseFile.pageSize, alignment: 8) { there in
                number > 0 && file.read(number, into: there) && there.elementsEqual(bytes)
            }
        }
        guard isTheSame else { return }
        // What cannot be written is as it was.
        for (number, bytes) in pages { _ = bytes.withUnsafeBytes { file.write(number, $0) } }
    }

    private static func areTablesKnown(_ connection: Connection, isPatient: Bool) throws(OutboxError) -> Bool {
        // A sector that cannot be read for long may be written.
        try unlessDamaged(isPatient) { () throws(OutboxError) in
            guard try connection.integer("SELECT count(*) FROM sqlite_schema") > 0 else { return false }
            // The pages of an earlier version are not known.
            let isNewest = try connection.integer("PRAGMA user_version") == Schema.migrations.count
            return try isNewest ? Schema.isComplete(connection) : true
        } ?? false
    }

    /// The pages of a new queue: their numbers from 0 on, and their bytes.
    private static func made(for connection: Connection) throws(OutboxError) -> [(Int64, ArraySlice<UInt8>)] {
        let size = DatabaseFile.pageSize
        let new = try Connection(inMemoryFor: connection.path, medium: connection.medium)
        try new.execute("PRAGMA page_size = \(size); PRAGMA secure_delete = OFF")
        for step in Schema.migrations { try new.execute(step) }
        try new.execute(
            "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.migrations.count)")
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
