import WaypostCore

/// A finer resolution for a bounded time (tracking on demand); it goes back by itself.
public struct Boost: Hashable, Sendable {
    /// Published for every trackable, and asked of the receiver, while the boost lasts.
    public var resolution: Resolution
    /// How long from now; more than an hour is cut to an hour, so that a forgotten boost cannot drain a battery.
    public var duration: Duration

    public init(resolution: Resolution, duration: Duration) {
        self.resolution = resolution
        self.duration = duration
    }

    static let durationMax = Duration.seconds(3600)
}
