import Glibc
import WaypostCore
import WaypostHost

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
    package func ask(_ request: [UInt8]) throws(SystemError) -> [UInt8] { try answer(to: request).line }

    /// The same, and the process that answered; nil = it is hidden from this one.
    package func answer(to request: [UInt8]) throws(SystemError) -> (line: [UInt8], process: Int?) {
        let session = ControlSession(path: path, connectSeconds: timeoutSeconds)
        let end = HostClock.bootTime + .seconds(timeoutSeconds)
        try session.send([request])
        while true {
            if let reply = try session.receive().first { return (reply, session.peer) }
            let rest = end.duration(since: HostClock.bootTime).milliseconds
            guard rest > 0 else { throw SystemError("reply from \(path)", code: ETIMEDOUT) }
            var input = pollfd(fd: session.descriptor, events: Int16(POLLIN), revents: 0)
            // Time and signals end it too; then there is nothing to receive.
            _ = poll(&input, 1, Int32(min(rest + 1, 60_000)))
        }
    }
}
