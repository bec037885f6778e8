import Glibc

/// When the service manager must hear that the loop is alive: every half of `WATCHDOG_USEC`.
///
/// The loop asks ``isDue(at:)`` after it handled an event or a deadline and counts ``nextDeadline`` among its deadlines.
/// No timer thread does it, so that a stuck loop becomes a restarted unit.
package struct Watchdog: Sendable {
    /// Nanoseconds between two signs of life.
    package let interval: Int64
    /// Boot-clock nanoseconds at which the next sign of life is due.
    package private(set) var nextDeadline: Int64

    /// nil when no watchdog is wanted of this process: `WATCHDOG_USEC` is absent, zero or unreadable, or
    /// `WATCHDOG_PID` names another one.
    ///
    /// - Parameter now: boot clock in nanoseconds; the first sign of life is due at once.
    package init?(environment: [String: String], processID: Int32 = getpid(), at now: Int64) {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap(UInt64.init), microseconds > 0 else { return nil }
        if let wanted = environment["WATCHDOG_PID"], !wanted.isEmpty, wanted != String(processID) { return nil }
        interval = Int64(min(microseconds, 1 << 50)) * 500
        nextDeadline = now
    }

    /// True when a sign of life has to be sent now; the next one is then due an interval later.
    package mutating func isDue(at now: Int64) -> Bool {
        guard now >= nextDeadline else { return false }
        let (next, overflow) = now.addingReportingOverflow(interval)
        nextDeadline = overflow ? .max : next
        return true
    }
}
