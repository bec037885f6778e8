import CLinux
import CSQLite
import Glibc
import WaypostCore
import WaypostHost

/// Reads of files that the medium has failed, of those that SQLite made on this thread.
package struct FailedReads: Hashable, Sendable {
    package var count: Int
    /// errno of the last one.
    package var reason: Int32
    /// Names the failures of one place of a file that follow each other, while no read of it succeeds; 0 = the place that failed last was
    /// read since.
    package var run: Int

    package init(count: Int, reason: Int32, run: Int) {
        self.count = count
        self.reason = reason
        self.run = run
    }
}

/// What a queue is built on: SQLite's way to its files, the files beside them, and the clock by which waiting is measured.
///
/// `SystemMedium` is the one of a device. The simulated world has its own, which loses what was not flushed.
package protocol QueueMedium: Sendable {
    /// The VFS that SQLite opens a queue with; nil = its own.
    var vfs: String? { get }
    /// The same without locks, for a file that no other process has open.
    var vfsWithoutLocks: String { get }
    /// Boot clock, nanoseconds.
    var now: Int64 { get }
    /// SQLite reports a page that could not be read as it does a damaged one: a count that has risen tells the two apart.
    var failedReads: FailedReads { get }

    func exists(_ path: String) -> Bool
    /// Bytes; 0 of a file that is not there.
    func size(_ path: String) -> Int64
    /// Names of the files in a directory, in no order; empty when it cannot be read.
    func names(in directory: String) -> [String]
    /// Makes an empty file that is its owner's alone; one that is there stays as it is.
    /// - Returns: `errno`, 0 = it is there.
    func create(_ path: String) -> Int32
    /// - Returns: `errno`, 0 = done.
    func rename(_ path: String, to other: String) -> Int32
    func remove(_ path: String)
    /// Makes names and renamings in a directory durable, as far as the medium can.
    /// - Returns: `errno`, 0 = done.
    @discardableResult
    func flush(directory: String) -> Int32
    /// What is at a path, links not followed; nil = nothing, or it cannot be told.
    func mark(_ path: String) -> FileMark?
    /// Keeps a file open.
    func hold(_ path: String) throws(OutboxError) -> any HeldFile
    /// Flushes a file, and makes reads of it from now on come from the medium.
    /// - Parameter isSuspect: a write or a flush has failed: the size is flushed as well, and an earlier error does not count.
    /// - Returns: `errno` of the flush; 0 = it was flushed, or is not there.
    func dropFromPageCache(_ path: String, isSuspect: Bool) -> Int32
    /// Of the file system that a file is on: bytes that may still be written, and bytes in all. nil = unknown.
    func space(of path: String) -> (available: Int64, size: Int64)?
    /// Keeps a second writer away from the queue at this path, as long as the object lives.
    /// - Throws: `.locked`, or why the lock cannot be had.
    func lock(_ path: String) throws(OutboxError) -> any QueueLock
    /// A descriptor that is readable once a file that it was given to `watch` was opened, renamed or removed by another; negative
    /// = none.
    func openWatch() -> Int32
    /// - Returns: whether that will be reported of the file.
    func watch(_ path: String, by descriptor: Int32) -> Bool
    /// Forgets what was reported so far.
    func drain(_ descriptor: Int32)
    func closeWatch(_ descriptor: Int32)
}

/// The file system of this host.
package struct SystemMedium: QueueMedium {
    package init() {}

    package var vfs: String? { nil }
    package var vfsWithoutLocks: String { "unix-none" }
    package var now: Int64 { waypost_boottime_ns() }

    package var failedReads: FailedReads {
        let failed = waypost_sqlite_failed_reads()
        return FailedReads(count: Int(failed.count), reason: failed.reason, run: Int(failed.run))
    }

    package func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    package func size(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }

    package func names(in directory: String) -> [String] { folderNames(directory) ?? [] }

    // One that is there is not opened: closing it would drop the locks that SQLite holds on it in this process.
    package func create(_ path: String) -> Int32 {
        if exists(path) { return 0 }
        let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        return 0
    }

    package func rename(_ path: String, to other: String) -> Int32 {
        Glibc.rename(path, other) == 0 ? 0 : errno
    }

    package func remove(_ path: String) { unlink(path) }

    package func flush(directory: String) -> Int32 {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        // Some file systems cannot flush a directory.
        return fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno
    }

    package func mark(_ path: String) -> FileMark? {
        var info = stat()
        return lstat(path, &info) == 0 ? FileMark(info) : nil
    }

    package func hold(_ path: String) throws(OutboxError) -> any HeldFile { try DescriptorFile(path) }

    package func dropFromPageCache(_ path: String, isSuspect: Bool) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var reason: Int32 = 0
        // The first flush may report an earlier error once more, whatever the medium does by now.
        for _ in 0..<(isSuspect ? 2 : 1) {
            // The file's size may be unflushed too, and is only written with a change.
            if isSuspect { futimens(descriptor, nil) }
            reason = fsync(descriptor) == 0 ? 0 : errno
            if reason == 0 { break }
        }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        return reason
    }

    package func space(of path: String) -> (available: Int64, size: Int64)? {
        var info = statvfs()
        guard statvfs(path, &info) == 0 else { return nil }
        let unit = Int64(clamping: info.f_frsize)
        let available = Int64(clamping: info.f_bavail).multipliedReportingOverflow(by: unit)
        let size = Int64(clamping: info.f_blocks).multipliedReportingOverflow(by: unit)
        // A size that overflows is space enough.
        return (
            available.overflow ? .max : available.partialValue, size.overflow ? .max : size.partialValue
        )
    }

    package func lock(_ path: String) throws(OutboxError) -> any QueueLock { try OutboxLock(path: path) }

    package func openWatch() -> Int32 { inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)) }

    package func watch(_ path: String, by descriptor: Int32) -> Bool {
        inotify_add_watch(descriptor, path, UInt32(IN_OPEN | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)) >= 0
    }

    package func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }

    package func closeWatch(_ descriptor: Int32) { close(descriptor) }
}
