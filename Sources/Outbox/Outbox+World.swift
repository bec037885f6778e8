// For the simulated world, which has queues of earlier versions and other programs that read the queue.
extension Outbox {
    /// Makes a queue as an earlier version wrote it.
    ///
    /// - Parameters:
    ///   - version: of its tables.
    ///   - rows: what fills them.
    package static func makeEarlier(
        version: Int, at path: String, medium: any QueueMedium, rows: String
    ) throws(OutboxError) {
        let reason = medium.create(path)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "make") }
        let connection = try Connection(path: path, access: .readWrite, medium: medium)
        try Schema.migrate(connection, steps: Array(Schema.migrations.prefix(version)))
        try connection.execute(rows)
    }

    /// Another program opens the queue, between two commits.
    package func readerCame() {
        if readerDescriptor != nil { letReadersIn() }
    }
}
