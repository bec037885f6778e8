import EventLoop
import Glibc

/// Writes whole buffers to a descriptor.
public struct OutputBuffer: Sendable {
    private let descriptor: Int32

    public init(descriptor: Int32 = STDOUT_FILENO) { self.descriptor = descriptor }

    /// - Throws: `SystemError`; EPIPE when the reader went away.
    public func write(_ bytes: [UInt8]) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, $0.count - written) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw SystemError(descriptor == STDOUT_FILENO ? "write to standard output" : "write the output")
            }
            written += count
        }
    }
}
