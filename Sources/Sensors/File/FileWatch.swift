import CLinux
import Glibc
import WaypostCore

/// Reports that a file may have grown, was cut, or that its name points to another one.
final class FileWatch {
    /// Readable when something has happened.
    let fd: Int32
    private let path: String

    /// nil where the kernel reports nothing: no inotify instance is left, or a file system on which others write.
    init?(path: String, of file: InputFile) {
        self.path = path
        guard !Self.isRemote(file.fd) else { return nil }
        fd = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard fd >= 0 else { return nil }
        guard watchFile(), inotify_add_watch(fd, path.parentDirectory, UInt32(IN_CREATE | IN_MOVED_TO)) >= 0 else {
            return nil
        }
    }

    deinit {
        if fd >= 0 { close(fd) }
    }

    /// Watches the file that the path names now, beside earlier ones.
    @discardableResult func watchFile() -> Bool {
        inotify_add_watch(fd, path, UInt32(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)) >= 0
    }

    /// Forgets what has happened so far.
    func drain() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(fd, buffer.baseAddress, buffer.count) > 0 {}
        }
    }

    /// NFS, SMB, FUSE and 9P: writes by another host are not reported.
    private static func isRemote(_ fd: Int32) -> Bool {
        [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997].contains(waypost_filesystem_magic(fd))
    }
}
