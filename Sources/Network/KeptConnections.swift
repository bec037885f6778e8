import Glibc
import Protocols
import WaypostCore

/// The open connections of libcurl, so that those that it keeps can be looked at before one carries another request.
///
/// Whatever arrives on a kept connection while no request is under way would be taken for the answer to the next request:
/// libcurl 7.88 sees that a connection was closed, but not that bytes wait on it. They are looked for only then, since to watch
/// idle connections would wake the process.
final class KeptConnections {
    private struct Connection {
        var peer: String
        /// As a socket address.
        let address: [UInt8]
        /// When the last request over it ended; nil = none has, or it may carry no other one.
        var keptSince: EventTime?
    }

    /// Answers that nobody had asked for. Encrypted ones cannot be told from other records of TLS, and do not count.
    private(set) var unaskedAnswers = 0
    private var connections: [Int32: Connection] = [:]
    /// What the link that this host has now does with silent connections.
    private(set) var silence = SilenceLimit()

    /// - Parameter address: a socket address.
    func opened(_ descriptor: Int32, to peer: Peer, at address: [UInt8]) {
        connections[descriptor] = Connection(peer: Self.key(peer), address: address)
    }

    /// To be called before the number of the descriptor can be given to another file.
    func closed(_ descriptor: Int32) { connections[descriptor] = nil }

    /// A request on it has ended, and libcurl may keep it.
    func kept(_ descriptor: Int32, at now: EventTime) { connections[descriptor]?.keptSince = now }

    /// A request that began then was answered over a kept connection, or nothing of it was acknowledged.
    func ended(_ descriptor: Int32, beganAt began: EventTime, wasAnswered: Bool) {
        guard let since = connections[descriptor]?.keptSince else { return }
        let past = began.duration(since: since)
        if wasAnswered { silence.survived(past) } else { silence.lost(after: past) }
    }

    /// Whether it is bound to an address from which nothing leaves towards its peer any more; false for one that is not known.
    func isStranded(_ descriptor: Int32) -> Bool {
        connections[descriptor].map { HostRoute.isGone(descriptor, to: $0.address) } ?? false
    }

    /// Shuts the idle connections that are stranded.
    ///
    /// - Parameters:
    ///   - hasChanged: there is another link.
    ///   - busy: descriptors of requests that are under way.
    func linksChanged(_ hasChanged: Bool, except busy: [Int32]) {
        if hasChanged { silence = SilenceLimit() }
        for (descriptor, connection) in connections where connection.keptSince != nil && !busy.contains(descriptor) {
            guard isStranded(descriptor) else { continue }
            // libcurl owns it, as below.
            shutdown(descriptor, Int32(SHUT_RDWR))
            connections[descriptor]?.keptSince = nil
        }
    }

    /// Shuts the idle connections to a peer on which something has arrived.
    ///
    /// - Parameter busy: descriptors of requests that are under way.
    /// - Returns: whether there was one: the next request needs a connection of its own.
    func shutUnclean(to peer: Peer, except busy: [Int32]) -> Bool {
        let key = Self.key(peer)
        let idle = connections.filter { $1.keptSince != nil && $1.peer == key && !busy.contains($0) }.keys
        guard !idle.isEmpty else { return false }
        var looks = idle.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&looks, nfds_t(looks.count), 0) > 0 else { return false }
        for look in looks where look.revents != 0 {
            var byte: UInt8 = 0
            if !peer.isSecure, recv(look.fd, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0 { unaskedAnswers += 1 }
            // libcurl owns the descriptor, and closes a connection that has ended.
            shutdown(look.fd, Int32(SHUT_RDWR))
            connections[look.fd]?.keptSince = nil
        }
        return true
    }

    private static func key(_ peer: Peer) -> String { "\(peer.isSecure) \(peer)" }
}
