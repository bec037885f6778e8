import CLinux
import Glibc
import Positioning

/// The clocks of this host, for programs without an event loop, and whether the wall clock can be believed.
public enum HostClock {
    /// systemd-timesyncd makes this file when it has set the clock for the first time since boot.
    private static let timesyncdMark = "/run/systemd/timesync/synchronized"

    public static var bootTime: EventTime { EventTime(nanoseconds: waypost_boottime_ns()) }

    /// A time service vouches for the wall clock: by the kernel's clock state, or by a file of its own.
    ///
    /// The unit's `ProtectClock=` forbids even asking the kernel.
    public static var isSynchronised: Bool {
        waypost_clock_synchronised() == 1 || access(timesyncdMark, F_OK) == 0
    }
}
