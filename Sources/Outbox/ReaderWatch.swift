import CLinux
import Glibc

/// Tells that somebody opens the queue.
///
/// While nobody does, the daemon has the file to itself, and the index of the log stays in its memory. As a file that all
/// map it is written back every half minute: a third of what a card is given at a commit window of 10 s.
final class ReaderWatch {
    /// Readable when somebody has opened it.
    let descriptor: Int32
    /// Of the boot clock.
    private var lastOpened = waypost_boottime_ns()
    private var isShared = false
    private static let patience = Duration.seconds(10)

    /// nil when the kernel has no instance left.
    init?() {
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        if descriptor < 0 { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// What to open the queue as.
    var access: Connection.Access { isShared ? .readWrite : .alone }

    /// Whether the queue is open for others, and none has come for a while.
    var mayCloseAgain: Bool { isShared && waypost_boottime_ns() - lastOpened >= Self.patience.nanoseconds }

    /// The queue has been opened by ourselves; what others do from now on counts.
    func opened(_ path: String, as access: Connection.Access) {
        isShared = access != .alone
        lastOpened = waypost_boottime_ns()
        // Where nobody tells of readers they must not be kept out.
        if inotify_add_watch(descriptor, path, UInt32(IN_OPEN)) < 0 { isShared = true }
        drain()
    }

    /// Somebody is there.
    func readerCame() {
        drain()
        isShared = true
        lastOpened = waypost_boottime_ns()
    }

    /// The next try to have the queue alone.
    func closesAgain() { isShared = false }

    private func drain() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
