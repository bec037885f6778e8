import CLinux
import EventLoop
import Glibc
import Positioning

/// Where a command writes: standard output, or a file that appears whole or not at all.
///
/// The content comes together in a file without a name, which takes the name with ``commit()``. Without that, what was there
/// before stays as it was, and nothing is left behind, however the process ends. A new file has mode 0600, since it contains
/// positions.
public final class OutputFile {
    /// Where to write; valid as long as this object.
    public let descriptor: Int32
    /// The file that is to appear; nil where it is written in place.
    private var target: String?
    /// The name of the content where a file system knows no files without a name; nil = it has none yet.
    private var temporary: String?

    private static let linksMax = 40
    private static let namesMax = 100

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
        let target = Self.resolved(path)
        var file = waypost_open_unnamed(target.parentDirectory)
        if file < 0, errno == EOPNOTSUPP || errno == EISDIR {
            var name = Array("\(target).XXXXXX".utf8CString)
            file = mkstemp(&name)
            if file >= 0 { temporary = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self) }
        }
        descriptor = file
        guard file >= 0 else { throw SystemError("create \(path)") }
        self.target = target
    }

    /// The content is complete: gives the file its name. Nothing where it is written in place.
    /// - Throws: `SystemError` when it cannot be brought to the disk, or renamed; then nothing has changed.
    public func commit() throws(SystemError) {
        guard let target else { return }
        guard fsync(descriptor) == 0 else { throw SystemError("write \(target)") }
        // A link does not replace a file, a new name does.
        if temporary == nil { temporary = try link(beside: target) }
        guard let temporary, rename(temporary, target) == 0 else { throw SystemError("write \(target)") }
        (self.target, self.temporary) = (nil, nil)
    }

    deinit {
        if let temporary { unlink(temporary) }
        if descriptor != STDOUT_FILENO { close(descriptor) }
    }

    /// - Returns: a name that no other file had.
    private func link(beside target: String) throws(SystemError) -> String {
        for number in 0..<Self.namesMax {
            let name = "\(target).\(getpid())-\(number)"
            if linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 { return name }
            guard errno == EEXIST else { break }
        }
        throw SystemError("write \(target)")
    }

    /// What links lead to, whether it is there or not: that is replaced, not the link.
    private static func resolved(_ path: String) -> String {
        var path = path
        for _ in 0..<linksMax {
            if let resolved = realpath(path, nil) {
                defer { free(resolved) }
                return String(cString: resolved)
            }
            var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
            let count = bytes.withUnsafeMutableBytes { buffer in
                buffer.baseAddress.map { readlink(path, $0, buffer.count) } ?? -1
            }
            guard count > 0 else { break }
            let next = String(decoding: bytes[..<count], as: UTF8.self)
            path = next.hasPrefix("/") ? next : "\(path.parentDirectory)/\(next)"
        }
        return path
    }
}
