// For the simulated world, which has media that lose bits and other programs that read the queue.
extension Outbox {
    /// Gives one value of the small tables another number, as a medium does that has lost a bit. No process has the queue.
    ///
    /// - Parameter pick: a number from 0 on, below another.
    package static func spoil(_ path: String, _ medium: any QueueMedium, _ pick: (Int) -> Int) {
        let values = [
            ("state", "value", "id IN (2, 3)"), ("endpoint", "formed", "1"), ("endpoint", "unsettled", "1"),
            ("batch", "last", "1"), ("batch", "rows", "1"), ("batch", "through", "1"),
        ]
        let (table, column, condition) = values[pick(values.count)]
        let bit = 1 << pick(12)
        guard medium.size(path) > 0, let database = try? Database(path: path, medium: medium) else { return }
        let change = "\(column) = (\(column) | \(bit)) - (\(column) & \(bit))"
        try? database.connection.execute("UPDATE \(table) SET \(change) WHERE \(condition)")
    }

    /// Another program opens the queue, between two commits.
    package func readerCame() {
        if readerDescriptor != nil { letReadersIn() }
    }
}
