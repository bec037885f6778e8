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
    /// Goes by another pace from now on; what is under way is not touched.
    public mutating func paceChanged(to new: EndpointSettings) {
        let size = max(1, new.batchSize)
        // A server that took less than the setting is not asked for more because of a new one.
        limit = limit < settings.batchSize ? min(limit, size) : size
        settings.takePace(of: new)
        queue.limited(to: size)
    }
}
