/// The outbox on a thread of its own, so that a slow disk stalls nothing else. It is used from the loop's thread.
public final class OutboxWriter {
    public init(_ outbox: sending Outbox) throws(OutboxError) {}
    /// Readable when replies wait.
    public var descriptor: Int32 { -1 }
    public func submit(_ commit: Commit, completion: @escaping (Result<CommitReply, OutboxError>) -> Void) {}
    public func drain() {}
    public func close() {}
}
