import CLinux
import Glibc
import WaypostControl
import WaypostCore
import WaypostHost

/// The server end of the control socket: a Unix stream socket with JSON lines, one reply per request, in order.
///
/// The socket is 0660, so that the unit's group may connect. The loop serves one line at a time and does its other work
/// before the next. A client is not read while a line of its own waits, nor served before it has taken its last reply,
/// so that one frame at most is kept in each direction. One that floods, idles or sends long lines is dropped.
final class ControlServer {
    typealias Answer = (RequestFrame, ControlTicket) throws(ControlError) -> any ControlMessage

    private static let clientsMax = 16
    /// A client has this long to finish sending a command and to take the reply.
    private static let timeout = Duration.seconds(5)

    private final class Client {
        let descriptor: Int32
        /// Not served yet: its first line, and at most one read beyond it.
        var received: [UInt8] = []
        var unsent: ArraySlice<UInt8> = []
        var deadline: EventTime
        /// The request that is being answered: the lines after it wait.
        var ticket: ControlTicket?
        /// It will send nothing more, and may still take what it has asked for.
        var hasEnded = false

        init(descriptor: Int32, deadline: EventTime) {
            self.descriptor = descriptor
            self.deadline = deadline
        }

        var lineEnd: Int? { received.firstIndex(of: 0x0A) }
        var isIdle: Bool { ticket == nil && unsent.isEmpty }
    }

    private let path: String
    private let loop: EventLoop
    private let answer: Answer
    private let postponedTimeout: Duration
    private var clients: [Int32: Client] = [:]
    /// Whose next line waits until the loop has done other work, first come, first served.
    private var turns: [Client] = []
    private var turnAlarm: EventLoop.Alarm?
    private var listener: Listener?
    private var timeoutAlarm: EventLoop.Alarm?

    /// Listens. A socket file that a dead daemon left behind is replaced; one that answers is not.
    /// - Parameters:
    ///   - group: group that may connect besides the owner; nil keeps the group of the process.
    ///   - postponedTimeout: how long an answer may take that waits for a disk or a server.
    ///   - answer: gives the reply to a request, or postpones its ticket and finishes that later.
    /// - Throws: `SystemError`; EADDRINUSE when another daemon listens there.
    init(
        path: String, group: gid_t?, loop: EventLoop,
        postponedTimeout: Duration = ControlTicket.timeout + .seconds(5), answer: @escaping Answer
    ) throws(SystemError) {
        self.path = path
        self.loop = loop
        self.answer = answer
        self.postponedTimeout = postponedTimeout
        listener = try Listener(Self.listen(path, group), loop: loop) { [unowned self] in accepted($0, at: $1) }
        turnAlarm = loop.alarm { [unowned self] now in takeTurn(at: now) }
        timeoutAlarm = loop.alarm { [unowned self] now in endTimeouts(at: now) }
    }

