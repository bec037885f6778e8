import Delivery
import Outbox
import Positioning

/// When a disk that has refused is asked again.
struct DiskRetry {
    private static let longest = Duration.seconds(60)
    private var failures = 0
    /// The last pause.
    private(set) var pause = Duration.seconds(1)

    /// - Parameter window: between two commits of a sound disk.
    /// - Returns: how long to wait now.
    mutating func failed(_ cause: OutboxError.Cause, window: Duration) -> Duration {
        failures += 1
        pause =
            switch cause {
            // Somebody has to do something, and may just have.
            case .readOnly, .cannotOpen: failures == 1 ? .seconds(10) : Self.longest
            // The file is opened anew, which often helps; then less and less.
            case .io: failures == 1 ? .milliseconds(100) : .seconds(1 << min(6, failures - 2))
            case .full, .corrupt, .foreign, .locked, .newerSchema, .refused: max(window, .seconds(1))
            }
        pause = min(pause, Self.longest)
        return pause
    }
}

/// What retention removed, told once a minute at most.
struct DropLog {
    private static let patience = Duration.seconds(60)
    private var untold = DropCounts()
    private var toldAt: EventTime?

    /// - Returns: what is to be told now; nil = nothing.
    mutating func dropped(_ counts: DropCounts, at now: EventTime) -> DropCounts? {
        untold += counts
        guard untold != DropCounts(), toldAt.map({ now.duration(since: $0) >= Self.patience }) ?? true else {
            return nil
        }
        toldAt = now
        defer { untold = DropCounts() }
        return untold
    }
}
