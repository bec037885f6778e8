import Profiles
import WaypostCore

/// A fleet of equal devices with one endpoint, and how long it is watched.
package struct FleetSettings: Sendable {
    /// 1 or more. The default is 10,000.
    package var devices = 10_000
    /// Of trips, rows, latencies and jitter.
    package var seed: UInt64 = 1
    /// `batch_window` of every device. The default is that of waypost.
    package var window = Duration.seconds(60)
    /// `batch_size`. The default is that of waypost.
    package var batchSize = 100
    /// `min_batch`. The default is that of waypost.
    package var minBatch = 1
    /// The default is that of waypost.
    package var backoff = Backoff()
    /// About so many seconds from one row of a moving device to the next: half to one and a half of it. The default is 5.
    package var rowInterval = 5
    /// All devices are in one long trip. Else three quarters are in trips at any time.
    package var isDriving = false
    /// The time that is counted. The default is two hours.
    package var measured = Duration.seconds(7200)
    /// Requests per second that the server answers; what comes faster waits, and is refused with 503 after 10 s. nil = any number.
    package var capacity: Double?

    package init() {}

    /// Before anything is counted: trips, windows and connections settle.
    static let warmUp = Duration.seconds(1200)
    /// From the first counted second to what a scenario does to the fleet.
    static let calm = Duration.seconds(1800)
    static let outage = Duration.seconds(600)

    var endpoint: EndpointSettings {
        EndpointSettings(
            baseURL: "https://fleet.example", device: "device", batchSize: batchSize, batchWindow: window,
            minBatch: minBatch, backoff: backoff)
    }

    static let eventAt = EventTime.zero + warmUp + calm
    var end: EventTime { .zero + Self.warmUp + measured }
}

/// What happens to the fleet, after half an hour in which nothing does.
package enum FleetScenario: String, CaseIterable, Sendable {
    case steady
    /// Receivers that give a fix every 10 s, all at the same seconds, as those do that align to the hour.
    case grid
    /// For ten minutes the server refuses connections.
    case refused
    /// For ten minutes nothing answers.
    case blackHole = "black-hole"
    /// For ten minutes the server answers 503.
    case unavailable
    /// For ten minutes the server answers 429 with `Retry-After: 120`.
    case throttled
    /// The server is gone for 20 s, and all connections with it.
    case restart
    /// Without power for ten minutes, then all start within one second.
    case powerOn = "power-on"
    /// The same with 60 rows on each device that were not sent before.
    case powerOnBacklog = "power-on-backlog"
    /// All devices send what they have within one second: the edge of a schedule.
    case flush
}
