import Delivery

public final class Outbox {
    public init(
        _ settings: OutboxSettings, endpoints: [EndpointSettings], bootID: String?, newUUID: [UInt8]
    ) throws(OutboxError) { throw OutboxError(.cannotOpen, path: settings.path, message: "") }
    public var uuid: [UInt8] { [] }
    public var name: String { "" }
    public var trackerState: [UInt8]? { nil }
    public var filePosition: [UInt8]? { nil }
    public var inFlight: [Batch] { [] }
    public var current: CommitReply { CommitReply(lastSeq: 0) }
    public func commit(_ commit: Commit) throws(OutboxError) -> CommitReply { current }
    public func forget(endpoint: String) throws(OutboxError) {}
    public func close() {}
}
