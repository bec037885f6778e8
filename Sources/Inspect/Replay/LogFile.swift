import Glibc
import WaypostHost

/// Reads a log, or standard input (`-`), in chunks.
package enum LogFile {
    private static let chunkBytes = 1 << 18

    /// Bytes of all files together; nil where one is no regular file.
    package static func bytes(_ paths: [String]) -> Int64? {
        var sum: Int64 = 0
        for path in paths {
            var info = stat()
            guard path != "-", stat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
            sum += Int64(info.st_size)
        }
        return sum
    }

    /// Calls `body` with each chunk, in order, until the end or until it returns false.
    /// - Throws: `SystemError` when the file cannot be opened or read; a directory is EISDIR.
    package static func read(_ path: String, _ body: (Span<UInt8>) -> Bool) throws(SystemError) {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(path) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
        var buffer = [UInt8](repeating: 0, count: chunkBytes)
        while true {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError(path) }
            guard count > 0, body(buffer.span.extracting(first: count)) else { return }
        }
    }
}
