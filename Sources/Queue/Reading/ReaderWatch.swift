import WaypostCore

/// Watches for other programs that open the queue, or rename or remove its files.
///
/// While none does, the daemon has the file to itself, and the index of the log stays in its memory. As a file that all
/// map, it is written back every half minute: a third of all writes at a commit window of 10 s.
final class ReaderWatch {
    /// Readable when another program has done so.
    let descriptor: Int32
    /// Of the boot clock.
    private var lastOpened: Int64
    private var isShared = false
    private let medium: any QueueMedium
    private static let timeout = Duration.seconds(10)

    /// nil when no inotify instance is left.
    init?(medium: any QueueMedium = SystemMedium()) {
        self.medium = medium
        lastOpened = medium.now
        descriptor = medium.openWatch()
        if descriptor < 0 { return nil }
    }

    deinit {
        if descriptor >= 0 { medium.closeWatch(descriptor) }
    }

    /// How to open the queue.
    var access: Connection.Access { isShared ? .readWrite : .alone }

    /// Whether the queue is open for others, and none has come for a while.
    var mayCloseAgain: Bool { isShared && medium.now - lastOpened >= Self.timeout.nanoseconds }

    /// The queue has been opened by ourselves; what others do from now on counts.
    func opened(_ path: String, as access: Connection.Access) {
        isShared = access != .alone
        lastOpened = medium.now
        // Readers that are not reported must not be kept out.
        if !medium.watch(path, by: descriptor) { isShared = true }
        // What happens to the log is noticed with the next commit at the latest.
        _ = medium.watch(path + "-wal", by: descriptor)
        drain()
    }

    /// Another program reads, or has done something else to the files.
    ///
    /// - Parameter isLetIn: otherwise it is kept out further on.
    func readerCame(isLetIn: Bool) {
        drain()
        guard isLetIn else { return }
        isShared = true
        lastOpened = medium.now
    }

    /// The next try to have the queue alone.
    func closesAgain() { isShared = false }

    private func drain() { medium.drain(descriptor) }
}
