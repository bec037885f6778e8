import Glibc
import WaypostCore
import WaypostHost

/// Writes whole buffers to a descriptor.
package struct OutputBuffer: Sendable {
    private let descriptor: Int32
    /// Names and words of others may steer a terminal; a file or a program gets them as they are.
    private let isTerminal: Bool

    package init(descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
    }

    /// - Parameter bytes: whole characters.
    /// - Throws: `SystemError`; EPIPE when the reader went away.
    package func write(_ bytes: [UInt8]) throws(SystemError) {
        let bytes = isTerminal ? Array(String(decoding: bytes, as: UTF8.self).visibleLines.utf8) : bytes
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
