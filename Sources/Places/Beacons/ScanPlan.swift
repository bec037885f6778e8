import WaypostCore

/// When is scanned: all the time while the asset moves, in windows while it is parked.
package struct ScanPlan: Sendable {
    private let window: Duration
    private let period: Duration
    private var isParked = false
    private var windowEnds: EventTime?
    private var windowBegins: EventTime?

    /// - Parameters:
    ///   - window: of scanning, while parked.
    ///   - period: from the beginning of one window to that of the next; the same = without a pause.
    package init(window: Duration, period: Duration) {
        self.window = window
        self.period = period
    }

    /// When a window begins or ends; nil = scanning goes on.
    package var nextDeadline: EventTime? { windowEnds ?? windowBegins }

    package var isScanning: Bool { windowBegins == nil }

    /// The next thing is a window.
    package mutating func parkingChanged(_ isParked: Bool) {
        self.isParked = isParked
        (windowEnds, windowBegins) = (nil, nil)
    }

    /// Follows the time. Called before `isScanning` is asked, and at each deadline.
    package mutating func reached(_ now: EventTime) {
        guard isParked, window < period else {
            (windowEnds, windowBegins) = (nil, nil)
            return
        }
        if let begins = windowBegins {
            guard begins <= now else { return }
            (windowBegins, windowEnds) = (nil, now + window)
        } else if let ends = windowEnds {
            guard ends <= now else { return }
            (windowEnds, windowBegins) = (nil, now + (period - window))
        } else {
            windowEnds = now + window
        }
    }
}
