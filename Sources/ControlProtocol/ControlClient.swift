import EventLoop
import Glibc

/// The client's end of the control socket: connects, sends one line, reads one line.
///
///     let client = ControlClient(path: "/run/waypost/control.sock")
///     let status = try client.send(StatusRequest())
///     print(status.motion.state, status.queue.depth)
public struct ControlClient {
    private let path: String
    private let timeoutSeconds: Int

    /// Seconds that are enough for a reply that waits for a disk or a server.
    public static let longestSeconds = 40

    public init(path: String, timeoutSeconds: Int = 5) {
        self.path = path
        self.timeoutSeconds = timeoutSeconds
    }

    /// - Throws: `SystemError` where no daemon answers, `ControlError` where it refuses.
    public func send<Request: ControlRequest>(_ request: Request) throws -> Request.Reply {
        try ControlFrame.read(ask(ControlFrame.line(request)))
    }

    /// - Parameter request: one JSON object without a line feed.
    /// - Returns: the reply, without its line feed.
    /// - Throws: `SystemError`; ENOENT and ECONNREFUSED mean that no daemon listens.
    package func ask(_ request: [UInt8]) throws(SystemError) -> [UInt8] {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let path = self.path
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            guard connect(descriptor, address, length) == 0 else { throw SystemError("connect \(path)") }
        }
        let line = request + [0x0A]
        var sent = 0
        while sent < line.count {
            let count = line[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw SystemError("send to \(path)") }
            sent += count
        }
        var reply: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while reply.last != 0x0A {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count != 0 else { throw SystemError("reply from \(path)", code: ECONNRESET) }
            guard count > 0 else {
                throw SystemError("reply from \(path)", code: errno == EAGAIN ? ETIMEDOUT : errno)
            }
            reply += chunk[..<count]
            guard reply.count <= ControlFrame.bytesMax else {
                throw SystemError("reply from \(path)", code: EMSGSIZE)
            }
        }
        reply.removeLast()
        return reply
    }
}
