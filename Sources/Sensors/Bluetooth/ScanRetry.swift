import WaypostCore

/// When the next attempt to scan is due after one that failed.
///
/// The pause doubles from one failure to the next, whatever wakes the process meanwhile. News of the adapter or of bluetoothd ends it
/// early, a limited number of times: an adapter that comes and goes all the time would otherwise be asked all the time.
struct ScanRetry {
    /// Scanning that ends sooner was no success.
    private static let stableAfter = Duration.seconds(10)

    private var delay = RetryDelay(from: .seconds(1), to: .seconds(60))
    private var news = TokenBucket(burst: 3, refill: .seconds(60))
    private var scanningSince: EventTime?
    /// When the next attempt is due; nil = no pause is under way.
    private(set) var dueAt: EventTime?

    /// An attempt failed, or scanning ended by itself. A pause that is under way goes on.
    mutating func failed(at now: EventTime) {
        if let scanningSince, now.duration(since: scanningSince) >= Self.stableAfter { delay.reset() }
        scanningSince = nil
        if dueAt == nil { dueAt = now + delay.next() }
    }

    mutating func scanningStarted(at now: EventTime) {
        scanningSince = now
        dueAt = nil
    }

    /// Scanning ended because it was no longer wanted.
    mutating func scanningStopped() {
        scanningSince = nil
        delay.reset()
    }

    /// Something changed that may let the next attempt succeed.
    ///
    /// - Returns: whether an attempt may be made now.
    mutating func newsCame(at now: EventTime) -> Bool {
        guard dueAt != nil else { return true }
        guard news.take(at: now) == nil else { return false }
        dueAt = nil
        return true
    }

    /// bluetoothd has gone. The bus says when it is back.
    mutating func serviceEnded() { (scanningSince, dueAt) = (nil, nil) }

    /// bluetoothd is there.
    ///
    /// - Returns: whether an attempt may be made now; one that comes and goes all the time has to wait.
    mutating func serviceCame(at now: EventTime) -> Bool {
        dueAt = news.take(at: now).map { now + $0 }
        return dueAt == nil
    }

    /// - Returns: whether a pause has ended, which it then has.
    mutating func takeDue(at now: EventTime) -> Bool {
        guard let dueAt, dueAt <= now else { return false }
        self.dueAt = nil
        return true
    }
}
