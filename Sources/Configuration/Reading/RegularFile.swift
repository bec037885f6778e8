import CLinux
import Glibc

/// A regular file, opened for reading. Nothing else is ever opened, not even to find out what it is: a device may act when it is
/// opened, and a pipe waits or wakes its other end.
package struct RegularFile: ~Copyable {
    package let descriptor: Int32
    package let status: stat

    package enum Failure: Error {
        /// errno of the call that failed.
        case system(Int32)
        /// `S_IFDIR`, `S_IFIFO` and so on: its kind.
        case notRegular(mode_t)
    }

    /// - Parameter followsLinks: whether the last part of the path may be a link.
    package init(_ path: String, followsLinks: Bool = true) throws(Failure) {
        let place = waypost_open_path(AT_FDCWD, path, followsLinks)
        guard place >= 0 else { throw .system(errno) }
        defer { close(place) }
        var found = stat()
        guard fstat(place, &found) == 0 else { throw .system(errno) }
        guard found.st_mode & S_IFMT == S_IFREG else { throw .notRegular(found.st_mode & S_IFMT) }
        // What was looked at, whatever has its name by now.
        let file = open("/proc/self/fd/\(place)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw .system(errno) }
        (descriptor, status) = (file, found)
    }

    deinit { close(descriptor) }
}
