import Profiles

/// The rows of a queue whose disk refuses writes, as far as it can still be read.
///
/// Nothing is written. After an error the file is closed, and opened again by the next read.
final class RowsOnDisk {
    /// No row on disk has a greater number; what a failed commit may have left after it does not count.
    let last: Int64
    private let path: String
    /// No other process writes the file: neither lock nor index is needed to read it.
    var hasNoOtherWriter: Bool
    let medium: any QueueMedium
    /// A read has failed: what was counted may leave out rows.
    private(set) var hasFailed = false
    private var open: (database: Database, names: Record.Names)?
    private let held: HeldQueue
    /// Has the files open whose names lead elsewhere; nil = they are where they should be.
    private(set) var kept: Database?

    init(
        path: String, last: Int64, hasNoOtherWriter: Bool, held: HeldQueue, kept: Database? = nil,
        medium: any QueueMedium
    ) {
        self.path = path
        self.last = last
        self.hasNoOtherWriter = hasNoOtherWriter
        self.held = held
        self.kept = kept
        self.medium = medium
    }

    /// - Returns: nil when the disk cannot be read.
    func read<Value>(_ work: (Database) throws(OutboxError) -> Value) -> Value? {
        do throws(OutboxError) {
            return try work(try opened().database)
        } catch {
            open = nil
            hasFailed = true
            return nil
        }
    }

    /// Rows up to `last`, as `Database.rows` gives them.
    func rows(
        from first: Int64, through last: Int64, feed: EndpointSettings.Feed, limit: Int
    ) throws(OutboxError) -> [QueuedLocation] {
        let rows = read { (database) throws(OutboxError) in
            try database.rows(
                from: first, through: min(last, self.last), feed: feed, limit: limit, names: try opened().names)
        }
        guard let rows else { throw OutboxError(.io, path: path, message: "rows on disk cannot be read") }
        return rows
    }

    /// Makes the next read come from the medium.
    func close() {
        open = nil
        kept = nil
    }

    private func opened() throws(OutboxError) -> (database: Database, names: Record.Names) {
        if let open { return open }
        if let kept {
            let opened = (kept, try kept.names())
            open = opened
            return opened
        }
        guard held.isInPlace else {
            throw OutboxError(.cannotOpen, path: path, message: "\(path) is another file")
        }
        // What the kernel shows may never reach the medium.
        try? QueueFiles(path: path, medium: medium).dropFromPageCache(.unknown)
        held.noteDatabase()
        let connection = try Connection(
            path: path, access: hasNoOtherWriter ? .readOnlyAlone : .readOnly, medium: medium)
        let database = try Database(reading: connection)
        let opened = (database, try database.names())
        open = opened
        return opened
    }
}
