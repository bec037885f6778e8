import WaypostCore

/// Counts the time in which was scanned, and its windows.
struct ScanClock: Sendable {
    struct Instant: Hashable, Sendable {
        fileprivate var scanned: Duration
        fileprivate var windows: Int
    }

    /// Scanning without a pause counts as one window after the other.
    private static let window = Duration.seconds(10)

    private var scanned = Duration.zero
    private var windows = 0
    private var since: EventTime?

    var start: Instant { Instant(scanned: .zero, windows: 0) }

    mutating func started(at now: EventTime) { if since == nil { since = now } }

    mutating func stopped(at now: EventTime) {
        guard let since else { return }
        let length = max(.zero, now.duration(since: since))
        scanned += length
        if length > .zero { windows += max(1, Self.windows(length)) }
        self.since = nil
    }

    func instant(at now: EventTime) -> Instant {
        guard let since else { return Instant(scanned: scanned, windows: windows) }
        let length = max(.zero, now.duration(since: since))
        return Instant(scanned: scanned + length, windows: windows + Self.windows(length))
    }

    func isPast(_ instant: Instant, scanned least: Duration, windows leastWindows: Int, at now: EventTime) -> Bool {
        let here = self.instant(at: now)
        return here.scanned - instant.scanned >= least && here.windows - instant.windows >= leastWindows
    }

    /// When it will be past; nil while nothing is scanned.
    func time(after instant: Instant, scanned least: Duration, windows leastWindows: Int) -> EventTime? {
        guard let since else { return nil }
        let byTime = instant.scanned + least - scanned
        let byWindows = Self.window * (instant.windows + leastWindows - windows)
        return since + max(.zero, byTime, byWindows)
    }

    private static func windows(_ length: Duration) -> Int { Int(length.nanoseconds / window.nanoseconds) }
}
