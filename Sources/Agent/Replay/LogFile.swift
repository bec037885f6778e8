import Glibc

/// Reads a log, or standard input (`-`), in chunks.
public enum LogFile {
    private static let chunkBytes = 1 << 18

    /// Calls `body` with each chunk, in order, until the end.
    /// - Throws: `SystemError` when the file cannot be opened or read; a directory is EISDIR.
    public static func read(_ path: String, _ body: (Span<UInt8>) -> Void) throws(SystemError) {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(path) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkBytes, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError(path) }
            guard count > 0 else { return }
            let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
            body(Span(_unsafeBytes: bytes))
        }
    }
}

/// Writes whole buffers to a descriptor, through one reused buffer.
public struct OutputBuffer: ~Copyable {
    public var bytes: [UInt8] = []
    private let descriptor: Int32
    private static let flushBytes = 1 << 16

    public init(descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
        bytes.reserveCapacity(2 * Self.flushBytes)
    }

    /// Writes when enough has come together.
    /// - Throws: `SystemError`; EPIPE when the reader went away.
    public mutating func flushIfFull() throws(SystemError) {
        if bytes.count >= Self.flushBytes { try flush() }
    }

    public mutating func flush() throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + written, $0.count - written) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write") }
            written += count
        }
        bytes.removeAll(keepingCapacity: true)
    }
}
