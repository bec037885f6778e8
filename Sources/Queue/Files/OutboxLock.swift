import Glibc
import WaypostCore

/// Keeps a second writer away from a queue. The kernel drops it with the process, however that ends.
final class OutboxLock: QueueLock {
    private let descriptor: Int32
    private let file: String
    /// Locked where nothing can be written. It is enough for reading; before writing, it has to be locked again: there may be
    /// no file yet, and one that is there does not name this process.
    let isForReading: Bool
    private(set) var note = ""

    /// - Parameter path: of the queue; the lock file is beside it and is never deleted.
    init(path: String) throws(OutboxError) {
        let file = path + "-lock"
        self.file = file
        // Other users may be able to write in the directory: a link is not followed, and a pipe not waited for.
        let flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        var descriptor = open(file, O_RDWR | O_CREAT | flags, 0o600)
        isForReading = descriptor < 0 && errno == EROFS
        if isForReading {
            descriptor = open(file, O_RDONLY | flags)
            // Without a file there is no other writer, and none can come as long as the file system is read-only.
            if descriptor < 0, errno == ENOENT {
                self.descriptor = -1
                return
            }
        }
        guard descriptor >= 0 else {
            throw OutboxError(system: errno, path: path, doing: "open \(file)")
        }
        do throws(OutboxError) { try Self.lock(descriptor, file, path, isForReading: isForReading) } catch {
            Glibc.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        let lines = Self.text(in: descriptor, bytesMax: 256).split(separator: "\n")
        if lines.count == 2 { note = String(lines[1]) }
        leave(note)
    }

    /// After the id of this process, which is for the error message of a second instance. A full disk must not keep the daemon from
    /// starting.
    func leave(_ note: String) {
        guard descriptor >= 0 else { return }
        self.note = note
        let text = Array("\(getpid())\n\(note)\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, text, text.count, 0)
    }

    deinit {
        guard descriptor >= 0 else { return }
        // Closing alone would leave the lock with a child that was forked and has not come to its exec yet.
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    var isInPlace: Bool {
        var (there, locked) = (stat(), stat())
        guard descriptor >= 0, fstat(descriptor, &locked) == 0, lstat(file, &there) == 0 else { return false }
        return FileMark(there).isSameFile(as: FileMark(locked))
    }

    private static func lock(
        _ descriptor: Int32, _ file: String, _ path: String, isForReading: Bool
    ) throws(OutboxError) {
        var info = stat()
        var directory = stat()
        guard fstat(descriptor, &info) == 0, stat(path.parentDirectory, &directory) == 0 else {
            throw OutboxError(system: errno, path: path, doing: "check \(file)")
        }
        // A hard link may be anywhere, and another user's file is not ours to write.
        guard info.st_mode & S_IFMT == S_IFREG, info.st_nlink == 1,
            info.st_uid == geteuid() || info.st_uid == directory.st_uid
        else {
            throw OutboxError(
                .cannotOpen, path: path,
                message:
                    "\(file) is no lock file of this user or of the owner of its directory, or has another name too: "
                    + "remove it")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            if reason == EWOULDBLOCK {
                // Its holder may not have been able to write its pid.
                let pid = isForReading ? nil : pid(in: descriptor)
                throw OutboxError(.locked(pid: pid), path: path, message: "")
            }
            throw OutboxError(system: reason, path: path, doing: "lock \(file)")
        }
        // Even if root made it, it has to be the daemon's.
        if info.st_uid == 0, directory.st_uid != 0 { fchown(descriptor, directory.st_uid, directory.st_gid) }
    }

    private static func pid(in descriptor: Int32) -> Int32? {
        Int32(text(in: descriptor, bytesMax: 16).prefix { $0 > " " })
    }

    private static func text(in descriptor: Int32, bytesMax: Int) -> String {
        var buffer = [UInt8](repeating: 0, count: bytesMax)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }
}

extension OutboxError {
    init(system code: Int32, path: String, doing: String) {
        let cause: Cause =
            switch code {
            case ENOSPC, EDQUOT: .full
            case EROFS, EACCES, EPERM: .readOnly
            case EIO: .io
            default: .cannotOpen
            }
        self.init(cause, path: path, message: "\(doing): \(String(cString: strerror(code)))")
    }
}
