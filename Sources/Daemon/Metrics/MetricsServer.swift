import Configuration
import Glibc
import Sensors
import WaypostControl
import WaypostCore
import WaypostHost

/// Answers `GET /metrics`: one short request for each connection, few connections, and little time for each.
final class MetricsServer {
    private static let clientsMax = 4
    private static let headBytesMax = 4096
    private static let timeout = Duration.seconds(5)

    private final class Client {
        let descriptor: Int32
        let deadline: EventTime
        var head: [UInt8] = []
        /// nil until the request is complete; then what is not sent yet.
        var unsent: ArraySlice<UInt8>?

        init(descriptor: Int32, deadline: EventTime) { (self.descriptor, self.deadline) = (descriptor, deadline) }
    }

    private let hostName: String?
    private let loop: EventLoop
    private let status: () -> Status
    private var clients: [Int32: Client] = [:]
    private var listener: Listener?
    private var timeoutAlarm: EventLoop.Alarm?

    /// - Parameter status: the numbers as of now.
    /// - Throws: `SystemError` where it cannot listen.
    init(
        _ address: SocketAddress, hostName: String?, loop: EventLoop, status: @escaping () -> Status
    ) throws(SystemError) {
        (self.hostName, self.loop, self.status) = (hostName, loop, status)
        listener = try Listener(Self.listen(address), loop: loop) { [unowned self] in accepted($0, at: $1) }
        timeoutAlarm = loop.alarm { [unowned self] now in endTimeouts(at: now) }
    }

    private static func listen(_ address: SocketAddress) throws(SystemError) -> Int32 {
        let listener = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard listener >= 0 else { throw SystemError("socket for \(address)") }
        // A daemon that starts again need not wait for connections of the one before.
        var yes: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout.size(ofValue: yes)))
        let isBound = address.withPointer { bind(listener, $0, $1) == 0 }
        guard isBound, Glibc.listen(listener, 8) == 0 else {
            let error = SystemError("listen on \(address)")
            Glibc.close(listener)
            throw error
        }
        return listener
    }

    /// The port in use, which the system chooses for port 0.
    var port: UInt16 { listener.flatMap { SocketAddress(ofSocket: $0.descriptor) }?.port ?? 0 }

    func close() {
        for client in Array(clients.values) { drop(client) }
        listener?.close()
    }

    private func accepted(_ descriptor: Int32, at now: EventTime) {
        // Whoever came first makes room, so that clients that hang keep no one out.
        if clients.count >= Self.clientsMax, let oldest = clients.values.min(by: { $0.deadline < $1.deadline }) {
            drop(oldest)
        }
        let client = Client(descriptor: descriptor, deadline: now + Self.timeout)
        clients[descriptor] = client
        watch(client)
        armTimeout()
    }

    private func watch(_ client: Client) {
        do throws(SystemError) {
            try loop.watch(client.descriptor, readable: true, writable: !(client.unsent ?? []).isEmpty) {
                [unowned self] readiness, _ in
                if readiness.readable { receive(client) }
                if readiness.writable { send(client) }
            }
        } catch { drop(client) }
    }

    private func receive(_ client: Client) {
        guard clients[client.descriptor] === client else { return }
        var chunk = [UInt8](repeating: 0, count: Self.headBytesMax)
        let count = recv(client.descriptor, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        // It has hung up: before its request, or after the answer that it came for.
        guard count > 0 else { return drop(client) }
        // What follows a request is thrown away.
        guard client.unsent == nil else { return }
        client.head += chunk[..<count]
        if let end = Self.headEnd(client.head) {
            answer(MetricsRequest(head: Array(client.head[..<end]), hostName: hostName), client)
        } else if client.head.count >= Self.headBytesMax {
            answer(.refused("431 Request Header Fields Too Large", "the head is longer than 4096 bytes"), client)
        }
    }

    /// Where the empty line after the fields begins.
    private static func headEnd(_ head: [UInt8]) -> Int? {
        var isLineEmpty = false
        for (index, byte) in head.enumerated() {
            if byte == 0x0A {
                if isLineEmpty { return index }
                isLineEmpty = true
            } else if byte != 0x0D {
                isLineEmpty = false
            }
        }
        return nil
    }

    private func answer(_ request: MetricsRequest, _ client: Client) {
        client.head = []
        client.unsent = request.reply(status)[...]
        send(client)
    }

    private func send(_ client: Client) {
        guard clients[client.descriptor] === client, let unsent = client.unsent, !unsent.isEmpty else { return }
        let count = unsent.withUnsafeBytes {
            Glibc.send(client.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno != EAGAIN, errno != EINTR { return drop(client) }
        client.unsent?.removeFirst(max(0, count))
        // Closed at once, an answer could be lost to what the client has sent and nobody has read: it closes first.
        if client.unsent?.isEmpty == true { shutdown(client.descriptor, Int32(SHUT_WR)) }
        watch(client)
    }

    private func drop(_ client: Client) {
        guard clients.removeValue(forKey: client.descriptor) != nil else { return }
        loop.forget(client.descriptor)
        Glibc.close(client.descriptor)
    }

    private func endTimeouts(at now: EventTime) {
        for client in Array(clients.values) where client.deadline <= now { drop(client) }
        armTimeout()
    }

    private func armTimeout() { timeoutAlarm?.deadline = clients.values.map(\.deadline).min() }
}
