import Delivery

/// A look at a queue that changes nothing.
public final class OutboxReader {
    public init(path: String) throws(OutboxError) {}
    public var name: String { "" }
    public func depths() throws(OutboxError) -> [EndpointDepth] { [] }
    public func rowCount() throws(OutboxError) -> Int { 0 }
    public func oldest(_ count: Int, endpoint: String? = nil) throws(OutboxError) -> [QueuedLocation] { [] }
    public func newest(_ count: Int, endpoint: String? = nil) throws(OutboxError) -> [QueuedLocation] { [] }
    public func close() {}
}
