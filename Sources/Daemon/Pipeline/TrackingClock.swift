import Sensors
import WaypostCore

/// The clock that tracking's deadlines run on.
enum TrackingClock {
    /// A live receiver: the boot clock.
    case boot
    /// A file: the log's own time, which passes with its epochs only.
    case log
    /// The end of a followed file: the boot clock from the last log time on, shifted by this many nanoseconds.
    case following(shift: Int64)

    /// - Parameter reached: the time that tracking has reached.
    func time(at now: EventTime, reached: EventTime) -> EventTime {
        switch self {
        case .boot: now
        case .log: reached
        case .following(let shift): now + .nanoseconds(shift)
        }
    }

    /// When an epoch happened, by this clock.
    func time(of stamp: SourceClock) -> EventTime {
        switch (stamp, self) {
        case (.log(let time), _): time
        case (.arrival(let time), .following(let shift)): time + .nanoseconds(shift)
        case (.arrival(let time), _): time
        }
    }

    /// A deadline of tracking on the boot clock; nil = none, or it comes with the epochs of the log.
    func bootDeadline(_ deadline: EventTime?) -> EventTime? {
        switch self {
        case .boot: deadline
        case .log: nil
        case .following(let shift): deadline.map { $0 - .nanoseconds(shift) }
        }
    }
}
