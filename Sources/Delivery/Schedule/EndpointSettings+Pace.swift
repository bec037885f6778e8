import Positioning

extension EndpointSettings {
    /// Takes from `other` what decides only when and how much is sent: it may change while batches are in flight, since
    /// neither a batch on disk nor its id nor which rows are kept depends on it.
    public mutating func takePace(of other: EndpointSettings) {
        batchSize = other.batchSize
        batchWindow = other.batchWindow
        minBatch = other.minBatch
        timeout = other.timeout
        backoff = other.backoff
        freshHead = other.freshHead
        onCollision = other.onCollision
    }
}

extension DeliverySchedule {
    /// The configuration was read anew: it goes by this pace from now on, and what it had learnt of the server (a smaller
    /// body, none that is compressed, its own back-off) counts no more. What is under way is not touched, and what the server
    /// asked for stays.
    public mutating func reloaded(_ new: EndpointSettings, at now: EventTime) {
        limit = max(1, new.batchSize)
        gzip = settings.gzip
        settings.takePace(of: new)
        queue.limited(to: limit)
        linkChanged(at: now)
    }
}
