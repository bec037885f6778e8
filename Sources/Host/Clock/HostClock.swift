import CLinux
import WaypostCore

/// The clocks of this host, for programs without an event loop, and whether the wall clock can be believed.
package enum HostClock {
    package static var bootTime: EventTime { EventTime(nanoseconds: waypost_boottime_ns()) }

    /// A time service keeps the wall clock right at present: timesyncd, chrony and ntpd alike tell the kernel, which is asked.
    ///
    /// The file `/run/systemd/timesync/synchronized` is no proof: it stays as long as timesyncd runs, whatever becomes of the
    /// clock. False where the kernel may not be asked, as with `ProtectClock=` in a unit.
    package static var isSynchronised: Bool { waypost_clock_synchronised() == 1 }
}
