import EventLoop
import Glibc

/// Where a command writes: standard output, or a file that appears whole or not at all.
///
/// The content comes together in a file beside it, which takes its name with ``commit()``. Without that, what was there before
/// stays as it was. A new file has mode 0600, since it contains positions.
public final class OutputFile {
    /// Where to write; valid as long as this object.
    public let descriptor: Int32
    /// Names of the file and of the one that becomes it; nil where it is written in place.
    private var pending: (path: String, temporary: String)?

    /// - Parameter path: nil and `-` are standard output. A device or a pipe is written in place.
    /// - Throws: `SystemError` when the file cannot be made.
    public init(path: String?) throws(SystemError) {
        guard let path, path != "-" else {
            descriptor = STDOUT_FILENO
            return
        }
        var info = stat()
        if stat(path, &info) == 0, info.st_mode & S_IFMT != S_IFREG {
            descriptor = open(path, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw SystemError("write \(path)") }
            return
        }
        // What a link names is replaced, not the link.
        var target = path
        if let resolved = realpath(path, nil) {
            target = String(cString: resolved)
            free(resolved)
        }
        var name = Array("\(target).XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { throw SystemError("create \(path)") }
        pending = (target, String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
    }

    /// The content is complete: gives the file its name. Nothing where it is written in place.
    /// - Throws: `SystemError` when it cannot be brought to the disk, or renamed; then nothing has changed.
    public func commit() throws(SystemError) {
        guard let (path, temporary) = pending else { return }
        guard fsync(descriptor) == 0, rename(temporary, path) == 0 else { throw SystemError("write \(path)") }
        pending = nil
    }

    deinit {
        if let pending { unlink(pending.temporary) }
        if descriptor != STDOUT_FILENO { close(descriptor) }
    }
}
