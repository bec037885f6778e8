import Glibc

/// What tells a file from all others, and whether it has been written to.
package struct FileMark: Hashable, Sendable {
    package var device: UInt64
    package var inode: UInt64
    /// Bytes.
    package var size: Int64
    /// When its content changed last, nanoseconds of the file system's clock.
    package var modified: Int64
    /// It is no directory, link, pipe or device.
    package var isRegular: Bool
    package var isDirectory: Bool

    package init(
        device: UInt64, inode: UInt64, size: Int64, modified: Int64, isRegular: Bool = true, isDirectory: Bool = false
    ) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
        self.isRegular = isRegular
        self.isDirectory = isDirectory
    }

    func isSameFile(as other: FileMark) -> Bool { inode == other.inode && device == other.device }
}

/// A file that is kept open: its content stays, whatever becomes of its name.
package protocol HeldFile: AnyObject {
    /// The file as it is now; nil where that cannot be told.
    var mark: FileMark? { get }
    /// Locks the file for as long as it is held.
    /// - Returns: false = another process has it locked. Also true where the file system has no such locks.
    func lock() -> Bool
    /// Makes a file at this path, or replaces its content, and flushes it.
    /// - Returns: `errno`, 0 = done.
    func copy(to path: String) -> Int32
}

/// Keeps a second writer away from the queue at a path.
package protocol QueueLock: AnyObject {
    /// Locked where nothing can be written; before writing it has to be locked again.
    var isForReading: Bool { get }
    /// The name of the lock file still leads to the file that is locked. Otherwise another process can lock the other one.
    var isInPlace: Bool { get }
    /// `QueueNote.text` of the last process that gave the queue up in order; empty = none.
    var note: String { get }
    func leave(_ note: String)
}

/// A file of this host, held by a descriptor of its own.
///
/// It may be closed only while SQLite has no connection to the same database: closing any descriptor of a file drops the locks
/// that this process has on it by `fcntl`, those of SQLite among them. The lock that is taken here is one of `flock`, which
/// belongs to the descriptor and does not meet those of SQLite.
final class DescriptorFile: HeldFile {
    private let descriptor: Int32

    init(_ path: String) throws(OutboxError) {
        descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw OutboxError(system: errno, path: path, doing: "open") }
        guard mark?.isRegular == true else {
            throw OutboxError(.cannotOpen, path: path, message: "\(path) is no regular file: remove it")
        }
    }

    deinit {
        guard descriptor >= 0 else { return }
        // A child that was forked and has not come to its exec yet has the lock too.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    var mark: FileMark? {
        var info = stat()
        return fstat(descriptor, &info) == 0 ? FileMark(info) : nil
    }

    func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK }

    func copy(to path: String) -> Int32 {
        let copy = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard copy >= 0 else { return errno }
        defer { close(copy) }
        var place: off_t = 0
        return withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { buffer in
            while true {
                let count = pread(descriptor, buffer.baseAddress, buffer.count, place)
                guard count > 0 else { return count < 0 || fsync(copy) != 0 ? errno : 0 }
                var written = 0
                while written < count {
                    let more = write(copy, buffer.baseAddress! + written, count - written)
                    guard more > 0 else { return errno }
                    written += more
                }
                place += off_t(count)
            }
        }
    }
}

extension FileMark {
    init(_ info: stat) {
        self.init(
            device: UInt64(info.st_dev), inode: UInt64(info.st_ino), size: Int64(info.st_size),
            modified: Int64(info.st_mtim.tv_sec) * 1_000_000_000 + Int64(info.st_mtim.tv_nsec),
            isRegular: info.st_mode & S_IFMT == S_IFREG, isDirectory: info.st_mode & S_IFMT == S_IFDIR)
    }
}
