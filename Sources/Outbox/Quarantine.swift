import Delivery
import Positioning

/// A row that an endpoint was not sent, or did not take.
public struct QuarantinedLocation: Hashable, Sendable {
    /// By which orders name it; rising, never given twice.
    public var id: Int64
    public var endpoint: String
    public var row: QueuedLocation
    public var refusal: Refusal
    /// The asset that it was recorded for, as the receiver named it then; nil where the receiver knows none.
    public var assetID: String?
    /// It is to be sent again, behind what waits.
    public var isRetried: Bool

    public init(
        id: Int64, endpoint: String, row: QueuedLocation, refusal: Refusal, assetID: String? = nil,
        isRetried: Bool = false
    ) {
        self.id = id
        self.endpoint = endpoint
        self.row = row
        self.refusal = refusal
        self.assetID = assetID
        self.isRetried = isRetried
    }
}

enum Quarantine {
    /// More records of an endpoint, or more bytes, remove its oldest.
    static let recordsMax = 1000
    static let bytesMax = 4 << 20
    /// What a record takes beside its texts.
    static let recordSize = 160

    /// The reason of an EXIT that goes out although its ENTER does not.
    static let pairBroken = "pair broken"

    /// What is to become of a record.
    enum Retry: Int64 {
        /// It waits for an operator.
        case none
        /// It is to be sent again.
        case wanted
        /// It is in a batch.
        case inFlight
    }
}
