/// What is known about the receiver's line.
public enum SourceState: Hashable, Sendable {
    /// Not open yet, or being opened again.
    case opening
    /// Sentences arrive.
    case receiving
    /// Open, but nothing has arrived for the staleness time.
    case silent
    /// Bytes arrive, but no sentence: wrong speed or a binary protocol.
    case unreadable
    /// Closed or unplugged; it is opened again by a timer.
    case lost(reason: String)
    /// A file source reached its end.
    case ended
}
