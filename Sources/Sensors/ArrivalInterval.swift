import WaypostCore

/// Median of the last intervals between arrivals of epochs.
///
/// The receiver's own times give its interval better, except where a log is played back at another pace; and epochs
/// that were read together seem to have arrived at once. So a caller that must not be late takes the shorter of the
/// two, one that must not complain early the longer.
struct ArrivalInterval {
    private static let plausible = Duration.milliseconds(10)...Duration.seconds(3600)
    private var recent: [Duration] = []
    private var last: EventTime?
    /// nil before the third interval.
    private(set) var median: Duration?

    mutating func add(_ arrival: EventTime) {
        defer { last = arrival }
        guard let last, Self.plausible.contains(arrival.duration(since: last)) else { return }
        if recent.count == 5 { recent.removeFirst() }
        recent.append(arrival.duration(since: last))
        if recent.count >= 3 { median = recent.sorted()[recent.count / 2] }
    }
}

extension Epoch {
    /// Milliseconds since midnight; nil when the epoch has no time.
    var timeOfDay: Int? {
        switch self {
        case .fix(let fix): fix.timeOfDay
        case .void(let void): void.timeOfDay
        }
    }

    /// Arrival of the first byte; settable, because a log has a clock of its own.
    var at: EventTime {
        get {
            switch self {
            case .fix(let fix): fix.at
            case .void(let void): void.at
            }
        }
        set {
            switch self {
            case .fix(var fix):
                fix.at = newValue
                self = .fix(fix)
            case .void(var void):
                void.at = newValue
                self = .void(void)
            }
        }
    }
}
