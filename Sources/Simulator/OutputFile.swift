import Glibc

/// A file, or standard output, written through a buffer of 64 kB.
final class OutputFile {
    struct Failure: Error, CustomStringConvertible {
        let path: String
        let code: Int32

        var description: String { "\(path): cannot be written: \(String(cString: strerror(code)))" }
    }

    private let path: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(path: String?) throws {
        self.path = path ?? "standard output"
        descriptor = path.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644) } ?? STDOUT_FILENO
        if descriptor < 0 { throw Failure(path: self.path, code: errno) }
    }

    func write(_ bytes: [UInt8]) throws {
        buffer += bytes
        if buffer.count >= 65_536 { try flush() }
    }

    func close() throws {
        try flush()
        guard descriptor != STDOUT_FILENO else { return }
        if Glibc.close(descriptor) != 0 { throw Failure(path: path, code: errno) }
    }

    private func flush() throws {
        var done = 0
        while done < buffer.count {
            let written = buffer.withUnsafeBytes { bytes in
                Glibc.write(descriptor, bytes.baseAddress! + done, bytes.count - done)
            }
            if written > 0 {
                done += written
            } else if errno != EINTR {
                throw Failure(path: path, code: errno)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
