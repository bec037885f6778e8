import CLinux
import Delivery
import Glibc
import Positioning

/// The answering end of the control socket: a Unix stream socket with JSON lines, one reply for each request.
///
/// The socket is 0660, so that the group of the unit may ask. A client that floods, idles or sends long lines is closed;
/// nothing it does holds the loop up.
final class ControlServer {
    typealias Answer = (ControlRequest, ControlTicket, inout JSONWriter) throws(ControlError) -> Void

    private static let clientsMax = 16
    /// A client has this long to finish sending a command and to take the reply.
    private static let patience = Duration.seconds(5)
    /// An answer that waits for a disk or a server is kept for so long.
    private static let postponedPatience = ControlTicket.patience + .seconds(5)

    private final class Client {
        let descriptor: Int32
        var received: [UInt8] = []
        var unsent: [UInt8] = []
        var deadline: EventTime?
        /// The request that is being answered: the lines after it wait.
        var ticket: ControlTicket?

        init(descriptor: Int32) { self.descriptor = descriptor }
    }

    private let path: String
    private let loop: EventLoop
    private let listener: Int32
    private let answer: Answer
    private var clients: [Int32: Client] = [:]
    private var patienceAlarm: EventLoop.Alarm?
    private var listenAgainAlarm: EventLoop.Alarm?

    /// Listens. A socket file that a dead daemon left behind is replaced; one that answers is not.
    /// - Parameters:
    ///   - group: group that may connect besides the owner; nil keeps the group of the process.
    ///   - answer: writes the members of the reply to a request, or postpones its ticket and finishes that later.
    /// - Throws: `SystemError`; EADDRINUSE when another daemon listens there.
    init(
        path: String, group: gid_t?, loop: EventLoop,
        answer: @escaping Answer
    ) throws(SystemError) {
        self.path = path
        self.loop = loop
        self.answer = answer
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard listener >= 0 else { throw SystemError("socket") }
        self.listener = listener
        do throws(SystemError) {
            try Self.removeStaleSocket(path)
            try withUnixAddress(path) { (address, length) throws(SystemError) in
                guard bind(listener, address, length) == 0 else { throw SystemError("bind \(path)") }
            }
            // Under a umask of 0077 bind gives 0700: widen it before anyone can connect.
            guard chmod(path, 0o660) == 0 else { throw SystemError("chmod \(path)") }
            if let group { guard chown(path, uid_t.max, group) == 0 else { throw SystemError("chown \(path)") } }
            guard listen(listener, 8) == 0 else { throw SystemError("listen \(path)") }
            try watchListener()
        } catch {
            Glibc.close(listener)
            throw error
        }
        listenAgainAlarm = loop.alarm { [unowned self] now in
            do throws(SystemError) { try watchListener() } catch { listenAgainAlarm?.deadline = now + .seconds(1) }
        }
        patienceAlarm = loop.alarm { [unowned self] now in dropIdleClients(at: now) }
    }

    private func watchListener() throws(SystemError) {
        try loop.watch(listener) { [unowned self] _, now in accept(at: now) }
    }

    func close() {
        for client in Array(clients.values) { drop(client) }
        loop.forget(listener)
        // While we still listen, nobody else takes the name.
        unlink(path)
        Glibc.close(listener)
    }

    private static func removeStaleSocket(_ path: String) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        // A file that somebody named by mistake is not ours to remove.
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SystemError("bind \(path)", code: EEXIST) }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { throw SystemError("socket") }
        defer { Glibc.close(probe) }
        let (alive, code) = try withUnixAddress(path) { address, length in
            (connect(probe, address, length) == 0, errno)
        }
        if alive || code == EAGAIN { throw SystemError("bind \(path)", code: EADDRINUSE) }
        if code == ECONNREFUSED { unlink(path) }
    }

    private func accept(at now: EventTime) {
        let descriptor = waypost_accept(listener)
        guard descriptor >= 0 else {
            // Without descriptors the listener would stay ready and keep the loop spinning.
            if errno == EMFILE || errno == ENFILE {
                loop.forget(listener)
                listenAgainAlarm?.deadline = now + .seconds(1)
            }
            return
        }
        // Whoever has idled longest makes room, so that clients that hang keep nobody out.
        if clients.count >= Self.clientsMax,
            let idlest = clients.values.min(by: { ($0.deadline ?? now) < ($1.deadline ?? now) })
        {
            drop(idlest)
        }
        let client = Client(descriptor: descriptor)
        client.deadline = now + Self.patience
        clients[descriptor] = client
        watch(client)
        armPatience()
    }

    private func watch(_ client: Client) {
        do throws(SystemError) {
            try loop.watch(client.descriptor, readable: client.unsent.isEmpty, writable: !client.unsent.isEmpty) {
                [unowned self] readiness, now in
                if readiness.writable, !client.unsent.isEmpty { flush(client) }
                if readiness.readable { receive(client, at: now) }
            }
        } catch {
            drop(client)
        }
    }

    private func receive(_ client: Client, at now: EventTime) {
        guard clients[client.descriptor] === client else { return }
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = recv(client.descriptor, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0, client.received.count + count <= ControlFrame.bytesMax else { return drop(client) }
        client.received += chunk[..<count]
        // A line that comes in drops has no longer than one that does not come.
        if client.received.contains(0x0A) { client.deadline = now + Self.patience }
        serve(client, at: now)
    }

    /// Answers the lines that have come, up to one whose answer takes longer.
    private func serve(_ client: Client, at now: EventTime) {
        while client.ticket == nil, let end = client.received.firstIndex(of: 0x0A) {
            let line = Array(client.received[..<end])
            client.received.removeSubrange(...end)
            do throws(ControlError) {
                respond(to: try ControlFrame.decode(line), of: client, at: now)
            } catch {
                client.unsent += ControlFrame.failure(id: nil, error) + [0x0A]
            }
        }
        flush(client)
        armPatience()
    }

    private func respond(to request: ControlRequest, of client: Client, at now: EventTime) {
        let ticket = ControlTicket(id: request.id, peer: waypost_peer_uid(client.descriptor))
        let reply = ControlFrame.reply(to: request.id) { (writer) throws(ControlError) in
            try answer(request, ticket, &writer)
        }
        guard ticket.isPostponed else { return client.unsent += reply + [0x0A] }
        client.ticket = ticket
        client.deadline = now + Self.postponedPatience
        ticket.deliver = { [weak self, weak client] late in
            guard let self, let client, client.ticket != nil, clients[client.descriptor] === client else { return }
            client.ticket = nil
            client.unsent += late + [0x0A]
            client.deadline = loop.now + Self.patience
            serve(client, at: loop.now)
        }
    }

    private func flush(_ client: Client) {
        guard clients[client.descriptor] === client else { return }
        while !client.unsent.isEmpty {
            let count = client.unsent.withUnsafeBytes {
                Glibc.send(client.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EAGAIN { break }
            guard count > 0 else { return drop(client) }
            client.unsent.removeFirst(count)
        }
        watch(client)
    }

    private func drop(_ client: Client) {
        guard clients.removeValue(forKey: client.descriptor) != nil else { return }
        loop.forget(client.descriptor)
        Glibc.close(client.descriptor)
    }

    private func dropIdleClients(at now: EventTime) {
        for client in Array(clients.values) where client.deadline.map({ $0 <= now }) ?? false { drop(client) }
        armPatience()
    }

    private func armPatience() {
        patienceAlarm?.deadline = clients.values.compactMap(\.deadline).min()
    }
}
