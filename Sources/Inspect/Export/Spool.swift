import Glibc
import WaypostHost

/// Bytes that are needed later: in memory while they are few, then in a file without a name.
final class Spool {
    private static let bytesMax = 1 << 18

    private let folder: String
    private var bytes: [UInt8] = []
    private var descriptor: Int32 = -1

    /// - Parameter folder: where the file is made if one is needed.
    init(folder: String) { self.folder = folder }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    func append(_ text: String) throws(SystemError) { try append(Array(text.utf8)) }

    func append(_ more: [UInt8]) throws(SystemError) {
        bytes += more
        guard bytes.count > Self.bytesMax else { return }
        if descriptor < 0 { descriptor = try Self.file(in: folder) }
        try OutputBuffer(descriptor: descriptor).write(bytes)
        bytes.removeAll(keepingCapacity: true)
    }

    /// Passes everything on in order, and is empty again.
    func drain(_ take: ([UInt8]) throws(SystemError) -> Void) throws(SystemError) {
        if descriptor >= 0 {
            guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw SystemError("read \(folder)") }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw SystemError("read \(folder)") }
                if count == 0 { break }
                try take(Array(buffer[..<count]))
            }
            guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
                throw SystemError("empty a file in \(folder)")
            }
        }
        let rest = bytes
        bytes.removeAll(keepingCapacity: true)
        try take(rest)
    }

    private static func file(in folder: String) throws(SystemError) -> Int32 {
        var name = Array("\(folder)/waypost.XXXXXX".utf8CString)
        let descriptor = mkstemp(&name)
        guard descriptor >= 0 else { throw SystemError("create a file in \(folder)") }
        unlink(name)
        return descriptor
    }
}
