import Profiles
import WaypostCore

/// A row that was not sent to an endpoint, or that its server refused.
package struct QuarantinedLocation: Hashable, Sendable {
    /// Orders name it by this; rising, never given twice.
    package var id: Int64
    package var endpoint: String
    package var row: QueuedLocation
    package var refusal: Refusal
    /// The asset that it was recorded for, as the server named it then; nil where the server has none.
    package var assetID: String?
    /// It is to be sent again, after what waits.
    package var isRetried: Bool
}

enum Quarantine {
    /// More records of an endpoint, or more bytes, remove its oldest.
    static let recordsMax = 1000
    static let bytesMax = 4 << 20
    /// Bytes of a record besides its texts.
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
