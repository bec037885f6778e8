import CLinux
import Glibc
import WaypostHost

/// A connection to the control socket that stays open, and blocks only to connect, if that is wanted: a daemon that hangs must
/// not keep `q` of `waypost top` from working.
package final class ControlSession {
    private let path: String
    private let connectSeconds: Int
    /// -1 = not connected.
    package private(set) var descriptor: Int32 = -1
    private var received: [UInt8] = []

    /// - Parameter connectSeconds: for so long it waits where many connect at once; 0 = not at all.
    package init(path: String, connectSeconds: Int = 0) { (self.path, self.connectSeconds) = (path, connectSeconds) }

    deinit { close() }

    /// The process that listens, as the kernel noted it; nil = not connected, or it is hidden from this process.
    package var peer: Int? {
        let process = descriptor < 0 ? 0 : waypost_peer_pid(descriptor)
        return process > 0 ? Int(process) : nil
    }

    package func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
        received = []
    }

    /// Sends requests, and connects first where there is no connection.
    /// - Parameter lines: no longer than a frame: the socket takes them at once.
    package func send(_ lines: [[UInt8]]) throws(SystemError) {
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
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (connectSeconds > 0 ? 0 : SOCK_NONBLOCK.rawValue)
        descriptor = socket(AF_UNIX, Int32(type), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        var limit = timeval(tv_sec: connectSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let (path, descriptor) = (self.path, self.descriptor)
        // Root gives its orders to no daemon that another user has put in place of this one by a link.
        let place =
            geteuid() == 0
            ? try PathWalk(path, to: "connect") { (part) throws(SystemError) in
                guard !part.isLinkOfOthers else {
                    throw SystemError("connect \(path): \(part.path) is a link that another user can set", code: EPERM)
                }
            } : nil
        let name = place.flatMap { $0.status == nil ? nil : $0.pathOfFile } ?? path
        try withUnixAddress(name) { (address, length) throws(SystemError) in
            while Glibc.connect(descriptor, address, length) != 0 {
                guard errno == EINTR else { throw SystemError("connect \(path)") }
            }
        }
    }

    /// Takes what has come.
    /// - Returns: whole replies, without their line feeds.
    /// - Throws: when the connection has ended; a reply that is too long ends it too.
    package func receive() throws(SystemError) -> [[UInt8]] {
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