    private static func listen(_ path: String, _ group: gid_t?) throws(SystemError) -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard listener >= 0 else { throw SystemError("socket") }
        do throws(SystemError) {
            try removeStaleSocket(path)
            try bind(listener, path, group)
            guard Glibc.listen(listener, 8) == 0 else { throw SystemError("listen \(path)") }
        } catch {
            Glibc.close(listener)
            throw error
        }
        return listener
    }

    func close() {
        for client in Array(clients.values) { drop(client) }
        // First, since once we stop listening another daemon may take the name.
        unlink(path)
        listener?.close()
    }

    /// No one can connect before `listen`, so this sets the group in time. Anyone who can write to the directory may
    /// have replaced the socket meanwhile: the group is changed only of a socket of ours with a single link.
    private static func bind(_ listener: Int32, _ path: String, _ group: gid_t?) throws(SystemError) {
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            // The file is created with this mode: it never has another, and no chmod by name is needed.
            let mask = umask(0o117)
            defer { umask(mask) }
            guard Glibc.bind(listener, address, length) == 0 else { throw SystemError("bind \(path)") }
        }
        guard let group else { return }
        let file = waypost_open_path(AT_FDCWD, path, false)
        guard file >= 0 else { throw SystemError("open \(path)") }
        defer { Glibc.close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw SystemError("stat \(path)") }
        guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid(), status.st_nlink == 1 else {
            throw SystemError("chown \(path)", code: EPERM)
        }
        guard waypost_chgrp(file, group) == 0 else { throw SystemError("chown \(path)") }
    }

    private static func removeStaleSocket(_ path: String) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        // A file that was named by mistake is not ours to remove.
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

    private func accepted(_ descriptor: Int32, at now: EventTime) {
        // Whoever has idled longest makes room, so that clients that hang keep no one out.
        if clients.count >= Self.clientsMax,
            let idlest = clients.values.min(by: { $0.deadline < $1.deadline })
        {
            drop(idlest)
        }
        let client = Client(descriptor: descriptor, deadline: now + Self.timeout)
        clients[descriptor] = client
        watch(client)
        armTimeout()
    }

    private func watch(_ client: Client) {
        let reads = client.isIdle && !client.hasEnded && client.lineEnd == nil
        do throws(SystemError) {
            try loop.watch(client.descriptor, readable: reads, writable: !client.unsent.isEmpty) {
                [unowned self] readiness, now in
                // Readable without being asked for: the client has hung up.
                if readiness.readable, !reads, client.unsent.isEmpty { return drop(client) }
                if readiness.writable, !client.unsent.isEmpty { flush(client) }
                if readiness.readable, reads { receive(client, at: now) }
            }
        } catch {
            drop(client)
        }
    }

    private func receive(_ client: Client, at now: EventTime) {
        var chunk = [UInt8](repeating: 0, count: min(4096, ControlFrame.bytesMax - client.received.count))
        let count = recv(client.descriptor, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count >= 0 else { return drop(client) }
        if count == 0 { client.hasEnded = true }
        client.received += chunk[..<count]
        if client.lineEnd == nil, client.received.count == ControlFrame.bytesMax { return drop(client) }
        serve(client, at: now)
    }

    /// Answers the next line if it is complete and the last reply has been taken.
    private func serve(_ client: Client, at now: EventTime) {
        guard clients[client.descriptor] === client else { return }
        if client.isIdle, let end = client.lineEnd {
            let line = Array(client.received[..<end])
            client.received.removeSubrange(...end)
            // A line that trickles in gets no more time than one that never comes.
            client.deadline = now + Self.timeout
            do throws(ControlError) {
                respond(to: try RequestFrame(line), of: client, at: now)
            } catch {
                client.unsent = ControlFrame.failure(id: nil, error) + [0x0A]
            }
        }
        flush(client)
        armTimeout()
    }

    private func respond(to request: RequestFrame, of client: Client, at now: EventTime) {
        let ticket = ControlTicket(id: request.id, peer: waypost_peer_uid(client.descriptor))
        let reply = ControlFrame.reply(to: request.id) { () throws(ControlError) in try answer(request, ticket) }
        guard ticket.isPostponed else { return client.unsent = reply + [0x0A] }
        client.ticket = ticket
        client.deadline = now + postponedTimeout
        ticket.deliver = { [weak self, weak client, unowned ticket] late in
            guard let self, let client, client.ticket === ticket, clients[client.descriptor] === client else { return }
            client.ticket = nil
            client.unsent = late + [0x0A]
            client.deadline = loop.now + Self.timeout
            flush(client)
            armTimeout()
        }
    }

    private func flush(_ client: Client) {
        while !client.unsent.isEmpty {
            let count = client.unsent.withUnsafeBytes {
                Glibc.send(client.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EAGAIN { break }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return drop(client) }
            client.unsent.removeFirst(count)
        }
        if client.isIdle {
            if client.lineEnd != nil {
                queue(client)
            } else if client.hasEnded {
                return drop(client)
            }
        }
        watch(client)
    }

    private func queue(_ client: Client) {
        guard !turns.contains(where: { $0 === client }) else { return }
        turns.append(client)
        turnAlarm?.deadline = loop.now
    }

    private func takeTurn(at now: EventTime) {
        guard !turns.isEmpty else { return }
        serve(turns.removeFirst(), at: now)
        if !turns.isEmpty { turnAlarm?.deadline = loop.now }
    }

    private func drop(_ client: Client) {
        guard clients.removeValue(forKey: client.descriptor) != nil else { return }
        client.ticket?.isAbandoned = true
        turns.removeAll { $0 === client }
        loop.forget(client.descriptor)
        Glibc.close(client.descriptor)
    }

    private func endTimeouts(at now: EventTime) {
        for client in Array(clients.values) where client.deadline <= now {
            guard let ticket = client.ticket else {
                drop(client)
                continue
            }
            ticket.finish(
                .failure(
                    ControlError("timeout", "the request is taking too long", hint: "it is still being carried out")))
        }
        armTimeout()
    }

    private func armTimeout() {
        timeoutAlarm?.deadline = clients.values.map(\.deadline).min()
    }
}
