import WaypostCore

/// Somebody waits for the next fix, however seldom the receiver gives one.
package struct LocateRequest {
    /// A receiver that slept needs about half a minute, and may see little sky.
    package static let limit = Duration.seconds(60)
    private static let resolution = Resolution(priority: .high, intervalMs: 1000, displacement: 0)

    /// Somebody waits until then; nil = nobody does.
    private(set) var deadline: EventTime?

    /// - Parameter engine: the resolution of the receiver.
    /// - Returns: another one for it; nil = it is fast enough, or was asked for that already.
    mutating func begin(engine: Resolution?, at now: EventTime) -> Resolution? {
        defer { deadline = now + Self.limit }
        return deadline == nil && isTooSlow(engine) ? Self.resolution : nil
    }

    /// There is a fix, or nobody waits any more.
    ///
    /// - Returns: what the receiver goes back to; nil = it had no other resolution.
    mutating func end(engine: Resolution?) -> Resolution? {
        deadline = nil
        return isTooSlow(engine) ? engine : nil
    }

    private func isTooSlow(_ engine: Resolution?) -> Bool {
        engine.map { $0.intervalMs > Self.resolution.intervalMs } ?? false
    }
}
