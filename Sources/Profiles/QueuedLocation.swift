import WaypostCore

/// A location in the outbox.
package struct QueuedLocation: Hashable, Sendable {
    /// Queue order; strictly rising for the life of the queue, gaps are normal.
    package var seq: Int64
    /// Boot id (32 hex digits) of the boot that recorded it; nil when the system has none.
    package var bootID: String?
    /// Host wall clock at receipt, Unix milliseconds; may be wrong, informative only.
    package var receivedMs: Int64?
    package var location: Location

    package init(seq: Int64, bootID: String?, receivedMs: Int64?, location: Location) {
        self.seq = seq
        self.bootID = bootID
        self.receivedMs = receivedMs
        self.location = location
    }

    /// Of the fix; where the location has none, of the host's clock when it was recorded, which may be wrong; else 1970.
    package var date: UTCTime { location.isPlaced ? location.time : UTCTime(milliseconds: receivedMs ?? 0) }
}

/// A formed batch: always the same rows and the same id, whatever happens to it.
package struct Batch: Hashable, Sendable {
    /// The endpoint that sends it: part of its id.
    package var endpoint: String
    /// `<outbox>-<endpoint>-<first>-<last>`: the idempotency key.
    package var id: String
    /// Oldest first, never empty.
    package var rows: [QueuedLocation]
    /// Host wall clock when the batch was formed, Unix milliseconds; nil when that clock is implausible.
    package var sentMs: Int64?
    /// The bytes of a batch are the same at every attempt, so one that was rendered by other rules gets a new generation.
    package var generation: Int
    /// Uuid (16 bytes) of the queue that numbered the rows.
    package var outbox: [UInt8]
    /// The newest queued location when the batch was formed, if more than one batch waited and the profile has use for it.
    package var newest: QueuedLocation?

    package init(
        endpoint: String, id: String, rows: [QueuedLocation], sentMs: Int64?, generation: Int = 1,
        outbox: [UInt8] = [], newest: QueuedLocation? = nil
    ) {
        self.endpoint = endpoint
        self.id = id
        self.rows = rows
        self.sentMs = sentMs
        self.generation = generation
        self.outbox = outbox
        self.newest = newest
    }

    /// First 8 hex digits of the queue's uuid.
    package var outboxName: String { String(hexOf: outbox.prefix(4)) }
}
