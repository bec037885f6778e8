import Logging

/// Hands each line on.
struct WorldLog: LogHandler {
    final class Sink: @unchecked Sendable {
        let write: (Logger.Level, String) -> Void
        init(_ write: @escaping (Logger.Level, String) -> Void) { self.write = write }
    }

    let sink: Sink
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { sink.write(event.level, event.message.description) }
}
