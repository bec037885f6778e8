import CCurl
import Delivery
import Glibc
import Positioning

/// The way out over HTTP(S): libcurl's multi interface inside a loop that it does not own.
///
/// The loop watches the descriptors that `watch` names, calls `descriptorReady` when one is ready and `deadlineReached`
/// at `nextDeadline`, which it reads again after every call into the uplink. Nothing here blocks, and all limits run on
/// the `at` that the loop hands in. Completions are called from inside `descriptorReady` and `deadlineReached` and may
/// call `send` and `close`.
///
/// HTTP/1.1 with kept connections; no redirects, no cookies, no proxy, no compressed replies, no `Expect`.
public final class HTTPUplink: Uplink {
    public let settings: Settings
    public private(set) var counters = Counters()

    /// - Parameter watch: called with the wish for a descriptor, nil to forget it. It must not call back in here.
    /// - Throws: `SetupError` when libcurl does not start or the file of authorities cannot be read.
    public init(settings: Settings, watch: @escaping (Int32, Interest?) -> Void) throws(SetupError) {
        self.settings = settings
    }

    /// Boot-clock instant at which `deadlineReached` is wanted; nil = none. After `send` it is `.zero`: at once.
    public var nextDeadline: EventTime? { nil }

    /// Requests that have not ended.
    public var requestsInFlight: Int { 0 }

    public func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) {}

    public func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {}

    public func deadlineReached(at now: EventTime) {}

    /// Closes the kept connections if nothing is in flight, as before a suspend.
    public func closeIdleConnections() {}

    public func close() {}
}
