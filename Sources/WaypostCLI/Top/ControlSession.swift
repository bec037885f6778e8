import ControlProtocol
import EventLoop
import Glibc
import Positioning

/// A connection to the control socket that stays open and never blocks: a daemon that hangs must not keep `q` from working.
final class ControlSession {
    private let path: String
    /// -1 = not connected.
    private(set) var descriptor: Int32 = -1
    private var received: [UInt8] = []

    init(path: String) { self.path = path }

    deinit { close() }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
        received = []
    }

    /// Sends requests, and connects first where there is no connection.
    /// - Parameter lines: at most a few hundred bytes: the socket takes them at once.
    func send(_ lines: [[UInt8]]) throws(SystemError) {
        do throws(SystemError) {
            if descriptor < 0 { try connect() }
            let bytes = Array(lines.map { $0 + [0x0A] }.joined())
            let count = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            guard count == bytes.count else { throw SystemError("send to \(path)", code: count < 0 ? errno : EAGAIN) }
        } catch {
            close()
            throw error
        }
    }

    private func connect() throws(SystemError) {
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        descriptor = socket(AF_UNIX, Int32(type), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        let (path, descriptor) = (self.path, self.descriptor)
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            guard Glibc.connect(descriptor, address, length) == 0 else { throw SystemError("connect \(path)") }
        }
    }

    /// Takes what has come.
    /// - Returns: whole replies, without their line feeds.
    /// - Throws: when the connection has ended; a reply that is too long ends it too.
    func receive() throws(SystemError) -> [[UInt8]] {
        var chunk = [UInt8](repeating: 0, count: ControlFrame.bytesMax)
        let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return [] }
            let error = SystemError("reply from \(path)", code: count == 0 ? ECONNRESET : errno)
            close()
            throw error
        }
        received += chunk[..<count]
        var lines: [[UInt8]] = []
        while let end = received.firstIndex(of: 0x0A) {
            lines.append(Array(received[..<end]))
            received.removeSubrange(...end)
        }
        guard received.count <= ControlFrame.bytesMax else {
            close()
            throw SystemError("reply from \(path)", code: EMSGSIZE)
        }
        return lines
    }
}
