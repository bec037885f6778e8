import WaypostCore

extension Resolution {
    /// What a request in milliseconds is cut to: beyond it a number is not exact any more.
    private static let intervalMsMax = 9e15

    /// - Parameter value: the object of presence data; nil when a member of it is missing or out of range.
    init?(onChannel value: JSONValue) {
        guard let word = value["accuracy"]?.string, word == word.uppercased(),
            let priority = AccuracyPriority(word: word.lowercased()),
            let interval = value["desiredInterval"]?.number, interval >= 0,
            let displacement = value["minimumDisplacement"]?.number, displacement >= 0
        else { return nil }
        // A viewer may send a fraction, which the reference reads as malformed.
        self.init(
            priority: priority, intervalMs: Int64(min(interval, Self.intervalMsMax)), displacement: displacement)
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.field("accuracy", priority.word.uppercased())
        writer.field("desiredInterval", intervalMs)
        writer.field("minimumDisplacement", displacement)
        writer.endObject()
    }
}
